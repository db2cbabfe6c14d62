//! A node's wall clock runs a little too fast or too slowly.

use super::clock::{OF_NODE, PARTS_PER_MILLION, document, drift};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain, required};

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-drift",
    noun: "clock drift",
    summary: "a node's wall clock runs a little too fast or too slowly, as a bad oscillator does",
    meaning: "the wall clock of a node gains or loses, for every program on it; when healed it is set right in one step. Shown \
              when a program of its own on the node reads the offset, within 1 ms, as it grows",
    examples: &["- { clock-drift: { node: random, rate: 200ppm }, for: 30s }"],
    story: Story { clause: Clause::Target("a clock drifted"), nodes: Nodes::On },
    keys: &CLOCK_DRIFT,
    key_meaning: "a node's wall clock runs a little too fast or too slowly",
    comes_and_goes: false,
    read: |entry, decoder| {
        let record = decoder.record(&entry.value, &CLOCK_DRIFT)?;
        let deviation = drift(&record, decoder);
        document(&record, deviation, FaultAction::ClockDrift, decoder)
    },
};

static CLOCK_DRIFT: Fields = plain(
    "a clock drift",
    &[
        OF_NODE,
        required("rate", PARTS_PER_MILLION, "how much it gains, or loses, in millionths: 10ppm to 10000ppm"),
    ],
);
