//! The database's processes on a node as its init strikes them: found in the node's `/proc`, signalled until none is left
//! out.
//!
//! Owns which processes are meant and which of them the init has stopped, and for whom: one goes on when nobody wants it stopped
//! any more. Whether it worked, others look at from outside.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::node_processes::{INIT, all_processes, ancestors, is_of_a_visitor};
use crate::protocol::{StoppedProcess, Strike};

/// More passes are not made: each finds what was born since the one before.
const MOST_PASSES: usize = 50;

/// What the init has stopped.
#[derive(Debug, Default)]
pub(crate) struct StruckProcesses {
    stopped: Stopped,
}

/// Processes that stand still, and the numbers of those who want them to.
#[derive(Debug, Default)]
struct Stopped(BTreeMap<i32, BTreeSet<u64>>);

impl Stopped {
    fn note(&mut self, pids: &BTreeSet<i32>, holder: u64) {
        for pid in pids {
            self.0.entry(*pid).or_default().insert(holder);
        }
    }

    /// One lets go of all; the processes that nobody wants to stand still any more.
    fn release(&mut self, holder: u64) -> Vec<i32> {
        let mut free = Vec::new();
        self.0.retain(|pid, holders| {
            let is_free = holders.remove(&holder) && holders.is_empty();
            free.extend(is_free.then_some(*pid));
            !is_free
        });
        free
    }
}

impl StruckProcesses {
    /// Sends the signal to all that are meant; the numbers of those that were signalled. A parent comes before its children:
    /// one that is to be killed must not see them die.
    pub(crate) fn strike(&mut self, strike: &Strike) -> Vec<i32> {
        let mut signalled = BTreeSet::new();
        for _ in 0..MOST_PASSES {
            let mut meant = meant(&strike.only);
            meant.truncate(strike.at_most.unwrap_or(usize::MAX));
            meant.retain(|pid| !signalled.contains(pid));
            if meant.is_empty() {
                break;
            }
            for pid in meant {
                // SAFETY: kill(2) takes no pointers. A process of this namespace that has just ended is ours to reap, or its
                // parent's, which was signalled before it.
                unsafe { libc::kill(pid, strike.signal) };
                signalled.insert(pid);
            }
        }
        if strike.signal == libc::SIGSTOP {
            self.stopped.note(&signalled, strike.holder);
        }
        signalled.into_iter().collect()
    }

    /// Lets those go on that were stopped for this one alone.
    pub(crate) fn resume(&mut self, holder: u64) -> Vec<i32> {
        let free = self.stopped.release(holder);
        for pid in &free {
            // SAFETY: as above. A number that belongs to another process by now is none that SIGCONT harms.
            unsafe { libc::kill(*pid, libc::SIGCONT) };
        }
        free
    }

    /// Without those that the init has stopped itself.
    pub(crate) fn others(&self, mut stopped: Vec<StoppedProcess>) -> Vec<StoppedProcess> {
        stopped.retain(|process| !self.stopped.0.contains_key(&process.pid));
        stopped
    }
}

/// The processes that are meant, parents first: all but the init and what visitors run, or those of one program with what
/// they started.
fn meant(only: &Option<String>) -> Vec<i32> {
    let mut all = all_processes();
    let visitors: BTreeSet<i32> = all.keys().copied().filter(|pid| is_of_a_visitor(&all, *pid)).collect();
    all.retain(|pid, stat| *pid != INIT && !stat.is_zombie && !visitors.contains(pid));
    let is_meant = |pid: i32| match only {
        None => true,
        Some(program) => ancestors(&all, pid).any(|pid| runs(pid, program)),
    };
    let meant = all.keys().copied().filter(|pid| is_meant(*pid));
    let mut meant: Vec<(usize, i32)> = meant.map(|pid| (ancestors(&all, pid).count(), pid)).collect();
    meant.sort_unstable();
    meant.into_iter().map(|(_, pid)| pid).collect()
}

/// Whether a process runs a program of this file name, or is an interpreter that runs it.
fn runs(pid: i32, program: &str) -> bool {
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name == program);
    let executable = fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| is_it(&path));
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).take(2);
    executable || words.any(|word| std::str::from_utf8(word).is_ok_and(|word| is_it(Path::new(word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_two_have_stopped_goes_on_when_both_have_let_go() {
        let mut stopped = Stopped::default();
        stopped.note(&BTreeSet::from([10, 11]), 1);
        stopped.note(&BTreeSet::from([11, 12]), 2);
        stopped.note(&BTreeSet::from([12]), 2);
        assert_eq!(stopped.release(3), [] as [i32; 0], "whoever has stopped nothing lets nothing go on");
        assert_eq!(stopped.release(1), [10]);
        assert_eq!(stopped.release(1), [] as [i32; 0]);
        assert_eq!(stopped.release(2), [11, 12]);
        assert!(stopped.0.is_empty());
    }

    #[test]
    fn an_interpreter_that_runs_a_script_counts_as_the_script() {
        let folder = std::env::temp_dir().join(format!("struck-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let script = folder.join("my-database");
        // It waits for a line that nobody writes, and starts no process that would be left behind.
        fs::write(&script, "read -r line").expect("a script");
        let mut child = std::process::Command::new("/bin/sh")
            .arg(&script)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let pid = child.id().cast_signed();
        // Until the shell has replaced the copy of this program.
        while fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.starts_with(b"/bin/sh\0")) {
            std::thread::yield_now();
        }
        let found = (runs(pid, "my-database"), runs(pid, "other"), runs(pid, "sleep"));
        child.kill().expect("end it");
        child.wait().expect("its end");
        fs::remove_dir_all(&folder).expect("clean up");
        assert_eq!(found, (true, false, false));
    }
}
