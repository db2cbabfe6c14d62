//! The schedule laid out on the run's clock: when phases begin, when faults strike and when they are healed.

use std::time::Duration;

use history::FaultId;

/// When a fault strikes within its phase, and how long it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedFault {
    /// From the start of its phase.
    pub at: Duration,
    /// How long it stands; until the end of its phase when absent.
    pub length: Option<Duration>,
}

/// How long a phase lasts, and what strikes in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPhase {
    /// How long it lasts.
    pub length: Duration,
    /// Faults that strike in it.
    pub faults: Vec<PlannedFault>,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A phase ends in which the run ends too.
    End,
    /// A fault is healed.
    Heal {
        /// Its number in the run.
        fault: FaultId,
    },
    /// A phase begins.
    Phase {
        /// Counted from 0 in the order of the schedule.
        phase: usize,
    },
    /// A fault strikes.
    Strike {
        /// Its number in the run.
        fault: FaultId,
    },
}

/// Something due at a moment of the run's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedAction {
    /// When.
    pub at: Duration,
    /// What.
    pub action: Action,
}

/// Every action in the order it is due. Faults are numbered in the order of the schedule. At the same moment a
/// fault is healed before a phase begins, and a phase begins before a fault of it strikes, so that neither counts for
/// the wrong phase.
#[must_use]
pub fn timeline(phases: &[PlannedPhase]) -> Vec<TimedAction> {
    let end: Duration = phases.iter().map(|phase| phase.length).sum();
    let mut actions = Vec::new();
    let mut begins = Duration::ZERO;
    let mut struck = 0;
    for (number, phase) in phases.iter().enumerate() {
        actions.push(TimedAction { at: begins, action: Action::Phase { phase: number } });
        let ends = begins + phase.length;
        for planned in &phase.faults {
            let fault = FaultId::new(struck);
            let strikes = begins + planned.at;
            let heals = planned.length.map_or(ends, |length| strikes + length).min(end);
            actions.push(TimedAction { at: strikes, action: Action::Strike { fault } });
            actions.push(TimedAction { at: heals, action: Action::Heal { fault } });
            struck += 1;
        }
        begins = ends;
    }
    actions.push(TimedAction { at: end, action: Action::End });
    let rank = |action: &Action| match action {
        Action::Heal { .. } => 0,
        Action::Phase { .. } => 1,
        Action::Strike { .. } => 2,
        Action::End => 3,
    };
    actions.sort_by_key(|timed| (timed.at, rank(&timed.action)));
    actions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phases as `length: at+length at`; actions as `second what number`.
    fn check(phases: &[&str], expected: &[&str]) {
        let seconds = |text: &str| Duration::from_secs(text.parse().expect("seconds"));
        let phases: Vec<PlannedPhase> = phases
            .iter()
            .map(|text| {
                let (length, faults) = text.split_once(':').expect("length: faults");
                let faults = faults.split_whitespace().map(|fault| match fault.split_once('+') {
                    Some((at, length)) => PlannedFault { at: seconds(at), length: Some(seconds(length)) },
                    None => PlannedFault { at: seconds(fault), length: None },
                });
                PlannedPhase { length: seconds(length), faults: faults.collect() }
            })
            .collect();
        let found: Vec<String> = timeline(&phases)
            .iter()
            .map(|timed| {
                let at = timed.at.as_secs();
                match timed.action {
                    Action::End => format!("{at} end"),
                    Action::Heal { fault } => format!("{at} heal {}", fault.index()),
                    Action::Phase { phase } => format!("{at} phase {phase}"),
                    Action::Strike { fault } => format!("{at} strike {}", fault.index()),
                }
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_fault_without_a_length_is_healed_as_its_phase_ends() {
        check(
            &["5:", "10: 2", "5:"],
            &["0 phase 0", "5 phase 1", "7 strike 0", "15 heal 0", "15 phase 2", "20 end"],
        );
    }

    #[test]
    fn a_fault_may_outlast_its_phase_but_not_the_run() {
        check(
            &["5: 1+6", "5: 1+90"],
            &["0 phase 0", "1 strike 0", "5 phase 1", "6 strike 1", "7 heal 0", "10 heal 1", "10 end"],
        );
    }
}
