//! The verdict of a run and its reasons.
//!
//! Decides nothing that a check, a receipt or an expectation has not said.

use history::Verdict;
use report::result::RunResult;

/// One failure fails; else one doubt leaves doubt. The reasons name each.
pub(super) fn verdict(
    result: &RunResult,
    interrupted: Option<&str>,
    untold: Option<String>,
) -> (Verdict, Vec<String>) {
    let mut parts: Vec<(Verdict, String)> = Vec::new();
    for check in &result.checks {
        parts.push((check.verdict, format!("check {}: {}", check.name, check.explanation)));
    }
    for expectation in &result.expectations {
        let (name, wanted, measured) = (&expectation.name, &expectation.wanted, &expectation.measured);
        parts.push((expectation.verdict, format!("expected {name} {wanted}: {measured}")));
    }
    for (number, fault) in result.faults.iter().enumerate() {
        // A fault that did not happen proves nothing about the database, neither way.
        let doubt = if fault.receipt.verdict == Verdict::Pass { Verdict::Pass } else { Verdict::Unknown };
        let (kind, target) = (&fault.kind, &fault.target);
        let evidence = fault.receipt.evidence.join("; ");
        parts.push((doubt, format!("fault {number} ({kind}, {target}) has no receipt: {evidence}")));
    }
    if let Some(why) = interrupted {
        parts.push((Verdict::Unknown, format!("the run ended early: {why}")));
    }
    if let Some(why) = untold {
        parts.push((Verdict::Unknown, format!("the record is not complete: {why}")));
    }
    for load in result.loads.iter().filter(|load| load.transactions == 0 && interrupted.is_none()) {
        parts.push((Verdict::Unknown, format!("load {}: nothing that it asked succeeded", load.name)));
    }
    if result.checks.is_empty() && interrupted.is_none() {
        parts.push((Verdict::Unknown, "no check applies to any load, so nothing was proved".to_owned()));
    }
    let whole = parts.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part));
    parts.retain(|(part, _)| *part != Verdict::Pass);
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(*part));
    let mut reasons: Vec<String> = parts.into_iter().map(|(_, reason)| reason).collect();
    if whole == Verdict::Pass {
        reasons = vec!["every check passed, every expectation held, every fault has its receipt".to_owned()];
    }
    (whole, reasons)
}
