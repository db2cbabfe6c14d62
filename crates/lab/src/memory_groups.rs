//! Control groups that limit the memory of each node: version 1's `memory` hierarchy, or the groups of version 2 that hold the
//! nodes' processor time.
//!
//! Owns the limit, how far it can be lowered, and what the kernel counts: how often the limit was met, and what was killed for
//! it. Which processes are in a group, and their ends, are not its business.
//!
//! Sources: Linux `Documentation/admin-guide/cgroup-v1/memory.rst`, `Documentation/admin-guide/cgroup-v2.rst`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cgroup::{self, CgroupError, CpuGroups, at, folder_name, make_group_in, make_locked};
use crate::hierarchies::{Controller, Version, candidates};

/// The control groups of one lab's nodes. Dropping it removes those that it made.
#[derive(Debug)]
pub struct MemoryGroups {
    folder: PathBuf,
    version: Version,
    /// Says that the lab lives, as in [`CpuGroups`]; none where the folder is that of its processor time.
    lock: Option<fs::File>,
}

/// What the kernel has counted of a node's group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryMeter {
    /// What it uses, bytes.
    pub used_bytes: u64,
    /// What it may use, bytes.
    pub limit_bytes: u64,
    /// How often it wanted more.
    pub times_at_limit: u64,
    /// How many of its processes the kernel has killed for it.
    pub killed: u64,
}

impl MemoryGroups {
    /// Makes the lab's folder in the first hierarchy that allows it.
    ///
    /// # Errors
    /// When none does; the error says what was tried.
    pub fn make(run_name: &str, cpu: Option<&CpuGroups>) -> Result<MemoryGroups, CgroupError> {
        let mut tried = Vec::new();
        for (_, parent) in
            candidates(Controller::Memory).into_iter().filter(|(version, _)| *version == Version::One)
        {
            let folder = parent.join(folder_name(run_name));
            match make_locked(&folder) {
                Ok(lock) => return Ok(MemoryGroups { folder, version: Version::One, lock: Some(lock) }),
                Err(error) => tried.push(error.to_string()),
            }
        }
        if let Some(folder) = cpu.and_then(CpuGroups::folder_of_version_2) {
            match switch_on_memory(folder) {
                Ok(()) => {
                    return Ok(MemoryGroups { folder: folder.to_owned(), version: Version::Two, lock: None });
                }
                Err(error) => tried.push(error.to_string()),
            }
        }
        let tried = if tried.is_empty() { "no hierarchy is mounted".to_owned() } else { tried.join("; ") };
        Err(CgroupError::NoMemory { tried })
    }

    /// The file that a process of the node writes `0` to when it wants to be in the group; none where it is in it anyway.
    ///
    /// # Errors
    /// When the group cannot be made.
    pub fn entrance(&self, node: &str) -> Result<Option<PathBuf>, CgroupError> {
        let folder = make_group_in(&self.folder, node)?;
        Ok((self.version == Version::One).then(|| folder.join("cgroup.procs")))
    }

    /// Lowers what a node may use towards `bytes`, as far as the kernel goes now. What is in force then; it may be lower later,
    /// when the kernel has killed or the node has given memory back.
    ///
    /// # Errors
    /// When a file of the control group is refused for another reason.
    pub fn lower_to(&self, node: &str, bytes: u64) -> Result<(), CgroupError> {
        let wanted = [Some(bytes), self.meter(node).map(|meter| meter.used_bytes)];
        for bytes in wanted.into_iter().flatten() {
            match self.write_limit(node, &bytes.to_string()) {
                // More is in use than can be given back: version 1 kills for what is asked for from now on, not for that.
                Err(CgroupError::File { source, .. }) if is_in_use(&source) => {}
                done => return done,
            }
        }
        Ok(())
    }

    /// Lets a node use what it wants.
    ///
    /// # Errors
    /// When a file of the control group is refused.
    pub fn lift(&self, node: &str) -> Result<(), CgroupError> {
        self.write_limit(node, if self.version == Version::One { "-1" } else { "max" })
    }

    fn write_limit(&self, node: &str, value: &str) -> Result<(), CgroupError> {
        let file = if self.version == Version::One { "memory.limit_in_bytes" } else { "memory.max" };
        let path = self.folder.join(node).join(file);
        at(&path, fs::write(&path, value))
    }

    /// What the kernel has counted; none where it does not say.
    #[must_use]
    pub fn meter(&self, node: &str) -> Option<MemoryMeter> {
        let folder = self.folder.join(node);
        let text = |file: &str| fs::read_to_string(folder.join(file)).ok();
        // The limit before the use: one that is lowered between the two would look exceeded by what was used before.
        match self.version {
            Version::One => {
                let limit = text("memory.limit_in_bytes")?;
                let used = text("memory.usage_in_bytes")?;
                meter_1(&used, &limit, &text("memory.failcnt")?, &text("memory.oom_control")?)
            }
            Version::Two => {
                let limit = text("memory.max")?;
                meter_2(&text("memory.current")?, &limit, &text("memory.events")?)
            }
        }
    }
}

impl Drop for MemoryGroups {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // What is left, because a process is still ending, is the janitor's.
            let _ = cgroup::remove(&self.folder);
        }
    }
}

/// Lets groups below a folder of version 2 limit memory. Its parent must.
fn switch_on_memory(folder: &Path) -> Result<(), CgroupError> {
    for folder in folder.parent().into_iter().chain([folder]) {
        let control = folder.join("cgroup.subtree_control");
        let enabled = at(&control, fs::read_to_string(&control))?;
        if !enabled.split_ascii_whitespace().any(|name| name == Controller::Memory.name()) {
            at(&control, fs::write(&control, "+memory"))?;
        }
    }
    Ok(())
}

fn is_in_use(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EINTR))
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

fn of_name(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| number(line.strip_prefix(name)?.strip_prefix(' ')?))
}

fn meter_1(used: &str, limit: &str, times: &str, control: &str) -> Option<MemoryMeter> {
    Some(MemoryMeter {
        used_bytes: number(used)?,
        limit_bytes: number(limit)?,
        times_at_limit: number(times)?,
        killed: of_name(control, "oom_kill")?,
    })
}

fn meter_2(used: &str, limit: &str, events: &str) -> Option<MemoryMeter> {
    Some(MemoryMeter {
        used_bytes: number(used)?,
        limit_bytes: if limit.trim() == "max" { u64::MAX } else { number(limit)? },
        times_at_limit: of_name(events, "max")?,
        killed: of_name(events, "oom_kill")?,
    })
}

/// Whether this user may limit memory here.
///
/// # Errors
/// When not; the error says what was tried.
pub fn available() -> Result<(), CgroupError> {
    let name = format!("doctor-memory-{}", std::process::id());
    let cpu = CpuGroups::make(&name).ok();
    MemoryGroups::make(&name, cpu.as_ref()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_the_kernel_counts_is_read_in_the_words_of_each_version() {
        let expected = MemoryMeter { used_bytes: 4096, limit_bytes: 8192, times_at_limit: 7, killed: 2 };
        let control = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
        assert_eq!(meter_1("4096\n", "8192\n", "7\n", control), Some(expected));
        let events = "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(meter_2("4096\n", "8192\n", events), Some(expected));
        assert_eq!(meter_2("4096\n", "max\n", events).map(|meter| meter.limit_bytes), Some(u64::MAX));
        assert_eq!(meter_1("4096\n", "8192\n", "7\n", "oom_kill_disable 0\n"), None);
    }

    #[test]
    fn a_process_that_wants_more_than_its_group_may_use_is_killed_and_counted() {
        let name = format!("test-memory-{}", std::process::id());
        let cpu = CpuGroups::make(&name).ok();
        let Ok(groups) = MemoryGroups::make(&name, cpu.as_ref()) else {
            eprintln!("skipped: a_process_that_wants_more: no control group may limit memory here");
            return;
        };
        let entrance = groups.entrance("n1").expect("a group");
        let entrance = entrance.or_else(|| cpu.as_ref()?.entrance("n1").ok()).expect("a way in");
        // Doubles a text until it is 256 MiB long.
        let script = format!(
            "echo 0 > {}; read go; x=$(head -c 1000000 /dev/zero | tr '\\0' x); for i in 1 2 3 4 5 6 7 8; do x=$x$x; done; sleep 60",
            entrance.display()
        );
        let mut child =
            Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("a shell");
        groups.lower_to("n1", 32 << 20).expect("lowered");
        drop(child.stdin.take());
        let status = child.wait().expect("it ends");
        let meter = groups.meter("n1").expect("counted");
        assert!(!status.success(), "{status}");
        assert!(meter.killed > 0 && meter.times_at_limit > 0, "{meter:?}");
        assert!(meter.used_bytes <= 32 << 20, "{meter:?}");
        groups.lift("n1").expect("lifted");
        let lifted = groups.meter("n1").expect("counted");
        assert!(lifted.limit_bytes > 1 << 40, "{lifted:?}");
    }
}
