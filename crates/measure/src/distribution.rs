//! One figure of many runs: its median, what nine of ten runs keep to, its worst and in which run that was.
//!
//! Owns the ranks. Sorts and counts only: nothing is taken to be spread in any particular way.

use std::cmp::Ordering;

/// Runs from which on one of ten can be told.
const RUNS_FOR_NINE_OF_TEN: usize = 10;

/// Which values are the good ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// The smaller ones: times, latencies, losses.
    Smaller,
    /// The larger ones: throughput.
    Larger,
}

/// How a figure came out over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distribution {
    /// The value in the middle, or between the middle two.
    pub median: f64,
    /// What nine of ten runs keep to: at least nine of ten values are this good or better (nearest rank). None below ten
    /// values, where it would be the worst.
    pub nine_of_ten: Option<f64>,
    pub worst: f64,
    /// Where the worst stands among the values given, the first of several.
    pub worst_at: usize,
}

impl Distribution {
    /// Of these values; none where there is none, or one that is no number.
    #[must_use]
    pub fn of(values: &[f64], better: Better) -> Option<Distribution> {
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        let from_good_to_bad = |one: &f64, other: &f64| -> Ordering {
            match better {
                Better::Smaller => one.total_cmp(other),
                Better::Larger => other.total_cmp(one),
            }
        };
        let mut sorted = values.to_vec();
        sorted.sort_by(from_good_to_bad);
        let count = sorted.len();
        let worst = *sorted.last()?;
        let middle = count / 2;
        let median = if count.is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        let rank = (count * 9).div_ceil(10);
        Some(Distribution {
            median,
            nine_of_ten: (count >= RUNS_FOR_NINE_OF_TEN).then(|| sorted[rank - 1]),
            worst,
            worst_at: values.iter().position(|value| *value == worst)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_worst_of_a_throughput_is_the_lowest_and_that_of_a_time_the_highest() {
        let values = [3.0, 1.0, 2.0, 9.0];
        let of = |better| Distribution::of(&values, better).expect("values");
        let time = of(Better::Smaller);
        assert_eq!((time.median, time.worst, time.worst_at, time.nine_of_ten), (2.5, 9.0, 3, None));
        let throughput = of(Better::Larger);
        assert_eq!((throughput.median, throughput.worst, throughput.worst_at), (2.5, 1.0, 1));
    }

    #[test]
    fn one_of_ten_runs_is_told_from_ten_on_and_nothing_of_no_runs_or_of_no_number() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let of = |values: &[f64], better| Distribution::of(values, better);
        assert_eq!(of(&ten, Better::Smaller).and_then(|of| of.nine_of_ten), Some(9.0));
        assert_eq!(of(&ten, Better::Larger).and_then(|of| of.nine_of_ten), Some(2.0));
        assert_eq!(of(&ten[..9], Better::Smaller).and_then(|of| of.nine_of_ten), None);
        assert_eq!(of(&[], Better::Smaller), None);
        assert_eq!(of(&[1.0, f64::NAN], Better::Smaller), None);
    }

    proptest! {
        #[test]
        fn at_least_nine_of_ten_values_are_as_good_as_told_and_none_is_worse_than_the_worst(
            values in prop::collection::vec(-1e6_f64..1e6, 10..200),
            is_time in any::<bool>(),
        ) {
            let better = if is_time { Better::Smaller } else { Better::Larger };
            let of = Distribution::of(&values, better).expect("values");
            let is_as_good = |value: f64, bound: f64| if is_time { value <= bound } else { value >= bound };
            let bound = of.nine_of_ten.expect("ten values");
            let good = values.iter().filter(|value| is_as_good(**value, bound)).count();
            prop_assert!(good * 10 >= values.len() * 9);
            prop_assert!(values.iter().all(|value| is_as_good(*value, of.worst)));
            prop_assert_eq!(values[of.worst_at], of.worst);
        }
    }
}
