//! How long to wait before the next try: doubling, capped, never twice the same for two clients.

use std::time::Duration;

use rand::{Rng, RngExt};

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);

/// Waiting times after failures in a row.
#[derive(Debug, Clone)]
pub struct Backoff {
    failures: u32,
    longest: Duration,
}

impl Default for Backoff {
    /// Waits of 500 ms at most.
    fn default() -> Self {
        Self::up_to(LONGEST)
    }
}

impl Backoff {
    /// Waits of `longest` at most.
    #[must_use]
    pub fn up_to(longest: Duration) -> Self {
        Self { failures: 0, longest }
    }

    /// After a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next waiting time: between half and the whole of a step that doubles from 20 ms on, so that clients that
    /// failed together do not come back together.
    pub fn next(&mut self, rng: &mut dyn Rng) -> Duration {
        let step = FIRST.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        step.mul_f64(rng.random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn waits_double_to_a_cap_and_start_anew_after_a_success() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut backoff = Backoff::default();
        for step_ms in [20, 40, 80, 160, 320, 500, 500, 500] {
            let wait = backoff.next(&mut rng);
            assert!(
                (Duration::from_millis(step_ms / 2)..=Duration::from_millis(step_ms)).contains(&wait),
                "{wait:?}"
            );
        }
        backoff.failures = u32::MAX;
        assert!(backoff.next(&mut rng) <= LONGEST);
        backoff.reset();
        assert!(backoff.next(&mut rng) <= FIRST);
    }
}
