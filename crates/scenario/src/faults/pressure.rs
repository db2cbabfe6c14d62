//! Pressure on a node: a share of its processors or of its memory is taken.

use serde::Serialize;

use super::targets::{ElectedRole, NodeTarget, Surroundings};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Need, Nodes, Story, Takes, Written};
use crate::decode::Decoder;
use crate::language::{Field, Fields, NODE, Shape, optional, required};
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
    summary: "a noisy neighbour takes a share of a node's processors or memory",
    meaning: "a noisy neighbour takes a share of the processors that a node may use (`database.cpus`, or the whole machine's), or of the memory that it uses when the fault strikes; the node's control group limits it to the rest. Short of memory the kernel kills processes of the node; what has ended for good is started again when the fault is healed. Evidence: the kernel throttles the node or counts that it met its limit, and the node uses no more than the rest",
    examples: &[
        "- { pressure: { of: leader, processor: 80% }, for: 10s }",
        "- { pressure: { of: random, processor: 50% }, for: 5s, every: 10s }",
        "- { pressure: { of: leader, memory: 40% }, for: 10s }",
    ],
    story: Story { clause: Clause::Target("a neighbour used CPU or memory of the node"), nodes: Nodes::On },
    keys: &PRESSURE,
    key_meaning: "a node gets only part of its processors or memory",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| decode(entry, decoder),
};

const OF: Field = required("of", NODE, "the node: by name (n1), or by role: leader, a-follower, random");
const PROCESSOR: Field = optional(
    "processor",
    Shape::Percent,
    "share of the node's processors (`database.cpus`, or the whole machine's) that a noisy neighbour takes, 10% to 99%; the \
     node's control group limits it to the rest",
);
const MEMORY: Field = optional(
    "memory",
    Shape::Percent,
    "share of the memory that the node uses when the fault strikes, the page cache of its files included, that a noisy neighbour \
     takes, 10% to 99%; the kernel takes back what it can and kills processes of the node that want more",
);

static PRESSURE: Fields = Fields {
    what: "a pressure fault",
    fields: &[OF, PROCESSOR, MEMORY],
    exactly_one_of: &["processor", "memory"],
    at_least_one_of: &[],
    pair: None,
};

/// A node has less of what it runs on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PressureFault {
    pub node: NodeTarget,
    /// What is taken.
    pub taken: Taken,
}

/// What a neighbour takes of a node, as a share from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// Of the processors that it may use.
    Processor(f64),
    /// Of the memory that it uses when the fault strikes.
    Memory(f64),
}

impl Taken {
    /// As it stands in a scenario: `processor: 80%`.
    #[must_use]
    pub fn written(self) -> String {
        match self {
            Taken::Processor(share) => format!("processor: {}", format_percent(share)),
            Taken::Memory(share) => format!("memory: {}", format_percent(share)),
        }
    }
}

impl Facts for PressureFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        self.node.elected().into_iter().collect()
    }

    fn takes(&self) -> Takes<'_> {
        Takes::NothingJudged(match self.taken {
            Taken::Processor(_) => "it slows a node down and does not change reachability",
            Taken::Memory(_) => "which processes the kernel kills for want of memory is not known before",
        })
    }

    fn form(&self) -> Option<Form<'_>> {
        let name = match self.taken {
            Taken::Processor(_) => "processor",
            Taken::Memory(_) => "memory",
        };
        Some(Form::new(name, Aim::Node(self.node)))
    }

    fn written(&self) -> String {
        format!("of: {}, {}", self.node, self.taken.written())
    }

    fn needs(&self) -> Option<Need> {
        Some(match self.taken {
            Taken::Processor(_) => Need::ControlGroups,
            Taken::Memory(_) => Need::MemoryGroups,
        })
    }
}

struct Document {
    node: Spanned<String>,
    taken: Taken,
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
    let record = decoder.record(&entry.value, &PRESSURE)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let (name, given) = record.first_of(PRESSURE.exactly_one_of)?;
    let written = decoder.percent(&given.value, &format!("`{name}`"))?;
    let of = if name == "memory" { "memory" } else { "processors" };
    let share = format_percent(written.value);
    if written.value < LEAST_SHARE {
        let message = format!("a neighbour that takes {share} of the {of}");
        decoder.findings.add("too-small", written.at, message, "too little to be shown", "write 10% or more");
    } else if written.value > MOST_SHARE {
        let message = format!("a neighbour that takes {share} of the {of} leaves the node none");
        let help = "write 99% or less; `process: { how: stop }` stops a node completely";
        decoder.findings.add("too-large", written.at, message, "too much", help);
    }
    let taken = if name == "memory" { Taken::Memory(written.value) } else { Taken::Processor(written.value) };
    Some(Box::new(Document { node: node?, taken }))
}

impl Written for Document {
    fn resolve(&self, _: Spot, around: &Surroundings<'_>, findings: &mut Findings) -> Option<FaultAction> {
        let node = around.node(&self.node, findings)?;
        Some(FaultAction::Pressure(PressureFault { node, taken: self.taken }))
    }
}
