//! What is known of a run when it is judged.
//!
//! Owns the facts that are handed over. Who gathers them, and from where, is `run`'s business.

use std::collections::BTreeMap;
use std::path::Path;

use capabilities::Isolation;
use faults::FaultRecord;
use history::{FaultId, FirstError, Interference, Receipt, RecoveryStep, RunFacts, Stall};
use load::{FirstSuccess, LoadPlan};
use measure::{Histogram, Timeline, Wait};
use results::{EndedEarly, KernelPathResult, LinkResult, ModelledSyncsResult, VolumeResult};
use scenario::Scenario;

/// What was known before the first load started.
#[derive(Clone, Copy)]
pub struct Planned<'a> {
    pub scenario: &'a Scenario,
    /// One plan per load.
    pub plans: &'a [LoadPlan],
    /// The facts written into the first event.
    pub facts: &'a RunFacts,
    /// What the database claims of transactions, where a load asks for no other level.
    pub isolation: Isolation,
    /// The run directory, in which the history is.
    pub directory: &'a Path,
}

/// Everything the run has shown, before it is judged.
pub struct Shown {
    /// Latencies, counts, first successes.
    pub recorded: Recorded,
    /// Each fault.
    pub faults: Vec<FaultRecord>,
    /// Why the run ended early, if it did.
    pub interrupted: Option<String>,
    /// CPU seconds of everything, by part.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// Share of the machine's processors that were busy while loads ran, 0 to 1.
    pub busy_share: Option<f64>,
    /// The run's own share of all processors meanwhile, the database included.
    pub own_share: Option<f64>,
    /// When the loads were told to stop, seconds; the end of the last phase where that was later: no second is recorded after it.
    pub ended_s: f64,
    /// Loads that ended though nobody had told them to, by name.
    pub ended_early: BTreeMap<String, EndedEarly>,
    /// Stretches in which parts of the lab stalled, in order.
    pub stalls: Vec<Stall>,
    /// What strangers did to processes of nodes, with the moment on the run's clock, seconds.
    pub interference: Vec<(f64, Interference)>,
    /// What each link of the site carried.
    pub links: Vec<LinkResult>,
    /// How the cluster recovered from each fault, by the fault's number; Kubernetes tells of it.
    pub recoveries: BTreeMap<FaultId, Vec<RecoveryStep>>,
    /// The lab's own facts; none for a cluster that exists.
    pub lab: Option<LabShown>,
}

/// What the loads recorded.
#[derive(Default)]
pub struct Recorded {
    /// Latencies, counts and errors.
    pub timeline: Timeline,
    /// How long nothing succeeded of what was due, by load, in order of time: the longest wait of each second and every
    /// one longer than [`measure::waits::KEPT_ABOVE_S`].
    pub waits: BTreeMap<String, Vec<Wait>>,
    /// First successes after faults, each with its load.
    pub first_success: Vec<(String, FirstSuccess)>,
    /// How well each open loop kept its rate.
    pub open_loops: BTreeMap<String, OpenLoopRecord>,
    /// The first error of each class, by load.
    pub first_errors: BTreeMap<String, Vec<FirstError>>,
    /// Errors of what was under way when the loads were told to stop, by load: no measured second has them.
    pub errors_after_end: BTreeMap<String, u64>,
}

/// How well an open loop kept its rate over the whole run.
#[derive(Debug, Clone)]
pub struct OpenLoopRecord {
    /// How late the generator itself was, microseconds.
    pub lateness: Histogram<u64>,
    /// Operations that waited for a free connection when the load ended.
    pub waiting_at_end: u64,
}

/// What is known of a lab when its run has ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabShown {
    /// Wall seconds from the first namespace to the first quorum write.
    pub boot_s: f64,
    /// Whether the database was not made but started again from a snapshot.
    pub from_snapshot: bool,
    /// What was seen of the site's links; `None` where there are none.
    pub links: Option<Receipt>,
    /// Why volumes are plain directories, where the scenario asks for something else.
    pub volumes_fell_back: Option<String>,
    /// The lab's own share of the CPU time while loads ran, 0 to 1.
    pub cpu_share: Option<f64>,
    /// What of it the database would have used without a lab: syncs of the machine's disk, receivers' network stacks.
    pub cpu_share_anyway: Option<f64>,
    /// How much memory the processes of all nodes held at most while loads ran, bytes.
    pub memory_bytes_max: Option<u64>,
    /// Packets by their fate; kinds that did not occur are left out.
    pub packets: BTreeMap<String, u64>,
    /// Packets that nodes with power and places of clients have lost before the network of the lab had them.
    pub packets_lost_on_the_way_in: u64,
    /// Syncs of disks whose medium the scenario describes.
    pub modelled_syncs: Option<ModelledSyncsResult>,
    /// What went past the network of the lab, where the scenario asks for that.
    pub kernel_path: Option<KernelPathResult>,
    /// The nodes' virtual disks.
    pub volumes: Vec<VolumeResult>,
}
