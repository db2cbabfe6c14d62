//! What a scenario can ask for: roles, engines and workloads. Kinds of faults are in `faults`. For `holdfast list`,
//! `holdfast explain` and the decoder.
//!
//! Owns names and their meaning; what they do is elsewhere. Quantities to expect are [`crate::quantity`]'s.

use capabilities::workloads;
use yaml::language::Field;

/// Engines a scenario may name.
#[must_use]
pub fn engines() -> &'static [&'static str] {
    capabilities::names()
}

/// Workloads a scenario may name.
pub const WORKLOADS: &[&str] = workloads::NAMES;

/// Roles a fault may be aimed at instead of a name.
pub const ROLES: &[RoleEntry] = &[
    RoleEntry {
        name: "leader",
        meaning: "the place of the leader when the fault starts; the fault waits up to 5 s for a leader",
    },
    RoleEntry {
        name: "a-follower",
        meaning: "the place of one follower, drawn from the seed; the fault waits up to 5 s for a leader",
    },
    RoleEntry {
        name: "coordinator",
        meaning: "for an engine without a leader: the place of one of the nodes, drawn from the seed",
    },
    RoleEntry { name: "random", meaning: "the place of one node, drawn from the seed" },
];

/// An option of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// What it means, one line.
    pub meaning: &'static str,
    /// What it is when absent; none where that follows from others, or where it is a list.
    pub default: Option<&'static str>,
}

/// The options of a workload, in the order they are told to people.
#[must_use]
pub fn options(workload: &str) -> Vec<OptionEntry> {
    let Some(table) = workloads::table(workload) else { return Vec::new() };
    let entry = |field: &'static Field| OptionEntry {
        name: field.name,
        meaning: field.meaning,
        default: workloads::default(workload, field.name),
    };
    table.fields.fields.iter().map(entry).collect()
}

/// What `holdfast list roles` says of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// Which place it stands for.
    pub meaning: &'static str,
}
