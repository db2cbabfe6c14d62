//! Names of a published report's figures: which ones a run can measure, and what to say of one that none measures.
//!
//! Owns the names. How a figure is read from a result is the business of `run`.

use std::collections::BTreeSet;

use capabilities::workloads::{NAMES, WorkloadFacts, spelt, workload};

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
    of_every("errors"),
    of_every("throughput_during_percent"),
    of_every("throughput_lowest_percent"),
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

/// Operations of these workloads as a figure's name has them; those of all where there are none. Kinds with figures of
/// their own are left out.
fn operations(workloads: &[&str]) -> Vec<String> {
    let fitting = NAMES.iter().filter(|name| workloads.is_empty() || workloads.contains(name));
    let of = |facts: &'static WorkloadFacts| {
        let own = |kind: &String| {
            PLAIN
                .iter()
                .any(|figure| figure.workload == Some(facts.name) && figure.name.starts_with(kind.as_str()))
        };
        let kinds = facts.kinds.iter().map(|kind| spelt(kind)).filter(move |kind| !own(kind));
        kinds.chain(facts.timed.names().iter().map(|statement| spelt(statement)))
    };
    let all: BTreeSet<String> = fitting.filter_map(|name| workload(name)).flat_map(of).collect();
    all.into_iter().collect()
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
    let whole = [WHOLE].into_iter().chain(operations.iter().map(String::as_str));
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
    if let Some(PlainFigure { workload: Some(workload), .. }) = PLAIN.iter().find(|plain| plain.name == name)
    {
        findings.add(
            "unknown-key",
            at,
            format!("no load of this scenario measures the figure `{name}`"),
            "not measured here",
            format!("the workload `{workload}` measures it: add a load of it, or remove the figure"),
        );
        return None;
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

fn valid(plain: &[&str], operations: &[String]) -> String {
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
