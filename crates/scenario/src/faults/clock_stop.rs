//! A node's wall clock stands still.

use super::clock::{ClockDeviation, OF_NODE, document};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain};
use crate::rejection::Spanned;

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-stop",
    noun: "clock stop",
    summary: "a node's wall clock stands still",
    meaning: "the wall clock of a node shows the same time to every program on it until it is healed, and is set right in one \
              step then. Shown when a program of its own on the node reads the offset, within 1 ms, as it grows",
    examples: &["- { clock-stop: { node: leader }, for: 10s }"],
    story: Story { clause: Clause::Target("a clock stood still"), nodes: Nodes::On },
    keys: &CLOCK_STOP,
    key_meaning: "a node's wall clock stands still",
    comes_and_goes: false,
    read: |entry, decoder| {
        let record = decoder.record(&entry.value, &CLOCK_STOP)?;
        let deviation = Spanned { value: ClockDeviation::Stop, at: entry.key_at };
        document(&record, Some(deviation), FaultAction::ClockStop, decoder)
    },
};

static CLOCK_STOP: Fields = plain("a clock stop", &[OF_NODE]);
