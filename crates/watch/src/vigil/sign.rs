//! A part's latest sign of life, put down by the part's own watcher and read by the vigil.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub struct Sign {
    base: Instant,
    after_ns: AtomicU64,
    /// No sign is owed: the node is off, or waits for its volume.
    excused_ns: AtomicU64,
}

impl Sign {
    /// Alive now.
    #[must_use]
    pub fn new() -> Sign {
        Sign { base: Instant::now(), after_ns: AtomicU64::new(0), excused_ns: AtomicU64::new(0) }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.base.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Alive now.
    pub fn give(&self) {
        self.after_ns.store(self.now_ns(), Ordering::Release);
    }

    /// No sign was owed until now.
    pub fn excuse(&self) {
        self.excused_ns.store(self.now_ns(), Ordering::Release);
    }

    /// The latest sign.
    #[must_use]
    pub fn latest(&self) -> Instant {
        self.base + Duration::from_nanos(self.after_ns.load(Ordering::Acquire))
    }

    /// Until when none was owed.
    #[must_use]
    pub fn excused_until(&self) -> Instant {
        self.base + Duration::from_nanos(self.excused_ns.load(Ordering::Acquire))
    }
}
