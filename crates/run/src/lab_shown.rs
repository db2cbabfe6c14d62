//! What is known of a lab when its run has ended: what became of packets, of syncs, of volumes.
//!
//! Owns what is asked of the lab's parts for the result. What follows from it is `verdict`'s.

use std::collections::BTreeMap;

use history::NodeId;
use scenario::Scenario;
use storage::Seen;
use verdict::LabShown;
use watch::Usage;
use watch::totals::{modelled_syncs, packets, packets_lost_on_the_way_in, went_past};

use crate::in_the_lab::Lab;

/// Asks all parts. `volumes` is what was seen of mirrored volumes, by node; `under_load` the CPU time used while
/// loads ran, `memory_bytes_max` what the nodes held then.
pub(crate) fn lab_shown(
    lab: &Lab,
    scenario: &Scenario,
    (run, volumes): (storage::Run<'_>, &BTreeMap<NodeId, Seen>),
    (under_load, memory_bytes_max): (Usage, Option<u64>),
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
        cpu_share_anyway: under_load.share_used_anyway(),
        memory_bytes_max,
        packets: packets(datacentre),
        packets_lost_on_the_way_in: packets_lost_on_the_way_in(datacentre) + dropped_by_kernel,
        kernel_path: kernel_path.map(went_past),
        modelled_syncs: modelled_syncs(scenario, datacentre),
        volumes: storage::results(
            datacentre.vms.numbered().map(|(node, vm)| (node, vm.volume())),
            volumes,
            run,
        ),
    }
}
