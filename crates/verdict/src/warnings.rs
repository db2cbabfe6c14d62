//! What a reader of the run should know before trusting its figures.
//!
//! Owns which doubts are asked for. What makes a doubt is `measure`'s business.

use history::AgentFacts;
use history::BASELINE;
use history::ErrorClass;
use history::Event;
use history::PhaseFacts;
use history::WARM_UP;
use history::{Receipt, Verdict};
use measure::{Doubt, warnings};
use results::{LoadResult, WarningResult};

use crate::shown::{Planned, Shown};

pub(crate) fn all_warnings(
    planned: &Planned<'_>,
    shown: &Shown,
    (loads, agents): (&[LoadResult], &[AgentFacts]),
    events: &[Event],
) -> Vec<WarningResult> {
    let lab = shown.lab.as_ref();
    let mut found: Vec<WarningResult> = events.iter().filter_map(WarningResult::told_by).collect();
    let saturated = shown.busy_share.and_then(|busy| warnings::cpu_saturated(busy, shown.own_share));
    let modelled = lab.and_then(|lab| lab.modelled_syncs.as_ref());
    let late = modelled.and_then(|syncs| warnings::syncs_late(syncs.late_us_mean, syncs.asked_us));
    let mut doubts: Vec<Doubt> = saturated.into_iter().chain(late).collect();
    let baseline = planned.facts.phases.iter().find(|phase| phase.name == BASELINE);
    for (load, facts) in loads.iter().zip(&planned.facts.loads) {
        if let Some(baseline) = baseline {
            let series = shown.recorded.timeline.throughput(&load.name, &facts.transaction);
            doubts.extend(warnings::baseline_doubt(&load.name, &whole_seconds(&series, baseline)));
        }
        if let Some(open_loop) = shown.recorded.open_loops.get(&load.name) {
            let late_us_p99 = open_loop.lateness.value_at_quantile(0.99);
            doubts.extend(warnings::generator_late(&load.name, late_us_p99, load.measured.latency_us.p50));
            let plan = planned.plans.iter().find(|plan| plan.name == load.name);
            let last = plan.and_then(|plan| plan.step_at(shown.ended_s));
            let rate_per_s = last.and_then(|step| step.rate_per_s).unwrap_or(0.0);
            doubts.extend(warnings::rate_not_kept(&load.name, open_loop.waiting_at_end, rate_per_s));
        }
        for phase in load.phases.iter().filter(|phase| phase.name != WARM_UP) {
            let what = format!("{}, phase {}", load.name, phase.name);
            // p99.9 is not in the report's tables by phase; the doubts worth a reader's time are those about p99.
            doubts.extend(warnings::few_samples(&what, phase.measured.transactions).into_iter().filter(
                |doubt| !matches!(doubt, Doubt::FewSamples { percentile: warnings::Percentile::P99_9, .. }),
            ));
        }
    }
    let told = warnings::folded(&doubts).into_iter();
    found.extend(told.map(|(what, remedy)| WarningResult { what, remedy: remedy.to_owned() }));
    found.extend(loads.iter().filter_map(mostly_conflicts));
    found.extend(loads.iter().filter_map(few_orders));
    found.extend(loads.iter().filter_map(backlog_in_baseline));
    found.extend(crate::agents::warnings(agents));
    found.extend(links_in_doubt(lab.and_then(|lab| lab.links.as_ref())));
    let kernel_path = lab.and_then(|lab| lab.kernel_path.as_ref());
    found.extend(lab.and_then(|lab| lost_unseen(lab.packets_lost_on_the_way_in, kernel_path.is_some())));
    found.extend(kernel_path.and_then(|path| off_the_path(path.places_lost)));
    found
}

/// Conflicts with other transactions are no errors of the database, and yet a load of which most attempts end so measures little else.
fn mostly_conflicts(load: &LoadResult) -> Option<WarningResult> {
    let measured = &load.baseline()?.measured;
    let conflicts = *measured.errors.get(ErrorClass::Serialization.name())?;
    (conflicts > measured.transactions).then(|| WarningResult {
        what: format!(
            "load {}: {} of its transactions failed in the baseline because of conflicts with others, and {} succeeded",
            load.name,
            report::with_thousands(conflicts),
            report::with_thousands(measured.transactions)
        ),
        remedy: "give it more rows (`scale`) or fewer clients: throughput that conflicts limit may rise when a node is lost"
            .to_owned(),
    })
}

/// From this share of what was due on, a baseline has more than chance added to it.
const MORE_THAN_DUE: f64 = 1.05;

/// An open loop in whose baseline operations were done that were due in the warm-up. What follows is compared with what was due.
fn backlog_in_baseline(load: &LoadResult) -> Option<WarningResult> {
    let measured = &load.baseline()?.measured;
    let due_per_s = measured.rate_per_s?;
    (measured.throughput_per_s > MORE_THAN_DUE * due_per_s).then(|| WarningResult {
        what: format!(
            "load {}: {:.0} operations a second were due in its baseline and {:.0} were done, because those of the warm-up \
             were late; throughput after a fault is compared with what was due",
            load.name, due_per_s, measured.throughput_per_s
        ),
        remedy: "give the warm-up more time, or lower the rate".to_owned(),
    })
}

/// So many new orders vary by a tenth by chance alone, at two standard deviations of a count.
const ORDERS_MIN: u64 = 400;

/// TPC-C's figures count new orders, of which a short run has few.
fn few_orders(load: &LoadResult) -> Option<WarningResult> {
    let counted = load
        .phases
        .iter()
        .filter(|phase| phase.name != WARM_UP && phase.measured.figures.contains_key("tpmC"));
    let (orders, phase) = counted.map(|phase| (phase.measured.new_orders(), &phase.name)).min()?;
    (0 < orders && orders < ORDERS_MIN).then(|| WarningResult {
        what: format!(
            "load {}: tpmC and efficiency of phase {phase} rest on {orders} new orders, and so vary by about {:.0} % by chance alone",
            load.name,
            200.0 / (orders as f64).sqrt()
        ),
        remedy: "make the phases longer, or raise the number of warehouses (`scale`) and clients".to_owned(),
    })
}

/// What succeeded in the whole seconds of a phase: one that it shares with the next may be a fault's.
fn whole_seconds(series: &[(u64, u64)], phase: &PhaseFacts) -> Vec<u64> {
    let is_whole = |second: u64| second as f64 >= phase.from_s && second as f64 + 1.0 <= phase.to_s;
    series.iter().filter(|(second, _)| is_whole(*second)).map(|(_, count)| *count).collect()
}

/// Their packets took longer from then on, which no fault of the schedule explains.
fn off_the_path(times: u64) -> Option<WarningResult> {
    (times > 0).then(|| WarningResult {
        what: format!(
            "places left the kernel's own path because the kernel refused routes (times: {times}); their packets took the \
             simulated network since, which adds to each round trip"
        ),
        remedy: "repeat the run; if it happens again, leave out `site.network` and report this".to_owned(),
    })
}

/// No link has lost these, and no figure counts them. Interfaces to the simulated network and to the kernel's own path are
/// counted as one.
fn lost_unseen(packets: u64, by_kernel_as_well: bool) -> Option<WarningResult> {
    let whose = match by_kernel_as_well {
        true => "the simulated network or the kernel's own path",
        false => "the simulated network",
    };
    (packets > 0).then(|| WarningResult {
        what: format!(
            "{packets} packets were lost between nodes or clients and {whose}, which took them too slowly; \
             no network counter includes them"
        ),
        remedy: "repeat the run on a less busy machine, or with fewer nodes or clients".to_owned(),
    })
}

/// A link that does otherwise is a reason of the verdict; one that could not be looked at is no fault of the run, and is to
/// be known all the same.
fn links_in_doubt(links: Option<&Receipt>) -> Option<WarningResult> {
    let in_doubt = links.filter(|links| links.verdict == Verdict::Unknown)?;
    Some(WarningResult {
        what: format!("not every link of the site was shown to behave as configured: {}", in_doubt.evidence.join("; ")),
        remedy: "repeat the run on a less busy machine, or compare the figures with those of a site without these links"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_in_which_the_baseline_ends_and_the_fault_strikes_is_none_of_the_baseline() {
        let phase = PhaseFacts { name: BASELINE.to_owned(), from_s: 1.5, to_s: 4.5 };
        let series = [(0, 9), (1, 9), (2, 100), (3, 101), (4, 40), (5, 0)];
        assert_eq!(whole_seconds(&series, &phase), [100, 101]);
    }

    #[test]
    fn places_that_left_the_kernels_path_are_warned_of() {
        assert_eq!(off_the_path(0), None);
        let told = off_the_path(2).expect("a warning").what;
        assert!(
            told.starts_with("places left the kernel's own path") && told.contains("(times: 2)"),
            "{told}"
        );
    }

    #[test]
    fn packets_that_the_network_never_had_are_warned_of() {
        assert_eq!(lost_unseen(0, true), None);
        let by_kernel = lost_unseen(12, true).expect("a warning");
        assert!(by_kernel.what.contains("or the kernel's own path"), "{}", by_kernel.what);
        let warning = lost_unseen(12, false).expect("a warning");
        assert!(!warning.what.contains("kernel"), "{}", warning.what);
        assert!(
            warning.what.starts_with("12 packets were lost between nodes or clients"),
            "{}",
            warning.what
        );
    }

    #[test]
    fn figures_of_few_new_orders_are_warned_of_with_how_much_they_vary() {
        let load = |count: u64| {
            let operations =
                [("NEW-ORDER".to_owned(), results::OperationResult { count, ..Default::default() })].into();
            let figures = [("tpmC".to_owned(), 60.0)].into();
            let measured = results::LoadFigures { operations, figures, ..results::LoadFigures::default() };
            let phase = |name: &str| results::PhaseResult {
                name: name.to_owned(),
                measured: measured.clone(),
                ..results::PhaseResult::default()
            };
            LoadResult {
                name: "tpcc".to_owned(),
                phases: vec![phase(WARM_UP), phase("fault")],
                ..LoadResult::default()
            }
        };
        let told = few_orders(&load(64)).expect("a warning").what;
        assert!(told.contains("of phase fault rest on 64 new orders, and so vary by about 25 %"), "{told}");
        assert_eq!((few_orders(&load(400)), few_orders(&load(0))), (None, None));
    }

    #[test]
    fn a_baseline_of_more_conflicts_than_successes_is_warned_of() {
        let load = |transactions: u64| {
            let errors = [(ErrorClass::Serialization.name().to_owned(), 5_307)].into();
            let measured = results::LoadFigures { transactions, errors, ..results::LoadFigures::default() };
            let phase = results::PhaseResult {
                name: BASELINE.to_owned(),
                measured,
                ..results::PhaseResult::default()
            };
            LoadResult { name: "tpcb".to_owned(), phases: vec![phase], ..LoadResult::default() }
        };
        let told = mostly_conflicts(&load(3_718)).expect("a warning").what;
        assert!(
            told.starts_with("load tpcb: 5,307 of its transactions failed") && told.contains("3,718"),
            "{told}"
        );
        assert_eq!(mostly_conflicts(&load(5_307)), None);
    }

    #[test]
    fn a_baseline_in_which_the_warm_up_was_caught_up_is_warned_of() {
        let load = |throughput_per_s: f64, rate_per_s: Option<f64>| {
            let measured =
                results::LoadFigures { throughput_per_s, rate_per_s, ..results::LoadFigures::default() };
            let phase = results::PhaseResult {
                name: BASELINE.to_owned(),
                measured,
                ..results::PhaseResult::default()
            };
            LoadResult { name: "kv".to_owned(), phases: vec![phase], ..LoadResult::default() }
        };
        let told = backlog_in_baseline(&load(131.0, Some(100.0))).expect("a warning").what;
        assert!(
            told.starts_with("load kv: 100 operations a second were due in its baseline and 131 "),
            "{told}"
        );
        assert_eq!(backlog_in_baseline(&load(104.0, Some(100.0))), None);
        assert_eq!(backlog_in_baseline(&load(131.0, None)), None);
    }

    #[test]
    fn links_that_were_not_shown_are_warned_of_and_shown_or_refuted_ones_are_not() {
        let told =
            |verdict| links_in_doubt(Some(&Receipt { verdict, evidence: vec!["12 of 20 arrived".into()] }));
        let warning = told(Verdict::Unknown).expect("a warning");
        assert!(warning.what.ends_with("as configured: 12 of 20 arrived"), "{}", warning.what);
        assert_eq!((told(Verdict::Pass), told(Verdict::Fail), links_in_doubt(None)), (None, None, None));
    }
}
