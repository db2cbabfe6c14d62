//! Two sets of samples beside each other: their ratio, how sure it is, and whether it is more than noise.
//!
//! Owns the statistics. The interval is a bootstrap's: the samples are drawn again with replacement, some thousand times,
//! and the spread of the ratios so made is the spread to be expected of the one seen (Efron and Tibshirani, An Introduction
//! to the Bootstrap, chapter 13). Pure: the same samples and seed give the same answer for ever.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// How often the samples are drawn again.
pub(crate) const DRAWS: usize = 4_000;

/// Chance that the interval of two equal things leaves 1 out.
pub(crate) const ERROR: f64 = 0.01;

/// Samples on each side below which no interval is worth its name.
pub const SAMPLES_MIN: usize = 5;

/// Two runs of the same thing on the same machine differ by more than their seconds can tell. With one run on each side
/// a smaller difference than this is not called one.
pub const BETWEEN_RUNS: f64 = 0.10;

/// What the samples are, which decides how far they can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// One value for each of several runs: independent of each other.
    Runs,
    /// One value for each second of a single run: neighbours resemble each other, and nothing is known of other runs.
    SecondsOfOneRun,
}

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The second is larger.
    Larger,
    /// The second is smaller.
    Smaller,
    /// What is seen may be chance.
    Noise,
    /// Too few samples, or samples no ratio can be made of.
    Unknown,
}

impl Finding {
    /// Its word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Finding::Larger => "larger",
            Finding::Smaller => "smaller",
            Finding::Noise => "noise",
            Finding::Unknown => "unknown",
        }
    }
}

/// Two sets of samples beside each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Mean of the second by mean of the first; not a number where the first's is not above 0.
    pub ratio: f64,
    /// Lower end of the ratio's interval of 99 %.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What that says.
    pub finding: Finding,
}

/// Compares the second set of samples with the first. Samples must not be negative.
#[must_use]
pub fn compare(first: &[f64], second: &[f64], sampling: Sampling, seed: u64) -> Comparison {
    let ratio = mean(second) / mean(first);
    let sound = |samples: &[f64]| {
        samples.len() >= SAMPLES_MIN && samples.iter().all(|sample| sample.is_finite() && *sample >= 0.0)
    };
    if !sound(first) || !sound(second) || !ratio.is_finite() {
        return Comparison { ratio, low: f64::NAN, high: f64::NAN, finding: Finding::Unknown };
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| drawn_mean(second, sampling, &mut rng) / drawn_mean(first, sampling, &mut rng))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((DRAWS - 1) as f64 * share).round() as usize];
    // Few samples show less spread than there is: the interval is widened about the ratio as Student's distribution is
    // wider than the normal one.
    // What is drawn at a time counts as one.
    let fewest = first.len().min(second.len());
    let widening = widening(fewest / stretch(fewest, sampling));
    let low = (ratio - (ratio - at(ERROR / 2.0)) * widening).max(0.0);
    let high = ratio + (at(1.0 - ERROR / 2.0) - ratio) * widening;
    let floor = if sampling == Sampling::Runs { 0.0 } else { BETWEEN_RUNS };
    let finding = if low > 1.0 && ratio - 1.0 > floor {
        Finding::Larger
    } else if high < 1.0 && 1.0 - ratio > floor {
        Finding::Smaller
    } else {
        Finding::Noise
    };
    Comparison { ratio, low, high, finding }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Mean of as many samples drawn anew. Seconds are drawn in stretches, whose inner likeness is kept (a moving-block
/// bootstrap; Kuensch 1989).
fn drawn_mean(samples: &[f64], sampling: Sampling, rng: &mut ChaCha8Rng) -> f64 {
    let stretch = stretch(samples.len(), sampling);
    let mut sum = 0.0;
    let mut drawn = 0;
    while drawn < samples.len() {
        let begins = rng.random_range(0..=samples.len() - stretch);
        for sample in samples[begins..begins + stretch].iter().take(samples.len() - drawn) {
            sum += sample;
            drawn += 1;
        }
    }
    sum / samples.len() as f64
}

/// How many neighbours are drawn together.
pub(crate) fn stretch(samples: usize, sampling: Sampling) -> usize {
    match sampling {
        Sampling::Runs => 1,
        Sampling::SecondsOfOneRun => (samples as f64).sqrt().ceil() as usize,
    }
}

/// Student's 99.5 % point at this many samples by the normal one, times what a variance about the samples' own mean lacks.
pub(crate) fn widening(samples: usize) -> f64 {
    const NORMAL: f64 = 2.5758;
    let freedom = samples.saturating_sub(1).max(1) as f64;
    // Cornish and Fisher's expansion; within 2 % from four degrees of freedom on.
    let z = NORMAL;
    let student = z
        + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom);
    student / z * ((freedom + 1.0) / freedom).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Samples about `mean` with this relative spread, each resembling the one before by `likeness` (0 to 1).
    fn samples(seed: u64, count: usize, mean: f64, spread: f64, likeness: f64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut normal = move || {
            // A sum of twelve uniform numbers is near enough to a normal one.
            (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
        };
        let mut last = normal();
        (0..count)
            .map(|_| {
                last = likeness * last + (1.0 - likeness * likeness).sqrt() * normal();
                (mean * (1.0 + spread * last)).max(0.0)
            })
            .collect()
    }

    /// How many of 40 pairs of the same thing are called different.
    fn false_alarms(sampling: Sampling, count: usize, spread: f64, likeness: f64) -> usize {
        (0..40_u64)
            .filter(|pair| {
                let first = samples(pair * 2 + 1_000, count, 900.0, spread, likeness);
                let second = samples(pair * 2 + 1_001, count, 900.0, spread, likeness);
                let finding = compare(&first, &second, sampling, *pair).finding;
                assert_ne!(finding, Finding::Unknown);
                finding != Finding::Noise
            })
            .count()
    }

    #[test]
    fn of_40_pairs_of_the_same_at_most_3_are_called_different() {
        for (sampling, count, spread, likeness) in [
            (Sampling::Runs, 5, 0.05, 0.0),
            (Sampling::Runs, 10, 0.30, 0.0),
            (Sampling::SecondsOfOneRun, 20, 0.2, 0.5),
            (Sampling::SecondsOfOneRun, 60, 0.3, 0.7),
        ] {
            let alarms = false_alarms(sampling, count, spread, likeness);
            assert!(alarms <= 3, "{alarms} of 40: {sampling:?}, {count} samples, {spread}, {likeness}");
        }
    }

    #[test]
    fn a_difference_well_outside_the_noise_is_found_and_its_side_told() {
        let check = |factor: f64, sampling, expected| {
            for seed in 0..20 {
                let first = samples(seed, 30, 900.0, 0.05, 0.3);
                let second = samples(seed + 500, 30, 900.0 * factor, 0.05, 0.3);
                let seen = compare(&first, &second, sampling, seed);
                assert_eq!(seen.finding, expected, "{factor} {seen:?}");
                assert!(seen.low <= seen.ratio && seen.ratio <= seen.high, "{seen:?}");
            }
        };
        check(1.25, Sampling::Runs, Finding::Larger);
        check(0.8, Sampling::Runs, Finding::Smaller);
        check(0.8, Sampling::SecondsOfOneRun, Finding::Smaller);
        // Seen in the seconds, but smaller than two runs of the same may differ.
        check(1.04, Sampling::SecondsOfOneRun, Finding::Noise);
    }

    #[test]
    fn what_cannot_be_compared_is_unknown() {
        let check = |first: &[f64], second: &[f64]| {
            assert_eq!(compare(first, second, Sampling::Runs, 1).finding, Finding::Unknown);
        };
        check(&[], &[]);
        check(&[1.0; 4], &[1.0; 40]);
        check(&[0.0; 9], &[1.0; 9]);
        check(&[1.0; 9], &[1.0, 1.0, 1.0, f64::NAN, 1.0]);
        check(&[1.0; 9], &[-1.0; 9]);
    }

    proptest! {
        #[test]
        fn any_samples_are_compared_without_a_panic_and_repeatably(
            first in prop::collection::vec(0.0..1e12_f64, 0..30),
            second in prop::collection::vec(any::<f64>(), 0..30),
        ) {
            for sampling in [Sampling::Runs, Sampling::SecondsOfOneRun] {
                let seen = compare(&first, &second, sampling, 7);
                prop_assert_eq!(format!("{seen:?}"), format!("{:?}", compare(&first, &second, sampling, 7)));
            }
        }
    }
}
