//! What a result claims beside what its parts show: somebody changed it, or a program with other rules wrote it.
//!
//! Owns when a pass is none. How a verdict comes about is the run's to say; a failure that is claimed stays one.

use history::{FaultId, Verdict};

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

fn part_that_did_not_pass(result: &RunResult) -> Option<String> {
    let told =
        |what: String, verdict: Verdict| (verdict != Verdict::Pass).then(|| format!("{what} is {verdict}"));
    let mut checks = result.checks.iter();
    let mut expectations = result.expectations.iter();
    let mut faults = FaultId::of_each(&result.faults);
    checks
        .find_map(|check| told(format!("check {}", check.name), check.verdict))
        .or_else(|| expectations.find_map(|one| told(format!("expectation {}", one.name), one.verdict)))
        .or_else(|| {
            faults.find_map(|(number, fault)| {
                told(format!("the receipt of fault {}", number.ordinal()), fault.receipt.verdict)
            })
        })
        .or_else(|| doubt_beside_the_parts(result))
}

/// What leaves a run in doubt whatever its parts say, by the rules that give the run its verdict: only what the result itself
/// has in full.
fn doubt_beside_the_parts(result: &RunResult) -> Option<String> {
    let lab = &result.lab;
    let judged_from_s = result.judged_from_s();
    let lost_at = result.faults.iter().position(|fault| fault.lab_lost_synced);
    let stall = lab.stalls.iter().find(|stall| stall.to_s >= judged_from_s);
    let ended = result.loads.iter().find(|load| load.ended_early.is_some());
    let stranger = lab.interference.iter().find(|seen| seen.interference.is_doubtful());
    let links = result.links_receipt.as_ref().filter(|links| links.verdict == Verdict::Fail);
    let silent = result.loads.iter().find(|load| load.measured.transactions == 0);
    let barren = result.loads.iter().find(|load| load.barren().is_some());
    let late = result.fault_after_the_loads();
    let unshut = lab.kernel_path.as_ref().filter(|path| path.places_unshut > 0);
    let doubts = [
        result.checks.is_empty().then(|| "it has no checks".to_owned()),
        lost_at.map(|number| format!("the lab lost synced data at fault {}", number + 1)),
        lab.failed_rollbacks
            .first()
            .map(|of| format!("{} could not be brought back to what was durable", of.volume)),
        stall.map(ToString::to_string),
        ended.map(|load| format!("load {} ended before the schedule", load.name)),
        silent.map(|load| format!("load {} has no success", load.name)),
        barren.map(|load| format!("load {} did next to nothing, or mostly failed", load.name)),
        stranger.map(|seen| format!("{}, outside the schedule", seen.interference)),
        lab.placement.first().map(|of| of.violation.clone()),
        lab.nothing_to_lose.as_ref().map(|why| format!("durability at power-off was not tested: {why}")),
        links.map(|_| "the receipt of the site's links is fail".to_owned()),
        late.map(|(number, _)| format!("fault {} took effect after the loads had ended", number.ordinal())),
        unshut.map(|_| "places could not be taken off the kernel's own path".to_owned()),
    ];
    doubts.into_iter().flatten().next()
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
        check(|result| result.faults[0].receipt.verdict = Verdict::Fail, "the receipt of fault 1");
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
            "load ledger ended before the schedule",
        );
        check(|result| result.lab.interference.push(killed(9, false)), "outside the schedule");
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
            "the receipt of the site's links",
        );
    }
}
