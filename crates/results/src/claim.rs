//! What a result claims beside what its parts show: somebody changed it, or a program with other rules wrote it.
//!
//! Owns when a pass is none. How a verdict comes about is the run's to say; a failure that is claimed stays one.

use history::Verdict;

use crate::run::RunResult;

/// The result, its verdict `unknown` where it says pass although a part of it does not.
pub(crate) fn held_to_its_parts(mut result: RunResult) -> RunResult {
    let part = part_that_did_not_pass(&result).filter(|_| result.verdict == Verdict::Pass);
    if let Some(part) = part {
        let why = format!("result.json says pass, but {part}: edited, or from another version");
        result.verdict = Verdict::Unknown;
        result.reasons.insert(0, why);
    }
    result
}

/// The first part that leaves no pass, by the rules that give a run its verdict.
fn part_that_did_not_pass(result: &RunResult) -> Option<String> {
    let told =
        |what: String, verdict: Verdict| (verdict != Verdict::Pass).then(|| format!("{what} is {verdict}"));
    let mut checks = result.checks.iter();
    let mut expectations = result.expectations.iter();
    checks
        .find_map(|check| told(format!("check {}", check.name), check.verdict))
        .or_else(|| expectations.find_map(|one| told(format!("expectation {}", one.name), one.verdict)))
        .or_else(|| result.doubts().first().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    use history::{Deed, Interference, LabPart, PhaseFacts, Receipt, RunFacts, Stall};

    use super::*;
    use crate::fault::FaultResult;
    use crate::lab::{FailedRollbackResult, InterferenceResult, KernelPathResult, PlacementResult};
    use crate::load::{EndedEarly, LoadFigures, LoadResult};
    use crate::run::CheckResult;

    fn stall(from_s: f64, to_s: f64) -> Stall {
        Stall::of(vec![LabPart::Supervisor], from_s, to_s)
    }

    fn killed(signal: i32, expected: bool) -> InterferenceResult {
        let (node, program) = ("n1".to_owned(), "postgres".to_owned());
        let interference = Interference { node, program, deed: Deed::Killed { signal }, expected };
        InterferenceResult { t_s: 7.0, interference }
    }

    /// A pass that its run came to, beside much that leaves no doubt.
    fn honest() -> RunResult {
        let phase = |name: &str, from_s, to_s| PhaseFacts { name: name.to_owned(), from_s, to_s };
        let phases = vec![phase(history::WARM_UP, 0.0, 5.0), phase("fault", 5.0, 15.0)];
        let receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        let measured = LoadFigures { clients: Some(3), transactions: 100, ..LoadFigures::default() };
        let mut result = RunResult {
            verdict: Verdict::Pass,
            reasons: vec!["every check passed".to_owned()],
            checks: vec![CheckResult::new("ledger", Verdict::Pass, "")],
            faults: vec![FaultResult {
                receipt: receipt.clone(),
                ..FaultResult::asked("power-off", "host: leader", 6.0)
            }],
            loads: vec![LoadResult { name: "ledger".to_owned(), measured, ..LoadResult::default() }],
            links_receipt: Some(receipt),
            ..RunResult::blank(RunFacts { phases, ..RunFacts::default() })
        };
        result.lab.stalls = vec![stall(1.0, 4.0)];
        result.lab.interference = vec![killed(9, true), killed(11, false)];
        result
    }

    #[test]
    fn an_honest_pass_stands_as_it_is() {
        assert_eq!(held_to_its_parts(honest()), honest());
    }

    #[test]
    fn a_pass_is_none_beside_a_fact_that_leaves_every_run_in_doubt() {
        let check = |change: fn(&mut RunResult), told: &str| {
            let mut changed = honest();
            change(&mut changed);
            let held = held_to_its_parts(changed.clone());
            assert_eq!(held.verdict, Verdict::Unknown, "{told}");
            assert!(held.reasons[0].contains(told), "{:?}", held.reasons);
            // A failure stays one, with its reasons.
            changed.verdict = Verdict::Fail;
            assert_eq!(held_to_its_parts(changed.clone()), changed);
        };
        check(|result| result.checks.clear(), "it has no checks");
        check(|result| result.checks[0].verdict = Verdict::Unknown, "check ledger is unknown");
        check(|result| result.faults[0].receipt.verdict = Verdict::Fail, "fault 1 has no receipt");
        check(|result| result.faults[0].lab_lost_synced = true, "lost synced data at fault 1");
        check(|result| result.faults[0].took_effect_s = Some(15.0), "fault 1 took effect after the loads");
        check(
            |result| {
                let path = KernelPathResult { places_unshut: 1, ..KernelPathResult::default() };
                result.lab.kernel_path = Some(path);
            },
            "off the kernel's own path",
        );
        check(
            |result| {
                let (node, volume) = ("n2".to_owned(), "the volume of n2".to_owned());
                let failed = FailedRollbackResult { t_s: 7.0, node, volume, why: "EIO".to_owned() };
                result.lab.failed_rollbacks.push(failed);
            },
            "the volume of n2 could not be brought back",
        );
        check(|result| result.loads[0].measured.transactions = 0, "load ledger has no success");
        check(|result| result.loads[0].measured.transactions = 2, "load ledger did next to nothing");
        check(|result| result.lab.stalls.push(stall(4.0, 6.0)), "the lab stalled");
        check(
            |result| {
                let ended = EndedEarly { why: "it broke off".to_owned(), recorded: true };
                result.loads[0].ended_early = Some(ended);
            },
            "load ledger ended early",
        );
        check(
            |result| result.lab.interference.push(killed(9, false)),
            "postgres on n1 was killed (signal 9) at 7.0 s",
        );
        check(
            |result| {
                let violation = "n1 and n2 ran on one host".to_owned();
                result.lab.placement.push(PlacementResult { t_s: 7.0, violation });
            },
            "n1 and n2 ran on one host",
        );
        check(
            |result| result.lab.nothing_to_lose = Some("no virtual disks".to_owned()),
            "durability at power-off was not tested",
        );
        check(
            |result| {
                let receipt = Receipt { verdict: Verdict::Fail, evidence: Vec::new() };
                result.links_receipt = Some(receipt);
            },
            "the site's links do not behave as configured",
        );
    }
}
