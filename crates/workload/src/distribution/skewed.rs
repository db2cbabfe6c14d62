//! Zipf-distributed numbers for exponents above 1, by rejection, without a table or a sum.
//!
//! Source: L. Devroye, "Non-Uniform Random Variate Generation", 1986, chapter X.6.1: the method pgbench documents for
//! `random_zipfian` and that suits a number of items that grows. The distribution is exact.

use rand::{Rng, RngExt};

/// Draws 1 to `items` with a chance proportional to `1 / k^exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RejectionZipf {
    items: u64,
    exponent: f64,
}

/// The smallest exponent, as pgbench has it: below, rejections become too many.
pub const LEAST_EXPONENT: f64 = 1.001;
/// The largest exponent, as pgbench has it.
pub const MOST_EXPONENT: f64 = 1000.0;

impl RejectionZipf {
    /// Among `items` (at least 1); `None` where the exponent is not between [`LEAST_EXPONENT`] and [`MOST_EXPONENT`].
    #[must_use]
    pub fn new(items: u64, exponent: f64) -> Option<Self> {
        (LEAST_EXPONENT..=MOST_EXPONENT)
            .contains(&exponent)
            .then_some(RejectionZipf { items: items.max(1), exponent })
    }

    /// Draws a number from 1 to the number of items.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        if self.items == 1 {
            return 1;
        }
        let b = 2.0_f64.powf(self.exponent - 1.0);
        loop {
            // From 0 to 1, 0 excluded: its power would be no number.
            let (u, v) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
            let x = u.powf(-1.0 / (self.exponent - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(self.exponent - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= self.items as f64 {
                return x as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chi_square;
    use super::*;

    fn exact(items: u64, exponent: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=items).map(|k| (k as f64).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn draws_follow_zipf_exactly() {
        for (items, exponent) in [(10, 1.1), (100, 1.5), (1_000, 2.5), (1, 2.0), (2, 1.2)] {
            let zipf = RejectionZipf::new(items, exponent).expect("in range");
            chi_square::check("zipf", &exact(items, exponent), 50_000, |rng| (zipf.draw(rng) - 1) as usize);
        }
    }

    #[test]
    fn exponents_outside_the_range_are_refused() {
        for exponent in [1.0, 1000.5, f64::NAN] {
            assert!(RejectionZipf::new(10, exponent).is_none(), "{exponent}");
        }
    }
}
