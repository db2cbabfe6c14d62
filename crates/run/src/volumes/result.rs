//! The nodes' volumes as they stand in the result.

use disk::mirror::Standing;
use report::result::{AskedResult, ComponentResult, OpeningResult, VolumeResult};

use super::NodeVolume;
use super::mirrored::MirroredDisk;
use super::opening::Opening;
use super::standing::Role;
use super::watch::Seen;
use crate::conductor::Shown;
use crate::preparation::Prepared;

/// The virtual disks; a plain directory is not one.
#[must_use]
pub fn results(prepared: &Prepared, shown: &Shown) -> Vec<VolumeResult> {
    let vms = prepared.datacentre.vms.iter().enumerate();
    vms.filter_map(|(number, vm)| {
        let node = engine::Node::name(vm.as_ref()).to_owned();
        match vm.volume() {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(_) => Some(alone(node)),
            NodeVolume::Mirrored(disk) => {
                Some(mirrored(node, disk, shown.volumes.get(&number).cloned().unwrap_or_default()))
            }
        }
    })
    .collect()
}

fn alone(node: String) -> VolumeResult {
    VolumeResult {
        node,
        replicas: 1,
        resync: Vec::new(),
        acknowledge: String::new(),
        class: String::new(),
        components: Vec::new(),
        lag: Vec::new(),
        copied_bytes: 0,
        openings: Vec::new(),
    }
}

fn mirrored(node: String, disk: &MirroredDisk, seen: Seen) -> VolumeResult {
    let storage = disk.storage();
    let components = disk.states().into_iter().map(|state| ComponentResult {
        host: state.host,
        role: role_in_words(state.role).to_owned(),
        replicated_bytes: state.moved.replicated_bytes,
        copied_bytes: state.moved.copied_bytes,
        bytes_left: state.bytes_left,
    });
    VolumeResult {
        node,
        replicas: storage.replicas,
        resync: seen.resync,
        acknowledge: storage.acknowledge.name().to_owned(),
        class: storage.class.name.clone(),
        components: components.collect(),
        lag: seen.lag,
        copied_bytes: seen.copied_bytes,
        openings: disk.openings().into_iter().map(opening).collect(),
    }
}

fn opening(opening: Opening) -> OpeningResult {
    let asked = opening.asked.into_iter().map(|asked| AskedResult {
        work: asked.work.to_owned(),
        count: asked.count,
        latency_us_mean: asked.latency.mean_us,
        latency_us_p50: asked.latency.p50_us,
        latency_us_p99: asked.latency.p99_us,
    });
    OpeningResult {
        host: opening.host,
        component: opening.component,
        asked: asked.collect(),
        broken: opening.broken,
        forced: opening.forced,
        lost_after_s: opening.lost_after.map(|after| after.as_secs_f64()),
    }
}

fn role_in_words(role: Role) -> &'static str {
    match role {
        Role::Serving => "serving",
        Role::Peer(Standing::Live) => "live",
        Role::Peer(Standing::CatchingUp | Standing::Finishing(_)) => "catching up",
        Role::Peer(Standing::Away) => "away",
        Role::Retired => "given up",
        Role::Idle => "idle",
    }
}
