//! The list of fault kinds.

/// A kind of fault, for a person to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultKindEntry {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// An example, as it stands in a scenario.
    pub example: &'static str,
}

/// Every kind there is.
pub const KINDS: &[FaultKindEntry] = &[
    FaultKindEntry {
        name: "power-off",
        summary: "every host of a host, rack, zone or region loses power; nodes die without a chance to tidy up",
        example: "faults: [{ power-off: { host: leader }, at: 2s, for: 20s }]",
    },
    FaultKindEntry {
        name: "network",
        summary: "between two places, one way or both: delay, jitter, loss, duplicates, reordering, corruption, rate",
        example: "faults: [{ network: { from: dc1, to: dc2, delay: 50ms }, for: 20s }]",
    },
    FaultKindEntry {
        name: "partition",
        summary: "nothing gets through: around a place, between two, one way, or nodes in halves, on a bridge, in a ring",
        example: "faults: [{ partition: { isolate: leader }, at: 2s, for: 15s }]",
    },
    FaultKindEntry {
        name: "disk",
        summary: "a disk fails, stalls, slows down, fills up, reads wrongly, loses flushes, becomes read-only; a cache disk takes its group",
        example: "faults: [{ disk: { of: leader, how: fail }, for: 20s }]",
    },
    FaultKindEntry {
        name: "process",
        summary: "a node's database processes are killed, stopped for a time (a zombie primary), or restarted; the node stays up",
        example: "faults: [{ process: { of: leader, how: stop }, for: 10s }]",
    },
    FaultKindEntry {
        name: "pressure",
        summary: "a noisy neighbour takes a share of a node's processors",
        example: "faults: [{ pressure: { of: leader, processor: 80% }, for: 10s }]",
    },
];
