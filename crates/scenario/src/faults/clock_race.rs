//! A node's wall clock races.

use super::clock::{OF_NODE, SIGNED_PERCENT, document, race};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain, required};

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-race",
    noun: "clock race",
    summary: "a node's wall clock runs much too fast or too slow, as in a guest that miscounts its ticks",
    meaning: "the wall clock of a node runs faster or slower by a share of the true speed, for every program on it; on healing it is corrected in one step. Evidence: a separate program on the node reads the growing offset, within 1 ms",
    examples: &[
        "- { clock-race: { node: leader, by: 50% }, for: 10s }",
        "- { clock-race: { node: a-follower, by: -20% }, for: 10s }",
    ],
    story: Story { clause: Clause::Target("a clock raced"), nodes: Nodes::On },
    keys: &CLOCK_RACE,
    key_meaning: "a node's wall clock runs much too fast or too slow",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| {
        let record = decoder.record(&entry.value, &CLOCK_RACE)?;
        let deviation = race(&record, decoder);
        document(&record, deviation, FaultAction::ClockRace, decoder)
    },
};

static CLOCK_RACE: Fields = plain(
    "a clock race",
    &[
        OF_NODE,
        required("by", SIGNED_PERCENT, "how much faster it runs, 1% to 1000%, or slower, -1% to -99%"),
    ],
);
