//! Which processes of a node a signal has stopped, as its init sees them in `/proc`.
//!
//! Owns the scan and how often it is made: with thousands of processes it would cost more than it is worth. Does not know
//! who stopped them. Whoever else wants to see all processes is shown the same scan.

use std::collections::BTreeMap;
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
    /// The processes that stand still now, or stood still at the last scan where that is too recent for another. `shown` gets all
    /// processes of a scan, where one is made, and the moment.
    pub(crate) fn look(&mut self, shown: impl FnOnce(&BTreeMap<i32, Stat>, Instant)) -> Vec<StoppedProcess> {
        let began = Instant::now();
        if self.next.is_none_or(|next| began >= next) {
            let all = all_processes();
            shown(&all, began);
            self.seen = stopped_among(all);
            let took = began.elapsed().max(Duration::from_micros(1));
            self.next = Some(began + took * COST_SHARE);
        }
        self.seen.clone()
    }
}

/// All processes of the node by their numbers.
pub(crate) fn all_processes() -> BTreeMap<i32, Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that has ended meanwhile is none of them.
    pids.filter_map(|pid| Some((pid, Stat::of(pid)?))).collect()
}

fn stopped_among(all: BTreeMap<i32, Stat>) -> Vec<StoppedProcess> {
    let stopped = all.into_iter().filter(|(_, stat)| stat.is_stopped && !is_of_a_visitor(stat.parent));
    stopped.map(|(pid, stat)| StoppedProcess { pid, program: stat.program }).collect()
}

/// Whether a process descends from one that came into the node from outside, whose parent the node does not see: a person's
/// shell, who may stop their own programs as they like.
pub(crate) fn is_of_a_visitor(parent: i32) -> bool {
    match parent {
        0 => true,
        1 => false,
        // An orphan comes to the init, so a parent that has just ended was no visitor's.
        other => Stat::of(other).is_some_and(|stat| is_of_a_visitor(stat.parent)),
    }
}

/// What `/proc/PID/stat` tells (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) program: String,
    pub(crate) is_stopped: bool,
    pub(crate) is_zombie: bool,
    pub(crate) parent: i32,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// `12 (name) T 1 ...`. A name may hold spaces and brackets.
    fn parse(line: &str) -> Option<Stat> {
        let (before, after) = line.rsplit_once(") ")?;
        let (_, program) = before.split_once(" (")?;
        let mut fields = after.split(' ');
        let state = fields.next()?;
        let (is_stopped, is_zombie) = (state == "T", matches!(state, "Z" | "X"));
        Some(Stat {
            program: program.to_owned(),
            is_stopped,
            is_zombie,
            parent: fields.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_hide_the_state() {
        let stopped = Stat { program: "a) S (b".to_owned(), is_stopped: true, is_zombie: false, parent: 1 };
        assert_eq!(Stat::parse("7 (a) S (b) T 1 7 7 0"), Some(stopped));
        assert_eq!(Stat::parse("7 (T) S 1 7 7 0").map(|stat| stat.is_stopped), Some(false));
        assert_eq!(Stat::parse("nonsense"), None);
    }

    #[test]
    fn a_process_that_was_stopped_is_seen_and_one_that_runs_is_not() {
        let start = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        let (mut one, mut other) = (start(), start());
        let pid = nix::unistd::Pid::from_raw(one.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("stop it");
        nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).expect("it stops");
        let seen: Vec<i32> = stopped_among(all_processes()).into_iter().map(|process| process.pid).collect();
        for child in [&mut one, &mut other] {
            child.kill().expect("end it");
            child.wait().expect("its end");
        }
        assert!(seen.contains(&pid.as_raw()), "{seen:?}");
        assert!(!seen.contains(&other.id().cast_signed()), "{seen:?}");
    }
}
