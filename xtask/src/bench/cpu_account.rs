//! CPU time of everything a child has started, by the kernel's own accounts: the same yardstick for a lab in its
//! namespaces and for a shell script, as root and not.
//!
//! Counted: every living or unreaped descendant of this process with what it has reaped itself, and what this process
//! has reaped. Not counted: the time of a process whose parent lets the kernel reap it, which neither side does while
//! it is measured. Sources: proc_pid_stat(5), clock_getcpuclockid(3), getrusage(2).

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// One process of the machine, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    parent: i32,
    own_ticks: u64,
    reaped_ticks: u64,
}

/// Makes this process the parent of all its descendants' orphans, so that none leaves the account.
///
/// # Errors
/// When the kernel refuses.
pub fn adopt_orphans() -> anyhow::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).context("become a subreaper")
}

/// CPU time used so far by all descendants of this process, the ended ones too.
///
/// # Errors
/// When the kernel does not say.
pub fn cpu_of_descendants() -> anyhow::Result<Duration> {
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100).unsigned_abs();
    let processes = processes()?;
    let own_process = std::process::id().cast_signed();
    let of_ticks = |ticks: u64| Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_s));
    let mut used = cpu_of_reaped_children()?;
    for (pid, process) in &processes {
        if descends(&processes, *pid, own_process) {
            // The process's own clock counts nanoseconds; its line in /proc counts ticks, and may lag behind.
            let by_clock =
                clock_getcpuclockid(Pid::from_raw(*pid)).and_then(clock_gettime).map(Duration::from);
            used += by_clock.unwrap_or_default().max(of_ticks(process.own_ticks))
                + of_ticks(process.reaped_ticks);
        }
    }
    Ok(used)
}

/// CPU time of one living process so far, all its threads together; `None` when it is gone.
#[must_use]
pub fn cpu_of_process(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.cast_signed())).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

/// CPU time of the children, with theirs, that this process has waited for.
///
/// # Errors
/// When the kernel does not say.
pub fn cpu_of_reaped_children() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs())
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// Waits for every child there is, adopted ones included.
pub fn reap_all() {
    while nix::sys::wait::wait().is_ok() {}
}

/// Kills every descendant and waits for it: what a failed measurement has left running.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn end_all() -> anyhow::Result<()> {
    let processes = processes()?;
    let own_process = std::process::id().cast_signed();
    for pid in processes.keys().filter(|pid| descends(&processes, **pid, own_process)) {
        // One that has ended in the meantime is what was wanted.
        let _ = nix::sys::signal::kill(Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL);
    }
    reap_all();
    Ok(())
}

fn processes() -> anyhow::Result<BTreeMap<i32, Process>> {
    let mut processes = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ends while we look is in its parent's figures from then on.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        if let Some(process) = process_in(&stat) {
            processes.insert(pid, process);
        }
    }
    Ok(processes)
}

fn process_in(stat: &str) -> Option<Process> {
    // The second field is the program's name in brackets, in which anything may stand.
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
    let ticks = |from: usize| -> Option<u64> {
        fields.get(from..from + 2)?.iter().map(|field| field.parse::<u64>().ok()).sum()
    };
    Some(Process { parent: fields.get(1)?.parse().ok()?, own_ticks: ticks(11)?, reaped_ticks: ticks(13)? })
}

fn descends(processes: &BTreeMap<i32, Process>, pid: i32, ancestor: i32) -> bool {
    let mut at = pid;
    // Bounded, because the parents were read one after another and may not fit together.
    for _ in 0..processes.len() {
        match processes.get(&at) {
            Some(process) if process.parent == ancestor => return true,
            Some(process) => at = process.parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_program_is_called() {
        let stat = "7 (a ) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5";
        assert_eq!(process_in(stat), Some(Process { parent: 1, own_ticks: 30, reaped_ticks: 70 }));
        assert_eq!(process_in("7 (a) S 1"), None);
    }

    #[test]
    fn descent_is_followed_over_generations_and_ends_in_a_circle() {
        let child_of = |parent| Process { parent, own_ticks: 0, reaped_ticks: 0 };
        let processes =
            BTreeMap::from([(2, child_of(1)), (3, child_of(2)), (8, child_of(9)), (9, child_of(8))]);
        assert!(descends(&processes, 3, 1) && descends(&processes, 2, 1));
        assert!(!descends(&processes, 8, 1) && !descends(&processes, 1, 1));
    }

    #[test]
    fn the_time_of_a_grandchild_that_burns_is_counted_while_it_lives() {
        let before = cpu_of_descendants().expect("an account");
        // The pipe makes the loop a grandchild; it lives until its input ends.
        let script = "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read -r end) | cat";
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        let stdout = shell.stdout.take().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("its word");
        let used = cpu_of_descendants().expect("an account").saturating_sub(before);
        drop(shell.stdin.take());
        shell.wait().expect("its end");
        assert!(used >= Duration::from_millis(10), "{used:?}");
    }
}
