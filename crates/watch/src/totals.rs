//! What the lab's parts have counted when a run has ended: packets and their fate, syncs, what went past the network of the lab.
//!
//! Owns the words of the result for each count. What follows from a count is `verdict`'s business.

use std::collections::BTreeMap;
use std::time::Duration;

use platform::{Datacentre, KernelPathShown};
use results::{KernelPathResult, ModelledSyncsResult, PairOfPlaces};
use scenario::{DiskSync, Scenario};

/// Which pairs went past the network of the lab, and what the kernel carried.
#[must_use]
pub fn went_past(shown: KernelPathShown) -> KernelPathResult {
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
#[must_use]
pub fn modelled_syncs(scenario: &Scenario, datacentre: &Datacentre) -> Option<ModelledSyncsResult> {
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
#[must_use]
pub fn packets_lost_on_the_way_in(datacentre: &Datacentre) -> u64 {
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
#[must_use]
pub fn packets(datacentre: &Datacentre) -> BTreeMap<String, u64> {
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
