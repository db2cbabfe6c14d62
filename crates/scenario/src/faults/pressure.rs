//! Pressure on a node: a share of its processors is taken.

use serde::Serialize;

use super::targets::{NodeTarget, Surroundings};
use super::{Clause, Facts, FaultAction, FaultKind, Need, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Fields, NODE, Shape, plain, required};
use crate::rejection::{Findings, Spanned, Spot};
use crate::tree::Entry;
use crate::units::format_percent;

/// Less than that is not told from a busy machine.
const LEAST_SHARE: f64 = 0.1;
/// With more taken than that not even the node's init would answer in time.
const MOST_SHARE: f64 = 0.99;

pub(super) const KIND: FaultKind = FaultKind {
    name: "pressure",
    noun: "pressure fault",
    summary: "a noisy neighbour takes a share of a node's processors",
    meaning: "a noisy neighbour takes a share of the processors that a node may use (`database.cpus`, or the whole machine's); the node's control group limits it to the rest. Evidence: the kernel throttles the node, and the node uses no more than the rest",
    examples: &[
        "- { pressure: { of: leader, processor: 80% }, for: 10s }",
        "- { pressure: { of: random, processor: 50% }, for: 5s, every: 10s }",
    ],
    story: Story { clause: Clause::Target("a neighbour took processors"), nodes: Nodes::On },
    keys: &PRESSURE,
    key_meaning: "a node gets only part of its processors",
    comes_and_goes: false,
    is_external: false,
    read: |entry, decoder| decode(entry, decoder),
};

static PRESSURE: Fields = plain(
    "a pressure fault",
    &[
        required("of", NODE, "the node: by name (n1), or by role: leader, a-follower, random"),
        required(
            "processor",
            Shape::Percent,
            "share of the node's processors (`database.cpus`, or the whole machine's) that a noisy neighbour takes, \
             10% to 99%; the node's control group limits it to the rest",
        ),
    ],
);

/// A node has less of what it runs on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PressureFault {
    /// The node.
    pub node: NodeTarget,
    /// The share of its processors that is taken, 0 to 1.
    pub processor: f64,
}

impl Facts for PressureFault {
    fn aims_at_leader(&self) -> bool {
        self.node == NodeTarget::Leader
    }

    fn takes(&self) -> Takes<'_> {
        Takes::NothingJudged("it slows a node down and does not change reachability")
    }

    fn written(&self) -> String {
        format!("of: {}, processor: {}", self.node, format_percent(self.processor))
    }

    fn needs(&self) -> Option<Need> {
        Some(Need::ControlGroups)
    }
}

struct Document {
    node: Spanned<String>,
    processor: Spanned<f64>,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &PRESSURE)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let processor = record.get("processor").and_then(|node| decoder.percent(node, "`processor`"))?;
    let share = format_percent(processor.value);
    if processor.value < LEAST_SHARE {
        let message = format!("a neighbour that takes {share} of the processors");
        decoder.findings.add(
            "too-small",
            processor.at,
            message,
            "too little to be shown",
            "write 10% or more",
        );
    } else if processor.value > MOST_SHARE {
        let message = format!("a neighbour that takes {share} of the processors leaves the node none");
        let help = "write 99% or less; `process: { how: stop }` stops a node completely";
        decoder.findings.add("too-large", processor.at, message, "too much", help);
    }
    Some(Box::new(Document { node: node?, processor }))
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let node = around.node(&self.node, findings)?;
        Some(FaultAction::Pressure(PressureFault { node, processor: self.processor.value }))
    }
}
