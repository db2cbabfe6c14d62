//! What is known of a lab when its run has ended: what became of packets, of syncs, of volumes.
//!
//! Owns what is asked of the lab's parts for the result. What follows from it is `verdict`'s.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Datacentre, KernelPathShown};
use results::{KernelPathResult, ModelledSyncsResult, PairOfPlaces};
use scenario::{DiskSync, Scenario};
use storage::Seen;
use verdict::LabShown;
use watch::Usage;

use crate::in_the_lab::Lab;

/// Asks all parts. `volumes` is what was seen of mirrored volumes, by the node's number; `under_load` what was used while
/// loads ran.
pub(crate) fn lab_shown(
    lab: &Lab,
    scenario: &Scenario,
    (run, volumes): (storage::Run<'_>, &BTreeMap<usize, Seen>),
    under_load: Usage,
) -> LabShown {
    let datacentre = &lab.datacentre;
    let kernel_path = datacentre.kernel_path();
    let dropped_by_kernel = kernel_path.as_ref().and_then(|path| path.carried.as_ref().ok());
    let dropped_by_kernel = dropped_by_kernel.map_or(0, |carried| carried.dropped_frames);
    LabShown {
        boot_s: lab.boot_s,
        from_snapshot: lab.from_snapshot,
        links: lab.links.clone(),
        volumes_fell_back: lab.volumes_fell_back.clone(),
        cpu_share: under_load.share_of_lab(),
        packets: packets(datacentre),
        packets_lost_on_the_way_in: packets_lost_on_the_way_in(datacentre) + dropped_by_kernel,
        kernel_path: kernel_path.map(went_past),
        modelled_syncs: modelled_syncs(scenario, datacentre),
        volumes: storage::results(datacentre.vms.iter().map(|vm| vm.volume()), volumes, run),
    }
}

/// Which pairs went past the network of the lab, and what the kernel carried.
fn went_past(shown: KernelPathShown) -> KernelPathResult {
    let KernelPathShown { ways, carried } = shown;
    let named = |place: &[String]| place.join("/");
    let pair = |(from, to): &(Vec<String>, Vec<String>)| PairOfPlaces { from: named(from), to: named(to) };
    let carried = carried.ok();
    KernelPathResult {
        pairs_by_kernel: ways.past.len() as u64,
        pairs_by_fabric: ways.through.iter().map(pair).collect(),
        moved_to_fabric: ways.moved_to_fabric,
        moved_to_kernel: ways.moved_to_kernel,
        places_lost: ways.places_lost,
        places_unshut: ways.places_unshut,
        longest_change_us: ways.longest_change_us,
        frames: carried.map(|carried| carried.frames),
        bytes: carried.map(|carried| carried.bytes),
    }
}

/// What became of syncs on disks whose medium the scenario describes.
fn modelled_syncs(scenario: &Scenario, datacentre: &Datacentre) -> Option<ModelledSyncsResult> {
    let DiskSync::Modelled { latency, .. } = scenario.site.disks.sync else { return None };
    let syncs = datacentre.disks.modelled_syncs()?;
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Some(ModelledSyncsResult {
        count: syncs.count,
        asked_us: micros(latency),
        late_us_mean: syncs.late.as_secs_f64() * 1e6 / syncs.count.max(1) as f64,
        late_us_max: micros(syncs.late_most),
    })
}

/// Packets that nodes with power and places of clients have lost before the network of the lab had them.
fn packets_lost_on_the_way_in(datacentre: &Datacentre) -> u64 {
    let of_nodes = datacentre
        .vms
        .iter()
        .filter_map(|vm| lab::interface_losses::lost_on_the_way_in(&vm.namespace()?).ok());
    let places = datacentre.client_places.values();
    let of_clients =
        places.filter_map(|place| lab::interface_losses::lost_on_the_way_in(place.namespace()).ok());
    of_nodes.chain(of_clients).sum()
}

/// What became of the network's packets; kinds that did not occur are left out.
fn packets(datacentre: &Datacentre) -> BTreeMap<String, u64> {
    let Ok(counters) = datacentre.fabric.counters() else { return BTreeMap::new() };
    let kinds = [
        ("sent", counters.packets),
        ("delivered", counters.delivered_packets),
        ("duplicated", counters.duplicated_packets),
        ("fragments", counters.fragment_packets),
        ("answers", counters.answer_packets),
        ("blocked", counters.blocked_packets),
        ("lost", counters.lost_packets),
        ("corrupted", counters.corrupted_packets),
        ("overtaking", counters.overtaking_packets),
        ("queue_full", counters.queue_full_packets),
        ("too_big", counters.too_big_packets),
        ("no_such_address", counters.no_such_address_packets),
        ("power_lost", counters.port_gone_packets),
        ("refused", counters.refused_packets),
        ("malformed", counters.malformed_packets),
    ];
    kinds.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}
