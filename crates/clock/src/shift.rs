//! What a clock shows as a function of the true time: an offset, and a rate at which it runs away from it.
//!
//! Pure: the true time is an argument. All times are nanoseconds since 1970 in an `i64`, which lasts until 2262.

/// The rate is a fraction with this many binary digits.
const FRACTION_BITS: u32 = 32;
/// A billion parts: a rate of this much doubles the speed.
const BILLION: i128 = 1_000_000_000;

/// How much faster than the true time a clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// Billionths: 200 ppm are 200,000; a clock that stands still has minus a billion.
    pub parts_per_billion: i64,
}

impl Rate {
    /// A clock that stands still.
    pub const STANDING_STILL: Rate = Rate { parts_per_billion: -1_000_000_000 };

    fn fraction(self) -> i64 {
        let scaled = i128::from(self.parts_per_billion) << FRACTION_BITS;
        let rounded = (scaled + scaled.signum() * BILLION / 2) / BILLION;
        i64::try_from(rounded).unwrap_or(if rounded > 0 { i64::MAX } else { i64::MIN })
    }
}

/// How far a clock is from the true time, at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shift {
    /// What is added at `reference_ns`.
    pub(crate) offset_ns: i64,
    /// The true time from which on the rate counts.
    pub(crate) reference_ns: i64,
    /// Gained in each nanosecond, as a fraction of 2^32.
    pub(crate) rate: i64,
}

impl Shift {
    /// No shift: the clock shows the true time.
    pub const NONE: Shift = Shift { offset_ns: 0, reference_ns: 0, rate: 0 };

    /// A clock that is set forward, or back.
    #[must_use]
    pub const fn jump(by_ns: i64) -> Shift {
        Shift { offset_ns: by_ns, reference_ns: 0, rate: 0 }
    }

    /// A clock that shows the true time at `true_ns` and runs away from it from then on.
    #[must_use]
    pub fn running_away(rate: Rate, true_ns: i64) -> Shift {
        Shift { offset_ns: 0, reference_ns: true_ns, rate: rate.fraction() }
    }

    /// Both at once.
    #[must_use]
    pub fn and(self, other: Shift) -> Shift {
        if self.rate == 0 {
            return Shift { offset_ns: self.offset_ns.saturating_add(other.offset_ns), ..other };
        }
        let offset_ns = self.offset_ns.saturating_add(other.offset_ns_at(self.reference_ns));
        Shift { offset_ns, rate: self.rate.saturating_add(other.rate), ..self }
    }

    /// The same offset from `true_ns` on, and no rate any more.
    #[must_use]
    pub fn stopped_at(self, true_ns: i64) -> Shift {
        Shift::jump(self.offset_ns_at(true_ns))
    }

    /// How far ahead of the true time the clock is.
    #[must_use]
    pub fn offset_ns_at(self, true_ns: i64) -> i64 {
        let passed_ns = i128::from(true_ns) - i128::from(self.reference_ns);
        let gained_ns = (passed_ns * i128::from(self.rate)) >> FRACTION_BITS;
        let most_ns = if gained_ns > 0 { i64::MAX } else { i64::MIN };
        self.offset_ns.saturating_add(i64::try_from(gained_ns).unwrap_or(most_ns))
    }

    /// What the clock shows. The stand-in's code computes the same (`code.rs`).
    #[must_use]
    pub fn shown_ns_at(self, true_ns: i64) -> i64 {
        true_ns.saturating_add(self.offset_ns_at(true_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_NS: i64 = 1_800_000_000_000_000_000;
    const SECOND_NS: i64 = 1_000_000_000;

    fn parts(parts_per_million: i64) -> Rate {
        Rate { parts_per_billion: parts_per_million * 1000 }
    }

    #[test]
    fn a_clock_that_jumped_stays_as_far_away() {
        let shift = Shift::jump(5 * SECOND_NS);
        assert_eq!(shift.shown_ns_at(NOW_NS), NOW_NS + 5 * SECOND_NS);
        assert_eq!(shift.offset_ns_at(NOW_NS + 100 * SECOND_NS), 5 * SECOND_NS);
    }

    #[test]
    fn a_clock_that_drifts_is_right_at_first_and_gains_with_time() {
        let shift = Shift::running_away(parts(200), NOW_NS);
        assert_eq!(shift.offset_ns_at(NOW_NS), 0);
        let after_ns = shift.offset_ns_at(NOW_NS + 10 * SECOND_NS);
        assert!((after_ns - 2_000_000).abs() <= 10, "{after_ns}");
    }

    #[test]
    fn a_clock_that_races_by_a_half_gains_a_second_in_two() {
        let shift = Shift::running_away(parts(500_000), NOW_NS);
        assert_eq!(shift.offset_ns_at(NOW_NS + 2 * SECOND_NS), SECOND_NS);
    }

    #[test]
    fn a_clock_that_stands_still_shows_the_same_for_ever() {
        let shift = Shift::running_away(Rate::STANDING_STILL, NOW_NS);
        assert_eq!(shift.shown_ns_at(NOW_NS + 86_400 * SECOND_NS + 7), NOW_NS);
    }

    #[test]
    fn a_clock_that_loses_more_than_a_number_holds_is_behind_and_not_ahead() {
        let backwards = Shift { offset_ns: 0, reference_ns: 0, rate: i64::MIN };
        assert_eq!(backwards.offset_ns_at(NOW_NS), i64::MIN);
        assert_eq!(Shift { rate: i64::MAX, ..backwards }.offset_ns_at(NOW_NS), i64::MAX);
    }

    #[test]
    fn a_clock_that_is_stopped_from_running_away_stays_as_far_away_as_it_was() {
        let away = Shift::jump(SECOND_NS).and(Shift::running_away(parts(500_000), NOW_NS));
        let stopped = away.stopped_at(NOW_NS + 4 * SECOND_NS);
        assert_eq!(stopped.offset_ns_at(NOW_NS + 99 * SECOND_NS), 3 * SECOND_NS);
    }

    proptest! {
        #[test]
        fn two_shifts_at_once_are_their_sum(
            jump in -1_000_000_000_000i64..1_000_000_000_000,
            first in -1_000_000i64..1_000_000,
            second in -1_000_000i64..1_000_000,
            later in 0i64..100_000_000_000,
            passed in 0i64..1_000_000_000_000,
        ) {
            let one = Shift::running_away(parts(first), NOW_NS);
            let other = Shift::running_away(parts(second), NOW_NS + later);
            let jump = Shift::jump(jump);
            let at_ns = NOW_NS + later + passed;
            let expected = one.offset_ns_at(at_ns) + other.offset_ns_at(at_ns) + jump.offset_ns_at(at_ns);
            for sum in [one.and(other).and(jump), jump.and(other).and(one), other.and(jump.and(one))] {
                let off_ns = sum.offset_ns_at(at_ns) - expected;
                prop_assert!(off_ns.abs() <= 3, "{off_ns} ns apart");
            }
        }

        #[test]
        fn a_clock_that_does_not_run_backwards_never_shows_less_than_before(
            rate in -1_000_000i64..1_000_000,
            at in 0i64..1_000_000_000_000,
            passed in 0i64..1_000_000_000_000,
        ) {
            let shift = Shift::running_away(parts(rate), NOW_NS);
            prop_assert!(shift.shown_ns_at(NOW_NS + at + passed) >= shift.shown_ns_at(NOW_NS + at));
        }
    }
}
