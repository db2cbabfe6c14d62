//! The list of fault kinds: one line each.

use crate::{disk, network, partition, power_off};

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
pub const KINDS: &[FaultKindEntry] = &[power_off::ENTRY, network::ENTRY, partition::ENTRY, disk::ENTRY];
