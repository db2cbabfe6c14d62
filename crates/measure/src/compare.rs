//! Two sets of samples beside each other: their ratio, how sure it is, and whether it is more than noise.
//!
//! Owns the statistics. The interval is a bootstrap's: the samples are drawn again with replacement, some thousand times,
//! and the spread of the ratios so made is the spread to be expected of the one seen (Efron and Tibshirani, An Introduction
//! to the Bootstrap, chapter 13). Too few runs for that are held to Student's distribution in Welch's form instead: a
//! handful of values drawn again shows hardly any spread but its own. Pure: the same samples and seed give the same
//! answer for ever.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// How often the samples are drawn again.
pub(crate) const DRAWS: usize = 4_000;

/// Chance that the interval of two equal things leaves 1 out.
pub(crate) const ERROR: f64 = 0.01;

/// Samples on each side below which nothing is drawn again.
pub const SAMPLES_MIN: usize = 5;

/// Runs on each side below which nothing is known of how runs differ from each other.
pub const RUNS_MIN: usize = 2;

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

/// Compares the second set of samples with the first. Samples must not be negative. They are measured in steps of `step`, 0 where
/// they are not rounded: a few that are equal may differ by as much.
#[must_use]
pub fn compare(first: &[f64], second: &[f64], sampling: Sampling, step: f64, seed: u64) -> Comparison {
    let ratio = mean(second) / mean(first);
    let fewest = first.len().min(second.len());
    let needed = if sampling == Sampling::Runs { RUNS_MIN } else { SAMPLES_MIN };
    let sound = |samples: &[f64]| samples.iter().all(|sample| sample.is_finite() && *sample >= 0.0);
    if fewest < needed || !sound(first) || !sound(second) || !ratio.is_finite() {
        return Comparison { ratio, low: f64::NAN, high: f64::NAN, finding: Finding::Unknown };
    }
    let interval = if fewest < SAMPLES_MIN {
        by_student(first, second, ratio, step)
    } else {
        by_drawing_again(first, second, ratio, sampling, seed)
    };
    let Some((low, high)) = interval else {
        return Comparison { ratio, low: f64::NAN, high: f64::NAN, finding: Finding::Unknown };
    };
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

/// The interval of a ratio of two means of a few runs each: Student's about the ratio's logarithm, with the degrees of
/// freedom that Welch (1947) gives two spreads that need not be the same. None where the second is 0 throughout, which has no
/// logarithm, and the first may be, too.
fn by_student(first: &[f64], second: &[f64], ratio: f64, step: f64) -> Option<(f64, f64)> {
    let (one, other) = (relative_variance_of_mean(first, step), relative_variance_of_mean(second, step));
    if ratio <= 0.0 {
        let reach = student((first.len() - 1) as f64) * one.sqrt();
        return (reach < 1.0).then_some((ratio, ratio));
    }
    let variance = one + other;
    if variance <= 0.0 {
        return Some((ratio, ratio));
    }
    let part = |share: f64, samples: &[f64]| share * share / (samples.len() - 1) as f64;
    let freedom = variance * variance / (part(one, first) + part(other, second));
    let reach = student(freedom) * variance.sqrt();
    Some(((ratio.ln() - reach).exp(), (ratio.ln() + reach).exp()))
}

/// Variance of the samples' mean, as a share of its square; at least what rounding to steps alone has, a twelfth of a step's
/// square (Sheppard 1898).
fn relative_variance_of_mean(samples: &[f64], step: f64) -> f64 {
    let mean = mean(samples);
    if mean == 0.0 {
        return 0.0;
    }
    let squares: f64 = samples.iter().map(|sample| (sample / mean - 1.0).powi(2)).sum();
    let rounding = (step / mean).powi(2) / 12.0;
    (squares / (samples.len() - 1) as f64).max(rounding) / samples.len() as f64
}

/// None where the first's mean may well be 0: a ratio to that says nothing.
fn by_drawing_again(
    first: &[f64],
    second: &[f64],
    ratio: f64,
    sampling: Sampling,
    seed: u64,
) -> Option<(f64, f64)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut ratios: Vec<f64> = (0..DRAWS)
        .map(|_| drawn_mean(second, sampling, &mut rng) / drawn_mean(first, sampling, &mut rng))
        .collect();
    // To a mean of 0, where the second's may be 0 as well.
    let without_sense = ratios.iter_mut().filter(|ratio| !ratio.is_finite());
    if without_sense.map(|ratio| *ratio = f64::INFINITY).count() as f64 > DRAWS as f64 * ERROR / 2.0 {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((DRAWS - 1) as f64 * share).round() as usize];
    // Few samples show less spread than there is: the interval is widened as Student's distribution is wider than the
    // normal one. About the ratio's logarithm, so that it never reaches 0 and twice as fast is as sure as half as fast.
    let widening = widened_for(first.len().min(second.len()), sampling);
    let reach = |end: f64| if ratio > 0.0 { ratio * (end / ratio).powf(widening) } else { end };
    Some((reach(at(ERROR / 2.0)), reach(at(1.0 - ERROR / 2.0))))
}

/// How much wider an interval from so few samples must be. What is drawn at a time counts as one; for seconds of one run
/// the stretches count as they are, without the one that a mean takes: so judged, equal runs whose seconds resemble each
/// other by a half are called different in 2 to 7 of 100 pairs, from 60 seconds down to 5.
fn widened_for(samples: usize, sampling: Sampling) -> f64 {
    match sampling {
        Sampling::Runs => widening(samples),
        Sampling::SecondsOfOneRun => widened_at(samples as f64 / stretch(samples, sampling) as f64),
    }
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

/// Normal distribution's 99.5 % point.
const NORMAL: f64 = 2.5758;

/// Student's 99.5 % point at this many samples by the normal one, times what a variance about the samples' own mean lacks.
pub(crate) fn widening(samples: usize) -> f64 {
    widened_at(samples.saturating_sub(1).max(1) as f64)
}

fn widened_at(freedom: f64) -> f64 {
    expanded(freedom) / NORMAL * ((freedom + 1.0) / freedom).sqrt()
}

/// Cornish and Fisher's expansion of Student's 99.5 % point; within 2 % from four degrees of freedom on.
fn expanded(freedom: f64) -> f64 {
    let z = NORMAL;
    z + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom)
}

/// Student's 99.5 % point; degrees of freedom in between are taken for the fewer, which is the wider interval.
fn student(freedom: f64) -> f64 {
    const TABLE: [f64; 10] = [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169];
    // A share of the least freedom is a rounding error of it.
    let whole = (freedom + 1e-9).floor().max(1.0);
    TABLE.get(whole as usize - 1).copied().unwrap_or_else(|| expanded(whole))
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
                let finding = compare(&first, &second, sampling, 0.0, *pair).finding;
                assert_ne!(finding, Finding::Unknown);
                finding != Finding::Noise
            })
            .count()
    }

    #[test]
    fn of_40_pairs_of_the_same_at_most_3_are_called_different() {
        for (sampling, count, spread, likeness) in [
            (Sampling::Runs, 2, 0.05, 0.0),
            (Sampling::Runs, 3, 0.05, 0.0),
            (Sampling::Runs, 4, 0.30, 0.0),
            (Sampling::Runs, 5, 0.05, 0.0),
            (Sampling::Runs, 10, 0.30, 0.0),
            (Sampling::SecondsOfOneRun, 8, 0.2, 0.5),
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
                let seen = compare(&first, &second, sampling, 0.0, seed);
                assert_eq!(seen.finding, expected, "{factor} {seen:?}");
                assert!(seen.low <= seen.ratio && seen.ratio <= seen.high, "{seen:?}");
            }
        };
        check(1.25, Sampling::Runs, Finding::Larger);
        check(0.8, Sampling::Runs, Finding::Smaller);
        check(0.8, Sampling::SecondsOfOneRun, Finding::Smaller);
        let few = |factor: f64, expected| {
            let (first, second) = (
                [900.0, 870.0, 940.0, 910.0, 890.0, 930.0, 880.0, 900.0],
                [1.0, 1.1, 0.9, 1.2, 0.8, 1.0, 1.1, 0.9],
            );
            let second = second.map(|sample| sample * 900.0 * factor);
            let seen = compare(&first, &second, Sampling::SecondsOfOneRun, 0.0, 1);
            assert_eq!(seen.finding, expected, "{factor} {seen:?}");
            assert!(0.0 < seen.low && seen.low <= seen.ratio && seen.ratio <= seen.high, "{seen:?}");
        };
        few(4.0, Finding::Larger);
        few(0.25, Finding::Smaller);
        few(1.1, Finding::Noise);
        // Seen in the seconds, but smaller than two runs of the same may differ.
        check(1.04, Sampling::SecondsOfOneRun, Finding::Noise);
    }

    #[test]
    fn a_few_runs_suffice_for_a_difference_far_beyond_their_spread() {
        let check = |first: &[f64], second: &[f64], expected| {
            let seen = compare(first, second, Sampling::Runs, 0.0, 1);
            assert_eq!(seen.finding, expected, "{first:?} {second:?} {seen:?}");
            assert!(seen.low <= seen.ratio && seen.ratio <= seen.high, "{seen:?}");
        };
        check(&[900.0, 905.0, 895.0], &[450.0, 455.0, 460.0], Finding::Smaller);
        check(&[900.0, 905.0, 895.0, 901.0], &[990.0, 985.0, 1_000.0, 995.0], Finding::Larger);
        check(&[900.0, 700.0, 1_100.0], &[990.0, 750.0, 1_300.0], Finding::Noise);
        // Two runs each: only what is far apart.
        check(&[900.0, 910.0], &[1_800.0, 1_810.0], Finding::Larger);
        check(&[900.0, 1_000.0], &[1_200.0, 1_300.0], Finding::Noise);
        check(&[900.0, 900.0], &[900.0, 900.0], Finding::Noise);
    }

    #[test]
    fn what_sank_to_nothing_is_smaller_only_where_the_other_was_surely_more() {
        let check = |first: &[f64], second: &[f64], expected| {
            let seen = compare(first, second, Sampling::Runs, 1.0, 1);
            assert_eq!(seen.finding, expected, "{first:?} {second:?} {seen:?}");
        };
        check(&[9.0, 0.0], &[0.0, 0.0], Finding::Unknown);
        check(&[9.0, 0.0, 0.0, 0.0, 0.0], &[0.0; 5], Finding::Unknown);
        check(&[900.0, 905.0], &[0.0, 0.0], Finding::Smaller);
        check(&[900.0, 905.0, 880.0, 910.0, 890.0], &[0.0; 5], Finding::Smaller);
    }

    #[test]
    fn a_few_equal_values_are_no_surer_than_what_they_were_rounded_to() {
        let seen = |first: &[f64], second: &[f64], step| compare(first, second, Sampling::Runs, step, 1);
        let rounded = seen(&[5.0, 5.0], &[3.0, 3.0], 1.0);
        assert_eq!(rounded.finding, Finding::Noise, "{rounded:?}");
        let same = seen(&[5.0, 5.0], &[5.0, 5.0], 1.0);
        assert!(same.low < 0.8 && same.high > 1.2, "{same:?}");
        assert_eq!(seen(&[5.0, 5.0], &[3.0, 3.0], 0.0).finding, Finding::Smaller);
        assert_eq!(seen(&[50.0; 4], &[30.0; 4], 1.0).finding, Finding::Smaller);
    }

    #[test]
    fn students_points_are_those_of_the_tables() {
        // Two-sided 1 %: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
        for (freedom, point) in [(1.0, 63.657), (2.9, 9.925), (4.0, 4.604), (11.0, 3.106), (30.0, 2.750)] {
            assert!((student(freedom) / point - 1.0).abs() < 0.005, "{freedom}: {}", student(freedom));
        }
    }

    #[test]
    fn what_cannot_be_compared_is_unknown() {
        let check = |first: &[f64], second: &[f64]| {
            assert_eq!(compare(first, second, Sampling::Runs, 0.0, 1).finding, Finding::Unknown);
        };
        check(&[], &[]);
        check(&[1.0; 1], &[1.0; 40]);
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
                let seen = compare(&first, &second, sampling, 0.0, 7);
                prop_assert_eq!(format!("{seen:?}"), format!("{:?}", compare(&first, &second, sampling, 0.0, 7)));
            }
        }
    }
}
