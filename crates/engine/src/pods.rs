//! A database whose processes are started by a cluster that runs containers: what its pods run, and what is asked of it then.
//!
//! Owns the trait and the form of what a pod runs. Which objects a cluster is given, and how it is started, is the cluster's business;
//! an engine that can do this says what stands in its pods.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{Cluster, Engine, EngineError, Killed, Node, Roles};

/// The folder in which a pod finds its files.
pub const FILES: &str = "/files";
/// Where a node has what its containers say.
pub const LOGS: &str = "/var/log/pods";
/// The variable that has the name of the pod's node: `n1`.
pub const MEMBER: &str = "MEMBER";

/// What the pods of a database run: the same in each, but for [`MEMBER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlan {
    /// A script for `sh`, which becomes the database's server in the end.
    pub script: String,
    /// Environment of the script and of what it starts.
    pub environment: BTreeMap<String, String>,
    /// Files by name, below [`FILES`].
    pub files: BTreeMap<String, String>,
    /// The folder in which the pod finds its volume.
    pub volume: PathBuf,
    /// When the pod is ready.
    pub ready: Readiness,
    /// The TCP port at which the database answers.
    pub port: u16,
    /// Whose network the pod has.
    pub network: PodNetwork,
    /// Folders of nodes, beside those of the machine's programs, which pods see under the same paths and may read.
    pub readable: Vec<PathBuf>,
    /// Such folders in which they may write as well.
    pub writable: Vec<PathBuf>,
}

/// When a pod takes clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// When this command succeeds in it.
    Command(Vec<String>),
    /// When its port takes a connection.
    Port,
}

/// Whose network a pod has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodNetwork {
    /// One of its own, with an address that each pod of its name has anew.
    Own,
    /// Its node's, whose address it keeps.
    Node,
}

/// An engine whose processes may run in pods. Starting, ending and promoting them is then not its business.
pub trait InPods: Send + Sync {
    /// What is true of the engine wherever its processes run.
    fn engine(&self) -> &dyn Engine;

    /// What the pods run; the first node's pod begins as the leader, and is reached at `first` wherever it is. Their volumes are
    /// the folder `volume` of their nodes' volumes.
    ///
    /// # Errors
    /// When the cluster that is asked for cannot be.
    fn pod_plan(&self, nodes: &[Arc<dyn Node>], first: IpAddr, volume: &Path)
    -> Result<PodPlan, EngineError>;

    /// Makes a cluster of pods that have just been asked for, and returns when a write has been acknowledged by all it has to be
    /// acknowledged by.
    ///
    /// # Errors
    /// When that does not come about in time.
    fn form(&self, nodes: &[Arc<dyn Node>], patience: Duration) -> Result<Cluster, EngineError>;

    /// Whether the database answers on `node`.
    ///
    /// # Errors
    /// When it does not, within `patience`.
    fn answers(&self, node: &dyn Node, patience: Duration) -> Result<(), EngineError>;

    /// Asks every node for its role.
    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles;

    /// The processes of a pod that signals ended, as its log tells them; `lines_with` gives the log's lines that have a text in them.
    /// Of those that the container's first process has started nobody else knows.
    fn killed(&self, lines_with: &dyn Fn(&str) -> Vec<String>) -> Vec<Killed>;
}
