//! Rules about a machine on which a database is to run.
//!
//! The facts are as the kernel tells them; reading them is the caller's. Sources: FR-1's list of what was checked before
//! deployment, PostgreSQL documentation "Managing Kernel Resources", Apache Cassandra documentation "Production
//! recommendations", Linux kernel documentation.

use super::{Judgement, Rule, judged};

/// What a machine says of itself. What could not be read is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineFacts {
    /// `/sys/kernel/mm/transparent_hugepage/enabled`: `always [madvise] never`.
    pub transparent_huge_pages: Option<String>,
    /// `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// Swap there is, in KiB.
    pub swap_kib: Option<u64>,
    /// `vm.overcommit_memory`.
    pub overcommit_memory: Option<u64>,
    /// `vm.zone_reclaim_mode`.
    pub zone_reclaim_mode: Option<u64>,
    /// How many NUMA nodes there are.
    pub numa_nodes: Option<usize>,
    /// The frequency governor of each processor; empty where the machine has none to choose.
    pub governors: Option<Vec<String>>,
    /// `/sys/devices/system/cpu/smt/control`: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// The kernel's clock source: `tsc`.
    pub clock_source: Option<String>,
    /// Whether the kernel's clock is kept in time by something.
    pub clock_synchronized: Option<bool>,
    /// The kernel's bound on how far its clock is off, in microseconds.
    pub clock_error_us_max: Option<u64>,
    /// Whether there is a precision clock device.
    pub precision_clock: Option<bool>,
    pub processors: Option<usize>,
    /// Memory, in KiB.
    pub memory_kib: Option<u64>,
    /// Files a process may have open, at most (hard limit).
    pub open_files_max: Option<u64>,
    /// `vm.max_map_count`.
    pub map_count_max: Option<u64>,
    pub disks: Option<Vec<DiskFacts>>,
    /// Sockets that the processors are in.
    pub sockets: Option<usize>,
    /// What is mounted: `/proc/self/mounts`.
    pub mounts: Option<String>,
    /// The configuration of its time service, as chrony has it.
    pub time_service: Option<String>,
}

/// One disk.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskFacts {
    /// Its name: `nvme0n1`.
    pub name: String,
    /// Whether it has platters.
    pub rotates: bool,
    /// `/sys/block/NAME/queue/scheduler`: `[none] mq-deadline`.
    pub scheduler: String,
}

/// Bound of the clock's error: 80 % of CockroachDB's default maximum offset of 500 ms is where a node of FR-1 stops.
const CLOCK_ERROR_US_MAX: u64 = 400_000;
/// Memory for each processor at least; FR-1 recommends twice as much.
const MEMORY_PER_PROCESSOR_GIB: f64 = 4.0;
/// Open files that Cassandra's documentation asks for.
const OPEN_FILES: u64 = 100_000;
/// Memory maps that Cassandra's documentation asks for.
const MAP_COUNT: u64 = 1_048_575;
/// Swappiness with which a kernel still prefers to drop cached files.
const SWAPPINESS: u64 = 10;

/// The rules, in the order they are told.
pub const MACHINE_RULES: &[Rule<MachineFacts>] = &[
    Rule {
        id: "transparent-huge-pages",
        source: "PostgreSQL documentation, Linux Huge Pages",
        remedy: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        judge: transparent_huge_pages,
    },
    Rule {
        id: "swappiness",
        source: "Cassandra documentation, production recommendations",
        remedy: "sysctl vm.swappiness=1, or no swap at all",
        judge: swappiness,
    },
    Rule {
        id: "overcommit",
        source: "PostgreSQL documentation, Linux Memory Overcommit",
        remedy: "sysctl vm.overcommit_memory=2, so that the kernel refuses memory instead of killing the database",
        judge: |facts| number(facts.overcommit_memory, "vm.overcommit_memory", |value| value == 2),
    },
    Rule {
        id: "numa-reclaim",
        source: "Linux kernel documentation, vm.zone_reclaim_mode; FR-1 (stay in one NUMA node)",
        remedy: "sysctl vm.zone_reclaim_mode=0, and nodes no larger than one NUMA node",
        judge: numa_reclaim,
    },
    Rule {
        id: "power-governor",
        source: "FR-1 (power policy high performance)",
        remedy: "cpupower frequency-set -g performance",
        judge: power_governor,
    },
    Rule {
        id: "hyperthreading",
        source: "FR-1 (hyperthreading on)",
        remedy: "switch simultaneous multithreading on in the firmware",
        judge: hyperthreading,
    },
    Rule {
        id: "clock-source",
        source: "PostgreSQL documentation, pg_test_timing; FR-1",
        remedy: "boot with a clock the processor reads itself: clocksource=tsc (kvm-clock in a guest)",
        judge: clock_source,
    },
    Rule {
        id: "one-time-source",
        source: "FR-1 (all hosts on one time source)",
        remedy: "run chrony or another time service against one source for all hosts",
        judge: one_time_source,
    },
    Rule {
        id: "clock-error",
        source: "FR-1 (a node more than 80 % of 500 ms off stops)",
        remedy: "let the time service correct the clock before the database starts: chronyc waitsync",
        judge: clock_error,
    },
    Rule {
        id: "precision-clock",
        source: "FR-1 (precision clock present, chrony on it)",
        remedy: "give the guest a precision clock device, load its driver (ptp_kvm, ptp_vmw), point chrony at it",
        judge: |facts| {
            known(facts.precision_clock, "precision clock devices", |there| {
                judged(
                    there,
                    if there { "there is a precision clock device" } else { "no /dev/ptp device" }.to_owned(),
                )
            })
        },
    },
    Rule {
        id: "memory-per-processor",
        source: "FR-1 (memory of 4 GB for each vCPU)",
        remedy: "add memory, or give the databases fewer processors",
        judge: memory_per_processor,
    },
    Rule {
        id: "open-files",
        source: "Cassandra documentation, production recommendations",
        remedy: "raise the hard limit: `* - nofile 1048576` in limits.conf, or LimitNOFILE of the service",
        judge: |facts| number(facts.open_files_max, "open files at most", |value| value >= OPEN_FILES),
    },
    Rule {
        id: "memory-maps",
        source: "Cassandra documentation, production recommendations",
        remedy: "sysctl vm.max_map_count=1048575",
        judge: |facts| number(facts.map_count_max, "vm.max_map_count", |value| value >= MAP_COUNT),
    },
    Rule {
        id: "one-socket",
        source: "FR-1 (vCPU no more than the cores of one socket)",
        remedy: "give a database's machine processors of one socket only, or pin it there: numactl --cpunodebind=0 --membind=0",
        judge: |facts| {
            known(facts.sockets, "sockets", |sockets| {
                judged(
                    sockets <= 1,
                    format!("its processors are in {sockets} socket{}", if sockets == 1 { "" } else { "s" }),
                )
            })
        },
    },
    Rule {
        id: "compression-off",
        source: "FR-1 (deduplication and compression off)",
        remedy: "mount the database's file system without compression: mount -o remount,compress=no",
        judge: compression_off,
    },
    Rule {
        id: "precision-clock-used",
        source: "FR-1 (chrony on the precision clock)",
        remedy: "write `refclock PHC /dev/ptp0 poll 2` in chrony.conf and restart chrony",
        judge: |facts| {
            known(facts.time_service.as_deref(), "chrony's configuration", |text| {
                let used = text.lines().any(|line| line.trim().starts_with("refclock PHC"));
                judged(
                    used,
                    format!(
                        "chrony {} a precision clock",
                        if used { "takes its time from" } else { "does not ask" }
                    ),
                )
            })
        },
    },
    Rule {
        id: "disk-scheduler",
        source: "Cassandra documentation, production recommendations; Linux kernel documentation, block",
        remedy: "echo none > /sys/block/DISK/queue/scheduler for disks without platters, mq-deadline for others",
        judge: disk_scheduler,
    },
];

fn known<T>(fact: Option<T>, what: &str, judge: impl FnOnce(T) -> Judgement) -> Judgement {
    match fact {
        Some(fact) => judge(fact),
        None => Judgement::Unknown(format!("not readable on this machine: {what}")),
    }
}

fn number(fact: Option<u64>, what: &str, follows: impl Fn(u64) -> bool) -> Judgement {
    known(fact, what, |value| judged(follows(value), format!("{what}: {value}")))
}

/// The word in brackets.
fn chosen(words: &str) -> Option<&str> {
    words.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
}

fn transparent_huge_pages(facts: &MachineFacts) -> Judgement {
    let chosen = facts.transparent_huge_pages.as_deref().and_then(chosen);
    known(chosen, "transparent huge pages", |word| {
        judged(word != "always", format!("transparent huge pages: {word}"))
    })
}

fn swappiness(facts: &MachineFacts) -> Judgement {
    if facts.swap_kib == Some(0) {
        return Judgement::Follows("there is no swap".to_owned());
    }
    number(facts.swappiness, "vm.swappiness", |value| value <= SWAPPINESS)
}

fn numa_reclaim(facts: &MachineFacts) -> Judgement {
    match facts.numa_nodes {
        Some(0 | 1) => Judgement::Follows("one NUMA node".to_owned()),
        Some(nodes) => known(facts.zone_reclaim_mode, "vm.zone_reclaim_mode", |mode| {
            judged(mode == 0, format!("{nodes} NUMA nodes, vm.zone_reclaim_mode: {mode}"))
        }),
        None => Judgement::Unknown("not readable on this machine: NUMA nodes".to_owned()),
    }
}

fn power_governor(facts: &MachineFacts) -> Judgement {
    match facts.governors.as_deref() {
        None | Some([]) => Judgement::Unknown(
            "not readable on this machine: power governors (usual in a guest; ask its host)".to_owned(),
        ),
        Some(governors) => {
            let slow = governors.iter().find(|governor| *governor != "performance");
            let found = slow.map_or("performance", String::as_str);
            judged(slow.is_none(), format!("power governor: {found}"))
        }
    }
}

fn hyperthreading(facts: &MachineFacts) -> Judgement {
    match facts.smt.as_deref() {
        Some("on") => Judgement::Follows("simultaneous multithreading is on".to_owned()),
        Some("notsupported" | "notimplemented") => Judgement::DoesNotApply,
        Some(word) => Judgement::Departs(format!("simultaneous multithreading is {word}")),
        None => Judgement::Unknown("not readable on this machine: simultaneous multithreading".to_owned()),
    }
}

fn clock_source(facts: &MachineFacts) -> Judgement {
    known(facts.clock_source.as_deref(), "its clock source", |source| {
        let slow = matches!(source, "hpet" | "acpi_pm" | "jiffies" | "pit" | "refined-jiffies");
        judged(!slow, format!("clock source: {source}"))
    })
}

fn one_time_source(facts: &MachineFacts) -> Judgement {
    known(facts.clock_synchronized, "whether its clock is synchronised", |kept| {
        let found = if kept {
            "the kernel's clock is synchronised"
        } else {
            "no time service keeps the kernel's clock synchronised"
        };
        judged(kept, found.to_owned())
    })
}

fn clock_error(facts: &MachineFacts) -> Judgement {
    if facts.clock_synchronized == Some(false) {
        return Judgement::Unknown(
            "the kernel's error bound is meaningless without a time service".to_owned(),
        );
    }
    known(facts.clock_error_us_max, "how far its clock may be off", |error_us| {
        judged(
            error_us <= CLOCK_ERROR_US_MAX,
            format!("the clock is off by at most {} ms", error_us as f64 / 1e3),
        )
    })
}

fn memory_per_processor(facts: &MachineFacts) -> Judgement {
    let both = facts.memory_kib.zip(facts.processors.filter(|count| *count > 0));
    known(both, "memory and processors", |(memory_kib, processors)| {
        let gib = memory_kib as f64 / 1_048_576.0 / processors as f64;
        // What firmware and kernel keep for themselves is no reason to complain.
        judged(
            gib >= 0.94 * MEMORY_PER_PROCESSOR_GIB,
            format!("{gib:.1} GiB of memory for each of {processors} processors"),
        )
    })
}

fn compression_off(facts: &MachineFacts) -> Judgement {
    known(facts.mounts.as_deref(), "what is mounted", |mounts| {
        let compressed = mounts.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let (_, place, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
            let asked = options.split(',').any(|option| {
                option.starts_with("compress") && !matches!(option, "compress=no" | "compress=none")
            });
            asked.then(|| format!("{place} ({kind}) is mounted with compression"))
        });
        let hides = || mounts.lines().any(|line| line.split_whitespace().nth(2) == Some("zfs"));
        match compressed {
            Some(found) => Judgement::Departs(found),
            // Its properties are not among the options.
            None if hides() => {
                Judgement::Unknown("a ZFS is mounted; check it with: zfs get compression".to_owned())
            }
            None => Judgement::Follows("nothing is mounted with compression".to_owned()),
        }
    })
}

fn disk_scheduler(facts: &MachineFacts) -> Judgement {
    let Some(disks) = facts.disks.as_deref().filter(|disks| !disks.is_empty()) else {
        return Judgement::Unknown("not readable on this machine: disks".to_owned());
    };
    let word = |disk: &DiskFacts| chosen(&disk.scheduler).unwrap_or(disk.scheduler.trim()).to_owned();
    let wrong = disks.iter().find(|disk| match (disk.rotates, word(disk).as_str()) {
        (false, scheduler) => !matches!(scheduler, "none" | "noop" | "mq-deadline" | "deadline" | "kyber"),
        (true, scheduler) => !matches!(scheduler, "mq-deadline" | "deadline" | "bfq"),
    });
    match wrong {
        Some(disk) => Judgement::Departs(format!(
            "disk {} ({}) is scheduled by {}",
            disk.name,
            if disk.rotates { "with platters" } else { "without platters" },
            word(disk)
        )),
        None => {
            let all: Vec<String> =
                disks.iter().map(|disk| format!("{}: {}", disk.name, word(disk))).collect();
            Judgement::Follows(all.join(", "))
        }
    }
}
