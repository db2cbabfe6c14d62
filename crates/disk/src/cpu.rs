//! CPU time of threads that come and go, counted by the threads themselves, and what of it syncs of the machine's disk took.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

thread_local! {
    /// The thread's CPU time when it was last counted.
    static COUNTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    /// What the thread is followed by, until it ends.
    static FOLLOWED: OnceCell<Followed> = const { OnceCell::new() };
}

/// What all volumes of this process have used within syncs of the machine's disk, nanoseconds.
static WITHIN_SYNCS_NS: AtomicU64 = AtomicU64::new(0);

/// CPU time that the volumes of this process have used within syncs of the machine's disk: a database without a lab makes the
/// same calls itself.
#[must_use]
pub fn cpu_time_within_syncs() -> Duration {
    Duration::from_nanos(WITHIN_SYNCS_NS.load(Ordering::Relaxed))
}

/// Does it, and counts its CPU time as that of a sync, where it is of a thread that is followed: of others' time the volumes have
/// no part.
pub(crate) fn within_a_sync<T>(sync: impl FnOnce() -> T) -> T {
    if FOLLOWED.with(|followed| followed.get().is_none()) {
        return sync();
    }
    counted_in(&WITHIN_SYNCS_NS, sync)
}

fn counted_in<T>(sum_ns: &AtomicU64, does: impl FnOnce() -> T) -> T {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let before = now();
    let done = does();
    // A process that uses 584 years of CPU time overflows this.
    sum_ns.fetch_add(now().saturating_sub(before).as_nanos() as u64, Ordering::Relaxed);
    done
}

/// A sum over threads.
#[derive(Debug, Default)]
pub struct CpuTime {
    total_ns: AtomicU64,
    /// Clocks of the threads that are followed and have not ended.
    followed: Mutex<Vec<ClockId>>,
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

    /// Counts all of the calling thread's time, until it ends, without asking it again: reading its clock is a system call,
    /// which a thread with much to do is spared. A thread is followed by one sum only, the first.
    pub(crate) fn follow(self: &Arc<CpuTime>) {
        FOLLOWED.with(|followed| {
            followed.get_or_init(|| {
                let clock = clock_of_this_thread();
                self.clocks().push(clock);
                Followed { by: self.clone(), clock }
            });
        });
    }

    fn clocks(&self) -> MutexGuard<'_, Vec<ClockId>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been used so far.
    #[must_use]
    pub fn total(&self) -> Duration {
        // None of them ends, and is counted as ended, while this is held.
        let clocks = self.clocks();
        let living: Duration =
            clocks.iter().filter_map(|clock| clock_gettime(*clock).ok()).map(Duration::from).sum();
        Duration::from_nanos(self.total_ns.load(Ordering::Relaxed)) + living
    }
}

/// A thread that is followed. Goes with it.
#[derive(Debug)]
struct Followed {
    by: Arc<CpuTime>,
    clock: ClockId,
}

impl Drop for Followed {
    fn drop(&mut self) {
        let mut clocks = self.by.clocks();
        clocks.retain(|clock| *clock != self.clock);
        if let Ok(used) = clock_gettime(self.clock) {
            self.by.total_ns.fetch_add(Duration::from(used).as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

/// The clock by which other threads of this process read the calling one's CPU time: as the kernel and the C library
/// number them (`include/linux/posix-timers_types.h`), the scheduler's count of one thread.
fn clock_of_this_thread() -> ClockId {
    const ONE_THREAD_BY_THE_SCHEDULER: i32 = 4 | 2;
    ClockId::from_raw((!gettid().as_raw() << 3) | ONE_THREAD_BY_THE_SCHEDULER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn() -> Duration {
        let used = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock"));
        let from = used();
        while used() < from + Duration::from_millis(20) {}
        used()
    }

    #[test]
    fn what_a_sync_uses_is_counted_and_what_is_used_outside_is_not() {
        let sum_ns = AtomicU64::new(0);
        counted_in(&sum_ns, || ());
        burn();
        assert!(sum_ns.load(Ordering::Relaxed) < 10_000_000);
        counted_in(&sum_ns, burn);
        assert!(sum_ns.load(Ordering::Relaxed) >= 20_000_000);
    }

    #[test]
    fn a_followed_thread_counts_while_it_lives_and_after_it_has_ended_and_only_once() {
        let cpu = Arc::new(CpuTime::default());
        let (burnt, at_rest) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn({
            let cpu = cpu.clone();
            move || {
                cpu.follow();
                cpu.follow();
                burnt.send(burn()).expect("somebody waits");
                // An error is the end, too.
                let _ = ended.recv();
            }
        });
        let least = at_rest.recv().expect("it burnt");
        let living = cpu.total();
        assert!(least <= living && living < least * 2, "{least:?} {living:?}");
        drop(end);
        thread.join().expect("its end");
        let after = cpu.total();
        assert!(living <= after && after < least * 2, "{least:?} {living:?} {after:?}");
    }
}
