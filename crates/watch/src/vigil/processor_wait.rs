//! How long a thread was ready and waited for a processor, by the kernel's account.
//!
//! Source: Linux `Documentation/scheduler/sched-stats.rst`, `/proc/<pid>/schedstat`.

use std::time::Duration;

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
    fn a_wait_is_told_from_the_second_look_on_and_only_where_the_kernel_tells() {
        let mut wait = ProcessorWait::default();
        assert_eq!(wait.since_last(), None);
        let is_told = std::fs::read_to_string("/proc/thread-self/schedstat").is_ok();
        assert_eq!(wait.since_last().is_some(), is_told);
    }
}
