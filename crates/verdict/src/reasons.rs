//! The verdict of a run and its reasons.
//!
//! Decides nothing that a check, a receipt or an expectation has not said.

use history::{FaultId, Receipt, Verdict};
use results::{Doubt, EndedEarly, FaultResult, InterferenceResult, PlacementResult, RunResult};

use crate::barren_load::barren;

/// One failure fails; else one doubt leaves doubt. The reasons name each. Where the lab itself lost what it must keep,
/// nothing is known of the database, and an interrupted run is in doubt whatever it found. `scheduled` is how many faults the schedule has.
pub(crate) fn verdict(
    result: &RunResult,
    scheduled: usize,
    interrupted: Option<&str>,
    untold: Option<String>,
) -> (Verdict, Vec<String>) {
    let mut parts: Vec<(Verdict, String)> = Vec::new();
    for check in &result.checks {
        parts.push((check.verdict, format!("check {}: {}", check.name, check.explanation)));
    }
    for expectation in &result.expectations {
        let (name, wanted, measured) = (&expectation.name, &expectation.wanted, &expectation.measured);
        parts.push((expectation.verdict, format!("{name}: wanted {wanted}, measured {measured}")));
    }
    if interrupted.is_none() {
        parts.extend((result.faults.len()..scheduled).map(FaultId::new).map(never_struck));
    }
    if let Some(why) = untold {
        parts.push((Verdict::Unknown, format!("the recording is incomplete: {why}")));
    }
    let doubts = result.doubts();
    // A run that was cut short has not had the time for these.
    let is_too_early =
        |doubt: &&Doubt<'_>| interrupted.is_some() && matches!(doubt, Doubt::NoSuccess(_) | Doubt::NoChecks);
    // What a check found may be the lab's own doing then: these stand first, and nothing is a failure.
    let shows_nothing =
        |doubt: &&Doubt<'_>| matches!(doubt, Doubt::LabLostSynced(_) | Doubt::FailedRollback(_));
    let (first, told): (Vec<_>, Vec<_>) =
        doubts.iter().filter(|doubt| !is_too_early(doubt)).partition(shows_nothing);
    parts.extend(told.into_iter().map(|doubt| (Verdict::Unknown, in_words(doubt))));
    // Whoever interrupts a run asks for no verdict: its exit code is always that of `unknown`.
    let whole = match !first.is_empty() || interrupted.is_some() {
        true => Verdict::Unknown,
        false => parts.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part)),
    };
    parts.retain(|(part, _)| *part != Verdict::Pass);
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(*part));
    let mut reasons: Vec<String> = first.into_iter().map(in_words).collect();
    reasons.extend(interrupted.map(|why| format!("the run ended early: {why}")));
    reasons.extend(parts.into_iter().map(|(_, reason)| reason));
    if whole == Verdict::Pass {
        reasons = vec![all_that_held(result)];
    }
    (whole, reasons)
}

/// Why the run passed: only what there was to judge.
fn all_that_held(result: &RunResult) -> String {
    let parts = [
        (result.checks.is_empty(), "every check passed"),
        (result.expectations.is_empty(), "every expectation held"),
        (result.faults.is_empty(), "every fault has its receipts"),
    ];
    let held: Vec<&str> = parts.into_iter().filter(|(none, _)| !none).map(|(_, held)| held).collect();
    match held.as_slice() {
        [first @ .., last] if first.len() > 1 => format!("{}, and {last}", first.join(", ")),
        _ => held.join(" and "),
    }
}

/// A fault of the schedule of which the run has no record: what it was to show was not shown.
fn never_struck(number: FaultId) -> (Verdict, String) {
    (Verdict::Unknown, format!("fault {} of the schedule was never struck", number.ordinal()))
}

/// A doubt with what to do.
pub(crate) fn in_words(doubt: &Doubt<'_>) -> String {
    match doubt {
        Doubt::LabLostSynced(_) => {
            "the lab lost synced data at a power-off, so this run shows nothing about the database".to_owned()
        }
        Doubt::FailedRollback(of) => format!(
            "{doubt} at a power-off, at {:.1} s: {}; this run shows nothing about the database",
            of.t_s, of.why
        ),
        // A fault that did not happen proves nothing about the database, neither way.
        Doubt::FaultNotShown(number, FaultResult { kind, target, receipt, .. }) => {
            let (number, evidence) = (number.ordinal(), receipt.evidence.join("; "));
            format!("fault {number} ({kind}, {target}) has no receipt: {evidence}")
        }
        Doubt::FaultAfterLoads(number, FaultResult { kind, target, .. }, at_s) => {
            let number = number.ordinal();
            format!("fault {number} ({kind}, {target}) took effect at {at_s:.1} s, after the loads had ended")
        }
        Doubt::LinksNotAsConfigured(Receipt { evidence, .. }) => format!("{doubt}: {}", evidence.join("; ")),
        Doubt::LoadEndedEarly(_, EndedEarly { why, .. }) => {
            format!("{why}. The load ended early, so its figures are incomplete")
        }
        Doubt::Agent(agent, of) => crate::agents::left_open(agent, *of),
        Doubt::Stalled { longest, others: 0, .. } => {
            format!("{longest}; figures from that time are not the database's")
        }
        Doubt::Stalled { longest, others, others_s } => {
            let more = match others {
                1 => format!("once more for {others_s:.1} s"),
                _ => format!("{others} more times for {others_s:.1} s in all"),
            };
            format!("{longest}, and {more}; figures from these times are not the database's")
        }
        Doubt::Interference { seen: InterferenceResult { interference, t_s }, could_be_expected } => {
            let advice = if *could_be_expected {
                "if this is intended, write `interference: expected` in `database`"
            } else {
                "find out what ended it (`kubectl describe pod`), and run again while nobody else works on the cluster"
            };
            format!("{interference} at {t_s:.1} s, outside the schedule; {advice}")
        }
        Doubt::Placement(PlacementResult { violation, t_s }) => {
            format!("{violation} at {t_s:.1} s; the platform broke its own rules")
        }
        Doubt::PlacesUnshut(times) => format!(
            "the lab could not return places to the simulated network (times: {times}; the kernel's own path \
             could not be shut); their packets may have bypassed faults and links; leave out `site.network`"
        ),
        Doubt::NothingToLose(_) => doubt.to_string(),
        Doubt::SeveralLeaders(_) => format!(
            "{doubt}: it was read at one of them, and nobody knows what the others hold; have the old leader fenced \
             before another is promoted, or give the recovery phase more time"
        ),
        Doubt::SilentNodes(_) => format!(
            "{doubt}: it may lead beside the node that was read, and hold what that one does not; find out from \
             its log why it does not answer, or give the recovery phase more time"
        ),
        Doubt::NoSuccess(load) => format!("load {}: none of its operations succeeded", load.name),
        Doubt::Barren(load, why) => barren(load, *why),
        Doubt::NoChecks => {
            "no check applies to any load, so the run proves nothing about the data".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use history::{LabPart, PhaseFacts, Receipt, Stall, WARM_UP};
    use results::{CheckResult, FailedRollbackResult, KernelPathResult, LoadFigures, LoadResult};

    use super::*;
    use crate::expectations::tests::facts;

    /// A run without faults whose only load ended like this.
    fn ended(transactions: u64, errors: u64) -> RunResult {
        let errors = [("connection".to_owned(), errors)].into();
        let measured = LoadFigures { transactions, errors, ..LoadFigures::default() };
        let load = LoadResult { name: "kv".to_owned(), measured, ..LoadResult::default() };
        let checks = vec![CheckResult::new("kv", Verdict::Pass, "")];
        RunResult { loads: vec![load], checks, ..RunResult::blank(facts()) }
    }

    #[test]
    fn a_run_without_a_baseline_whose_load_mostly_failed_does_not_pass() {
        assert_eq!(verdict(&ended(100, 1), 0, None, None).0, Verdict::Pass);
        let (verdict, reasons) = verdict(&ended(9, 25_794), 0, None, None);
        assert_eq!(verdict, Verdict::Unknown, "{reasons:?}");
        assert!(reasons[0].contains("25,794 errors and 9 transactions"), "{reasons:?}");
    }

    #[test]
    fn a_rollback_that_failed_outside_every_fault_leaves_no_pass_and_no_failure_and_names_the_volume() {
        let mut result = ended(100, 1);
        let (node, volume) = ("n2".to_owned(), "the volume of n2".to_owned());
        result.lab.failed_rollbacks =
            vec![FailedRollbackResult { t_s: 7.0, node, volume, why: "EIO".to_owned() }];
        let what = "the volume of n2 could not be brought back to what was durable at a power-off, at 7.0 s: \
                    EIO; this run shows nothing about the database";
        assert_eq!(verdict(&result, 0, None, None), (Verdict::Unknown, vec![what.to_owned()]));
        // Whatever a check found may be the volume's doing, so that it stands behind.
        result.checks = vec![CheckResult::new("kv", Verdict::Fail, "lost")];
        let reasons = vec![what.to_owned(), "check kv: lost".to_owned()];
        assert_eq!(verdict(&result, 0, None, None), (Verdict::Unknown, reasons));
    }

    #[test]
    fn a_place_that_could_not_be_taken_off_the_kernels_path_leaves_no_pass() {
        let with = |places_lost, places_unshut| {
            let mut result = ended(100, 1);
            result.lab.kernel_path =
                Some(KernelPathResult { places_lost, places_unshut, ..KernelPathResult::default() });
            verdict(&result, 0, None, None)
        };
        assert_eq!(with(2, 0).0, Verdict::Pass, "all of them were brought back");
        let (doubtful, reasons) = with(2, 1);
        assert_eq!(doubtful, Verdict::Unknown);
        assert!(reasons[0].contains("to the simulated network (times: 1;"), "{reasons:?}");
    }

    #[test]
    fn several_leaders_when_the_final_state_was_read_leave_no_pass_and_do_not_excuse_a_failure() {
        let with = |nodes: &[&str]| {
            let leaders_at_the_end = nodes.iter().map(ToString::to_string).collect();
            RunResult { leaders_at_the_end, ..ended(100, 1) }
        };
        assert_eq!(verdict(&with(&[]), 0, None, None).0, Verdict::Pass);
        let (doubtful, reasons) = verdict(&with(&["n1", "n2"]), 0, None, None);
        assert_eq!(doubtful, Verdict::Unknown);
        assert!(
            reasons[0].starts_with("n1 and n2 led at once when the final state was read: "),
            "{reasons:?}"
        );
        let checks = vec![CheckResult::new("kv", Verdict::Fail, "lost")];
        assert_eq!(verdict(&RunResult { checks, ..with(&["n1", "n2"]) }, 0, None, None).0, Verdict::Fail);
    }

    #[test]
    fn a_node_that_did_not_say_whether_it_leads_when_the_final_state_was_read_leaves_no_pass() {
        let silent_at_the_end = vec!["n3".to_owned()];
        let (doubtful, reasons) = verdict(&RunResult { silent_at_the_end, ..ended(100, 1) }, 0, None, None);
        assert_eq!(doubtful, Verdict::Unknown);
        assert!(
            reasons[0].starts_with("n3 did not say whether it leads when the final state was read: "),
            "{reasons:?}"
        );
    }

    #[test]
    fn a_run_that_never_struck_a_fault_of_its_schedule_does_not_pass() {
        let (doubtful, reasons) = verdict(&ended(100, 1), 2, None, None);
        let told = |number| format!("fault {number} of the schedule was never struck");
        assert_eq!((doubtful, reasons), (Verdict::Unknown, vec![told(1), told(2)]));
        // One that was cut short says that instead.
        let (_, reasons) = verdict(&ended(100, 1), 2, Some("by a signal"), None);
        assert_eq!(reasons, ["the run ended early: by a signal"]);
    }

    #[test]
    fn a_fault_that_took_effect_after_the_loads_had_ended_leaves_no_pass() {
        let judged = |took_effect_s: f64| {
            let mut result = ended(100, 1);
            let phase = PhaseFacts { name: "baseline".to_owned(), from_s: 0.0, to_s: 15.0 };
            result.facts.phases = vec![phase];
            let receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
            let asked = FaultResult::asked("external", "n1", 10.0);
            result.faults = vec![FaultResult { receipt, took_effect_s: Some(took_effect_s), ..asked }];
            verdict(&result, 1, None, None)
        };
        assert_eq!(judged(11.0).0, Verdict::Pass);
        let (doubtful, reasons) = judged(15.5);
        assert!(
            doubtful == Verdict::Unknown && reasons[0].contains("after the loads had ended"),
            "{reasons:?}"
        );
    }

    #[test]
    fn an_interrupted_run_is_in_doubt_and_names_what_was_found_until_then() {
        let mut result = ended(100, 1);
        result.checks = vec![CheckResult::new("kv", Verdict::Fail, "lost")];
        assert_eq!(verdict(&result, 0, None, None).0, Verdict::Fail);
        let reasons = ["the run ended early: by a signal", "check kv: lost"].map(str::to_owned);
        assert_eq!(verdict(&result, 0, Some("by a signal"), None), (Verdict::Unknown, reasons.into()));
    }

    #[test]
    fn a_stall_in_the_warm_up_leaves_no_doubt_and_one_that_reaches_into_what_is_judged_does() {
        let phase = |name: &str, from_s, to_s| PhaseFacts { name: name.to_owned(), from_s, to_s };
        let judged = |from_s: f64, to_s: f64| {
            let mut result = ended(100, 1);
            result.facts.phases = vec![phase(WARM_UP, 0.0, 5.0), phase("baseline", 5.0, 15.0)];
            result.lab.stalls = vec![Stall::of(vec![LabPart::Supervisor], from_s, to_s)];
            verdict(&result, 0, None, None)
        };
        assert_eq!(judged(1.0, 4.0).0, Verdict::Pass);
        let (doubtful, reasons) = judged(4.0, 6.0);
        assert!(doubtful == Verdict::Unknown && reasons[0].contains("the lab stalled"), "{reasons:?}");
    }

    #[test]
    fn stalls_are_told_in_one_sentence_that_names_the_longest() {
        let stall =
            |from_s: f64, length_s: f64| Stall::of(vec![LabPart::Supervisor], from_s, from_s + length_s);
        let [short, long, other] = [stall(5.0, 0.5), stall(10.0, 2.0), stall(20.0, 0.7)];
        let longest = "the lab stalled for 2.0 s from 10.0 s on: supervisor, with all that it serves";
        let told = |stalls: &[&Stall]| {
            let mut result = ended(100, 1);
            result.lab.stalls = stalls.iter().copied().cloned().collect();
            verdict(&result, 0, None, None).1.remove(0)
        };
        assert_eq!(told(&[]), "every check passed");
        assert_eq!(told(&[&long]), format!("{longest}; figures from that time are not the database's"));
        let of_these = "figures from these times are not the database's";
        assert_eq!(told(&[&long, &short]), format!("{longest}, and once more for 0.5 s; {of_these}"));
        let more = format!("{longest}, and 2 more times for 1.2 s in all; {of_these}");
        assert_eq!(told(&[&short, &long, &other]), more);
        let waited = Stall { waited_for_processor_s: Some(1.96), ..long.clone() };
        let why = "supervisor, with all that it serves (it waited 2.0 s of that for a processor); figures";
        assert!(told(&[&waited]).contains(why), "{}", told(&[&waited]));
    }
}
