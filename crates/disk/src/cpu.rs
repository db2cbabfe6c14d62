//! CPU time of threads that come and go, counted by the threads themselves.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

thread_local! {
    /// The thread's CPU time when it was last counted.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A sum over threads.
#[derive(Debug, Default)]
pub struct CpuTime {
    total_ns: AtomicU64,
}

impl CpuTime {
    /// Adds what the calling thread has used since it last did this.
    pub fn count(&self) {
        let Ok(now) = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID) else { return };
        let now = Duration::from(now);
        let used = now.saturating_sub(COUNTED.replace(now));
        // A thread that uses 584 years of CPU time overflows this.
        self.total_ns.fetch_add(used.as_nanos() as u64, Ordering::Relaxed);
    }

    /// What has been counted so far.
    #[must_use]
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.total_ns.load(Ordering::Relaxed))
    }
}
