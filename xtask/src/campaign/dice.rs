//! Chance of a campaign: every choice of one run, from one seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Draws; the same seed draws the same.
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    pub(super) fn of(seed: u64) -> Dice {
        Dice(ChaCha8Rng::seed_from_u64(seed))
    }

    /// `low..=high`.
    pub(super) fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    /// True in so many of a hundred.
    pub(super) fn in_hundred(&mut self, share: u64) -> bool {
        self.from(1, 100) <= share
    }

    /// One of these, which are not none.
    pub(super) fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.from(0, choices.len() as u64 - 1) as usize]
    }
}
