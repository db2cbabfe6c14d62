//! CPU time and memory by PID namespace, from `/proc`: works with and without control groups, as root and not.
//!
//! A process's own time and that of its descendants which were waited for add up to everything a node has used:
//! orphans come to the node's init, which reaps them. Sources: proc_pid_stat(5), proc_pid_statm(5).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};

/// What the processes of a PID namespace have used, and what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamespaceUse {
    /// CPU time so far.
    pub cpu: Duration,
    private_bytes: u64,
    shared_bytes: u64,
}

impl NamespaceUse {
    /// Memory: what each process has for itself, and the largest part that one of them has of files and shared memory. Of
    /// several processes these parts are mostly the same pages, which a sum would count again for each.
    #[must_use]
    pub fn memory_bytes(self) -> u64 {
        self.private_bytes + self.shared_bytes
    }

    fn add_memory(&mut self, (private_bytes, shared_bytes): (u64, u64)) {
        self.private_bytes += private_bytes;
        self.shared_bytes = self.shared_bytes.max(shared_bytes);
    }
}

/// CPU time used so far and memory held now in each PID namespace, by the namespace's inode. What runs in a namespace within it, as
/// a container's processes do, is in its figures too.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn use_by_pid_namespace() -> io::Result<BTreeMap<u64, NamespaceUse>> {
    let ticks_per_s = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100).unsigned_abs();
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE)?.unwrap_or(4096).unsigned_abs();
    let mut processes = BTreeMap::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let folder = entry.path();
        // A process that ends while we look is in its parent's figures from then on.
        let Ok(namespace) = std::fs::metadata(folder.join("ns/pid")) else { continue };
        let Ok(stat) = std::fs::read_to_string(folder.join("stat")) else { continue };
        let Some((parent, ticks)) = parent_and_ticks_in(&stat) else { continue };
        let statm = std::fs::read_to_string(folder.join("statm")).unwrap_or_default();
        let cpu = Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_s));
        let bytes = pages_in(&statm).map(|(private, shared)| (private * page_bytes, shared * page_bytes));
        processes.insert(pid, Process { namespace: namespace.ino(), parent, cpu, bytes });
    }
    Ok(summed(&processes))
}

/// What is known of one process.
#[derive(Debug, Clone, Copy)]
struct Process {
    namespace: u64,
    parent: u32,
    cpu: Duration,
    /// Its own, and those of files and shared memory.
    bytes: Option<(u64, u64)>,
}

/// Each process counts in its own namespace and in all that this one is within. A namespace is within that of its first process's
/// parent.
fn summed(processes: &BTreeMap<u32, Process>) -> BTreeMap<u64, NamespaceUse> {
    let mut within = BTreeMap::new();
    for process in processes.values() {
        if let Some(parent) = processes.get(&process.parent)
            && parent.namespace != process.namespace
        {
            within.insert(process.namespace, parent.namespace);
        }
    }
    let mut used = BTreeMap::<u64, NamespaceUse>::new();
    for process in processes.values() {
        let mut counted = Vec::new();
        let mut namespace = Some(process.namespace);
        while let Some(now) = namespace.filter(|now| !counted.contains(now)) {
            let of_namespace = used.entry(now).or_default();
            of_namespace.cpu += process.cpu;
            process.bytes.into_iter().for_each(|bytes| of_namespace.add_memory(bytes));
            counted.push(now);
            namespace = within.get(&now).copied();
        }
    }
    used
}

/// The parent, and the ticks of the process itself and of its waited-for descendants, from a line of `/proc/PID/stat`.
fn parent_and_ticks_in(stat: &str) -> Option<(u32, u64)> {
    // The second field is the program's name in brackets, in which anything may stand.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    // user, system, children's user, children's system: fields 14 to 17, of which the third is our first.
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some((parent, ticks))
}

/// Pages of a process in memory, from its `/proc/PID/statm`: its own, and those of files and shared memory.
fn pages_in(statm: &str) -> Option<(u64, u64)> {
    let mut fields = statm.split_ascii_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some((resident.saturating_sub(shared), shared))
}

/// CPU time of the calling process with all its threads.
///
/// # Errors
/// When the kernel does not say.
pub fn own_cpu_time() -> io::Result<Duration> {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF)?;
    let time = |time: nix::sys::time::TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs())
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// Busy and total CPU time of the whole machine since it started, from `/proc/stat`; their growth over a while is
/// how busy the machine was.
///
/// # Errors
/// When `/proc/stat` cannot be read or makes no sense.
pub fn machine_busy_and_total_ticks() -> io::Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let fields: Vec<u64> = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, interrupt, soft_interrupt, steal] = fields[..] else {
        return Err(io::Error::other("/proc/stat: first line is not eight counts"));
    };
    let busy = user + nice + system + interrupt + soft_interrupt + steal;
    Ok((busy, busy + idle + iowait))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_spaces_does_not_confuse() {
        let stat = "7 (a ) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5";
        assert_eq!(parent_and_ticks_in(stat), Some((1, 100)));
    }

    #[test]
    fn a_line_cut_short_gives_nothing() {
        assert_eq!(parent_and_ticks_in("7 (a) S 1 7"), None);
        assert_eq!(parent_and_ticks_in(""), None);
    }

    #[test]
    fn what_runs_in_a_namespace_within_another_counts_in_both() {
        let process = |namespace, parent, seconds| Process {
            namespace,
            parent,
            cpu: Duration::from_secs(seconds),
            bytes: Some((seconds, 0)),
        };
        // A lab (1), two nodes of it (2, 3), a container on the first (4) and what it has started.
        let processes = BTreeMap::from([
            (10, process(1, 0, 1)),
            (20, process(2, 10, 2)),
            (21, process(2, 20, 4)),
            (30, process(3, 10, 8)),
            (40, process(4, 21, 16)),
            (41, process(4, 40, 32)),
        ]);
        let used = summed(&processes);
        let seconds = |namespace: u64| (used[&namespace].cpu.as_secs(), used[&namespace].memory_bytes());
        assert_eq!([4, 3, 2, 1].map(seconds), [(48, 48), (8, 8), (54, 54), (63, 63)]);
    }

    #[test]
    fn memory_is_what_each_process_has_for_itself_and_the_largest_shared_part_once() {
        assert_eq!(pages_in("900 50 20 3 0 40 0\n"), Some((30, 20)));
        assert_eq!((pages_in("900 50"), pages_in("")), (None, None));
        let mut held = NamespaceUse::default();
        for process in [(30, 20), (5, 90), (1, 0)] {
            held.add_memory(process);
        }
        assert_eq!(held.memory_bytes(), 36 + 90);
    }

    #[test]
    fn this_process_is_found_with_its_time_and_its_memory() {
        let namespace = std::fs::metadata("/proc/self/ns/pid").expect("a namespace").ino();
        let used = use_by_pid_namespace().expect("read");
        assert!(used[&namespace].memory_bytes() > 100_000, "{:?}", used[&namespace]);
    }
}
