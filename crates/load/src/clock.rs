//! The run's clock: seconds since the first load, on the machine's monotonic clock, which no fault touches.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

/// The run's clock, shared by all who hold a clone. It is made before its zero is known: what happens until then is
/// an [`Instant`], and gets its (negative) time afterwards.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    zero: Arc<watch::Sender<Option<Instant>>>,
    /// Whether loads leave the zero to somebody else.
    is_set_by_others: bool,
}

impl Clock {
    /// A clock whose zero is not known yet. The first load to start sets it to that moment unless
    /// [`Clock::set_zero`] did before.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock whose zero is not known yet and is left to [`Clock::set_zero`]: loads that start before it connect, and wait
    /// for it.
    #[must_use]
    pub fn set_later() -> Self {
        Self { is_set_by_others: true, ..Self::default() }
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
        self.zero.send_if_modified(|known| {
            let is_first = known.is_none();
            known.get_or_insert(zero);
            is_first
        })
    }

    /// The zero, where known.
    #[must_use]
    pub fn zero(&self) -> Option<Instant> {
        *self.zero.borrow()
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

    /// A load starts: now becomes the zero where it is not known and nobody else sets it.
    pub(crate) fn load_starts(&self) {
        if !self.is_set_by_others {
            self.set_zero(Instant::now());
        }
    }

    /// The zero, as soon as it is known.
    pub(crate) async fn known_zero(&self) -> Instant {
        let mut zero = self.zero.subscribe();
        loop {
            if let Some(zero) = *zero.borrow_and_update() {
                return zero;
            }
            // The sender is this very thing, so that there is no error.
            let _ = zero.changed().await;
        }
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
