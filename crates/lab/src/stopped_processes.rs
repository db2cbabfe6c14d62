//! Which processes of a node a signal has stopped, as its init sees them.
//!
//! Owns how often that is looked at: with thousands of processes it would cost more than it is worth. Does not know who
//! stopped them. Whoever else wants to see all processes is shown the same scan.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::node_processes::{Stat, all_processes, is_of_a_visitor};
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
            self.seen = stopped_among(&all);
            let took = began.elapsed().max(Duration::from_micros(1));
            self.next = Some(began + took * COST_SHARE);
        }
        self.seen.clone()
    }
}

fn stopped_among(all: &BTreeMap<i32, Stat>) -> Vec<StoppedProcess> {
    let stopped = all.iter().filter(|(pid, stat)| stat.is_stopped && !is_of_a_visitor(all, **pid));
    stopped.map(|(pid, stat)| StoppedProcess { pid: *pid, program: stat.program.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_was_stopped_is_seen_and_one_that_runs_is_not() {
        let start = || Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().expect("sleep");
        let (mut one, mut other) = (start(), start());
        let pid = nix::unistd::Pid::from_raw(one.id().cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("stop it");
        nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).expect("it stops");
        let seen: Vec<i32> = stopped_among(&all_processes()).into_iter().map(|process| process.pid).collect();
        for child in [&mut one, &mut other] {
            child.kill().expect("end it");
            child.wait().expect("its end");
        }
        assert!(seen.contains(&pid.as_raw()), "{seen:?}");
        assert!(!seen.contains(&other.id().cast_signed()), "{seen:?}");
    }
}
