//! What a scenario can ask for: faults, roles, engines and workloads. For `holdfast list`,
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
    RoleEntry { name: "leader", meaning: "where the leader is when the fault strikes" },
    RoleEntry { name: "a-follower", meaning: "where a follower is; which one, the seed decides" },
    RoleEntry {
        name: "coordinator",
        meaning: "on an engine without a leader: where one of the nodes is that take writes; which one, the seed decides",
    },
    RoleEntry { name: "random", meaning: "a place that holds a node; which one, the seed decides" },
];

/// Faults a scenario may schedule.
pub const FAULTS: &[FaultEntry] = &[
    FaultEntry {
        name: "power-off",
        meaning: "every host of the target loses power at once, and has it back when the fault is healed",
        examples: &[
            "- { power-off: { host: leader }, at: 0s, for: 20s }",
            "- { power-off: { host: random }, for: 5s, every: 10s }",
        ],
    },
    FaultEntry {
        name: "network",
        meaning: "between two places the network gets a delay, jitter, loss, duplicates, reordering, corruption, a rate or a queue; what is not given stays as the links have it; shown when a delay is within 2 % + 0.2 ms (with jitter 5 % + 0.2 ms or what chance leaves), a rate within 2 %, a share in its 99.99 % interval",
        examples: &[
            "- { network: { from: dc1, to: dc2, delay: 50ms }, for: 20s }",
            "- { network: { between: [dc1, a-follower], delay: 20ms, jitter: { normal: 3ms }, loss: 1% } }",
            "- { network: { between: [dc1, dc2], rate: 10Mbit/s, queue: 64KiB } }",
            "- { network: { between: [dc1, dc2], delay: 80ms }, for: 20s, flap: { down: 2s, up: 3s } }",
        ],
    },
    FaultEntry {
        name: "partition",
        meaning: "nothing gets through: around a place, between two places or one way, or among the database's nodes (halves, bridge, ring); shown when of 500 datagrams or more in each direction, sent all the time it stands, none arrives and the network lets no packet through",
        examples: &[
            "- { partition: { isolate: leader }, at: 2s, for: 15s }",
            "- { partition: { from: dc1, to: dc2 } }",
            "- { partition: { between: [dc1, dc2], answer: reset } }",
            "- { partition: { halves: nodes } }",
            "- { partition: { bridge: leader } }",
            "- { partition: { ring: nodes } }",
            "- { partition: { between: [dc1, dc2] }, for: 20s, flap: { down: 1s, up: 2s } }",
        ],
    },
    FaultEntry {
        name: "disk",
        meaning: "a disk under a node's volume fails, stalls, slows down, fills up, reads wrongly, loses flushes or becomes read-only, until it is cleared; a cache disk takes its group with it",
        examples: &[
            "- { disk: { of: leader, how: fail }, for: 20s }",
            "- { disk: { cache-of: leader, how: stall }, for: 5s }",
            "- { disk: { disk: r1/h2/d1, how: { slow: 20ms } } }",
            "- { disk: { of: a-follower, how: { fail-after: 1000 } } }",
            "- { disk: { of: leader, how: { corrupt: { reads: 1%, checksums: true } } } }",
            "- { disk: { of: leader, how: lose-flush }, for: 10s }",
        ],
    },
    FaultEntry {
        name: "process",
        meaning: "the database's processes on a node are killed (and started again after 1s, if `restart` does not say otherwise), stopped by SIGSTOP until the fault is healed, or restarted in order; the node keeps its power, its memory and its addresses",
        examples: &[
            "- { process: { of: leader, how: kill } }",
            "- { process: { of: leader, how: kill, restart: { after: 5s } }, at: 2s }",
            "- { process: { of: n2, how: kill, restart: never } }",
            "- { process: { of: leader, how: stop }, for: 10s }",
            "- { process: { of: random, how: restart }, at: 1s, every: 8s }",
        ],
    },
    FaultEntry {
        name: "pressure",
        meaning: "a noisy neighbour takes a share of the processors that a node may use (`database.cpus`, or the whole machine's); the node is held to the rest by its control group; shown when the kernel holds it up and it uses no more than that",
        examples: &[
            "- { pressure: { of: leader, processor: 80% }, for: 10s }",
            "- { pressure: { of: random, processor: 50% }, for: 5s, every: 10s }",
        ],
    },
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

/// A role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// Which place it stands for.
    pub meaning: &'static str,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// What it breaks, one line.
    pub meaning: &'static str,
    /// Elements of a phase's `faults` that hold it, the plainest first.
    pub examples: &'static [&'static str],
}
