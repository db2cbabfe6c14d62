//! Zipf-like choice among a known number of items, as YCSB does it.
//!
//! Source: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, which YCSB's
//! `ZipfianGenerator` and `ScrambledZipfianGenerator` follow. The method is exact for the two most popular items and an
//! approximation by a continuous curve for the rest; [`Zipfian::probability`] is what it really draws.

use rand::{Rng, RngExt};

use super::hash::fnv64;

/// The exponent every YCSB workload uses.
pub const YCSB_THETA: f64 = 0.99;

/// Items that the scrambled generator draws among before it hashes, whatever the table's size.
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// The sum of `1 / i^0.99` over those items: too many to add up at every start. YCSB has the same constant.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Draws 0 most often, then 1, and so on.
#[derive(Debug, Clone)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipfian {
    /// Among `items` (at least 1), with an exponent between 0 and 1, both excluded. Adds up a term for every item.
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        Self::with_zeta(items, theta, zeta(0, items, theta, 0.0))
    }

    fn with_zeta(items: u64, theta: f64, zeta_of_all: f64) -> Self {
        let zeta_of_two = zeta(0, 2, theta, 0.0);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - zeta_of_two / zeta_of_all);
        Zipfian { items, theta, zeta: zeta_of_all, alpha: 1.0 / (1.0 - theta), eta }
    }

    /// Items drawn among.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The same with more items, at the cost of the new ones only. Fewer than there are change nothing.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            let zeta = zeta(self.items, items, self.theta, self.zeta);
            *self = Self::with_zeta(items, self.theta, zeta);
        }
    }

    /// Draws an item.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        self.item_at(rng.random::<f64>())
    }

    /// The item that a number from 0 to 1 stands for.
    fn item_at(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) || self.items == 2 {
            return 1;
        }
        let item = self.items as f64 * (self.eta * uniform - self.eta + 1.0).powf(self.alpha);
        (item as u64).min(self.items - 1)
    }

    /// How likely [`Zipfian::draw`] is to give an item: the share of the numbers from 0 to 1 that stand for it.
    #[must_use]
    pub fn probability(&self, item: u64) -> f64 {
        if item >= self.items {
            return 0.0;
        }
        (self.first_number_after(item)
            - item.checked_sub(1).map_or(0.0, |before| self.first_number_after(before)))
        .max(0.0)
    }

    /// Where the numbers end that stand for this item or one before it.
    fn first_number_after(&self, item: u64) -> f64 {
        if item + 1 >= self.items {
            return 1.0;
        }
        let first = (1.0 / self.zeta).min(1.0);
        if item == 0 {
            return first;
        }
        let second = ((1.0 + 0.5_f64.powf(self.theta)) / self.zeta).min(1.0);
        let share = (item + 1) as f64 / self.items as f64;
        let on_curve = (share.powf(1.0 / self.alpha) - 1.0 + self.eta) / self.eta;
        on_curve.clamp(second, 1.0)
    }
}

/// Zipfian popularity, but which items are popular is spread over all of them by a hash.
#[derive(Debug, Clone)]
pub struct ScrambledZipfian {
    popularity: Zipfian,
    items: u64,
}

impl ScrambledZipfian {
    /// Among `items`, at least 1.
    #[must_use]
    pub fn new(items: u64) -> Self {
        let popularity = Zipfian::with_zeta(SCRAMBLED_ITEMS, YCSB_THETA, SCRAMBLED_ZETA);
        ScrambledZipfian { popularity, items: items.max(1) }
    }

    /// Draws an item.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        fnv64(self.draw_rank(rng)) % self.items
    }

    /// Draws a rank in popularity, not yet spread over the items.
    pub fn draw_rank(&self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        self.popularity.draw(rng)
    }

    /// How likely each item is, as far as the `ranks` most popular draws tell, and how likely it is that a draw is none
    /// of those.
    #[must_use]
    pub fn probabilities(&self, ranks: u64) -> (Vec<f64>, f64) {
        let mut shares = vec![0.0; usize::try_from(self.items).unwrap_or(usize::MAX)];
        for rank in 0..ranks {
            let item = usize::try_from(fnv64(rank) % self.items).unwrap_or_default();
            if let Some(share) = shares.get_mut(item) {
                *share += self.popularity.probability(rank);
            }
        }
        let rest = ranks.checked_sub(1).map_or(1.0, |last| 1.0 - self.popularity.first_number_after(last));
        (shares, rest)
    }
}

/// The sum of `1 / i^theta` for the items after the first `known`, added to what those came to.
fn zeta(known: u64, items: u64, theta: f64, so_far: f64) -> f64 {
    (known..items).fold(so_far, |sum, item| sum + 1.0 / ((item + 1) as f64).powf(theta))
}

#[cfg(test)]
mod tests {
    use super::super::chi_square;
    use super::*;

    #[test]
    fn draws_follow_the_computed_distribution() {
        let zipfian = Zipfian::new(1_000, YCSB_THETA);
        let expected: Vec<f64> = (0..1_000).map(|item| zipfian.probability(item)).collect();
        chi_square::check("zipfian of 1000", &expected, 400_000, |rng| zipfian.draw(rng) as usize);
    }

    #[test]
    fn a_wrong_exponent_does_not_pass_for_the_right_one() {
        let (right, wrong) = (Zipfian::new(1_000, YCSB_THETA), Zipfian::new(1_000, 0.95));
        let expected: Vec<f64> = (0..1_000).map(|item| right.probability(item)).collect();
        assert!(!chi_square::fits(&expected, 400_000, |rng| wrong.draw(rng) as usize));
    }

    #[test]
    fn the_two_most_popular_items_are_exactly_as_popular_as_zipf_has_it() {
        let zipfian = Zipfian::new(1_000, YCSB_THETA);
        let sum = zeta(0, 1_000, YCSB_THETA, 0.0);
        for (item, share) in [(0, 1.0 / sum), (1, 0.5_f64.powf(YCSB_THETA) / sum)] {
            assert!((zipfian.probability(item) - share).abs() < 1e-12, "{item}");
        }
        let total: f64 = (0..1_000).map(|item| zipfian.probability(item)).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }

    #[test]
    fn growing_gives_what_a_new_start_gives() {
        let mut grown = Zipfian::new(10, YCSB_THETA);
        grown.grow(5_000);
        let made = Zipfian::new(5_000, YCSB_THETA);
        for item in [0, 1, 2, 10, 4_999] {
            assert!((grown.probability(item) - made.probability(item)).abs() < 1e-12, "{item}");
        }
        grown.grow(3);
        assert_eq!(grown.items(), 5_000);
    }

    #[test]
    fn few_items_are_all_that_is_drawn() {
        for items in [1, 2, 3] {
            let zipfian = Zipfian::new(items, YCSB_THETA);
            for step in 0..=1_000 {
                assert!(zipfian.item_at(f64::from(step) / 1_000.0) < items, "{items} {step}");
            }
        }
    }

    #[test]
    fn scrambling_spreads_popularity_by_the_hash_and_keeps_it() {
        let scrambled = ScrambledZipfian::new(100);
        let (mut shares, rest) = scrambled.probabilities(1_000_000);
        // What lies beyond the million most popular is spread evenly by any good hash.
        shares.iter_mut().for_each(|share| *share += rest / 100.0);
        chi_square::check("scrambled zipfian of 100", &shares, 100_000, |rng| scrambled.draw(rng) as usize);
        assert!(shares[(fnv64(0) % 100) as usize] > 0.037);
    }
}
