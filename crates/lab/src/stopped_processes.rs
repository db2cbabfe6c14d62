//! Which processes of a node a signal has stopped, as its init sees them in `/proc`.
//!
//! Owns the scan and how often it is made: with thousands of processes it would cost more than it is worth. Does not know
//! who stopped them.

use std::fs;
use std::time::{Duration, Instant};

use crate::protocol::StoppedProcess;

/// A scan is made again after so many times what the last one took: it costs 2 % of a processor at most.
const COST_SHARE: u32 = 50;

/// The scan, and what it saw last.
#[derive(Debug, Default)]
pub(crate) struct StoppedProcesses {
    next: Option<Instant>,
    seen: Vec<StoppedProcess>,
}

impl StoppedProcesses {
    /// The processes that stand still now, or stood still at the last scan where that is too recent for another.
    pub(crate) fn look(&mut self) -> Vec<StoppedProcess> {
        let began = Instant::now();
        if self.next.is_none_or(|next| began >= next) {
            self.seen = scan();
            let took = began.elapsed().max(Duration::from_micros(1));
            self.next = Some(began + took * COST_SHARE);
        }
        self.seen.clone()
    }
}

fn scan() -> Vec<StoppedProcess> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut stopped: Vec<StoppedProcess> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // A process that has ended meanwhile is not stopped.
        .filter_map(|pid: i32| stopped_in(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect();
    stopped.sort();
    stopped
}

/// What a line of `/proc/PID/stat` tells: `12 (name) T ...`. A name may hold spaces and brackets.
fn stopped_in(pid: i32, stat: &str) -> Option<StoppedProcess> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, program) = before.split_once(" (")?;
    after.starts_with('T').then(|| StoppedProcess { pid, program: program.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_state() {
        let stopped = stopped_in(7, "7 (a) S (b) T 1 7 7 0");
        assert_eq!(stopped, Some(StoppedProcess { pid: 7, program: "a) S (b".to_owned() }));
        assert_eq!(stopped_in(7, "7 (T) S 1 7 7 0"), None);
        assert_eq!(stopped_in(7, "nonsense"), None);
    }

    #[test]
    fn a_process_that_was_stopped_is_seen_and_one_that_runs_is_not() {
        let start = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        let (mut one, mut other) = (start(), start());
        let pid = nix::unistd::Pid::from_raw(one.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("stop it");
        nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).expect("it stops");
        let seen: Vec<i32> = scan().into_iter().map(|process| process.pid).collect();
        for child in [&mut one, &mut other] {
            child.kill().expect("end it");
            child.wait().expect("its end");
        }
        assert!(seen.contains(&pid.as_raw()), "{seen:?}");
        assert!(!seen.contains(&other.id().cast_signed()), "{seen:?}");
    }
}
