//! What is known of the Kubernetes cluster that a run used, and of a recovery there, phase by phase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The cluster and the members' pods, as they were before the first load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubernetesFacts {
    /// Versions of kubectl and of the cluster.
    pub versions: String,
    /// The pods' namespace.
    pub namespace: String,
    /// The context of kubectl's configuration, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// The members' pods; the first is n1's.
    pub pods: Vec<PodFacts>,
    /// What could not be asked of the cluster, for a person to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_asked: Vec<String>,
}

/// A member's pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    /// The member's node in this run: `n1`.
    pub name: String,
    /// As the cluster calls it.
    pub pod: String,
    /// Its UID, which tells it from its successors.
    pub uid: String,
    /// The cluster's node that it was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// That node's zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How often its container had been started again.
    pub restarts: u32,
    /// The value of the label that the scenario names for roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The volumes that it mounts by claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<PodVolumeFacts>,
}

/// What the cluster says of a volume that a pod mounts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodVolumeFacts {
    /// Its PersistentVolumeClaim.
    pub claim: String,
    /// The volume that is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// None where the volume was made by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Its size, as the cluster writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<String>,
    /// How it may be mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
    /// What happens to it without its claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<String>,
    /// The driver that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<String>,
    /// What the storage class says to the driver, but for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

/// A part of the recovery of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryPhase {
    /// The cluster took the pod's node for lost.
    NodeLost,
    /// The node had not renewed its lease for as long as it lasts.
    LeaseExpired,
    /// Somebody asked for the pod's end.
    PodDeleted,
    /// The pod was gone from the cluster.
    PodGone,
    /// There was another pod of its name.
    PodCreated,
    /// The pod had a node.
    PodScheduled,
    /// The volume was no longer attached to a node.
    VolumeDetached,
    /// The volume was attached to a node.
    VolumeAttached,
    /// The container ran, as another one than before.
    ContainerStarted,
    /// The pod was ready.
    PodReady,
    /// A service led to the pod again, or to another in its place.
    EndpointUpdated,
}

/// A phase of a recovery, as it was seen first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecoveryStep {
    /// Which.
    pub phase: RecoveryPhase,
    /// The pod, node, volume or service.
    pub of: String,
    /// When it was first seen to hold, seconds.
    pub at_s: f64,
    /// Whether the watch was interrupted just before, so that it may have held earlier.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_gap: bool,
}
