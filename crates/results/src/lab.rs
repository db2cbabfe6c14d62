//! What `result.json` says of the lab itself: its links, its cost, doubts about what was measured in it.

use std::collections::BTreeMap;

use history::{Event, EventKind, LeadersAtOnce};
use serde::{Deserialize, Serialize};

/// The parts of a run that use CPU time: the keys of [`LabResult::cpu_seconds`].
pub const CPU_PARTS: [&str; 5] = ["database", "load", "fabric", "disk", "other"];

/// A link or one way of an edge: what it carried while loads ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name: `dc1 -> dc2`.
    pub name: String,
    /// What it can carry, bits a second; no limit when absent.
    pub rate_bits_per_s: Option<u64>,
    /// Packets it carried.
    pub packets: u64,
    /// Bytes of IP packets it carried.
    pub bytes: u64,
    /// Packets that found its queue full.
    pub dropped_packets: u64,
    /// Share of the time it was sending, 0 to 1; only with a rate.
    pub utilisation: Option<f64>,
    /// The same in its busiest second.
    pub utilisation_max: Option<f64>,
    /// Most bytes that waited for it at the end of a second.
    pub waiting_bytes_max: u64,
}

/// The lab itself: what it took and what it costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabResult {
    /// Wall seconds from the start of the lab to the database's first quorum write.
    pub boot_s: Option<f64>,
    /// Whether it did not make a new database: the nodes' volumes were returned to a snapshot that was taken when the loads'
    /// tables were on them, and the database was started again from it. `boot_s` is the time for that then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_snapshot: bool,
    /// Database nodes.
    pub nodes: u32,
    /// CPU seconds of the whole run by part: database, load, fabric, disk, other.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// (load + fabric + disk + other) / all CPU seconds spent while loads ran, 0 to 1.
    pub cpu_share_of_lab: Option<f64>,
    /// The part of `cpu_share_of_lab` that the database would have used without a lab: syncs of the machine's disk, and the
    /// receivers' network stacks (one packet of 31 is measured), 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_share_without_lab: Option<f64>,
    /// The most memory, in bytes, that the processes of all nodes held together at the end of a second while loads ran: what each
    /// process has for itself, and of each node once the largest part that one of its processes has of files and shared memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Syncs of disks whose medium the scenario describes, all disks together; absent where the machine's own disk answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled_syncs: Option<ModelledSyncsResult>,
    /// What went past the lab's own network; absent where the scenario does not ask for the kernel's own path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_path: Option<KernelPathResult>,
    /// Packets of the lab's own network by their fate, over the whole run: `delivered`, `lost` by chance, `blocked` ...
    #[serde(default)]
    pub packets: BTreeMap<String, u64>,
    /// Doubts about the measurement, with their remedies.
    pub warnings: Vec<WarningResult>,
    /// Stretches in which parts of the lab stalled: figures from that time are not the database's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<history::Stall>,
    /// What somebody outside the schedule did to processes of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<InterferenceResult>,
    /// Why the power-offs of the schedule could lose nothing, where the scenario asks for volumes that do: virtual disks could
    /// not be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_to_lose: Option<String>,
    /// Where nodes ran against the scenario's own capacities and rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<PlacementResult>,
    /// Volumes from which what was not synced could not be taken back at a power-off, by whatever: the run shows nothing about
    /// the database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_rollbacks: Vec<FailedRollbackResult>,
}

/// Syncs that were answered after the time of a described medium, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelledSyncsResult {
    /// How many.
    pub count: u64,
    /// The latency that the scenario asks for, microseconds.
    pub asked_us: u64,
    /// How much later than due they were answered, because the machine was busy: mean, microseconds.
    pub late_us_mean: f64,
    /// The latest, microseconds.
    pub late_us_max: u64,
}

/// What went by the kernel's own path, past the lab's own network. Frames are counted as a whole: nothing is known of single
/// pairs of places on that path, and links whose traffic is counted are never on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelPathResult {
    /// Pairs of places, each direction by itself, that went by the kernel when the run ended.
    pub pairs_by_kernel: u64,
    /// Pairs that went through the lab's own network then, because something was asked of them. Places without power are in
    /// none.
    pub pairs_by_fabric: Vec<PairOfPlaces>,
    /// How often a pair moved from the kernel's path to the lab's own network, each address by itself.
    pub moved_to_fabric: u64,
    /// How often one moved to the kernel's path.
    pub moved_to_kernel: u64,
    /// How often a place's way past the lab's own network failed: all of its packets went through it since. A host counts again
    /// each time that it is powered on.
    pub places_lost: u64,
    /// How often a way that had failed could not be shut at once: packets may have gone past what was asked of them, and the
    /// verdict is `unknown`.
    #[serde(default)]
    pub places_unshut: u64,
    /// The longest that moving pairs took at once, during which the lab's own network carried nothing, microseconds.
    #[serde(default)]
    pub longest_change_us: u64,
    /// Frames that the kernel forwarded, several packets handled in one piece counted once; absent where its counts could not
    /// be read.
    pub frames: Option<u64>,
    /// Bytes that it received for forwarding, IP headers included.
    pub bytes: Option<u64>,
}

/// Two places, the sender first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairOfPlaces {
    /// Where packets leave.
    pub from: String,
    /// Where they arrive.
    pub to: String,
}

/// Something done to a process of a node that neither the schedule nor the lab did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterferenceResult {
    /// When it was seen, seconds on the run's clock.
    pub t_s: f64,
    /// What was done, and to whom.
    #[serde(flatten)]
    pub interference: history::Interference,
}

/// A node that ran where the scenario does not let it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlacementResult {
    /// When it began, seconds on the run's clock.
    pub t_s: f64,
    /// What ran where, and against what.
    pub violation: String,
}

/// A volume whose content is in doubt after a power-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedRollbackResult {
    /// When it was seen, seconds on the run's clock.
    pub t_s: f64,
    /// The node whose volume it is.
    pub node: String,
    /// The volume, or the component of it, in words.
    pub volume: String,
    /// What the lab's own disk answered.
    pub why: String,
}

impl FailedRollbackResult {
    /// The one that an event tells of, if it does.
    #[must_use]
    pub fn told_by(event: &Event) -> Option<FailedRollbackResult> {
        let EventKind::RollbackFailed { node, volume, why } = &event.kind else { return None };
        let (node, volume, why) = (node.clone(), volume.clone(), why.clone());
        Some(FailedRollbackResult { t_s: event.t_s, node, volume, why })
    }
}

/// A doubt about the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarningResult {
    /// What is doubtful.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl WarningResult {
    /// The one that an event tells of, if it does.
    #[must_use]
    pub fn told_by(event: &Event) -> Option<WarningResult> {
        let (what, remedy) = match &event.kind {
            EventKind::Warning { what, remedy } => (what.clone(), remedy.clone()),
            EventKind::LeadersAtOnce { seen } => (seen.to_string(), LeadersAtOnce::REMEDY.to_owned()),
            _ => return None,
        };
        Some(WarningResult { what, remedy })
    }
}
