//! Disks and their faults as the rest of the program sees them.
//!
//! Owns these types, not how they are read from YAML.

use std::time::Duration;

use serde::Serialize;

use super::faults::FaultTarget;
use super::site::Place;

/// The disks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Disks {
    /// Capacity disks, `d1` and on.
    pub capacity: u32,
    /// Groups into which they are divided, as evenly as they can be, in order.
    pub groups: u32,
    /// Whether each group stands behind a cache disk: `c1` and on.
    pub cache: bool,
}

impl Default for Disks {
    fn default() -> Disks {
        Disks { capacity: 1, groups: 1, cache: false }
    }
}

impl Disks {
    /// Each group: its capacity disks, and its cache disk where it has one.
    #[must_use]
    pub fn grouped(&self) -> Vec<(Vec<String>, Option<String>)> {
        let (capacity, groups) = (self.capacity, self.groups.clamp(1, self.capacity.max(1)));
        let first = |group: u32| group * capacity / groups;
        (0..groups)
            .map(|group| {
                let disks = first(group)..first(group + 1);
                let names = disks.map(|disk| format!("d{}", disk + 1)).collect();
                (names, self.cache.then(|| format!("c{}", group + 1)))
            })
            .collect()
    }

    /// The names of all disks, capacity disks first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let grouped = self.grouped();
        let capacity = grouped.iter().flat_map(|(names, _)| names.clone());
        capacity.chain(grouped.iter().filter_map(|(_, cache)| cache.clone())).collect()
    }
}

/// Which disk goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTarget {
    /// This one.
    Named {
        /// Its host.
        host: Place,
        /// Its name there: `d1`, `c1`.
        disk: String,
    },
    /// The one under the volume of the node in a role.
    Of {
        /// The role; never a place.
        node: FaultTarget,
        /// The cache disk before it instead, and with it the whole group.
        cache: bool,
    },
}

/// How a disk goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskDefect {
    /// Every operation is refused: an I/O error.
    Fail,
    /// The same, after so many operations more.
    FailAfter {
        /// Reads, writes and syncs.
        operations: u64,
    },
    /// Every operation takes longer.
    Slow {
        /// By this.
        by: Duration,
    },
    /// No operation is answered until the fault is healed.
    Stall,
    /// There is no more room.
    Full,
    /// Some of what is read is wrong.
    Corrupt {
        /// Share of the blocks of 4 KiB read, 0 to 1.
        share: f64,
        /// Whether the disk notices, and refuses the read instead.
        checksums: bool,
    },
    /// Syncs are answered and nothing becomes durable.
    LoseFlush,
    /// Nothing may be changed.
    ReadOnly,
}
