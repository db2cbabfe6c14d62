//! Whether a load did next to nothing, or nothing but fail, so that nothing follows from its figures.
//!
//! Owns which stretch is looked at, what counts as a failure and what as next to nothing. A load without a single success is
//! told by others, and sentences are the verdict's.

use history::ErrorClass;

use crate::load::{LoadFigures, LoadResult, PhaseResult};

/// Of an open loop that is due less often in its baseline, none need be done there.
const OPERATIONS_DUE: f64 = 2.0;

/// Why nothing follows from a load's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Barren {
    /// Nothing was done in its baseline and nothing failed, although something was asked for.
    IdleBaseline,
    /// More failed than succeeded.
    MostlyErrors {
        /// In its baseline, or, where it has none, in all that was measured of it.
        in_baseline: bool,
        /// Failures but for conflicts.
        errors: u64,
        /// Successes.
        transactions: u64,
    },
    /// A closed loop in which some clients had no success at all.
    FewerThanClients {
        /// Successes, warm-up left out.
        transactions: u64,
        /// The fewest clients that were at work.
        clients: u32,
    },
}

impl LoadResult {
    /// Why nothing follows from its figures, if so.
    #[must_use]
    pub fn barren(&self) -> Option<Barren> {
        if self.measured.transactions == 0 {
            return self.mostly_errors();
        }
        let baseline = self.baseline();
        let idle = baseline.is_some_and(is_idle).then_some(Barren::IdleBaseline);
        idle.or_else(|| self.mostly_errors()).or_else(|| self.fewer_than_clients())
    }

    fn mostly_errors(&self) -> Option<Barren> {
        let baseline = self.baseline();
        let measured = baseline.map_or(&self.measured, |phase| &phase.measured);
        let (errors, transactions) = (failures(measured), measured.transactions);
        let is_told_by_others = baseline.is_none() && transactions == 0;
        let in_baseline = baseline.is_some();
        (errors > transactions && !is_told_by_others).then_some(Barren::MostlyErrors {
            in_baseline,
            errors,
            transactions,
        })
    }

    fn fewer_than_clients(&self) -> Option<Barren> {
        let LoadFigures { clients, clients_least, transactions, .. } = self.measured;
        let clients = clients_least.or(clients)?;
        (transactions < u64::from(clients)).then_some(Barren::FewerThanClients { transactions, clients })
    }
}

fn is_idle(phase: &PhaseResult) -> bool {
    let figures = &phase.measured;
    let is_due = figures.rate_per_s.is_none_or(|rate| rate * (phase.to_s - phase.from_s) >= OPERATIONS_DUE);
    let has_done_nothing = figures.operations.values().all(|operation| operation.count == 0);
    is_due && has_done_nothing && figures.transactions == 0 && figures.errors.is_empty()
}

/// Conflicts that are to be tried again are no errors of this kind: a contended workload may have more of them than
/// successes.
fn failures(measured: &LoadFigures) -> u64 {
    let of_conflicts = ErrorClass::Serialization.name();
    measured.errors.iter().filter(|(class, _)| *class != of_conflicts).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use history::BASELINE;

    use super::*;

    fn figures(transactions: u64, class: &str, errors: u64) -> LoadFigures {
        let errors = [(class.to_owned(), errors)].into();
        LoadFigures { transactions, errors, ..LoadFigures::default() }
    }

    fn with_baseline(transactions: u64, class: &str, errors: u64) -> LoadResult {
        let measured = figures(transactions, class, errors);
        let phase = PhaseResult { name: BASELINE.to_owned(), measured, ..PhaseResult::default() };
        LoadResult { name: "kv".to_owned(), phases: vec![phase], ..LoadResult::default() }
    }

    fn without_baseline(transactions: u64, class: &str, errors: u64) -> LoadResult {
        let measured = figures(transactions, class, errors);
        LoadResult { name: "kv".to_owned(), measured, ..LoadResult::default() }
    }

    #[test]
    fn a_baseline_of_mostly_errors_is_barren_and_one_of_conflicts_or_few_errors_is_not() {
        let (errors, transactions) = (25_794, 9);
        let broken = Some(Barren::MostlyErrors { in_baseline: true, errors, transactions });
        assert_eq!(with_baseline(transactions, "connection", errors).barren(), broken);
        assert_eq!(with_baseline(100, "connection", 100).barren(), None);
        assert_eq!(with_baseline(9, "serialization", 25_794).barren(), None);
    }

    #[test]
    fn a_load_without_a_baseline_is_judged_by_all_that_was_measured_of_it() {
        let (errors, transactions) = (25_794, 9);
        let broken = Some(Barren::MostlyErrors { in_baseline: false, errors, transactions });
        assert_eq!(without_baseline(transactions, "connection", errors).barren(), broken);
        assert_eq!(without_baseline(100, "connection", 100).barren(), None);
        assert_eq!(without_baseline(9, "serialization", 25_794).barren(), None);
    }

    #[test]
    fn errors_after_a_sound_baseline_are_the_faults() {
        let load =
            LoadResult { measured: figures(9, "connection", 25_794), ..with_baseline(9, "timeout", 1) };
        assert_eq!(load.barren(), None);
    }

    #[test]
    fn a_load_without_a_success_is_told_by_others() {
        assert_eq!(without_baseline(0, "connection", 25_794).barren(), None);
    }

    #[test]
    fn a_baseline_in_which_nothing_was_done_is_barren_unless_nothing_was_due() {
        let idle = |rate_per_s: Option<f64>| {
            let measured = LoadFigures { rate_per_s, ..LoadFigures::default() };
            let name = BASELINE.to_owned();
            let phase = PhaseResult { name, from_s: 5.0, to_s: 15.0, measured };
            let measured = LoadFigures { transactions: 4_000, ..LoadFigures::default() };
            LoadResult { phases: vec![phase], measured, ..with_baseline(0, "timeout", 0) }.barren()
        };
        assert_eq!(idle(None), Some(Barren::IdleBaseline));
        assert_eq!(idle(Some(100.0)), Some(Barren::IdleBaseline));
        assert_eq!(idle(Some(0.1)), None);
    }

    #[test]
    fn a_closed_loop_with_fewer_successes_than_clients_is_barren_and_an_open_loop_is_not() {
        let load = |transactions: u64, clients: Option<u32>, clients_least: Option<u32>| {
            let measured = LoadFigures { clients, clients_least, transactions, ..LoadFigures::default() };
            LoadResult { measured, ..LoadResult::default() }.barren()
        };
        let few = Some(Barren::FewerThanClients { transactions: 999, clients: 1_000 });
        assert_eq!(load(999, Some(1_000), None), few);
        assert_eq!(load(1_000, Some(1_000), None), None);
        // A ramp from 2 clients to 1,000.
        assert_eq!(load(999, Some(1_000), Some(2)), None);
        assert_eq!(load(3, None, None), None);
    }
}
