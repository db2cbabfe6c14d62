//! A database whose processes are started by a cluster that runs containers: what its pods run, and what is asked of it then.
//!
//! Owns the trait and the form of what a pod runs. Which objects a cluster is given, and how it is started, is the cluster's business;
//! an engine that can do this says what stands in its pods.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{Cluster, Engine, EngineError, Killed, Node};

/// The folder in which a pod finds its volume.
pub const DATA: &str = "/data";
/// The folder in which it finds its files.
pub const FILES: &str = "/files";
/// The variable that has the name of the pod's node: `n1`.
pub const MEMBER: &str = "MEMBER";

/// What the pods of a database run: the same in each, but for [`MEMBER`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodPlan {
    /// A script for `sh`, which becomes the database's server in the end. It makes the data where there are none.
    pub script: String,
    /// Environment of the script and of what it starts.
    pub environment: BTreeMap<String, String>,
    /// Files by name, below [`FILES`].
    pub files: BTreeMap<String, String>,
    /// A command that succeeds in the pod where the database answers.
    pub ready: Vec<String>,
    /// The TCP port at which it answers.
    pub port: u16,
    /// The folder of its programs as nodes see it, which pods see under the same path.
    pub programs: PathBuf,
}

/// An engine whose processes may run in pods. Starting, ending and promoting them is then not its business.
pub trait InPods: Engine {
    /// What the pods run; the first node's pod begins as the leader, and is reached at `first` wherever it is.
    ///
    /// # Errors
    /// When the cluster that is asked for cannot be.
    fn pod_plan(&self, nodes: &[Arc<dyn Node>], first: IpAddr) -> Result<PodPlan, EngineError>;

    /// Returns when a write has been acknowledged by all it has to be acknowledged by, and every standby follows.
    ///
    /// # Errors
    /// When that does not come about in time.
    fn await_formed(&self, nodes: &[Arc<dyn Node>], patience: Duration) -> Result<Cluster, EngineError>;

    /// Whether the database answers on `node`.
    ///
    /// # Errors
    /// When it does not, within `patience`.
    fn answers(&self, node: &dyn Node, patience: Duration) -> Result<(), EngineError>;

    /// What stands in the lines of a pod's log that tell of processes which signals ended. Of those that the container's first process
    /// has started nobody else knows.
    fn killed_words(&self) -> &'static str;

    /// The processes that such lines tell of, in their order.
    fn killed_in(&self, lines: &str) -> Vec<Killed>;
}
