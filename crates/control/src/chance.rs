//! Chance as an argument: the one source that a replica's timeouts are drawn from.
//!
//! Owns the seeding, so that a cluster in a simulation runs the same way each time.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of chance.
#[derive(Debug, Clone)]
pub struct Chance(ChaCha8Rng);

impl Chance {
    /// The stream of that seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Chance(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `bound`; 0 when the bound is 0. The bias of the remainder is below one in a million for the bounds
    /// in use here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64().checked_rem(bound).unwrap_or(0)
    }
}
