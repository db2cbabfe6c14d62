//! How long a thread was ready and waited for a processor, and how long whoever gives this machine its processors withheld them,
//! by the kernel's account.
//!
//! Sources: Linux `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`; proc_stat(5), steal.

use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

/// Which figure of the first line of `/proc/stat` is the time withheld, its name counted.
const STEAL: usize = 8;

/// The calling thread's waits, from one look to the next. Each thread has its own.
#[derive(Debug, Default)]
pub(super) struct ProcessorWait {
    last: Option<Duration>,
}

impl ProcessorWait {
    /// How long the calling thread has waited since the last look. Nothing at the first one, and where the kernel does not tell.
    pub(super) fn since_last(&mut self) -> Option<Duration> {
        let now = std::fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| of_line(&text));
        let last = std::mem::replace(&mut self.last, now);
        Some(now?.saturating_sub(last?))
    }
}

/// Processor time that the hypervisor withheld from the machine, of all processors, from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    last: Option<Duration>,
}

impl Withheld {
    /// How much since the last look. Nothing at the first one, and where the kernel does not tell.
    pub(super) fn since_last(&mut self) -> Option<Duration> {
        let now =
            std::fs::read_to_string("/proc/stat").ok().and_then(|text| of_machine(&text, ticks_per_s()));
        let last = std::mem::replace(&mut self.last, now);
        Some(now?.saturating_sub(last?))
    }
}

fn ticks_per_s() -> u32 {
    let told = sysconf(SysconfVar::CLK_TCK).ok().flatten();
    told.and_then(|ticks| u32::try_from(ticks).ok()).filter(|ticks| *ticks > 0).unwrap_or(100)
}

fn of_machine(text: &str, ticks_per_s: u32) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: u64 = line.split_whitespace().nth(STEAL)?.parse().ok()?;
    Some(Duration::from_secs(ticks) / ticks_per_s)
}

/// The second of three figures: time on a processor, time ready without one (both in nanoseconds), turns.
fn of_line(text: &str) -> Option<Duration> {
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_the_second_figure() {
        assert_eq!(of_line("1500 2000000000 7\n"), Some(Duration::from_secs(2)));
        assert_eq!(of_line("1500"), None);
        assert_eq!(of_line(""), None);
    }

    #[test]
    fn what_is_withheld_is_the_eighth_figure_of_all_processors_in_ticks() {
        let text = "cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(of_machine(text, 100), Some(Duration::from_millis(2_500)));
        assert_eq!(of_machine("cpu  1 2 3 4\n", 100), None);
    }

    #[test]
    fn a_wait_is_told_from_the_second_look_on_and_only_where_the_kernel_tells() {
        let mut wait = ProcessorWait::default();
        assert_eq!(wait.since_last(), None);
        let is_told = std::fs::read_to_string("/proc/thread-self/schedstat").is_ok();
        assert_eq!(wait.since_last().is_some(), is_told);
    }
}
