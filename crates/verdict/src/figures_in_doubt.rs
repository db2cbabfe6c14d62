//! Expectations on figures, where the lab or a stranger had a part in the figures: nothing is judged by them, neither way.
//!
//! Owns which expectations rest on figures. What checks say of the data stands: a lost write is lost, whoever stood still.

use history::Verdict;
use results::{Doubt, ExpectationResult, RunResult};

/// Expectations that checks answer, from the history alone.
const FROM_CHECKS: [&str; 3] = ["lost_writes", "invented_writes", "anomalies"];

/// Leaves expectations on figures `unknown` where the figures are not the database's alone.
pub(crate) fn doubt_figures(result: &mut RunResult) {
    let Some(why) = result.doubts().into_iter().find(Doubt::is_of_figures).map(|doubt| doubt.to_string())
    else {
        return;
    };
    let rests_on_figures = |expectation: &&mut ExpectationResult| {
        let quantity = expectation.name.rsplit('.').next().unwrap_or_default();
        !FROM_CHECKS.contains(&quantity)
    };
    for expectation in result.expectations.iter_mut().filter(rests_on_figures) {
        expectation.verdict = Verdict::Unknown;
        expectation.measured.push_str(&format!(", but {why}"));
    }
}

#[cfg(test)]
mod tests {
    use history::{Deed, Interference, LabPart, Receipt, Stall};
    use results::{EndedEarly, FaultResult, InterferenceResult, KernelPathResult, LoadResult};

    use super::*;
    use crate::expectations::tests::facts;

    /// A run of which these hold, with one load and one fault that was shown.
    fn run() -> RunResult {
        let expectation = |name: &str, verdict| ExpectationResult {
            name: name.to_owned(),
            wanted: "> 100".to_owned(),
            measured: "3".to_owned(),
            verdict,
        };
        let receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        RunResult {
            expectations: vec![
                expectation("gap", Verdict::Fail),
                expectation("tpcb.fault.errors", Verdict::Pass),
                expectation("lost_writes", Verdict::Fail),
            ],
            loads: vec![LoadResult { name: "tpcb".to_owned(), ..LoadResult::default() }],
            faults: vec![FaultResult { receipt, ..FaultResult::asked("power-off", "host: leader", 6.0) }],
            ..RunResult::blank(facts())
        }
    }

    /// What becomes of its expectations once this is true of it.
    fn check(so: impl FnOnce(&mut RunResult), why: &str) {
        let mut result = run();
        so(&mut result);
        doubt_figures(&mut result);
        let verdicts: Vec<Verdict> = result.expectations.iter().map(|one| one.verdict).collect();
        assert_eq!(verdicts, [Verdict::Unknown, Verdict::Unknown, Verdict::Fail], "{why}");
        assert_eq!(result.expectations[0].measured, format!("3, but {why}"));
    }

    #[test]
    fn figures_in_which_the_lab_or_a_stranger_had_a_part_are_judged_neither_way() {
        check(
            |result| {
                result.loads[0].ended_early = Some(EndedEarly { why: "a panic".to_owned(), recorded: true })
            },
            "load tpcb ended early",
        );
        check(
            |result| result.lab.stalls = vec![Stall::of(vec![LabPart::Supervisor], 7.0, 12.0)],
            "the lab stalled for 5.0 s at 7.0 s",
        );
        check(|result| result.faults[0].receipt.verdict = Verdict::Fail, "fault 1 has no receipt");
        let interference = |signal| {
            let (node, program) = ("n1".to_owned(), "postgres".to_owned());
            let interference = Interference { node, program, deed: Deed::Killed { signal }, expected: false };
            vec![InterferenceResult { t_s: 8.0, interference }]
        };
        check(
            |result| result.lab.interference = interference(9),
            "postgres on n1 was killed (signal 9) at 8.0 s",
        );
        check(
            |result| {
                result.links_receipt = Some(Receipt { verdict: Verdict::Fail, evidence: Vec::new() });
            },
            "the site's links do not behave as configured",
        );
        check(
            |result| {
                let path = KernelPathResult { places_unshut: 1, ..KernelPathResult::default() };
                result.lab.kernel_path = Some(path);
            },
            "places could not be taken off the kernel's own path",
        );
    }

    #[test]
    fn figures_of_a_run_in_order_are_judged() {
        let mut result = run();
        doubt_figures(&mut result);
        assert_eq!(result.expectations, run().expectations);
    }
}
