//! Whether the machine that a mount belongs to has power, and the gate that every request passes.
//!
//! After [`Power::cut`] has returned no request is under way and none gets through: whatever is taken back then stays
//! taken back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The power of one boot.
#[derive(Debug, Default)]
pub(crate) struct Power {
    is_off: AtomicBool,
    gate: RwLock<()>,
}

impl Power {
    /// Passes the gate, for as long as the guard lives. `None` when the power is off.
    pub(crate) fn pass(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let guard = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        (!self.is_off.load(Ordering::Acquire)).then_some(guard)
    }

    /// Cuts the power and waits for the requests under way, after `hurry` has seen to it that none of them waits for a
    /// disk.
    pub(crate) fn cut(&self, hurry: impl FnOnce()) {
        self.is_off.store(true, Ordering::Release);
        hurry();
        drop(self.gate.write().unwrap_or_else(PoisonError::into_inner));
    }
}
