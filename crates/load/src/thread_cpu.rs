//! CPU time of a load's thread, readable from outside while it runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The CPU time of one thread, shared between it and those who ask.
#[derive(Debug, Default)]
pub(crate) struct ThreadCpu {
    /// Thread id as the kernel's clocks want it; 0 while the thread has not begun or has ended.
    thread: AtomicU64,
    /// The last figure the thread itself took, nanoseconds.
    last_ns: AtomicU64,
}

impl ThreadCpu {
    /// Called on the thread, first.
    pub(crate) fn begin(&self) {
        let thread = u64::try_from(nix::unistd::gettid().as_raw()).unwrap_or(0);
        self.thread.store(thread, Ordering::Release);
    }

    /// Called on the thread, last: the id may belong to another thread from now on.
    pub(crate) fn end(&self) -> Duration {
        let spent = read(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
        self.last_ns.store(u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX), Ordering::Release);
        self.thread.store(0, Ordering::Release);
        spent
    }

    /// CPU time spent so far; after the end, the total.
    pub(crate) fn spent(&self) -> Duration {
        let thread = self.thread.load(Ordering::Acquire);
        let running = i32::try_from(thread)
            .ok()
            .filter(|thread| *thread != 0)
            .and_then(|thread| read(clock_of(thread)));
        running.unwrap_or_else(|| Duration::from_nanos(self.last_ns.load(Ordering::Acquire)))
    }
}

/// The kernel's CPU clock of one thread of this process: the id's complement above three bits that say "of a thread"
/// (4) and "as the scheduler counts" (2).
fn clock_of(thread: i32) -> ClockId {
    ClockId::from_raw((!thread << 3) | 6)
}

fn read(clock: ClockId) -> Option<Duration> {
    let time = clock_gettime(clock).ok()?;
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec()).ok()?;
    Some(Duration::new(seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn another_threads_work_is_seen_while_it_runs_and_after() {
        let cpu = Arc::new(ThreadCpu::default());
        assert_eq!(cpu.spent(), Duration::ZERO);
        let (seen, wait_seen) = std::sync::mpsc::channel::<()>();
        let (worked, wait_worked) = std::sync::mpsc::channel::<()>();
        let theirs = Arc::clone(&cpu);
        let thread = std::thread::spawn(move || {
            theirs.begin();
            // Work until our own clock has moved, however slow the machine.
            while read(ClockId::CLOCK_THREAD_CPUTIME_ID).is_none_or(|spent| spent < Duration::from_millis(5))
            {
            }
            let _ = worked.send(());
            let _ = wait_seen.recv();
            theirs.end()
        });
        wait_worked.recv().expect("worker lives");
        assert!(cpu.spent() >= Duration::from_millis(5));
        seen.send(()).expect("worker lives");
        let total = thread.join().expect("worker ends");
        assert_eq!(cpu.spent(), total);
    }
}
