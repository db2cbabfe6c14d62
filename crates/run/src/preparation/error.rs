//! Why a run could not be prepared.

use std::path::PathBuf;

use engine::EngineError;
use lab::attachment::AttachmentError;
use lab::cgroup::CgroupError;
use load::LoadError;
use platform::DatacentreError;
use pods::PodsError;
use watch::captures::CaptureError;
use workload::ConfigurationError;

use crate::load_plans::{Misconfigured, PlanError};
use crate::target::PlaceError;

/// What can go wrong before the first load starts.
#[derive(Debug, thiserror::Error)]
pub enum PreparationError {
    #[error("datacentre: {0}")]
    Datacentre(#[from] DatacentreError),
    #[error("capture: {0}")]
    Capture(#[from] CaptureError),
    /// The database.
    #[error("database: {0}")]
    Engine(#[from] EngineError),
    /// The control groups of nodes that run containers.
    #[error("control groups for the cluster's nodes: {0}; `holdfast doctor` says what this machine allows")]
    Groups(#[source] CgroupError),
    /// The cluster cannot be planned.
    #[error("cluster: {0}")]
    ClusterPlan(#[from] kubernetes_lab::PlanError),
    /// Its files cannot be made.
    #[error("cluster: {0}")]
    ClusterFiles(#[from] kubernetes_lab::files::FilesError),
    /// Its control plane is not there.
    #[error("cluster: the node of its control plane has no power")]
    NoControl,
    /// What kubectl needs cannot be written.
    #[error("cluster: {}: {source}", folder.display())]
    Kubectl {
        /// Where.
        folder: PathBuf,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// Its pods cannot be seen.
    #[error("cluster: {0}")]
    Pods(#[from] PodsError),
    /// Nobody can enter the network of its control plane.
    #[error("cluster: {0}")]
    Attachment(#[from] AttachmentError),
    /// A load's tables, or its place.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A load's namespace could not be copied.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A workload cannot be had as the scenario asks for it.
    #[error("load {load}: {source}")]
    Workload {
        load: String,
        /// The option that is wrong, and with what.
        source: ConfigurationError,
    },
    /// More sockets are needed than this process may have open.
    #[error(
        "{sessions} client sessions need {needed} open files, and the limit is {most}: raise it (`ulimit -Hn \
         {needed}`, or LimitNOFILE of the service), or use fewer clients"
    )]
    OpenFiles {
        /// The loads' sessions.
        sessions: u32,
        /// Descriptors needed.
        needed: u64,
        /// Descriptors allowed.
        most: u64,
    },
    /// The volumes are no virtual disks, of which there could be snapshots.
    #[error("snapshots need virtual disks, which are not available: {why}")]
    NoSnapshots {
        /// Why not.
        why: String,
    },
}

impl From<Misconfigured> for PreparationError {
    fn from(Misconfigured { load, source }: Misconfigured) -> Self {
        PreparationError::Workload { load, source }
    }
}

impl From<PlanError> for PreparationError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Misconfigured(error) => error.into(),
            PlanError::Engine(error) => error.into(),
        }
    }
}
