//! A node's wall clock is set: forward or back.

use super::clock::{OF_NODE, SIGNED_DURATION, document, jump};
use super::{Clause, FaultAction, FaultKind, Nodes, Story};
use crate::language::{Fields, plain, required};

pub(super) const KIND: FaultKind = FaultKind {
    name: "clock-jump",
    noun: "clock jump",
    summary: "a node's wall clock is set forward or back, as after a stun or by a wrong time server",
    meaning: "the wall clock of a node is set, for every program on it at once; on healing it is corrected in one step. Evidence: a separate program on the node reads the offset, within 1 ms, and another node's clock does not change",
    examples: &[
        "- { clock-jump: { node: leader, by: 5s }, for: 10s }",
        "- { clock-jump: { node: n2, by: -500ms }, at: 2s, for: 10s }",
        "- { clock-jump: { node: all, by: 1h }, for: 10s }",
    ],
    story: Story { clause: Clause::Target("a clock jumped"), nodes: Nodes::On },
    keys: &CLOCK_JUMP,
    key_meaning: "a node's wall clock is set forward or back",
    comes_and_goes: false,
    is_external: false,
    in_pods: false,
    read: |entry, decoder| {
        let record = decoder.record(&entry.value, &CLOCK_JUMP)?;
        let deviation = jump(&record, decoder);
        document(&record, deviation, FaultAction::ClockJump, decoder)
    },
};

static CLOCK_JUMP: Fields = plain(
    "a clock jump",
    &[OF_NODE, required("by", SIGNED_DURATION, "how far it is set forward, or back; 10ms to ten years")],
);
