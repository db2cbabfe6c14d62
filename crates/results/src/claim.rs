//! What a result claims beside what its parts show: somebody changed it, or a program with other rules wrote it.
//!
//! Owns when a pass is none. How a verdict comes about is the run's to say; a failure that is claimed stays one.

use history::Verdict;

use crate::run::RunResult;

/// The result, its verdict `unknown` where it says pass although a part of it does not.
pub(crate) fn held_to_its_parts(mut result: RunResult) -> RunResult {
    let part = part_that_did_not_pass(&result).filter(|_| result.verdict == Verdict::Pass);
    if let Some(part) = part {
        let why = format!("the result says pass, and {part}: it was changed, or written by other rules");
        result.verdict = Verdict::Unknown;
        result.reasons.insert(0, why);
    }
    result
}

fn part_that_did_not_pass(result: &RunResult) -> Option<String> {
    let told = |what: String, verdict: Verdict| {
        (verdict != Verdict::Pass).then(|| format!("{what} is {verdict} in it"))
    };
    let mut checks = result.checks.iter();
    let mut expectations = result.expectations.iter();
    let mut faults = result.faults.iter().enumerate();
    checks
        .find_map(|check| told(format!("check {}", check.name), check.verdict))
        .or_else(|| expectations.find_map(|one| told(format!("expectation {}", one.name), one.verdict)))
        .or_else(|| {
            faults.find_map(|(number, fault)| {
                told(format!("the receipt of fault {}", number + 1), fault.receipt.verdict)
            })
        })
}
