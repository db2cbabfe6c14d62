//! The disks of the pretend datacentre: each host's, in their groups, and the probes that are laid on them.
//!
//! Owns names and who stands on which; what may be wrong with a disk is the crate `disk`'s business.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use disk::{Disk, DiskGroup, DiskTraffic, ModelledSyncs, Probe, Seen, SyncTimes};
use history::{HostId, PerHost};
use scenario::DiskSync;

/// The disks of all hosts.
#[derive(Debug)]
pub struct HostDisks {
    /// Of each host its groups.
    groups: PerHost<Vec<DiskGroup>>,
    /// Where probes are laid.
    folder: PathBuf,
    /// Each is used by one look at a time; none where it could not be laid yet.
    probes: Mutex<BTreeMap<String, Arc<Mutex<Option<Probe>>>>>,
}

impl HostDisks {
    /// Sound disks for hosts of these names. Probes are laid in `folder`, which need not be there yet.
    #[must_use]
    pub fn new(hosts: &[String], disks: scenario::Disks, folder: PathBuf) -> HostDisks {
        let group = |host: &str, (capacity, cache): (Vec<String>, Option<String>)| {
            let of_host = |name: &String| format!("{host}/{name}");
            let capacity: Vec<String> = capacity.iter().map(of_host).collect();
            let group = DiskGroup::new(&capacity, cache.as_ref().map(of_host).as_deref());
            match disks.sync {
                DiskSync::Machine => group,
                DiskSync::Modelled { latency, at_once, bytes_per_second } => {
                    group.modelled(SyncTimes { latency, at_once, bytes_per_second })
                }
            }
        };
        let groups = hosts
            .iter()
            .map(|host| disks.grouped().into_iter().map(|names| group(host, names)).collect())
            .collect();
        HostDisks { groups, folder, probes: Mutex::default() }
    }

    /// The disk for a host's volume of this number: its capacity disks are taken in turn.
    #[must_use]
    pub fn for_volume(&self, host: HostId, number: usize) -> Disk {
        let capacity: Vec<&Disk> = self.groups[host].iter().flat_map(|group| &group.capacity).collect();
        capacity
            .get(number % capacity.len().max(1))
            .map_or_else(|| Disk::alone("none"), |disk| (*disk).clone())
    }

    /// The syncs that described media have answered, all disks together; none where the machine's own disk answers.
    #[must_use]
    pub fn modelled_syncs(&self) -> Option<ModelledSyncs> {
        let disks = self.groups.iter().flatten().flat_map(|group| &group.capacity);
        disks.filter_map(Disk::modelled_syncs).reduce(ModelledSyncs::and)
    }

    /// What the disks of a host have done so far, all together.
    #[must_use]
    pub fn traffic_of(&self, host: HostId) -> DiskTraffic {
        let disks = self.groups[host].iter().flat_map(|group| &group.capacity);
        disks.map(Disk::traffic).fold(DiskTraffic::default(), DiskTraffic::and)
    }

    /// The disk of that name, and the capacity disks that go with it.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<(Disk, Vec<Disk>)> {
        self.groups.iter().flatten().find_map(|group| {
            if let Some(cache) = group.cache.as_ref().filter(|cache| cache.name() == name) {
                return Some((cache.clone(), group.capacity.clone()));
            }
            let disk = group.capacity.iter().find(|disk| disk.name() == name)?;
            Some((disk.clone(), vec![disk.clone()]))
        })
    }

    /// The cache disk before a capacity disk, and all capacity disks behind it.
    #[must_use]
    pub fn cache_before(&self, name: &str) -> Option<(Disk, Vec<Disk>)> {
        let behind = |group: &&DiskGroup| group.capacity.iter().any(|disk| disk.name() == name);
        let group = self.groups.iter().flatten().find(behind)?;
        Some((group.cache.clone()?, group.capacity.clone()))
    }

    /// Looks at a capacity disk through its probe, which is laid at the first look. Where somebody else is looking, waits for
    /// that to be over, or sees nothing.
    ///
    /// # Errors
    /// In words, why there is no probe.
    pub fn look(
        &self,
        disk: &Disk,
        patience: Duration,
        blocks: u64,
        waits: bool,
    ) -> Result<Option<Seen>, String> {
        let probe = {
            let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
            probes.entry(disk.name().to_owned()).or_default().clone()
        };
        // A look at a slow disk takes its time, and the next one comes after it.
        let mut probe = match probe.try_lock() {
            Ok(probe) => probe,
            Err(_) if !waits => return Ok(None),
            Err(_) => probe.lock().unwrap_or_else(PoisonError::into_inner),
        };
        let laid = match probe.as_mut() {
            Some(laid) => laid,
            None => {
                let folder = self.folder.join(disk.name().replace('/', "-"));
                probe.insert(Probe::lay(disk, &folder).map_err(|error| error.to_string())?)
            }
        };
        Ok(Some(laid.look(patience, blocks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_a_host_take_its_capacity_disks_in_turn_and_a_cache_disk_goes_with_its_group() {
        let asked = scenario::Disks { capacity: 3, groups: 2, cache: true, sync: DiskSync::Machine };
        let hosts = ["dc1/a/h1".to_owned(), "dc1/a/h2".to_owned()];
        let disks = HostDisks::new(&hosts, asked, PathBuf::new());
        let taken: Vec<String> =
            (0..4).map(|number| disks.for_volume(HostId::new(1), number).name().to_owned()).collect();
        assert_eq!(taken, ["dc1/a/h2/d1", "dc1/a/h2/d2", "dc1/a/h2/d3", "dc1/a/h2/d1"]);
        let told = |found: Option<(Disk, Vec<Disk>)>| {
            let (disk, behind) = found?;
            let behind: Vec<&str> = behind.iter().map(Disk::name).collect();
            Some(format!("{}: {}", disk.name(), behind.join(" ")))
        };
        assert_eq!(told(disks.named("dc1/a/h1/d2")).as_deref(), Some("dc1/a/h1/d2: dc1/a/h1/d2"));
        let second = Some("dc1/a/h1/c2: dc1/a/h1/d2 dc1/a/h1/d3");
        assert_eq!(told(disks.named("dc1/a/h1/c2")).as_deref(), second);
        assert_eq!(told(disks.cache_before("dc1/a/h1/d3")).as_deref(), second);
        assert_eq!(told(disks.named("dc1/a/h1/d4")), None);
    }
}
