//! What a scenario can ask for: faults, roles, quantities to expect, engines and workloads. For `holdfast list`,
//! `holdfast explain` and the decoder.
//!
//! Owns names and their meaning; what they do is elsewhere.

use crate::language::Field;
use crate::workload_options;

/// Engines a scenario may name.
pub const ENGINES: &[&str] = &["postgres", "etcd", "control", "none"];

/// Workloads a scenario may name.
pub const WORKLOADS: &[&str] =
    &["tpcb", "tpcc", "ycsb", "kv", "iot", "script", "ledger", "append", "bank", "register", "rawio"];

/// Holdfast's own database.
pub(crate) const CONTROL: &str = "control";
/// The engine whose settings are the server's flags, and whose writes wait for a majority whatever is asked.
pub(crate) const ETCD: &str = "etcd";

/// The engines that speak no SQL, each with the workloads that it understands.
pub(crate) const WITHOUT_SQL: &[(&str, &[&str])] = &[
    (CONTROL, &["tpcb", "ledger", "append", "bank", "register"]),
    (ETCD, &["ledger", "append", "bank", "register"]),
];

/// What the control database's one setting, `flaw`, may be. A test where both are known holds this and the engine's own
/// list together.
pub const FLAWS: &[&str] = &[
    "none",
    "ack-before-fsync",
    "ack-before-replication",
    "clock-last-write-wins",
    "dirty-read",
    "duplicate-on-retry",
    "forget-on-restart",
    "lost-update",
    "non-repeatable-order",
    "split-brain",
    "stale-reads",
    "write-skew",
];

/// The engine that is none, and the workload that asks a volume and no database.
pub(crate) const WITHOUT_DATABASE: (&str, &str) = ("none", "rawio");

/// The workload whose history names each lost and invented write.
const LEDGER: &str = "ledger";
/// Workloads whose history shows lost writes, the one that names each of them first.
const COUNTING: &[&str] = &[LEDGER, "tpcb", "tpcc", "ycsb", "kv", "iot"];
/// Workloads whose history shows invented writes, the one that names each of them first.
const INVENTED: &[&str] = &[LEDGER, "ycsb", "kv", "iot"];

/// Workloads whose history shows the isolation that transactions ran under.
const JUDGED: &[&str] = &["append"];

/// Roles a fault may be aimed at instead of a name.
pub const ROLES: &[RoleEntry] = &[
    RoleEntry { name: "leader", meaning: "where the leader is when the fault strikes" },
    RoleEntry { name: "a-follower", meaning: "where a follower is; which one, the seed decides" },
    RoleEntry { name: "random", meaning: "a place that holds a node; which one, the seed decides" },
];

/// Faults a scenario may schedule.
pub const FAULTS: &[FaultEntry] = &[
    FaultEntry {
        name: "power-off",
        meaning: "every host of the target loses power at once, and has it back when the fault is healed",
        examples: &["- { power-off: { host: leader }, at: 0s, for: 20s }"],
    },
    FaultEntry {
        name: "network",
        meaning: "between two places the network gets a delay, jitter, loss, duplicates, reordering, corruption, a rate or a queue; what is not given stays as the links have it",
        examples: &[
            "- { network: { from: dc1, to: dc2, delay: 50ms }, for: 20s }",
            "- { network: { between: [dc1, a-follower], delay: 20ms, jitter: { normal: 3ms }, loss: 1% } }",
            "- { network: { between: [dc1, dc2], rate: 10Mbit/s, queue: 64KiB } }",
            "- { network: { between: [dc1, dc2], delay: 80ms }, for: 20s, flap: { down: 2s, up: 3s } }",
        ],
    },
    FaultEntry {
        name: "partition",
        meaning: "nothing gets through: around a place, between two places or one way, or among the database's nodes (halves, bridge, ring)",
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
];

/// Quantities a scenario may expect.
pub const EXPECTATIONS: &[ExpectationEntry] = &[
    entry(
        "lost_writes",
        Unit::Count,
        Needs::Load(COUNTING),
        "acknowledged writes that are missing at the end: the ledger's where there is one, else those of all other workloads that can tell",
        "0",
    ),
    entry(
        "invented_writes",
        Unit::Count,
        Needs::Load(INVENTED),
        "rows and values at the end that nobody wrote",
        "0",
    ),
    entry(
        "anomalies",
        Unit::Count,
        Needs::Load(JUDGED),
        "kinds of anomaly that transactions over lists show, those that the level claimed allows among them",
        "0",
    ),
    entry(
        "recovery",
        Unit::Seconds,
        Needs::Fault,
        "from the fault's effect to the first success after it",
        "< 30s",
    ),
    entry(
        "recovery_95_percent",
        Unit::Seconds,
        Needs::Fault,
        "from the fault's effect to the first second back at 95 % of the baseline",
        "< 60s",
    ),
    entry(
        "errors",
        Unit::Count,
        Needs::Nothing,
        "transactions that failed, of all loads, warm-up left out",
        "< 100",
    ),
    entry(
        "error_rate",
        Unit::Ratio,
        Needs::Nothing,
        "failed transactions as a share of all, of all loads, warm-up left out",
        "< 1%",
    ),
    entry(
        "throughput_per_s",
        Unit::PerSecond,
        Needs::Nothing,
        "successful transactions a second, of all loads, warm-up left out",
        "> 100/s",
    ),
    entry("latency_p50", Unit::Microseconds, Needs::Nothing, "median latency of a transaction", "< 5ms"),
    entry(
        "latency_p95",
        Unit::Microseconds,
        Needs::Nothing,
        "95th percentile of a transaction's latency",
        "< 20ms",
    ),
    entry(
        "latency_p99",
        Unit::Microseconds,
        Needs::Nothing,
        "99th percentile of a transaction's latency",
        "< 50ms",
    ),
    entry(
        "throughput_ratio_during",
        Unit::Ratio,
        Needs::Fault,
        "throughput while the fault stood, as a share of the baseline's",
        "> 10%",
    ),
    entry(
        "lab_cpu_share",
        Unit::Share,
        Needs::Nothing,
        "the lab's own share of all CPU time spent under load",
        "< 20%",
    ),
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
    let Some(table) = workload_options::table(workload) else { return Vec::new() };
    let default = |name: &str| table.defaults.iter().find(|entry| entry.0 == name).map(|entry| entry.1);
    let entry = |field: &'static Field| OptionEntry {
        name: field.name,
        meaning: field.meaning,
        default: default(field.name),
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

/// A quantity to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectationEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// The unit its bound is written in, and the base unit of [`crate::Expectation::bound`].
    pub unit: Unit,
    /// What the scenario must contain for it to be measured at all.
    pub needs: Needs,
    /// What it measures, one line.
    pub meaning: &'static str,
    /// A bound as written.
    pub example: &'static str,
}

const fn entry(
    name: &'static str,
    unit: Unit,
    needs: Needs,
    meaning: &'static str,
    example: &'static str,
) -> ExpectationEntry {
    ExpectationEntry { name, unit, needs, meaning, example }
}

/// What the bound of an expectation is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain whole number; the bound is that number.
    Count,
    /// Written as a duration; the bound is in seconds.
    Seconds,
    /// Written as a duration; the bound is in microseconds.
    Microseconds,
    /// Written `100/s`; the bound is per second.
    PerSecond,
    /// Written `95%` or `0.95`; the bound is the ratio, which may exceed 1.
    Ratio,
    /// As [`Unit::Ratio`], of a quantity that cannot exceed 1.
    Share,
}

impl Unit {
    /// How its bounds are written, in words.
    #[must_use]
    pub fn written(self) -> &'static str {
        match self {
            Unit::Count => "a plain number",
            Unit::Seconds | Unit::Microseconds => "a duration",
            Unit::PerSecond => "a number a second (`100/s`)",
            Unit::Ratio | Unit::Share => "a share (`95%` or `0.95`)",
        }
    }
}

/// What a scenario must contain for a quantity to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Only a load.
    Nothing,
    /// A fault.
    Fault,
    /// A load of one of these workloads, the best of them first.
    Load(&'static [&'static str]),
}

/// The quantity of that name.
#[must_use]
pub fn expectation(name: &str) -> Option<&'static ExpectationEntry> {
    EXPECTATIONS.iter().find(|entry| entry.name == name)
}
