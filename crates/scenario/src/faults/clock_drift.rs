//! A node's wall clock runs a little too fast or too slowly.

use super::clock::{OF_NODE, PARTS_PER_MILLION, document, drift};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain, required};

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-drift",
    noun: "clock drift",
    summary: "a node's wall clock runs slightly fast or slow, as with a bad oscillator",
    meaning: "the wall clock of a node runs slightly fast or slow, for every program on it; on healing it is corrected in one step. Evidence: a separate program on the node reads the growing offset, within 1 ms",
    examples: &["- { clock-drift: { node: random, rate: 200ppm }, for: 30s }"],
    story: Story { clause: Clause::Target("a clock drifted"), nodes: Nodes::On },
    keys: &CLOCK_DRIFT,
    key_meaning: "a node's wall clock runs slightly fast or slow",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
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
        required(
            "rate",
            PARTS_PER_MILLION,
            "how fast it gains or loses time, in parts per million: 10ppm to 10000ppm",
        ),
    ],
);
