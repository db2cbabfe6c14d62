//! Names of a published report's figures: which ones a run can measure, and what to say of one that none measures.
//!
//! Owns the names. How a figure is read from a result is the business of `run`, whose tests compare the operations here
//! with those of the workloads.

use crate::rejection::{Findings, Spot};
use crate::wording::{closest, listed, shortened};

/// A figure with a name of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainFigure {
    /// As written.
    pub name: &'static str,
    /// The workload that has it; every workload where there is none.
    pub workload: Option<&'static str>,
}

const fn of(workload: &'static str, name: &'static str) -> PlainFigure {
    PlainFigure { name, workload: Some(workload) }
}

const fn of_every(name: &'static str) -> PlainFigure {
    PlainFigure { name, workload: None }
}

/// Figures with a name of their own; all but the latencies.
pub const PLAIN: &[PlainFigure] = &[
    of_every("tps"),
    of_every("throughput_per_s"),
    of_every("commit_ms"),
    of("tpcc", "tpmC"),
    of("tpcc", "efficiency_percent"),
    of("rawio", "sequential_write_mb_per_s"),
    of("rawio", "sequential_read_mb_per_s"),
    of("rawio", "cached_read_mb_per_s"),
    of("rawio", "random_writes_per_s"),
    of("rawio", "random_reads_per_s"),
];

/// What stands before the unit for whole transactions.
const WHOLE: &str = "latency";
/// Units of a latency in a figure's name.
pub const UNITS: &[&str] = &["us", "ms"];
/// Statistics of a latency.
pub const STATISTICS: &[&str] = &["mean", "p50", "p90", "p95", "p99", "p99_9", "max"];

/// The workload whose statements its user names.
const SCRIPT: &str = "script";

/// The operations that each workload times by themselves, as a figure's name has them.
pub const OPERATIONS: &[(&str, &[&str])] = &[
    (
        "tpcb",
        &[
            "begin",
            "update_accounts",
            "select_accounts",
            "update_tellers",
            "update_branches",
            "insert_history",
            "end",
        ],
    ),
    ("tpcc", &["new_order", "payment", "order_status", "delivery", "stock_level"]),
    ("ycsb", &["read", "update", "insert", "scan", "read_modify_write"]),
    ("kv", &["read", "write", "span"]),
    ("iot", &["write", "read"]),
    ("append", &["begin", "select", "append", "commit"]),
    ("bank", &["begin", "end", "read", "select_accounts", "transfer", "update_from", "update_to"]),
    ("register", &["compare_and_set", "read", "write"]),
    (
        "rawio",
        &[
            "write_block",
            "read_block",
            "read_cached_block",
            "write_random_4_kib",
            "read_random_4_kib",
            "sync",
        ],
    ),
];

/// Operations of these workloads; those of all where there are none.
fn operations(workloads: &[&str]) -> Vec<&'static str> {
    let fitting = OPERATIONS.iter().filter(|(name, _)| workloads.is_empty() || workloads.contains(name));
    let mut all: Vec<&str> = fitting.flat_map(|(_, operations)| operations.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Plain names of these workloads; those of all where there are none.
fn plain(workloads: &[&str]) -> Vec<&'static str> {
    let fits = |figure: &&PlainFigure| {
        workloads.is_empty() || figure.workload.is_none_or(|workload| workloads.contains(&workload))
    };
    PLAIN.iter().filter(fits).map(|figure| figure.name).collect()
}

/// Refuses a name that no run with these workloads measures.
pub(crate) fn check(name: &str, at: Spot, workloads: &[&str], findings: &mut Findings) -> Option<()> {
    let (plain, operations) = (plain(workloads), operations(workloads));
    let whole = [WHOLE].into_iter().chain(operations.iter().copied());
    let mut known: Vec<String> = plain.iter().map(|name| (*name).to_owned()).collect();
    for what in whole {
        let timed =
            UNITS.iter().flat_map(|unit| STATISTICS.iter().map(move |of| format!("{what}_{unit}_{of}")));
        known.extend(timed);
    }
    let is_timed = || {
        let unit = UNITS.iter().find_map(|unit| name.rsplit_once(&format!("_{unit}_")));
        unit.is_some_and(|(what, statistic)| !what.is_empty() && STATISTICS.contains(&statistic))
    };
    if known.iter().any(|known| known == name) || workloads.contains(&SCRIPT) && is_timed() {
        return Some(());
    }
    let near = closest(name, known.iter().map(String::as_str), 3);
    let near = if near.is_empty() { String::new() } else { format!("closest: {}; ", listed(&near)) };
    findings.add(
        "unknown-key",
        at,
        format!("no run measures a figure `{}`", shortened(name)),
        "unknown figure",
        format!("{near}valid names: {}", valid(&plain, &operations)),
    );
    None
}

fn valid(plain: &[&str], operations: &[&str]) -> String {
    format!(
        "{}, and WHAT_UNIT_STATISTIC such as `latency_ms_p99`: WHAT is `{WHOLE}` (whole transactions){}; UNIT is {}; STATISTIC is {}",
        listed(plain),
        if operations.is_empty() { String::new() } else { format!(" or one of {}", operations.join(", ")) },
        listed(UNITS),
        listed(STATISTICS),
    )
}

/// Every valid name, in words, for `explain`.
pub(crate) fn in_words() -> String {
    format!("a map of numbers by name. Valid names are {}", valid(&plain(&[]), &operations(&[])))
}
