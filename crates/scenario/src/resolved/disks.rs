//! The disks of hosts as the rest of the program sees them.
//!
//! Owns the type, not how they are read from YAML.

use std::time::Duration;

use serde::Serialize;

/// The disks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Disks {
    /// Capacity disks, `d1` and on.
    pub capacity: u32,
    /// Groups into which they are divided, as evenly as they can be, in order.
    pub groups: u32,
    /// Whether each group stands behind a cache disk: `c1` and on.
    pub cache: bool,
    /// What a sync costs.
    pub sync: DiskSync,
}

/// What a sync of a capacity disk costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskSync {
    /// What the machine's own disk takes.
    #[default]
    Machine,
    /// What a medium takes that the scenario describes; the machine's own disk is not asked.
    Modelled {
        /// Of each sync.
        latency: Duration,
        /// Syncs served at the same time.
        at_once: u32,
        /// How fast bytes reach the medium; none for at once.
        bytes_per_second: Option<u64>,
    },
}

impl DiskSync {
    /// How many syncs a disk serves at once unless the scenario says it: the depth of a SATA disk's queue.
    pub(crate) const AT_ONCE: u32 = 32;
}

impl Default for Disks {
    fn default() -> Disks {
        Disks { capacity: 1, groups: 1, cache: false, sync: DiskSync::Machine }
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
