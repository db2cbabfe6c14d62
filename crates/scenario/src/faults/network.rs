//! Network faults: the network between places gets worse.

use std::time::Duration;

use serde::Serialize;

use super::receipts::{self, OfAllFaults, Share};
use super::targets::{ElectedRole, FaultTarget, Surroundings, both, one_way};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{CONDITIONS, ENDS_AND_CONDITIONS, Fields};
use crate::network::{self, EndsDocument, Of, decode_conditions, decode_ends};
use crate::rejection::{Findings, Spot};
use crate::resolved::Conditions;
use crate::tree::Entry;

pub(super) const KIND: FaultKind = FaultKind {
    name: "network",
    noun: "network fault",
    summary: "between two places, one way or both: delay, jitter, loss, duplicates, reordering, corruption, rate",
    meaning: "the network between two places gets a delay, jitter, loss, duplicates, reordering, corruption, a rate or a queue; conditions that are not given stay as the links set them. Evidence: the measured delay is within 2 % + 0.2 ms (with jitter 5 % + 0.2 ms, or the sampling error if that is larger), a rate within 2 %, a share within its 99.99 % interval",
    examples: &[
        "- { network: { from: dc1, to: dc2, delay: 50ms }, for: 20s }",
        "- { network: { between: [dc1, a-follower], delay: 20ms, jitter: { normal: 3ms }, loss: 1% } }",
        "- { network: { between: [dc1, dc2], rate: 10Mbit/s, queue: 64KiB } }",
        "- { network: { between: [dc1, dc2], delay: 80ms }, for: 20s, flap: { down: 2s, up: 3s } }",
    ],
    story: Story { clause: Clause::Target("the network changed"), nodes: Nodes::With },
    keys: &NETWORK,
    key_meaning: "the network between two places changes; conditions that are not given stay as the links set them",
    comes_and_goes: true,
    is_external: false,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

/// A network fault.
static NETWORK: Fields = Fields {
    what: "a network fault",
    fields: ENDS_AND_CONDITIONS,
    exactly_one_of: &["between", "from"],
    at_least_one_of: CONDITIONS,
    pair: Some(("from", "to")),
};

/// The network between places changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NetworkFault {
    /// The directions that change, each from one place to another; a fault between two places has both.
    pub directions: Vec<(FaultTarget, FaultTarget)>,
    /// What they become. What is given replaces the links' own; what is absent stays as the links have it.
    pub conditions: Conditions,
}

impl Facts for NetworkFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        let ends = self.directions.iter().flat_map(|(from, to)| [from, to]);
        ends.filter_map(|end| end.elected()).collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::NothingJudged("it changes network performance, not reachability")
    }

    fn form(&self) -> Option<Form<'_>> {
        let (from, to) = self.directions.first()?;
        let ways = if self.directions.len() > 1 { "both ways" } else { "one way" };
        let changed: Vec<&str> = network::given(&self.conditions).map(|(name, _)| name).collect();
        let name = format!("{ways}: {}", changed.join(", "));
        Some(Form { name, aim: Aim::Between(from, to) })
    }

    fn written(&self) -> String {
        // Two directions are always those between the same two ends.
        let ends = match self.directions.as_slice() {
            [(from, to), _, ..] => both(from, to),
            [(from, to)] => one_way(from, to),
            [] => String::new(),
        };
        format!("{ends}{}", network::written(&self.conditions))
    }
}

struct Document {
    ends: EndsDocument,
    conditions: Conditions,
    shares: Vec<Share>,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &NETWORK)?;
    let conditions = decode_conditions(&record, Of::Fault, decoder);
    let shares = ["loss", "duplicate", "reorder", "corrupt"].into_iter();
    let shares = shares.filter_map(|name| Some(Share { name, at: record.key_at(name)? })).collect();
    Some(Box::new(Document { ends: decode_ends(&record, decoder)?, conditions, shares }))
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let (from, to) = around.ends(&self.ends, "a network fault", findings)?;
        let back = self.ends.both_ways.then(|| (to.clone(), from.clone()));
        let directions = std::iter::once((from, to)).chain(back).collect();
        Some(FaultAction::Network(NetworkFault { directions, conditions: self.conditions.clone() }))
    }

    fn conditions(&self) -> Option<&Conditions> {
        Some(&self.conditions)
    }

    /// What is seen only by filling a link, or by a series of packets, is not seen in turns.
    fn check_flap(&self, flap_at: Spot, decoder: &mut Decoder) {
        let unseen = [
            ("rate", self.conditions.rate_bits_per_s.is_some()),
            ("queue", self.conditions.queue.is_some()),
            ("mtu", self.conditions.mtu_bytes.is_some()),
        ];
        if let Some((name, _)) = unseen.into_iter().find(|(_, is_given)| *is_given) {
            decoder.findings.add(
                "no-receipt",
                flap_at,
                format!(
                    "`{name}` cannot be verified while it flaps: one measurement takes longer than one turn"
                ),
                "not possible with this condition",
                format!("remove `flap`, and write several faults with `at` and `for`; or remove `{name}`"),
            );
        }
    }

    fn check_receipt(
        &self,
        action: &FaultAction,
        stands: Duration,
        (around, all): (&Surroundings<'_>, OfAllFaults),
        findings: &mut Findings,
    ) {
        if let FaultAction::Network(fault) = action {
            receipts::check(&self.shares, fault, stands, (around.network, all), findings);
        }
    }
}
