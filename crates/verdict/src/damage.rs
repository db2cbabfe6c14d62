//! What each fault did to each load, and what that is for all loads together.
//!
//! Owns what is handed to `measure` and how loads are taken together: the worst of them, and nothing where one is not
//! known. What a gap, a low second and a recovery are is [`measure::recovery`]'s business.

use faults::FaultRecord;
use history::{AgentFacts, BASELINE, FaultId};
use load::{Demand, FirstSuccess, LoadPlan};
use measure::Wait;
use measure::recovery::{self, Baseline, Incomparable, LoadRecord, Second, Struck, Window};
use results::{FaultLoadResult, RecoveryResult, RunResult};

use crate::shown::{Planned, Shown};

/// One load as it was recorded.
pub(crate) struct LoadSeries {
    name: String,
    seconds: Vec<Second>,
    /// None where the record does not reach to the end of the run.
    waits: Option<Vec<Wait>>,
    baseline: Result<Baseline, Incomparable>,
    baseline_wait_s: Option<f64>,
}

/// Every load of the run, in the scenario's order.
pub(crate) fn series(planned: &Planned<'_>, shown: &Shown, agents: &[AgentFacts]) -> Vec<LoadSeries> {
    let baseline = planned.facts.phases.iter().find(|phase| phase.name == BASELINE);
    let baseline = baseline.map(|phase| (phase.from_s, phase.to_s));
    let one = |facts: &history::LoadFacts| {
        let mut series = shown.recorded.timeline.throughput(&facts.name, &facts.transaction);
        // A second that was only begun is not a measured one.
        series.retain(|(second, _)| *second as f64 + 1.0 <= shown.ended_s);
        let is_whole = series.last().is_some_and(|(last, _)| *last as f64 + 2.0 > shown.ended_s);
        let waits = shown.recorded.waits.get(&facts.name).filter(|_| is_whole);
        let waits = waits.map(|waits| until(waits, shown.ended_s));
        let plan = planned.plans.iter().find(|plan| plan.name == facts.name);
        let asked_less_from_s = RunResult::asked_less_from_s(agents, &facts.name);
        let demand = |second: u64| {
            let (baseline, stretch) = (baseline?, (second as f64, second as f64 + 1.0));
            match asked_less_from_s {
                Some(from_s) if is_other_load(from_s, baseline, stretch) => None,
                _ => demand(plan?, baseline, stretch),
            }
        };
        let due_per_s = baseline
            .and_then(|(from_s, to_s)| plan?.asked(from_s, to_s)?.rate)
            .map_or(f64::INFINITY, |rate| rate.per_s);
        LoadSeries {
            name: facts.name.clone(),
            seconds: series
                .iter()
                .map(|(second, successes)| Second {
                    second: *second,
                    successes: *successes,
                    demand: demand(*second),
                })
                .collect(),
            baseline: baseline
                .ok_or(Incomparable::NoBaseline)
                .and_then(|(from_s, to_s)| Baseline::of(&series, from_s, to_s))
                .map(|baseline| baseline.at_most(due_per_s)),
            baseline_wait_s: baseline.zip(waits.as_ref()).and_then(|((from_s, to_s), waits)| {
                recovery::longest_within(waits, from_s, to_s).map(|wait| wait.length_s())
            }),
            waits,
        }
    };
    planned.facts.loads.iter().map(one).collect()
}

/// What lies before the end of the run; a wait that reaches beyond it is open.
fn until(waits: &[Wait], ended_s: f64) -> Vec<Wait> {
    let begun = waits.iter().filter(|wait| wait.from_s < ended_s);
    begun
        .map(|wait| Wait {
            from_s: wait.from_s,
            to_s: wait.to_s.min(ended_s),
            is_open: wait.is_open || wait.to_s > ended_s,
        })
        .collect()
}

/// Whether a load asked less in a stretch than in the baseline, because it went on without an agent from then on.
fn is_other_load(from_s: f64, baseline: (f64, f64), stretch: (f64, f64)) -> bool {
    from_s > baseline.0 && from_s < stretch.1
}

/// What a load is asked in a stretch, as a share of what it is asked in the baseline. Of a closed loop only the same
/// number of clients can be compared; of a rate that was lowered nothing where less than one operation a second is due.
fn demand(plan: &LoadPlan, baseline: (f64, f64), stretch: (f64, f64)) -> Option<f64> {
    let fixed = |asked: Demand| (asked.clients == asked.clients_least).then_some(asked.clients);
    let (before, now) = (plan.asked(baseline.0, baseline.1)?, plan.asked(stretch.0, stretch.1)?);
    match (before.rate, now.rate) {
        (Some(before), Some(now)) => share_of_rate(before.per_s, now.per_s),
        (None, None) => (fixed(before)? == fixed(now)?).then_some(1.0),
        _ => None,
    }
}

fn share_of_rate(before_per_s: f64, now_per_s: f64) -> Option<f64> {
    let can_tell = before_per_s > 0.0 && (now_per_s >= 1.0 || now_per_s >= before_per_s);
    can_tell.then(|| now_per_s / before_per_s)
}

/// The window of each fault that took effect.
pub(crate) fn windows(shown: &Shown) -> Vec<Option<Window>> {
    let struck = |fault: &FaultRecord| Struck { asked_s: fault.asked_s, effect_s: fault.took_effect_s };
    recovery::windows(&shown.faults.iter().map(struck).collect::<Vec<_>>(), shown.ended_s)
}

/// What fault `number` did to each load; nothing where it took no effect.
pub(crate) fn by_load(
    (number, fault): (FaultId, &FaultRecord),
    window: Option<Window>,
    loads: &[LoadSeries],
    shown: &Shown,
) -> Vec<FaultLoadResult> {
    let Some(window) = window else { return Vec::new() };
    let stood_until_s = fault.mended_s.unwrap_or(shown.ended_s);
    let one = |load: &LoadSeries| {
        let record = LoadRecord {
            seconds: &load.seconds,
            waits: load.waits.as_deref(),
            baseline: load.baseline,
            baseline_wait_s: load.baseline_wait_s,
        };
        let damage = recovery::damage(&record, &window);
        let per_s = load.baseline.ok().map(|baseline| baseline.per_s);
        let first_success = first_success(&shown.recorded.first_success, (number, &load.name), shown.ended_s);
        FaultLoadResult {
            load: load.name.clone(),
            // Where nothing was due nobody waited, which is known.
            gap_s: load.waits.as_ref().map(|_| damage.longest_wait.map_or(0.0, |wait| wait.length_s())),
            gap_from_s: damage.longest_wait.map(|wait| wait.from_s),
            gap_is_open: damage.longest_wait.is_some_and(|wait| wait.is_open),
            baseline_gap_s: load.baseline_wait_s,
            interrupted: damage.is_interrupted,
            below_50_percent_s: damage.below_50_percent_s,
            below_95_percent_s: damage.below_95_percent_s,
            below_50_percent_at_end: damage.is_below_50_percent_at_end,
            below_95_percent_at_end: damage.is_below_95_percent_at_end,
            below_95_percent_per_s: load
                .baseline
                .ok()
                .and_then(|baseline| baseline.below_95_percent_per_s.ok()),
            baseline_per_s: per_s,
            incomparable: damage.incomparable,
            recovery_s: RecoveryResult {
                first_success,
                back_to_95_percent: per_s
                    .and_then(|per_s| recovery::back_to_95_percent(&load.seconds, per_s, window.effect_s)),
                sustained: damage.sustained_s,
            },
            lost_operations: damage.lost_operations,
            throughput_ratio_during: per_s.and_then(|per_s| {
                recovery::throughput_ratio_during(&load.seconds, per_s, window.effect_s, stood_until_s)
            }),
            throughput_ratio_lowest: per_s.and_then(|per_s| {
                recovery::throughput_ratio_lowest(&load.seconds, per_s, window.effect_s, stood_until_s)
            }),
        }
    };
    loads.iter().map(one).collect()
}

/// Seconds from a fault to a load's first success after it. One that came after the loads were told to stop is none: the
/// faults are healed by then.
fn first_success(
    recorded: &[(String, FirstSuccess)],
    (number, load): (FaultId, &str),
    ended_s: f64,
) -> Option<f64> {
    let of_fault = recorded.iter().find(|(name, first)| name == load && first.fault == number);
    of_fault.filter(|(_, first)| first.at_s <= ended_s).map(|(_, first)| first.after_s)
}

#[cfg(test)]
mod tests {
    use std::ops::Add;

    use super::*;

    #[test]
    fn loads_are_taken_together_only_where_each_is_known() {
        let load = |gap_s: Option<f64>| FaultLoadResult { gap_s, ..FaultLoadResult::default() };
        let (known, unknown) = ([load(Some(1.0)), load(Some(7.0))], [load(Some(1.0)), load(None)]);
        let of = |loads: &[FaultLoadResult], join| results::of_all(loads, |load| load.gap_s, join);
        let (worst, sum) = (|loads: &[_]| of(loads, f64::max), |loads: &[_]| of(loads, f64::add));
        let lowest = |loads: &[_]| of(loads, f64::min);
        assert_eq!((worst(&known), sum(&known), lowest(&known)), (Some(7.0), Some(8.0), Some(1.0)));
        assert_eq!((worst(&unknown), sum(&unknown), lowest(&unknown)), (None, None, None));
        assert_eq!((worst(&[]), sum(&[]), lowest(&[])), (None, None, None));
    }

    #[test]
    fn what_succeeds_after_the_faults_were_healed_at_the_end_is_no_recovery() {
        let first = |fault, at_s| {
            ("tpcb".to_owned(), FirstSuccess { fault: FaultId::new(fault), at_s, after_s: 29.98 })
        };
        let recorded = [first(0, 45.25), first(1, 44.75)];
        let of = |load, fault| first_success(&recorded, (FaultId::new(fault), load), 45.0);
        assert_eq!((of("tpcb", 0), of("tpcb", 1), of("ledger", 1)), (None, Some(29.98), None));
    }

    #[test]
    fn seconds_after_the_loss_of_an_agent_are_no_share_of_a_baseline_that_had_it() {
        let of = |from_s, second| is_other_load(from_s, (5.0, 15.0), (second, second + 1.0));
        assert_eq!((of(20.5, 19.0), of(20.5, 20.0), of(20.5, 30.0)), (false, true, true));
        // Nor where it was lost amid the baseline; one that was lost before is missing in both.
        assert_eq!((of(9.0, 30.0), of(3.0, 30.0)), (true, false));
    }

    #[test]
    fn where_less_than_one_operation_a_second_is_due_a_second_without_any_is_not_low() {
        assert_eq!(share_of_rate(50.0, 25.0), Some(0.5));
        assert_eq!(share_of_rate(50.0, 0.001), None);
        assert_eq!(share_of_rate(0.5, 0.5), Some(1.0), "as it was in the baseline");
        assert_eq!(share_of_rate(0.0, 1.0), None);
    }

    #[test]
    fn a_wait_that_the_end_of_the_run_cuts_off_is_open() {
        let wait = |from_s, to_s| Wait { from_s, to_s, is_open: false };
        let found = until(&[wait(1.0, 2.0), wait(9.0, 12.0), wait(11.0, 12.0)], 10.0);
        assert_eq!(found, [wait(1.0, 2.0), Wait { from_s: 9.0, to_s: 10.0, is_open: true }]);
    }
}
