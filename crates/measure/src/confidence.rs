//! A mean over the seconds of one run, and how far it can be trusted.
//!
//! Owns the interval of 99 %, a moving-block bootstrap's as in [`crate::compare`]: neighbouring seconds resemble each
//! other, so they are drawn again in stretches. Nothing is known of other runs. Pure.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::compare::{DRAWS, ERROR, SAMPLES_MIN, Sampling, stretch, widening};

/// A mean and the interval it lies in with 99 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub mean: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// What the other has more than this. Their errors are taken to be independent.
    #[must_use]
    pub fn increase_to(self, other: Estimate) -> Estimate {
        let mean = other.mean - self.mean;
        let apart = |one: f64, another: f64| one.hypot(another);
        Estimate {
            mean,
            low: mean - apart(other.mean - other.low, self.high - self.mean),
            high: mean + apart(other.high - other.mean, self.mean - self.low),
        }
    }

    /// The same in another unit; the factor must not be negative.
    #[must_use]
    pub fn times(self, factor: f64) -> Estimate {
        Estimate { mean: self.mean * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// The mean of what seconds hold, each a sum over so many samples (a count of operations over 1 second is one sample).
/// `None` with fewer seconds that have samples than an interval needs.
#[must_use]
pub fn mean_over_seconds(seconds: &[(f64, u64)], seed: u64) -> Option<Estimate> {
    let filled = seconds.iter().filter(|(_, samples)| *samples > 0).count();
    if filled < SAMPLES_MIN || seconds.iter().any(|(sum, _)| !sum.is_finite()) {
        return None;
    }
    let mean_of = |(sum, samples): (f64, u64)| (samples > 0).then(|| sum / samples as f64);
    let add = |(sum, samples): (f64, u64), (more, further): &(f64, u64)| (sum + more, samples + further);
    let mean = mean_of(seconds.iter().fold((0.0, 0), add))?;
    let stretch = stretch(seconds.len(), Sampling::SecondsOfOneRun);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let (mut total, mut drawn) = ((0.0, 0), 0);
            while drawn < seconds.len() {
                let begins = rng.random_range(0..=seconds.len() - stretch);
                let taken = stretch.min(seconds.len() - drawn);
                total = seconds[begins..begins + taken].iter().fold(total, add);
                drawn += taken;
            }
            mean_of(total)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |share: f64| means.get(((means.len().checked_sub(1)?) as f64 * share).round() as usize).copied();
    let (low, high) = (at(ERROR / 2.0)?, at(1.0 - ERROR / 2.0)?);
    let widening = widening(seconds.len() / stretch);
    Some(Estimate { mean, low: mean - (mean - low) * widening, high: mean + (high - mean) * widening })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seed: u64, count: usize, mean: f64, spread: f64) -> Vec<(f64, u64)> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        (0..count).map(|_| (mean * (1.0 + spread * normal()) * 4.0, 4)).collect()
    }

    #[test]
    fn of_100_intervals_at_least_95_hold_the_mean_they_were_drawn_about() {
        let holds = |seed: &u64| {
            let found = mean_over_seconds(&seconds(*seed, 30, 50.0, 0.2), *seed).expect("enough seconds");
            found.low <= 50.0 && 50.0 <= found.high && found.high - found.low < 30.0
        };
        assert!((0..100).filter(holds).count() >= 95);
    }

    #[test]
    fn seconds_weigh_as_much_as_they_hold_and_empty_ones_nothing() {
        let mut some = vec![(10.0, 10); 6];
        some.extend([(0.0, 0), (90.0, 30)]);
        let found = mean_over_seconds(&some, 1).expect("enough seconds");
        assert!((found.mean - 150.0 / 90.0).abs() < 1e-12, "{found:?}");
        assert_eq!(mean_over_seconds(&some[..4], 1), None);
        assert_eq!(mean_over_seconds(&[], 1), None);
    }

    #[test]
    fn a_difference_is_less_sure_than_either_side() {
        let one = Estimate { mean: 10.0, low: 7.0, high: 12.0 };
        let other = Estimate { mean: 60.0, low: 56.0, high: 63.0 };
        let found = one.increase_to(other);
        assert_eq!(found.mean, 50.0);
        assert!((found.low - (50.0 - 20.0_f64.sqrt())).abs() < 1e-9, "{found:?}");
        assert!((found.high - (50.0 + 18.0_f64.sqrt())).abs() < 1e-9, "{found:?}");
        assert_eq!(one.times(2.0).high, 24.0);
    }
}
