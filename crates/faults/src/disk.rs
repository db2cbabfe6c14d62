//! Disk: a disk under a node's volume goes wrong; healed, it is as it was, and what was lost meanwhile stays lost.

use crate::Evidence;
use crate::registry::FaultKindEntry;

/// Its line in the list.
pub const ENTRY: FaultKindEntry = FaultKindEntry {
    name: "disk",
    summary: "a disk fails, stalls, slows down, fills up, reads wrongly, loses flushes, becomes read-only; a cache disk takes its group",
    example: "faults: [{ disk: { of: leader, how: fail }, for: 20s }]",
};

/// What must be seen before it counts as having taken effect.
pub const TOOK_EFFECT: &[Evidence] = &[Evidence::DiskBehavesAsAsked];

/// What must be seen before it counts as healed.
pub const HEALED: &[Evidence] = &[Evidence::DiskIsSound];
