//! A node's wall clock stands still.

use super::clock::{ClockDeviation, OF_NODE, document};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain};
use crate::rejection::Spanned;

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-stop",
    noun: "clock stop",
    summary: "a node's wall clock stops",
    meaning: "the wall clock of a node stops for every program on it; on healing it is corrected in one step. Evidence: a separate program on the node reads the growing offset, within 1 ms",
    examples: &["- { clock-stop: { node: leader }, for: 10s }"],
    story: Story { clause: Clause::Target("a clock stopped"), nodes: Nodes::On },
    keys: &CLOCK_STOP,
    key_meaning: "a node's wall clock stops",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| {
        let record = decoder.record(&entry.value, &CLOCK_STOP)?;
        let deviation = Spanned { value: ClockDeviation::Stop, at: entry.key_at };
        document(&record, Some(deviation), FaultAction::ClockStop, decoder)
    },
};

static CLOCK_STOP: Fields = plain("a clock stop", &[OF_NODE]);
