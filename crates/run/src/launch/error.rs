//! What can go wrong outside the lab, or be told of what went wrong inside.

use std::path::PathBuf;

use platform::room::RoomError;
use remote::permit::PermitError;
use scenario::Rejection;
use scenario_files::{BesideError, PlanError};
use watch::captures::CaptureError;

use crate::directory::DirectoryError;

/// What can go wrong outside the lab, or be told of what went wrong inside.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The scenario is wrong.
    #[error(transparent)]
    Rejected(#[from] Box<Rejection>),
    /// An engine file cannot be read.
    #[error(transparent)]
    EngineFile(#[from] BesideError),
    /// A workload cannot be had as the scenario asks for it.
    #[error("{0}")]
    Workload(String),
    /// The database is not there and cannot be installed.
    #[error("database: {0}")]
    Install(#[from] engine::InstallError),
    /// An image is a whole system, and nodes cannot change that while they have power.
    #[error(
        "database: {engine} comes as an image, and nodes with an image cannot be upgraded; name folders of programs (`database.path`, `to`)"
    )]
    UpgradeOfAnImage { engine: &'static str },
    /// There is nothing new in what nodes are upgraded to.
    #[error(
        "database: the rolling upgrade would change nothing: {engine} {version} in {folder} is what the run begins with; name another `to`, or begin with an older one (`database.version`)"
    )]
    UpgradeToTheSame {
        engine: &'static str,
        version: String,
        /// Where it is.
        folder: PathBuf,
    },
    /// One version cannot follow the other.
    #[error("database: {engine} {from} cannot be upgraded to {to}: {why}")]
    Upgrade {
        engine: &'static str,
        /// What the run begins with.
        from: String,
        /// What it is upgraded to.
        to: String,
        /// Why not.
        why: String,
    },
    /// Nobody but root may have nodes that run containers.
    #[error(
        "`on: kubernetes`: nodes that start containers need control groups of their own, which root alone can create: run it as root"
    )]
    ClusterNeedsRoot,
    /// The programs of its cluster could not be installed.
    #[error("`on: kubernetes`: {0}")]
    ClusterPrograms(#[from] kubernetes_lab::InstallError),
    /// The engine is unknown.
    #[error("database: {0}")]
    Engine(#[from] engine::EngineError),
    /// What is to be captured.
    #[error("--capture: {0}")]
    Capture(#[from] CaptureError),
    /// What only a lab has.
    #[error("{option} is for runs in the lab, and this scenario runs on a cluster that exists; take it out")]
    NeedsLab { option: &'static str },
    /// Nobody has confirmed that machines which exist may be broken.
    #[error(transparent)]
    NotPermitted(#[from] PermitError),
    /// The machine has no room for it.
    #[error("this machine: {0}")]
    Room(#[from] RoomError),
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The supervisor could not be started or spoken to.
    #[error("lab: {0}")]
    Supervisor(String),
    /// The lab, or the process of a run on a cluster that exists, could not do its job.
    #[error("{part}: {why}")]
    Lab {
        /// Which of the two: `lab` or `cluster`.
        part: &'static str,
        /// Its last words, one line.
        why: String,
        /// What was recorded until then.
        run_directory: PathBuf,
    },
}

impl From<PlanError> for LaunchError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Rejected(rejection) => rejection.into(),
            PlanError::Unreadable(error) => error.into(),
        }
    }
}
