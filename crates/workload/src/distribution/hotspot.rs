//! A set of items that gets a given share of all draws, evenly; the others share the rest evenly.
//!
//! Source: YCSB's `HotspotIntegerGenerator`. The hot items are the first ones.

use rand::{Rng, RngExt};

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hotspot {
    hot_items: u64,
    items: u64,
    hot_share: f64,
}

impl Hotspot {
    /// Of `items` the share `hot_items_share` is hot and gets the share `hot_draws_share` of all draws; both from 0 to 1.
    #[must_use]
    pub fn new(items: u64, hot_items_share: f64, hot_draws_share: f64) -> Self {
        let items = items.max(1);
        let hot_items = ((items as f64 * hot_items_share.clamp(0.0, 1.0)) as u64).min(items);
        let hot_share = match hot_items {
            0 => 0.0,
            all if all == items => 1.0,
            _ => hot_draws_share.clamp(0.0, 1.0),
        };
        Hotspot { hot_items, items, hot_share }
    }

    /// Draws an item.
    pub fn draw(&self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        if rng.random::<f64>() < self.hot_share {
            rng.random_range(0..self.hot_items)
        } else {
            rng.random_range(self.hot_items.min(self.items - 1)..self.items)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chi_square;
    use super::*;

    #[test]
    fn hot_items_get_their_share_evenly_and_the_others_the_rest() {
        let hotspot = Hotspot::new(100, 0.2, 0.8);
        let expected: Vec<f64> =
            (0..100).map(|item| if item < 20 { 0.8 / 20.0 } else { 0.2 / 80.0 }).collect();
        chi_square::check("hotspot", &expected, 100_000, |rng| hotspot.draw(rng) as usize);
    }

    #[test]
    fn a_hotspot_of_nothing_or_of_everything_is_even() {
        for share in [0.0, 1.0] {
            let hotspot = Hotspot::new(10, share, 0.5);
            chi_square::check("even", &[0.1; 10], 20_000, |rng| hotspot.draw(rng) as usize);
        }
    }
}
