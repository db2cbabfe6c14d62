//! No database: on every node a process that reads and writes the node's volume raw, so that a platform can be measured
//! before a database is on it. The first node is the one that is asked.
//!
//! Owns how that process is started. What it does is the crate `rawio`'s business.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rawio::server::{self, SUBCOMMAND};

use crate::installation::{Found, Installation};
use crate::own_process::OwnProcesses;
use crate::processes::START_PATIENCE;
use crate::{
    Cluster, Configuration, Endpoint, Engine, EngineError, Isolation, Node, Promotion, RejoinMethod,
    Rejoined, Roles, Synchronous,
};

/// Its name in scenarios.
pub const NAME: &str = "none";

/// The log of a node's process.
const LOG: &str = "rawio";
/// How long a node may take over its answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// What `doctor` says of it: nothing, there is nothing to be found.
#[must_use]
pub fn describe() -> Vec<Found> {
    Vec::new()
}

#[derive(Default)]
struct State {
    /// The node that is asked.
    first: Option<String>,
}

/// See the module.
pub struct Volumes {
    processes: OwnProcesses,
    port: u16,
    state: Mutex<State>,
}

impl Volumes {
    /// The engine over this program as nodes see it.
    ///
    /// # Errors
    /// When there are settings or replication is asked for: there is no database to have either.
    pub fn new(installation: &Installation, configuration: Configuration) -> Result<Self, EngineError> {
        if let Some(name) = configuration.settings.keys().next() {
            let why = "`settings` needs a database";
            return Err(EngineError::Setting { name: name.clone(), why });
        }
        if configuration.synchronous != Synchronous::Off {
            let wanted = configuration.synchronous.to_string();
            return Err(EngineError::Synchronous { wanted, standbys: 0 });
        }
        let processes = OwnProcesses::new(installation, SUBCOMMAND, LOG, "the process on the volume")?;
        Ok(Volumes { processes, port: configuration.port, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process has said in its log that it listens.
    fn listens(&self, node: &dyn Node) -> Result<(), EngineError> {
        let said = node.log_tail(LOG, 1);
        let boot = format!("{}{}", server::LISTENS, node.boot());
        if said.trim_end() == boot {
            return Ok(());
        }
        let source = std::io::Error::other("its log does not say that it listens");
        Err(EngineError::Silent { node: node.name().to_owned(), source })
    }
}

impl Engine for Volumes {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn isolation(&self) -> Isolation {
        // Passes over one file go one after another.
        Isolation::Serializable
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("installation".to_owned(), "part of holdfast; no database".to_owned())])
    }

    fn endpoint(&self, node: &dyn Node) -> Endpoint {
        let (address, port) = (node.address(), self.port);
        Endpoint { node: node.name().to_owned(), address, port, user: String::new(), database: String::new() }
    }

    fn shell_environment(&self, _: Option<&dyn Node>, _: &[Arc<dyn Node>]) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let first =
            nodes.first().ok_or_else(|| EngineError::NoCandidate { reasons: "no nodes".to_owned() })?;
        self.state().first = Some(first.name().to_owned());
        let began = Instant::now();
        for node in nodes {
            self.start(node.as_ref())?;
        }
        for node in nodes {
            self.wait_ready(node.as_ref(), START_PATIENCE)?;
        }
        Ok(Cluster {
            leader: Some(first.name().to_owned()),
            followers: nodes[1..].iter().map(|node| node.name().to_owned()).collect(),
            steps: vec![("start".to_owned(), began.elapsed().as_secs_f64())],
        })
    }

    fn resume(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        // Nothing of it depends on whether the volumes are empty.
        self.bootstrap(nodes)
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        let listen = SocketAddr::new(node.address(), self.port);
        self.processes.start(node, &server::Node { listen, volume: node.data_directory(), boot: node.boot() })
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.processes.wait_ready(node, timeout, || self.listens(node))
    }

    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.processes.stop(node, timeout)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        let first = self.state().first.clone();
        let mut roles = Roles::default();
        for node in nodes {
            let name = node.name().to_owned();
            match self.wait_ready(node.as_ref(), ANSWER_PATIENCE) {
                Ok(()) if first.as_ref() == Some(&name) => roles.leaders.push(name),
                Ok(()) => roles.followers.push(name),
                Err(error) => drop(roles.silent.insert(name, error.to_string())),
            }
        }
        roles
    }

    fn promote(&self, _: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        let reasons = "without a database no node can be promoted: write `failover: none` or `ha-restart`";
        Err(EngineError::NoCandidate { reasons: reasons.to_owned() })
    }

    fn rejoin(&self, node: &dyn Node, _: &dyn Node) -> Result<Rejoined, EngineError> {
        self.start(node)?;
        Ok(Rejoined { method: RejoinMethod::Follow, notes: Vec::new() })
    }
}
