//! What the run costs in CPU time, by part: the database, the load, the fabric, the volumes, and the rest of the lab.

use std::collections::BTreeMap;
use std::time::Duration;

use load::{LoadCpu, LoadHandle};
use platform::Datacentre;

/// CPU time used up to a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All processes of all nodes.
    pub database: Duration,
    /// The threads of the loads, and the programs that speak for their clients.
    pub load: Duration,
    /// The fabric's thread.
    pub fabric: Duration,
    /// The threads that serve the nodes' volumes.
    pub disk: Duration,
    /// Of the fabric's: the receivers' network stacks. A sender on one machine uses it where there is no lab.
    pub receivers: Duration,
    /// Of the volumes': syncs of the machine's disk. A database without a lab makes them itself.
    pub syncs: Duration,
    /// Everything else in the supervisor: recording, evidence, preparation, checks.
    pub other: Duration,
}

impl Usage {
    /// Up to now.
    #[must_use]
    pub fn now(datacentre: &Datacentre, loads: &[LoadHandle], ended_loads: LoadCpu) -> Usage {
        let own = lab::accounting::own_cpu_time().unwrap_or_default();
        let mut load = ended_loads;
        loads.iter().for_each(|running| load += running.cpu());
        let fabric = datacentre.fabric.cpu_time();
        let database = datacentre.cpu_of_vms().unwrap_or_default();
        let disk = datacentre.vms.iter().map(|vm| vm.cpu_of_disk()).sum();
        let other = own.saturating_sub(load.thread).saturating_sub(fabric).saturating_sub(disk);
        let receivers = datacentre.fabric.cpu_time_of_receivers().min(fabric);
        let syncs = disk::cpu_time_within_syncs().min(disk);
        Usage { database, load: load.total(), fabric, disk, receivers, syncs, other }
    }

    /// Up to now, where only this process and the programs that speak for clients are ours.
    #[must_use]
    pub fn without_a_lab(loads: &[LoadHandle], ended_loads: LoadCpu) -> Usage {
        let own = lab::accounting::own_cpu_time().unwrap_or_default();
        let mut load = ended_loads;
        loads.iter().for_each(|running| load += running.cpu());
        Usage { load: load.total(), other: own.saturating_sub(load.thread), ..Usage::default() }
    }

    /// What has been used since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            database: self.database.saturating_sub(earlier.database),
            load: self.load.saturating_sub(earlier.load),
            fabric: self.fabric.saturating_sub(earlier.fabric),
            disk: self.disk.saturating_sub(earlier.disk),
            receivers: self.receivers.saturating_sub(earlier.receivers),
            syncs: self.syncs.saturating_sub(earlier.syncs),
            other: self.other.saturating_sub(earlier.other),
        }
    }

    /// The lab's share of it all, 0 to 1; `None` when nothing was used.
    #[must_use]
    pub fn share_of_lab(self) -> Option<f64> {
        let lab = (self.load + self.fabric + self.disk + self.other).as_secs_f64();
        let all = lab + self.database.as_secs_f64();
        (all > 0.0).then(|| lab / all)
    }

    /// What of the lab's share the database would have used without a lab, 0 to 1; `None` when nothing was used.
    #[must_use]
    pub fn share_used_anyway(self) -> Option<f64> {
        let all = (self.database + self.load + self.fabric + self.disk + self.other).as_secs_f64();
        (all > 0.0).then(|| (self.receivers + self.syncs).as_secs_f64() / all)
    }

    /// All of it as a share of what the machine's processors had in this time; `None` for no time.
    #[must_use]
    pub fn share_of_machine(self, elapsed: Duration) -> Option<f64> {
        let processors = std::thread::available_parallelism().ok()?.get() as f64;
        let used = (self.database + self.load + self.fabric + self.disk + self.other).as_secs_f64();
        (!elapsed.is_zero()).then(|| used / (elapsed.as_secs_f64() * processors))
    }

    /// Seconds by part, as in `result.json`.
    #[must_use]
    pub fn by_part(self) -> BTreeMap<String, f64> {
        let parts = [
            ("database", self.database),
            ("load", self.load),
            ("fabric", self.fabric),
            ("disk", self.disk),
            ("other", self.other),
        ];
        parts
            .into_iter()
            .map(|(name, time)| (name.to_owned(), (time.as_secs_f64() * 1e3).round() / 1e3))
            .collect()
    }
}
