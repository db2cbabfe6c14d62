//! Pearson's chi-square test, for tests of generators against the distribution they should have.
//!
//! Seeds are fixed, so a test passes always or never; the bound is one that a right generator misses once in a million
//! seeds.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Classes that would be expected fewer times than this are taken together.
const FEWEST_EXPECTED: f64 = 8.0;

/// Standard deviations from the mean, by Wilson and Hilferty's approximation, that no right generator reaches.
const MOST_DEVIATIONS: f64 = 4.9;

/// Fails the test where draws do not follow `expected`, the probabilities of 0, 1, 2 ...
#[track_caller]
pub(crate) fn check(what: &str, expected: &[f64], draws: usize, draw: impl FnMut(&mut ChaCha8Rng) -> usize) {
    let deviations = deviations(expected, draws, draw);
    assert!(deviations < MOST_DEVIATIONS, "{what}: {deviations:.2} standard deviations off");
}

/// Whether draws may follow `expected`.
pub(crate) fn fits(expected: &[f64], draws: usize, draw: impl FnMut(&mut ChaCha8Rng) -> usize) -> bool {
    deviations(expected, draws, draw) < MOST_DEVIATIONS
}

fn deviations(expected: &[f64], draws: usize, mut draw: impl FnMut(&mut ChaCha8Rng) -> usize) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(20_261_122);
    let mut counts = vec![0_u64; expected.len()];
    for _ in 0..draws {
        let drawn = draw(&mut rng);
        match counts.get_mut(drawn) {
            Some(count) => *count += 1,
            None => panic!("{drawn} is outside the distribution of {} values", expected.len()),
        }
    }
    statistic(expected, &counts, draws as f64)
}

/// How many standard deviations the counts are from what is expected.
pub(crate) fn statistic(expected: &[f64], counts: &[u64], draws: f64) -> f64 {
    let (mut chi_square, mut classes) = (0.0, 0_u32);
    let (mut wanted, mut seen) = (0.0, 0.0);
    let mut close = |wanted: f64, seen: f64| {
        if wanted > 0.0 {
            chi_square += (seen - wanted).powi(2) / wanted;
            classes += 1;
        }
    };
    for (share, count) in expected.iter().zip(counts) {
        wanted += share * draws;
        seen += *count as f64;
        if wanted >= FEWEST_EXPECTED {
            close(wanted, seen);
            (wanted, seen) = (0.0, 0.0);
        }
    }
    if seen > 0.0 || wanted > 0.0 {
        close(wanted.max(1e-9), seen);
    }
    let freedom = f64::from(classes.saturating_sub(1));
    if freedom == 0.0 {
        return 0.0;
    }
    let spread = 2.0 / (9.0 * freedom);
    ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}
