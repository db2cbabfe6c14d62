//! How far another machine's clock is ahead of ours, from round trips, with bounds that hold whatever the way is like. Pure.
//!
//! An answer was written down after the question had left and before the answer came back: that is all that is assumed. No
//! half of the way has to be as fast as the other. Times of an agent are taken over by the offset before the run; how far they
//! may be off by its end follows from the offset after it.

use history::{ClockFacts, ClockOffset};

/// A question to another clock. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// When it left, by our clock.
    pub sent_ns: u64,
    /// The other clock when it was there.
    pub theirs_ns: u64,
    /// When the answer was here, by our clock.
    pub received_ns: u64,
}

/// How far another clock is ahead of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// So much; negative where it is behind. Nanoseconds.
    pub ahead_ns: i64,
    /// More or less at most so much.
    pub uncertainty_ns: u64,
}

impl RoundTrip {
    /// What it shows.
    #[must_use]
    pub fn offset(&self) -> Offset {
        let least = i128::from(self.theirs_ns) - i128::from(self.received_ns);
        let most = i128::from(self.theirs_ns) - i128::from(self.sent_ns);
        let middle = (least + most).div_euclid(2);
        let limit = |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
        Offset {
            ahead_ns: limit(middle),
            uncertainty_ns: u64::try_from((most - middle).max(middle - least)).unwrap_or(u64::MAX),
        }
    }
}

/// What the fastest of several round trips shows: the one that leaves the least open.
#[must_use]
pub fn best(trips: &[RoundTrip]) -> Option<Offset> {
    trips.iter().map(RoundTrip::offset).min_by_key(|offset| offset.uncertainty_ns)
}

impl Offset {
    /// The other clock when ours shows this.
    #[must_use]
    pub fn theirs(&self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.ahead_ns)
    }

    /// Our clock when the other shows this.
    #[must_use]
    pub fn ours(&self, theirs_ns: u64) -> u64 {
        theirs_ns.saturating_add_signed(self.ahead_ns.saturating_neg())
    }

    /// How far the clocks have certainly moved against each other since `earlier`.
    #[must_use]
    pub fn moved_at_least_ns(&self, earlier: &Offset) -> u64 {
        let open = self.uncertainty_ns.saturating_add(earlier.uncertainty_ns);
        self.ahead_ns.abs_diff(earlier.ahead_ns).saturating_sub(open)
    }

    fn told(self) -> ClockOffset {
        ClockOffset { ahead_us: self.ahead_ns as f64 / 1e3, uncertainty_us: self.uncertainty_ns as f64 / 1e3 }
    }
}

/// What is known of an agent's clock over a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Before the run: the agent's times are taken over by it.
    pub before: Option<Offset>,
    /// The most that the clocks were seen to have moved against each other meanwhile, for certain.
    pub moved_ns: u64,
    /// After the run.
    pub after: Option<Offset>,
}

impl Comparison {
    /// Takes in an offset that was seen while the run went on.
    pub fn meanwhile(&mut self, seen: &Offset) {
        if let Some(before) = &self.before {
            self.moved_ns = self.moved_ns.max(seen.moved_at_least_ns(before));
        }
    }

    /// How far any of the agent's times may be off; none where that is not known.
    #[must_use]
    pub fn off_by_at_most_ns(&self) -> Option<u64> {
        let (before, after) = (self.before?, self.after?);
        let drifted = after.ahead_ns.abs_diff(before.ahead_ns).saturating_add(after.uncertainty_ns);
        let moved = self.moved_ns.saturating_add(before.uncertainty_ns);
        Some(before.uncertainty_ns.max(drifted).max(moved))
    }

    /// As it is recorded.
    #[must_use]
    pub fn facts(&self) -> ClockFacts {
        ClockFacts {
            before: self.before.map(Offset::told),
            after: self.after.map(Offset::told),
            off_by_at_most_us: self.off_by_at_most_ns().map(|ns| ns as f64 / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn trip(sent_ns: u64, theirs_ns: u64, received_ns: u64) -> RoundTrip {
        RoundTrip { sent_ns, theirs_ns, received_ns }
    }

    #[test]
    fn the_fastest_round_trip_tells_most() {
        let trips = [trip(1_000, 6_000, 3_000), trip(5_000, 9_100, 5_300), trip(9_000, 14_000, 11_000)];
        assert_eq!(best(&trips), Some(Offset { ahead_ns: 3_950, uncertainty_ns: 150 }));
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn a_clock_that_drifts_during_the_run_makes_its_times_uncertain_by_as_much() {
        let offset = |ahead_ns, uncertainty_ns| Some(Offset { ahead_ns, uncertainty_ns });
        let of = |before, moved_ns, after| Comparison { before, moved_ns, after }.off_by_at_most_ns();
        assert_eq!(of(offset(1_000, 40), 0, offset(1_010, 30)), Some(40));
        assert_eq!(of(offset(1_000, 40), 0, offset(-4_000, 30)), Some(5_030));
        assert_eq!(of(offset(1_000, 40), 9_000, offset(1_010, 30)), Some(9_040), "gone and come back");
        assert_eq!(of(offset(1_000, 40), 0, None), None, "nobody knows");
        let mut comparison = Comparison { before: offset(1_000, 40), ..Comparison::default() };
        comparison.meanwhile(&Offset { ahead_ns: 1_060, uncertainty_ns: 50 });
        assert_eq!(comparison.moved_ns, 0, "within what is open");
        comparison.meanwhile(&Offset { ahead_ns: 1_190, uncertainty_ns: 50 });
        assert_eq!(comparison.moved_ns, 100);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bounds_however_uneven_the_way_is(
            ahead in -1_000_000_000_000_i64..1_000_000_000_000,
            start in 2_000_000_000_000_u64..4_000_000_000_000,
            there in 0..10_000_000_u64,
            back in 0..10_000_000_u64,
        ) {
            let arrived = start + there;
            let seen = trip(start, arrived.saturating_add_signed(ahead), arrived + back).offset();
            prop_assert!(seen.ahead_ns.abs_diff(ahead) <= seen.uncertainty_ns);
            prop_assert_eq!(seen.uncertainty_ns, (there + back).div_ceil(2));
            let off = seen.ours(arrived.saturating_add_signed(ahead)).abs_diff(arrived);
            prop_assert!(off <= seen.uncertainty_ns);
        }
    }
}
