//! From signs of life to stretches without one. Pure: moments are arguments.

use std::time::{Duration, Instant};

/// The signs of life of one part, looked at now and then.
#[derive(Debug, Clone)]
pub struct Beats {
    limit: Duration,
    last: Instant,
}

/// A stretch without a sign of life that was longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last sign before it.
    pub from: Instant,
    /// The first sign after it, or the end of the watch.
    pub to: Instant,
}

impl Beats {
    /// A part that is alive at `now`, and should never be silent for longer than `limit`.
    #[must_use]
    pub fn new(limit: Duration, now: Instant) -> Beats {
        Beats { limit, last: now }
    }

    /// Takes the part's latest sign of life; one that was taken before tells nothing new.
    #[must_use]
    pub fn take(&mut self, beat: Instant) -> Option<Gap> {
        let from = self.last;
        self.last = from.max(beat);
        (beat.saturating_duration_since(from) > self.limit).then_some(Gap { from, to: beat })
    }

    /// The part owed no sign of life until `now`: its node was off, or it had to wait for something that may be slow.
    pub fn excuse(&mut self, now: Instant) {
        self.last = self.last.max(now);
    }
}

/// Joins gaps of several parts that overlap, in order of their beginnings. When the whole lab stands still, each of its
/// parts does.
#[must_use]
pub fn joined<P: Ord>(mut gaps: Vec<(P, Gap)>) -> Vec<(Vec<P>, Gap)> {
    gaps.sort_by_key(|(_, gap)| gap.from);
    let mut joined: Vec<(Vec<P>, Gap)> = Vec::new();
    for (part, gap) in gaps {
        match joined.last_mut() {
            Some((parts, last)) if gap.from <= last.to => {
                parts.push(part);
                last.to = last.to.max(gap.to);
            }
            _ => joined.push((vec![part], gap)),
        }
    }
    for (parts, _) in &mut joined {
        parts.sort();
        parts.dedup();
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(500);

    fn at(zero: Instant, ms: u64) -> Instant {
        zero + Duration::from_millis(ms)
    }

    #[test]
    fn a_part_that_is_silent_for_longer_than_its_limit_has_a_gap_from_its_last_sign_to_its_next() {
        let zero = Instant::now();
        let mut beats = Beats::new(LIMIT, zero);
        assert_eq!(beats.take(at(zero, 400)), None);
        assert_eq!(beats.take(at(zero, 400)), None);
        assert_eq!(beats.take(at(zero, 5_400)), Some(Gap { from: at(zero, 400), to: at(zero, 5_400) }));
        assert_eq!(beats.take(at(zero, 5_900)), None);
    }

    #[test]
    fn time_in_which_no_sign_was_owed_is_no_gap() {
        let zero = Instant::now();
        let mut beats = Beats::new(LIMIT, zero);
        beats.excuse(at(zero, 60_000));
        assert_eq!(beats.take(at(zero, 60_100)), None);
    }

    #[test]
    fn gaps_that_overlap_are_one_and_name_each_part_once() {
        let zero = Instant::now();
        let gap = |from, to| Gap { from: at(zero, from), to: at(zero, to) };
        let gaps = vec![("b", gap(10, 20)), ("a", gap(12, 30)), ("b", gap(29, 31)), ("c", gap(40, 50))];
        assert_eq!(joined(gaps), vec![(vec!["a", "b"], gap(10, 31)), (vec!["c"], gap(40, 50))]);
    }

    proptest! {
        /// However the signs fall and however often they are looked at, every silence above the limit is found, and no
        /// other.
        #[test]
        fn exactly_the_silences_above_the_limit_are_found(
            steps_ms in prop::collection::vec(1u64..1_500, 1..40),
            looks in prop::collection::vec(0usize..3, 40),
        ) {
            let zero = Instant::now();
            let mut beats = Beats::new(LIMIT, zero);
            let (mut now_ms, mut found, mut planted) = (0, 0, 0);
            for (step_ms, repeats) in steps_ms.iter().zip(looks) {
                now_ms += step_ms;
                planted += usize::from(*step_ms > 500);
                found += usize::from(beats.take(at(zero, now_ms)).is_some());
                for _ in 0..repeats {
                    prop_assert_eq!(beats.take(at(zero, now_ms)), None);
                }
            }
            prop_assert_eq!(found, planted);
        }
    }
}
