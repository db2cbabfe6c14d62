//! What this machine says of itself, for the rules of best practice. Reads `/proc` and `/sys`, changes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::practice::{DiskFacts, MachineFacts};
use nix::sys::resource::{Resource, getrlimit};

/// Reads the facts; what cannot be read is absent.
#[must_use]
pub fn machine_facts() -> MachineFacts {
    let sysctl = |name: &str| number(&format!("/proc/sys/vm/{name}"));
    let clock = kernel_clock();
    MachineFacts {
        transparent_huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled"),
        swappiness: sysctl("swappiness"),
        swap_kib: meminfo_kib("SwapTotal"),
        overcommit_memory: sysctl("overcommit_memory"),
        zone_reclaim_mode: sysctl("zone_reclaim_mode"),
        numa_nodes: numbered("/sys/devices/system/node", "node").map(|nodes| nodes.len()),
        governors: governors(),
        smt: text("/sys/devices/system/cpu/smt/control"),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_synchronized: clock.map(|(synchronized, _)| synchronized),
        clock_error_us_max: clock.map(|(_, error_us)| error_us),
        precision_clock: numbered("/dev", "ptp").map(|devices| !devices.is_empty()),
        processors: std::thread::available_parallelism().ok().map(std::num::NonZero::get),
        memory_kib: meminfo_kib("MemTotal"),
        open_files_max: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard),
        map_count_max: sysctl("max_map_count"),
        disks: disks(),
        sockets: sockets(),
        mounts: text("/proc/self/mounts"),
        time_service: text("/etc/chrony/chrony.conf").or_else(|| text("/etc/chrony.conf")),
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(path: &str) -> Option<u64> {
    text(path)?.parse().ok()
}

/// A field of `/proc/meminfo` (proc_meminfo(5)) in KiB; `None` where it cannot be read.
#[must_use]
pub fn meminfo_kib(field: &str) -> Option<u64> {
    kib_of(field, &text("/proc/meminfo")?)
}

fn kib_of(field: &str, meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

/// Entries named by a word and a number, in order.
fn numbered(folder: &str, word: &str) -> Option<Vec<String>> {
    let numbered = |name: &String| {
        name.strip_prefix(word)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Some(entries(folder)?.into_iter().filter(numbered).collect())
}

fn entries(folder: &str) -> Option<Vec<String>> {
    let found = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut names: Vec<String> = found.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Some(names)
}

fn governors() -> Option<Vec<String>> {
    let folder = "/sys/devices/system/cpu";
    let processors = numbered(folder, "cpu")?;
    let governor = |processor: &String| text(format!("{folder}/{processor}/cpufreq/scaling_governor"));
    Some(processors.iter().filter_map(governor).collect())
}

/// Packages that processors say they are in.
fn sockets() -> Option<usize> {
    let folder = "/sys/devices/system/cpu";
    let package = |processor: &String| text(format!("{folder}/{processor}/topology/physical_package_id"));
    let packages: BTreeSet<String> = numbered(folder, "cpu")?.iter().filter_map(package).collect();
    (!packages.is_empty()).then_some(packages.len())
}

/// Whether the kernel's clock is kept in time, and its bound on the error in microseconds (adjtimex(2)).
fn kernel_clock() -> Option<(bool, u64)> {
    // SAFETY: all zero is a valid `timex` whose `modes` ask for no change.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes into a `timex` that lives on this stack.
    let state = unsafe { libc::adjtimex(&raw mut clock) };
    let synchronized = clock.status & libc::STA_UNSYNC == 0;
    (state >= 0).then_some((synchronized, u64::try_from(clock.maxerror).unwrap_or(u64::MAX)))
}

/// Disks that hold something: not loops, not memory, nothing of size zero.
fn disks() -> Option<Vec<DiskFacts>> {
    let made_up = ["loop", "ram", "zram", "nbd", "sr", "fd", "dm-", "md"];
    let disk = |name: String| {
        let queue = |file: &str| text(format!("/sys/block/{name}/queue/{file}"));
        if made_up.iter().any(|word| name.starts_with(word))
            || number(&format!("/sys/block/{name}/size"))? == 0
        {
            return None;
        }
        Some(DiskFacts { rotates: queue("rotational")? == "1", scheduler: queue("scheduler")?, name })
    };
    Some(entries("/sys/block")?.into_iter().filter_map(disk).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_memory_is_read_in_kib() {
        let meminfo = "MemTotalOther: 1 kB\nMemTotal:       16 kB\n";
        assert_eq!((kib_of("MemTotal", meminfo), kib_of("MemTotal", "nothing")), (Some(16), None));
    }

    #[test]
    fn any_linux_machine_tells_its_memory_processors_limits_and_clock() {
        let facts = machine_facts();
        assert!(facts.memory_kib.is_some_and(|memory| memory > 0), "{facts:?}");
        assert!(facts.processors.is_some_and(|processors| processors > 0), "{facts:?}");
        assert!(facts.open_files_max.is_some() && facts.swappiness.is_some(), "{facts:?}");
        let clock = fs::read_to_string("/proc/uptime").is_ok().then(kernel_clock);
        assert_eq!(clock.flatten().is_some(), facts.clock_synchronized.is_some());
    }
}
