//! CPU time by PID namespace, from `/proc`: works with and without control groups, as root and not.
//!
//! A process's own time and that of its descendants which were waited for add up to everything a node has used:
//! orphans come to the node's init, which reaps them. Sources: proc_pid_stat(5).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// CPU time used so far in each PID namespace, by the namespace's inode.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn cpu_time_by_pid_namespace() -> io::Result<BTreeMap<u64, Duration>> {
    let ticks_per_s = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100).unsigned_abs();
    let mut used = BTreeMap::<u64, Duration>::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        if entry.file_name().to_str().is_none_or(|name| !name.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        // A process that ends while we look is in its parent's figures from then on.
        let Ok(namespace) = std::fs::metadata(entry.path().join("ns/pid")) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(ticks) = ticks_in(&stat) {
            *used.entry(namespace.ino()).or_default() +=
                Duration::from_nanos(ticks * (1_000_000_000 / ticks_per_s));
        }
    }
    Ok(used)
}

/// Ticks of the process itself and of its waited-for descendants, from a line of `/proc/PID/stat`.
fn ticks_in(stat: &str) -> Option<u64> {
    // The second field is the program's name in brackets, in which anything may stand.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // user, system, children's user, children's system: fields 14 to 17, of which the third is our first.
    fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum()
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
        assert_eq!(ticks_in(stat), Some(100));
    }

    #[test]
    fn a_line_cut_short_gives_nothing() {
        assert_eq!(ticks_in("7 (a) S 1 7"), None);
        assert_eq!(ticks_in(""), None);
    }
}
