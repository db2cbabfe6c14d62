//! The run's clock: seconds since the first load, on the machine's monotonic clock, which no fault touches.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// The run's clock, shared by all who hold a clone. It is made before its zero is known: what happens until then is
/// an [`Instant`], and gets its (negative) time afterwards.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    zero: Arc<OnceLock<Instant>>,
}

impl Clock {
    /// A clock whose zero is not known yet. The first load to start sets it to that moment unless
    /// [`Clock::set_zero`] did before.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock with this zero, which may lie ahead: loads that start before it connect, and wait for it.
    #[must_use]
    pub fn with_zero(zero: Instant) -> Self {
        let clock = Self::default();
        clock.set_zero(zero);
        clock
    }

    /// Sets the zero, once and for all clones. False when it was set already and stays as it was.
    pub fn set_zero(&self, zero: Instant) -> bool {
        self.zero.set(zero).is_ok()
    }

    /// The zero, where known.
    #[must_use]
    pub fn zero(&self) -> Option<Instant> {
        self.zero.get().copied()
    }

    /// Seconds from the zero to `moment`, negative before it; `None` while the zero is not known.
    #[must_use]
    pub fn seconds_at(&self, moment: Instant) -> Option<f64> {
        self.zero().map(|zero| seconds_between(zero, moment))
    }

    /// Seconds from the zero to now.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        self.seconds_at(Instant::now())
    }

    /// The zero; now becomes it where it was not known.
    pub(crate) fn zero_or_now(&self) -> Instant {
        *self.zero.get_or_init(Instant::now)
    }
}

/// Seconds from `zero` to `moment`, negative when `moment` is the earlier.
pub(crate) fn seconds_between(zero: Instant, moment: Instant) -> f64 {
    match moment.checked_duration_since(zero) {
        Some(after) => after.as_secs_f64(),
        None => -zero.duration_since(moment).as_secs_f64(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_before_the_zero_are_negative_and_unknown_until_it_is_set() {
        let clock = Clock::new();
        let other = clock.clone();
        let moment = Instant::now();
        assert_eq!(clock.seconds_at(moment), None);
        assert!(other.set_zero(moment + Duration::from_secs(2)));
        assert!(!clock.set_zero(moment));
        assert_eq!(clock.seconds_at(moment), Some(-2.0));
        assert_eq!(clock.seconds_at(moment + Duration::from_secs(5)), Some(3.0));
    }
}
