//! A mirrored volume to test on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use history::{HostId, NodeId, PerHost};
use scenario::Promotion;

use super::{MirroredDisk, Plan};
use crate::host_place;
use crate::rollback::PowerOffs;

/// Has the first component of that volume.
pub const A: HostId = HostId::FIRST;
/// Has the second.
pub const B: HostId = HostId::new(1);
/// Has none.
pub const C: HostId = HostId::new(2);

/// A volume with a component on each of the first two of three hosts, in the network of this process. Every test has a
/// `first` of its own. Nothing where no network namespace may be entered.
pub fn test_mirror(folder: &Path, first: usize, promote: Promotion) -> Option<Arc<MirroredDisk>> {
    that_acknowledges(folder, first, promote, scenario::Acknowledge::Sync)
}

/// The same with another policy.
pub fn that_acknowledges(
    folder: &Path,
    first: usize,
    promote: Promotion,
    acknowledge: scenario::Acknowledge,
) -> Option<Arc<MirroredDisk>> {
    let hosts: Option<PerHost<_>> = ["a", "b", "c"].iter().map(|name| host_place::here(name)).collect();
    let class = scenario::StorageClass {
        name: "basic".to_owned(),
        metadata_on_own_device: false,
        flush: false,
        buffer_bytes: 1 << 20,
    };
    let storage = scenario::Storage {
        replicas: 2,
        acknowledge,
        apart: scenario::Apart::Hosts,
        rebuild_after: Duration::from_secs(60),
        timeout: Duration::from_secs(2),
        unreachable_after: Duration::from_secs(30),
        promote,
        class,
        components: vec![vec![A, B]; 1_000].into(),
        hosts: Vec::new(),
        for_storage: Vec::new(),
    };
    // Ports of its own, whichever tests run beside it.
    let node = NodeId::new(100 + first + std::process::id() as usize % 400 * 2);
    let plan =
        Plan { folder, node, storage: &storage, hosts: hosts?, user: 0, power_offs: PowerOffs::default() };
    Some(MirroredDisk::make(&plan).expect("a volume"))
}
