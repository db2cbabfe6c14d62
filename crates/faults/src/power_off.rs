//! Power-off: every host of the target loses power at once, with all nodes on it; healed, its hosts have power again.

use crate::Evidence;
use crate::registry::FaultKindEntry;

/// Its line in the list.
pub const ENTRY: FaultKindEntry = FaultKindEntry {
    name: "power-off",
    summary: "every host of a host, rack, zone or region loses power; nodes die without a chance to tidy up",
    example: "faults: [{ power-off: { host: leader }, at: 2s, for: 20s }]",
};

/// What must be seen before it counts as having taken effect.
pub const TOOK_EFFECT: &[Evidence] = &[Evidence::NoProcessLeft, Evidence::AddressesSilent];

/// What must be seen before it counts as healed.
pub const HEALED: &[Evidence] = &[Evidence::HostsAnswer, Evidence::NodesAnswer];
