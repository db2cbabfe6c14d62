//! What more of the same would give: the universal scalability law, fitted to measurements, with its uncertainty.
//!
//! Owns the fit and its intervals; what is counted (clients, nodes, hosts) is the caller's. Source: Gunther, "Guerrilla
//! Capacity Planning" (2007), chapter 4: N of something yield
//! `X(N) = one * N / (1 + contention * (N - 1) + coherency * N * (N - 1))`. Divided into N that is linear in three numbers
//! none of which may be negative, so the best fit is found exactly: by trying which of them are 0. Errors count in
//! proportion to what was measured. The intervals are a parametric bootstrap's (Efron and Tibshirani, "An Introduction to
//! the Bootstrap", section 6.5) with the error that the residuals show, widened as few measurements ask for; chance comes
//! from a seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Measurements below which nothing is fitted: three numbers are, and two more must speak of the error.
pub const POINTS_MIN: usize = 5;
/// Different counts below which nothing is fitted: through three any law goes.
pub const COUNTS_MIN: usize = 4;
/// How often measurements are drawn again.
const DRAWS: usize = 1_000;
/// What an interval leaves out on each side.
const TAIL: f64 = 0.025;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// How many there were.
    pub count: f64,
    /// What they yielded a second.
    pub per_s: f64,
    /// The standard error of that as a share of it; 0 where it is not known.
    pub error: f64,
}

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CapacityError {
    /// Too few measurements.
    #[error("{found} measurements are too few to fit the law: at least {POINTS_MIN} are needed")]
    TooFewPoints {
        /// How many there are.
        found: usize,
    },
    /// Too few different counts.
    #[error("{found} different counts are too few to fit the law: at least {COUNTS_MIN} are needed")]
    TooFewCounts {
        /// How many there are.
        found: usize,
    },
    /// A measurement that none can be.
    #[error("{per_s} per second at a count of {count} is not a valid measurement")]
    BadPoint {
        count: f64,
        /// The yield.
        per_s: f64,
    },
}

/// The law with its three numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// What one yields a second.
    pub one_per_s: f64,
    /// Share of the work that goes one after another.
    pub contention: f64,
    /// What each pair costs in keeping agreed.
    pub coherency: f64,
}

impl Law {
    /// What so many yield a second.
    #[must_use]
    pub fn at(self, count: f64) -> f64 {
        let Law { one_per_s, contention, coherency } = self;
        one_per_s * count / (1.0 + contention * (count - 1.0) + coherency * count * (count - 1.0))
    }

    /// The count beyond which more yield less; infinite where there is none.
    #[must_use]
    pub fn peak(self) -> f64 {
        ((1.0 - self.contention).max(0.0) / self.coherency).sqrt().max(1.0)
    }
}

/// A number with the interval it lies in with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The best.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The law that fits best, and those that fit what might as well have been measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The best.
    pub law: Law,
    /// Root mean square of the relative residuals, with the degrees of freedom that are left.
    pub residual: f64,
    /// The largest count measured: beyond it the law is taken on trust.
    pub count_max: f64,
    drawn: Vec<Law>,
    /// How much wider than drawn an interval must be.
    widening: f64,
}

/// Fits the law.
///
/// # Errors
/// When the measurements are too few or none.
pub fn fit(points: &[Point], seed: u64) -> Result<Fit, CapacityError> {
    let is_sound = |point: &Point| {
        point.count >= 1.0
            && point.per_s > 0.0
            && point.error >= 0.0
            && [point.count, point.per_s, point.error].iter().all(|value| value.is_finite())
    };
    if let Some(point) = points.iter().find(|point| !is_sound(point)) {
        return Err(CapacityError::BadPoint { count: point.count, per_s: point.per_s });
    }
    if points.len() < POINTS_MIN {
        return Err(CapacityError::TooFewPoints { found: points.len() });
    }
    let mut counts: Vec<f64> = points.iter().map(|point| point.count).collect();
    counts.sort_by(f64::total_cmp);
    counts.dedup();
    if counts.len() < COUNTS_MIN {
        return Err(CapacityError::TooFewCounts { found: counts.len() });
    }
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point.count, point.per_s)).collect();
    let law = best(&pairs);
    let freedom = (points.len() - 3) as f64;
    let square = |point: &Point| (point.per_s / law.at(point.count) - 1.0).powi(2);
    let residual = (points.iter().map(square).sum::<f64>() / freedom).sqrt();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let drawn = (0..DRAWS)
        .map(|_| {
            let again = |point: &Point| {
                let error = residual.hypot(point.error) * normal(&mut random);
                (point.count, law.at(point.count) * (1.0 + error).max(0.01))
            };
            best(&points.iter().map(again).collect::<Vec<_>>())
        })
        .collect();
    let count_max = counts.last().copied().unwrap_or(1.0);
    Ok(Fit { law, residual, count_max, drawn, widening: student(freedom) })
}

impl Fit {
    /// What so many yield a second.
    #[must_use]
    pub fn at(&self, count: f64) -> Estimate {
        self.estimate(|law| law.at(count), Widened::ByFactor)
    }

    /// What one yields a second.
    #[must_use]
    pub fn one_per_s(&self) -> Estimate {
        self.estimate(|law| law.one_per_s, Widened::ByFactor)
    }

    /// Share of the work that goes one after another.
    #[must_use]
    pub fn contention(&self) -> Estimate {
        self.estimate(|law| law.contention, Widened::BySum)
    }

    /// What each pair costs in keeping agreed.
    #[must_use]
    pub fn coherency(&self) -> Estimate {
        self.estimate(|law| law.coherency, Widened::BySum)
    }

    /// The count beyond which more yield less; infinite where none is seen.
    #[must_use]
    pub fn peak(&self) -> Estimate {
        self.estimate(|law| law.peak(), Widened::ByFactor)
    }

    fn estimate(&self, of: impl Fn(&Law) -> f64, widened: Widened) -> Estimate {
        let value = of(&self.law);
        let mut drawn: Vec<f64> = self.drawn.iter().map(&of).collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];
        let wider = |end: f64| match widened {
            _ if !(end.is_finite() && value.is_finite()) => end,
            Widened::ByFactor => value * (end / value).powf(self.widening),
            Widened::BySum => (value + (end - value) * self.widening).max(0.0),
        };
        // Of a skewed spread one end may lie on the wrong side of the best fit, which is then the end.
        Estimate { value, low: wider(at(TAIL)).min(value), high: wider(at(1.0 - TAIL)).max(value) }
    }
}

/// How an interval is widened: what is above 0 by nature by a factor, what may be 0 by a sum.
#[derive(Debug, Clone, Copy)]
enum Widened {
    ByFactor,
    BySum,
}

/// The law with the least relative squares: `count / per_s` is `a + b * (count - 1) + c * count * (count - 1)`.
fn best(pairs: &[(f64, f64)]) -> Law {
    let mut found: Option<(f64, [f64; 3])> = None;
    for kept in [&[0, 1, 2][..], &[0, 1], &[0, 2], &[0]] {
        let Some(numbers) = solve(pairs, kept) else { continue };
        if numbers[0] <= 0.0 || numbers.iter().any(|number| *number < 0.0) {
            continue;
        }
        let square = |pair: &(f64, f64)| {
            let fitted: f64 = terms(pair.0).iter().zip(&numbers).map(|(term, number)| term * number).sum();
            (fitted * pair.1 / pair.0 - 1.0).powi(2)
        };
        let squares: f64 = pairs.iter().map(square).sum();
        if found.is_none_or(|(least, _)| squares < least) {
            found = Some((squares, numbers));
        }
    }
    // One number alone can always be fitted to yields above 0.
    let [a, b, c] = found.map_or([f64::MAX, 0.0, 0.0], |(_, numbers)| numbers);
    Law { one_per_s: 1.0 / a, contention: b / a, coherency: c / a }
}

fn terms(count: f64) -> [f64; 3] {
    [1.0, count - 1.0, count * (count - 1.0)]
}

/// Weighted least squares over some of the three terms, the others 0, by the normal equations.
fn solve(pairs: &[(f64, f64)], kept: &[usize]) -> Option<[f64; 3]> {
    let mut rows = [[0.0_f64; 4]; 3];
    for (count, per_s) in pairs {
        let weight = per_s / count;
        let scaled = terms(*count).map(|term| term * weight);
        for (row, one) in kept.iter().enumerate() {
            for (column, other) in kept.iter().enumerate() {
                rows[row][column] += scaled[*one] * scaled[*other];
            }
            rows[row][3] += scaled[*one];
        }
    }
    let size = kept.len();
    for pivot in 0..size {
        let largest = (pivot..size)
            .max_by(|one, other| rows[*one][pivot].abs().total_cmp(&rows[*other][pivot].abs()))?;
        rows.swap(pivot, largest);
        if rows[pivot][pivot].abs() < 1e-30 {
            return None;
        }
        for row in (0..size).filter(|row| *row != pivot) {
            let factor = rows[row][pivot] / rows[pivot][pivot];
            let subtracted = rows[pivot];
            rows[row].iter_mut().zip(subtracted).for_each(|(cell, other)| *cell -= factor * other);
        }
    }
    let mut numbers = [0.0; 3];
    for (row, term) in kept.iter().enumerate() {
        numbers[*term] = rows[row][3] / rows[row][row];
    }
    numbers.iter().all(|number| number.is_finite()).then_some(numbers)
}

/// A draw from the normal distribution (Box and Muller, 1958).
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (one, other) = (uniform(random.next_u64()), uniform(random.next_u64()));
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// Student's 97.5 % point at these degrees of freedom by the normal one.
fn student(freedom: f64) -> f64 {
    const NORMAL: f64 = 1.959_964;
    // Exact at two degrees of freedom; Cornish and Fisher's expansion, within 2 %, from three on.
    if freedom < 2.5 {
        return 4.302_653 / NORMAL;
    }
    let z = NORMAL;
    let student = z
        + (z.powi(3) + z) / (4.0 * freedom)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * freedom * freedom)
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * freedom.powi(3));
    student / z
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(law: Law, counts: &[f64], spread: f64, seed: u64) -> Vec<Point> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let measured = |count: &f64| {
            let per_s = law.at(*count) * (1.0 + spread * normal(&mut random)).max(0.05);
            Point { count: *count, per_s, error: 0.0 }
        };
        counts.iter().map(measured).collect()
    }

    const COUNTS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn exact_measurements_give_back_their_law(
            one_per_s in 0.1_f64..1e6,
            contention in 0.0_f64..0.9,
            coherency in 0.0_f64..0.1,
        ) {
            let law = Law { one_per_s, contention, coherency };
            let found = fit(&points(law, &COUNTS, 0.0, 1), 1).expect("enough").law;
            for count in [1.0, 10.0, 100.0] {
                prop_assert!((found.at(count) / law.at(count) - 1.0).abs() < 1e-6, "{:?}", found);
            }
        }

        #[test]
        fn whatever_is_measured_gives_finite_yields_and_ends_about_the_best(
            yields in prop::collection::vec((1_u32..1000, 1e-3_f64..1e9), 5..12),
            asked in 1.0_f64..1e4,
        ) {
            let points: Vec<Point> = yields
                .into_iter()
                .map(|(count, per_s)| Point { count: f64::from(count), per_s, error: 0.1 })
                .collect();
            if let Ok(found) = fit(&points, 1) {
                let Estimate { value, low, high } = found.at(asked);
                prop_assert!(value.is_finite() && 0.0 <= low && low <= value && value <= high);
                prop_assert!(found.peak().low > 0.0 && found.contention().low >= 0.0);
            }
        }
    }

    #[test]
    fn of_60_fits_to_noisy_measurements_at_least_54_hold_the_truth_at_twice_the_largest_count() {
        let law = Law { one_per_s: 900.0, contention: 0.05, coherency: 0.001 };
        for (counts, least) in [(&COUNTS[..], 54), (&COUNTS[..5], 54)] {
            let beyond = counts[counts.len() - 1] * 2.0;
            let holds = |seed: &u64| {
                let found = fit(&points(law, counts, 0.05, *seed), *seed).expect("enough").at(beyond);
                found.low <= law.at(beyond) && law.at(beyond) <= found.high
            };
            let count = (0..60).filter(holds).count();
            assert!(count >= least, "{count} of 60 with {} measurements", counts.len());
        }
    }

    #[test]
    fn nothing_is_said_from_too_little() {
        let law = Law { one_per_s: 900.0, contention: 0.05, coherency: 0.001 };
        let check = |counts: &[f64], expected: &CapacityError| {
            assert_eq!(fit(&points(law, counts, 0.0, 1), 1).as_ref(), Err(expected));
        };
        check(&[1.0, 2.0, 4.0, 8.0], &CapacityError::TooFewPoints { found: 4 });
        check(&[1.0, 1.0, 2.0, 2.0, 4.0], &CapacityError::TooFewCounts { found: 3 });
        let nothing = [Point { count: 1.0, per_s: 0.0, error: 0.0 }; 5];
        assert_eq!(fit(&nothing, 1), Err(CapacityError::BadPoint { count: 1.0, per_s: 0.0 }));
    }

    #[test]
    fn a_law_with_coherency_has_a_peak_and_one_without_has_none() {
        let law = Law { one_per_s: 1.0, contention: 0.1, coherency: 0.001 };
        assert!((law.peak() - 30.0).abs() < 1e-9);
        assert_eq!(Law { coherency: 0.0, ..law }.peak(), f64::INFINITY);
        let found = fit(&points(law, &COUNTS, 0.0, 1), 3).expect("enough");
        assert!((found.peak().value - 30.0).abs() < 1e-3 && found.residual < 1e-9, "{found:?}");
    }
}
