//! CPU time of a load's thread and of the program that speaks for its clients, readable from outside while they run.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use client::process::Accountant;
use nix::time::{ClockId, clock_gettime};

/// Ticks of the figures in `/proc`: sysconf(_SC_CLK_TCK) is that everywhere.
const TICKS_A_SECOND: u64 = 100;

/// CPU time that a load has spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadCpu {
    /// Its thread, which belongs to this process.
    pub thread: Duration,
    /// The program that speaks for its clients, which does not.
    pub program: Duration,
}

impl LoadCpu {
    /// All of it.
    #[must_use]
    pub fn total(self) -> Duration {
        self.thread + self.program
    }
}

impl AddAssign for LoadCpu {
    fn add_assign(&mut self, more: LoadCpu) {
        self.thread += more.thread;
        self.program += more.program;
    }
}

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

/// The CPU time of a process and of those that it started, with all their threads, shared between who started it and those who
/// ask.
#[derive(Debug, Default)]
pub(crate) struct ProgramCpu {
    /// 0 while there is none.
    process: AtomicU64,
    /// Of those that have ended, nanoseconds.
    ended_ns: AtomicU64,
}

impl Accountant for ProgramCpu {
    fn begins(&self, process: u32) {
        self.process.store(u64::from(process), Ordering::Release);
    }

    fn ends(&self, process: u32) {
        let spent = i32::try_from(process).ok().map(spent_by).unwrap_or_default();
        let spent_ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        self.process.store(0, Ordering::Release);
        self.ended_ns.fetch_add(spent_ns, Ordering::AcqRel);
    }
}

impl ProgramCpu {
    /// CPU time spent so far.
    pub(crate) fn spent(&self) -> Duration {
        let ended = Duration::from_nanos(self.ended_ns.load(Ordering::Acquire));
        let process =
            i32::try_from(self.process.load(Ordering::Acquire)).ok().filter(|process| *process != 0);
        ended + process.map(spent_by).unwrap_or_default()
    }
}

/// What a process and all that it started have spent. A child that has ended counts by its parent's ticks, once it is waited for.
fn spent_by(process: i32) -> Duration {
    let own = read(clock_of_process(process)).unwrap_or_default();
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return own };
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let living: Duration = children.split_whitespace().filter_map(|id| id.parse().ok()).map(spent_by).sum();
    own + ended_children(&stat) + living
}

/// The time of the children that were waited for: the 16th and the 17th field of proc_pid_stat(5), in ticks. The second is a
/// name in brackets, in which anything may stand.
fn ended_children(stat: &str) -> Duration {
    let behind = stat.rsplit_once(')').map(|(_, behind)| behind).unwrap_or_default();
    let ticks: u64 =
        behind.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / TICKS_A_SECOND)
}

/// The kernel's CPU clock of one process: as that of a thread, without the bit that says "of a thread".
fn clock_of_process(process: i32) -> ClockId {
    ClockId::from_raw((!process << 3) | 2)
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
    fn what_a_process_started_counts_while_it_runs_and_when_it_has_ended() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 150 50 20 0 1";
        assert_eq!(ended_children(line), Duration::from_secs(2));
        let script = "while :; do :; done & wait";
        let mut parent = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh runs");
        let number = i32::try_from(parent.id()).expect("a small number");
        let own = || read(clock_of_process(number)).unwrap_or_default();
        // The child works, the parent waits: however slow the machine, the child's time grows.
        while spent_by(number) < own() + Duration::from_millis(20) {
            std::thread::yield_now();
        }
        let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        for child in children.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()) {
            let _ =
                nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), nix::sys::signal::Signal::SIGKILL);
        }
        parent.wait().expect("it ends with its child");
    }

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

    #[test]
    fn a_processs_work_is_seen_while_it_runs_and_once_it_has_ended() {
        let cpu = ProgramCpu::default();
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
        cpu.begins(busy.id());
        while cpu.spent() < Duration::from_millis(5) {}
        busy.kill().expect("killed");
        cpu.ends(busy.id());
        busy.wait().expect("reaped");
        assert!(cpu.spent() >= Duration::from_millis(5));
    }
}
