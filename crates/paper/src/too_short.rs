//! Phases that are too short, for the figures after a fault or for a load that pauses: said before the run, so that nobody waits for it
//! in vain.
//!
//! Owns which phases those are, by the limits of `measure`. Leaves the schedule as it is.

use std::time::Duration;

use history::BASELINE;
use measure::recovery::SUSTAINED_SECONDS_MIN;
use measure::warnings::{BASELINE_SECONDS_MIN, Percentile};
use scenario::{Fault, Load, Phase, Scenario, Takes};

/// Recovery takes some time of its own before it can be sustained; less than this after healing is seldom enough.
const AFTER_HEALING: Duration = Duration::from_secs(SUSTAINED_SECONDS_MIN + 2);

/// A phase that is too short for a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TooShort {
    /// The baseline, so that how long throughput was low after a fault cannot be told.
    Baseline {
        /// How long it is.
        length: Duration,
        /// How long it has to be.
        needed: Duration,
    },
    /// What follows the healing of the last fault, so that a sustained recovery may not be seen.
    AfterLastFault {
        /// The phase in which the fault stands.
        phase: String,
        /// How long the run goes on.
        length: Duration,
        /// How long it had better go on.
        needed: Duration,
    },
    /// The pauses of a load leave its baseline too few transactions for high percentiles.
    Paced {
        load: String,
        /// What a client waits around a transaction, on average.
        pauses: Duration,
        clients: u32,
        /// What they make at most in the baseline.
        transactions: u64,
        /// What the 99th percentile needs.
        needed: u64,
    },
}

/// Loads whose pauses leave too few transactions.
pub(crate) fn paced(scenario: &Scenario) -> Vec<TooShort> {
    let Some(baseline) = scenario.schedule.iter().find(|phase| phase.name == BASELINE) else {
        return Vec::new();
    };
    let of_load = |load: &Load| {
        let workload = workload::configured(&load.workload, &load.options).ok()?;
        let pauses = workload.mean_pauses();
        let each = baseline.length.div_duration_f64(pauses);
        let transactions = (each * f64::from(load.clients)) as u64;
        let needed = Percentile::P99.samples_needed();
        let is_few = !pauses.is_zero() && transactions < needed;
        let (load, clients) = (load.name.clone(), load.clients);
        is_few.then_some(TooShort::Paced { load, pauses, clients, transactions, needed })
    };
    scenario.loads.iter().filter_map(of_load).collect()
}

/// The phases that are too short. A schedule without faults, or a scenario without loads, has none.
pub(crate) fn phases(scenario: &Scenario) -> Vec<TooShort> {
    let has_faults = scenario.schedule.iter().any(|phase| !phase.faults.is_empty());
    if !has_faults || scenario.loads.is_empty() {
        return Vec::new();
    }
    // A second that is only begun is not a measured one.
    let needed = Duration::from_secs(BASELINE_SECONDS_MIN as u64);
    let baseline = scenario.schedule.iter().find(|phase| phase.name == BASELINE);
    let baseline = baseline.filter(|phase| phase.length < needed);
    let baseline = baseline.map(|phase| TooShort::Baseline { length: phase.length, needed });
    baseline.into_iter().chain(after_last_fault(scenario)).collect()
}

fn after_last_fault(scenario: &Scenario) -> Option<TooShort> {
    let (mut now, mut last) = (Duration::ZERO, None);
    for phase in &scenario.schedule {
        for fault in &phase.faults {
            let healed = now + over(fault, phase);
            last = last.max(Some((healed, phase.name.clone())));
        }
        now += phase.length;
    }
    let (healed, phase) = last?;
    let length = now.saturating_sub(healed);
    (length < AFTER_HEALING).then_some(TooShort::AfterLastFault { phase, length, needed: AFTER_HEALING })
}

/// When a fault is over, from the start of its phase. A migration takes no `for` and ends by itself; what it leaves of a guest's clock
/// stays until the phase ends.
fn over(fault: &Fault, phase: &Phase) -> Duration {
    match (fault.length, fault.action.takes()) {
        (Some(length), _) => fault.at + length,
        (None, Takes::Pause(migration)) if !migration.has_guest_clock => fault.at,
        (None, _) => phase.length,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is too short of a schedule whose phases are given as they are written.
    fn of(schedule: &str) -> Vec<TooShort> {
        let text = format!(
            "name: phases\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\ndatabase: {{ engine: \
             postgres, nodes: 3 }}\nloads: [{{ workload: ledger, clients: 1, from: dc1 }}]\nschedule: [{schedule}]\n"
        );
        let source = scenario::Source { name: "phases.yaml".to_owned(), text };
        phases(&scenario::parse(&source, &[]).expect("a scenario"))
    }

    #[test]
    fn a_schedule_that_leaves_time_enough_is_not_blamed_and_one_without_faults_never() {
        let whole = "{ phase: baseline, for: 4s }, { phase: fault, for: 8s, faults: [{ power-off: { host: leader }, for: 2s }] }";
        assert_eq!(of(whole), []);
        assert_eq!(of("{ phase: baseline, for: 1s }"), []);
    }

    #[test]
    fn a_migration_is_over_before_its_phase_ends_but_for_a_guests_clock() {
        let moves = |clock: &str| {
            let fault = format!("{{ migrate: {{ of: leader, clock: {clock} }} }}");
            of(&format!("{{ phase: baseline, for: 4s }}, {{ phase: moves, for: 30s, faults: [{fault}] }}"))
        };
        assert_eq!(moves("host"), []);
        let lags = moves("guest");
        assert!(matches!(&lags[..], [TooShort::AfterLastFault { .. }]), "{lags:?}");
    }

    #[test]
    fn pauses_that_leave_too_few_transactions_are_named_and_a_load_without_them_is_not() {
        let scenario = |pauses: &str, clients: u32| {
            let text = format!(
                "name: pauses\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\ndatabase: {{ engine: \
                 postgres, nodes: 3 }}\nloads: [{{ workload: tpcc, clients: {clients}, from: dc1, options: {{ pauses: {pauses} }} \
                 }}]\nschedule: [{{ phase: baseline, for: 42s }}]\n"
            );
            let source = scenario::Source { name: "pauses.yaml".to_owned(), text };
            paced(&scenario::parse(&source, &[]).expect("a scenario"))
        };
        let few = scenario("on", 40);
        // Clause 4.2.2's mix with its keying and think times: 21 s a transaction, near enough.
        assert!(matches!(&few[..], [TooShort::Paced { transactions: 75..=85, clients: 40, .. }]), "{few:?}");
        assert_eq!(scenario("on", 2_000), []);
        assert_eq!(scenario("off", 40), []);
    }

    #[test]
    fn a_short_baseline_and_an_early_end_are_named() {
        let second = Duration::from_secs;
        let fault = "{ phase: fault, for: 3s, faults: [{ power-off: { host: leader }, for: 2s }] }";
        let early =
            TooShort::AfterLastFault { phase: "fault".to_owned(), length: second(1), needed: AFTER_HEALING };
        let short = TooShort::Baseline { length: second(2), needed: second(4) };
        assert_eq!(of(&format!("{{ phase: baseline, for: 2s }}, {fault}")), [short, early]);
    }
}
