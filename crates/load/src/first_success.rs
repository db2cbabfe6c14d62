//! The first operation that was sent after a fault took effect and succeeded.
//!
//! A fault's moment is often known only after its receipt, when the operation in question may long be done; so recent
//! successes are kept, and recent stretches in which nothing was due: those are nobody's recovery.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use history::FaultId;
use measure::Wait;

/// Successes kept. With the spacing below this is more than a minute, or all there were.
const KEPT: usize = 1 << 17;

/// Successes sent closer together than this are kept as one; an answer is that much off at most.
const SPACING: Duration = Duration::from_micros(500);

/// Stretches kept in which nothing was due. There are ten a second at most that are worth it: minutes.
const IDLE_KEPT: usize = 1 << 12;

/// The first operation that was sent after a fault took effect and succeeded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FirstSuccess {
    /// The fault's number, from 0.
    pub fault: FaultId,
    /// When the operation was completed, seconds on the run's clock.
    pub at_s: f64,
    /// Seconds from the fault's effect to then, without those in which nothing was due.
    pub after_s: f64,
}

#[derive(Debug, Clone, Copy)]
struct Success {
    invoked_s: f64,
    completed_s: f64,
}

/// Recent successes of a load and the faults that still wait for theirs.
#[derive(Debug, Default)]
pub(crate) struct FirstSuccesses {
    recent: VecDeque<Success>,
    idle: VecDeque<Wait>,
    /// Sent before this, a success is one with those that are kept.
    next: Option<Instant>,
    /// Fault's number and when it took effect.
    waiting: Vec<(FaultId, f64)>,
}

impl FirstSuccesses {
    /// Whether a success sent at this moment is to be noted. Asked in the order of completion, and of every one, so that
    /// it costs less than noting.
    pub(crate) fn wants(&mut self, invoked: Instant) -> bool {
        if self.next.is_some_and(|next| invoked < next) {
            return false;
        }
        self.next = Some(invoked + SPACING);
        true
    }

    /// Notes a success. Called in the order of completion.
    pub(crate) fn note(&mut self, invoked_s: f64, completed_s: f64) {
        // One sent no later than another and completed after it can never be the first of anything.
        if self.recent.back().is_some_and(|last| invoked_s < last.invoked_s + SPACING.as_secs_f64()) {
            return;
        }
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(Success { invoked_s, completed_s });
    }

    /// Nothing was due in these stretches, which follow those of the last call.
    pub(crate) fn nothing_was_due(&mut self, idle: &[Wait]) {
        self.idle.extend(idle);
        let surplus = self.idle.len().saturating_sub(IDLE_KEPT);
        self.idle.drain(..surplus);
    }

    /// A fault took effect at `at_s`.
    pub(crate) fn mark(&mut self, fault: FaultId, at_s: f64) {
        self.waiting.push((fault, at_s));
    }

    /// Faults whose first success is known by now, with the seconds from effect to completion in which something was
    /// due, each told once.
    pub(crate) fn take_answered(&mut self) -> Vec<FirstSuccess> {
        let (recent, idle) = (&self.recent, &self.idle);
        let idle_between = |from_s: f64, to_s: f64| -> f64 {
            idle.iter().map(|idle| (idle.to_s.min(to_s) - idle.from_s.max(from_s)).max(0.0)).sum()
        };
        let mut answered = Vec::new();
        self.waiting.retain(|(fault, at_s)| {
            let first = recent.partition_point(|success| success.invoked_s < *at_s);
            match recent.get(first) {
                Some(success) => {
                    let idle_s = idle_between(*at_s, success.completed_s);
                    let after_s = (success.completed_s - at_s - idle_s).max(0.0);
                    answered.push(FirstSuccess { fault: *fault, at_s: success.completed_s, after_s });
                    false
                }
                None => true,
            }
        });
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(first: &mut FirstSuccesses) -> Vec<(usize, f64)> {
        first.take_answered().into_iter().map(|success| (success.fault.index(), success.after_s)).collect()
    }

    fn check(successes: &[(f64, f64)], at_s: f64, expected: Option<f64>) {
        let mut first = FirstSuccesses::default();
        for (invoked_s, completed_s) in successes {
            first.note(*invoked_s, *completed_s);
        }
        first.mark(FaultId::new(3), at_s);
        let expected: Vec<(usize, f64)> = expected.into_iter().map(|after| (3, after)).collect();
        assert_eq!(answered(&mut first), expected, "{successes:?} after {at_s}");
    }

    #[test]
    fn only_operations_sent_after_the_fault_count_and_the_first_completed_wins() {
        check(&[(1.0, 1.5)], 1.0, Some(0.5));
        check(&[(0.9, 1.5)], 1.0, None);
        check(&[(0.9, 5.0), (4.0, 6.0), (3.0, 7.0)], 1.0, Some(5.0));
        check(&[(0.5, 0.75), (2.0, 2.25), (3.0, 3.5)], 1.0, Some(1.25));
        check(&[], 1.0, None);
    }

    #[test]
    fn a_load_that_had_nothing_to_send_was_not_kept_waiting() {
        let mut first = FirstSuccesses::default();
        let idle = |from_s, to_s| Wait { from_s, to_s, is_open: false };
        first.nothing_was_due(&[idle(4.0, 5.0), idle(8.0, 17.0)]);
        first.note(17.0, 17.25);
        first.mark(FaultId::FIRST, 10.0);
        first.mark(FaultId::new(1), 16.5);
        assert_eq!(answered(&mut first), [(0, 0.25), (1, 0.25)]);
    }

    #[test]
    fn successes_sent_together_are_wanted_once() {
        let (mut first, zero) = (FirstSuccesses::default(), Instant::now());
        let wanted = [0, 499, 500, 400, 999, 1_000].map(|us| first.wants(zero + Duration::from_micros(us)));
        assert_eq!(wanted, [true, false, true, false, false, true]);
    }

    #[test]
    fn a_fault_still_waiting_is_answered_later_and_only_once() {
        let mut first = FirstSuccesses::default();
        first.mark(FaultId::FIRST, 10.0);
        assert_eq!(answered(&mut first), []);
        first.note(10.5, 11.0);
        assert_eq!(answered(&mut first), [(0, 1.0)]);
        first.note(11.5, 12.0);
        assert_eq!(answered(&mut first), []);
    }
}
