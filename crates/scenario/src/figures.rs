//! Names of a published report's figures: which ones a run can measure, and what to say of one that none measures.
//!
//! Owns the names. How a figure is read from a result is the business of `run`.

use std::collections::BTreeSet;

use capabilities::workloads::{NAMES, Timed, WorkloadFacts, spelt, workload};

use crate::rejection::{Findings, Spot};
use crate::wording::{closest, listed, shortened};

/// Figures of every load that have a name of their own; all but the latencies.
const OF_EVERY_WORKLOAD: &[&str] = &[
    "tps",
    "throughput_per_s",
    "commit_ms",
    "errors",
    "throughput_during_percent",
    "throughput_lowest_percent",
];

/// Figures with a name of their own, each with the workload that has it, where not every one has.
pub fn plain() -> impl Iterator<Item = (&'static str, Option<&'static WorkloadFacts>)> {
    let of = |facts: &'static WorkloadFacts| facts.figures.iter().map(move |figure| (*figure, Some(facts)));
    let of_every = OF_EVERY_WORKLOAD.iter().map(|figure| (*figure, None::<&'static WorkloadFacts>));
    of_every.chain(NAMES.iter().filter_map(|name| workload(name)).flat_map(of))
}

/// What stands before the unit for whole transactions.
const WHOLE: &str = "latency";
/// Units of a latency in a figure's name.
pub const UNITS: &[&str] = &["us", "ms"];
/// Statistics of a latency.
pub const STATISTICS: &[&str] = &["mean", "p50", "p90", "p95", "p99", "p99_9", "max"];

/// Operations of these workloads as a figure's name has them; those of all where there are none. Kinds with figures of
/// their own are left out.
fn operations(workloads: &[&str]) -> Vec<String> {
    let fitting = NAMES.iter().filter(|name| workloads.is_empty() || workloads.contains(name));
    let of = |facts: &'static WorkloadFacts| {
        let own = move |kind: &String| facts.figures.iter().any(|figure| figure.starts_with(kind.as_str()));
        let kinds = facts.kinds.iter().map(|kind| spelt(kind)).filter(move |kind| !own(kind));
        kinds.chain(facts.timed.names().iter().map(|statement| spelt(statement)))
    };
    let all: BTreeSet<String> = fitting.filter_map(|name| workload(name)).flat_map(of).collect();
    all.into_iter().collect()
}

/// Plain names of these workloads; those of all where there are none.
fn plain_of(workloads: &[&str]) -> Vec<&'static str> {
    let fits = |facts: Option<&WorkloadFacts>| {
        workloads.is_empty() || facts.is_none_or(|facts| workloads.contains(&facts.name))
    };
    plain().filter(|(_, facts)| fits(*facts)).map(|(figure, _)| figure).collect()
}

/// Refuses a name that no run with these workloads measures.
pub(crate) fn check(name: &str, at: Spot, workloads: &[&str], findings: &mut Findings) -> Option<()> {
    let (of_these, operations) = (plain_of(workloads), operations(workloads));
    let whole = [WHOLE].into_iter().chain(operations.iter().map(String::as_str));
    let mut known: Vec<String> = of_these.iter().map(|name| (*name).to_owned()).collect();
    for what in whole {
        let timed =
            UNITS.iter().flat_map(|unit| STATISTICS.iter().map(move |of| format!("{what}_{unit}_{of}")));
        known.extend(timed);
    }
    let is_users = |name: &&str| workload(name).is_some_and(|facts| facts.timed == Timed::Users);
    let is_timed = || {
        let unit = UNITS.iter().find_map(|unit| name.rsplit_once(&format!("_{unit}_")));
        unit.is_some_and(|(what, statistic)| !what.is_empty() && STATISTICS.contains(&statistic))
    };
    if known.iter().any(|known| known == name) || workloads.iter().any(is_users) && is_timed() {
        return Some(());
    }
    if let Some((_, Some(facts))) = plain().find(|(figure, _)| *figure == name) {
        findings.add(
            "unknown-key",
            at,
            format!("no load of this scenario measures the figure `{name}`"),
            "not measured here",
            format!("the workload `{}` measures it: add a load of it, or remove the figure", facts.name),
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
        format!("{near}valid names: {}", valid(&of_these, &operations)),
    );
    None
}

/// Refuses a figure of the report's baseline that the report's own figures lack: it would be shown nowhere.
pub(crate) fn refuse_baseline_alone(name: &str, at: Spot, findings: &mut Findings) {
    findings.add(
        "baseline-alone",
        at,
        format!("`baseline` has the figure `{name}`, `figures` has not"),
        "compared with nothing",
        format!(
            "write `{name}` under `figures` too, with what the report measured; `baseline` is what it measured before the fault"
        ),
    );
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
    format!("a map of numbers by name. Valid names are {}", valid(&plain_of(&[]), &operations(&[])))
}
