//! How a database is found, installed, started, joined and asked for its roles.
//!
//! Owns the [`Engine`] trait with what carries out an engine file, what fetches and unpacks an image, a folder for
//! each database that a file cannot describe, and the [`Node`] trait through which an engine reaches its machines.
//! Owns neither the machines (the lab's work) nor the load's connections (the clients' work).

mod apt;
pub mod by_file;
mod checksum;
pub mod client_program;
pub mod control;
pub mod error;
mod image;
pub mod installation;
mod maven;
pub mod node;
pub mod none;
mod own_process;
mod package;
pub mod pods;
pub mod postgres;
mod process;
mod processes;
pub mod programs;
pub mod registry;
mod releases;
pub mod role;
mod run_to_end;
pub mod trust;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

pub use capabilities::Isolation;
pub use client_program::{ClientCommand, ClientTarget};
pub use error::{EngineError, InstallError, NodeError};
pub use image::System;
pub use installation::{Found, Installation, Origin};
pub use node::{Command, Finished, Node, ProcessId, Signal, Status, at_once};
pub use pods::{InPods, PodNetwork, PodPlan, Readiness};
pub use registry::{EngineFacts, engines};
pub use role::{Cluster, Promotion, RejoinMethod, Rejoined, Roles};

/// How long a database may take to end in order when its cluster comes to rest.
pub(crate) const REST_PATIENCE: Duration = Duration::from_secs(60);

/// Which acknowledgements a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronous {
    /// None: the leader's own disk suffices.
    Off,
    /// That of any so many standbys.
    Any(u32),
    /// Every standby's.
    All,
}

impl std::fmt::Display for Synchronous {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Synchronous::Off => f.write_str("off"),
            Synchronous::Any(count) => write!(f, "any {count}"),
            Synchronous::All => f.write_str("all"),
        }
    }
}

/// How the cluster is to be set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Which acknowledgements a commit waits for.
    pub synchronous: Synchronous,
    /// Further settings of the database's own, as they stand; they win over the engine's.
    pub settings: BTreeMap<String, String>,
    /// The TCP port every node listens on.
    pub port: u16,
    /// How many nodes of each region hold each row, where that is not every node.
    pub copies: u32,
    /// Where each node's host stands at first, in the nodes' order.
    pub places: Vec<NodePlace>,
    /// How many sessions every node takes, where sessions are limited and the settings do not say.
    pub max_connections: u32,
    /// The programs that nodes may be upgraded to, as nodes see them.
    pub upgrade: Option<Installation>,
}

/// Where a node's host stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodePlace {
    pub region: String,
    pub zone: String,
    /// The rack; the zone where that has no racks.
    pub rack: String,
    pub host: String,
}

/// Where and as whom a client connects to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    pub node: String,
    /// Its address in the lab.
    pub address: std::net::IpAddr,
    /// The TCP port.
    pub port: u16,
    /// The user; no password is asked for inside the lab.
    pub user: String,
    pub database: String,
}

/// A process of the database that a signal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Killed {
    /// What it was.
    pub program: String,
    /// The signal's number.
    pub signal: i32,
}

/// One database system: what is done to make a cluster of it on given nodes and to keep it one.
///
/// All calls block. None of them restarts or moves nodes: that is the caller's platform.
pub trait Engine: Send + Sync {
    /// Its name in scenarios: `postgres`.
    fn name(&self) -> &'static str;

    /// The database's own version: `18.6`.
    fn version(&self) -> String;

    /// The isolation claimed.
    fn isolation(&self) -> Isolation;

    /// How it was set up, in words and figures, for the report.
    fn settings(&self) -> BTreeMap<String, String>;

    /// Where clients reach the database on `node`.
    fn endpoint(&self, node: &dyn Node) -> Endpoint;

    /// What starts the program that speaks for clients, which finds what was installed for it in `folder`; nothing where none does.
    fn client_command(&self, _folder: &str) -> Option<ClientCommand> {
        None
    }

    /// What that program is told of `node`.
    ///
    /// # Errors
    /// When the node is none of the cluster's.
    fn client_target(&self, _node: &dyn Node) -> Result<ClientTarget, EngineError> {
        Ok(ClientTarget::default())
    }

    /// What a person's shell needs in its environment so that the database's own tools are found and, without further
    /// arguments, connect: in a node to the database on it, elsewhere to the one of `nodes` that takes writes.
    fn shell_environment(&self, on: Option<&dyn Node>, nodes: &[Arc<dyn Node>]) -> BTreeMap<String, String>;

    /// Whether the database has symbolic links of its own on its volume. Where not, none there is followed.
    fn follows_links(&self) -> bool {
        false
    }

    /// Makes a cluster on empty volumes, the first node the leader, and returns when a write has been
    /// acknowledged by all it has to be acknowledged by and every standby follows.
    ///
    /// # Errors
    /// When a step fails on any node; what was started stays as it is.
    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError>;

    /// Ends the cluster in order on all nodes, so that [`Engine::resume`] finds on their volumes all that it needs.
    ///
    /// # Errors
    /// When a node's database does not end in order.
    fn rest(&self, nodes: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        nodes.iter().rev().try_for_each(|node| self.stop(node.as_ref(), REST_PATIENCE))
    }

    /// Starts a cluster that [`Engine::bootstrap`] made and [`Engine::rest`] ended, perhaps those of another process, with the
    /// same nodes in the same roles. Returns when [`Engine::bootstrap`] would. Which engines can is said by
    /// [`EngineFacts::resumes`].
    ///
    /// # Errors
    /// When the engine cannot, or as [`Engine::bootstrap`].
    fn resume(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let _ = nodes;
        Err(EngineError::DoesNotResume { engine: self.name() })
    }

    /// Starts the database on a node whose volume holds its data, in the role the node had; does not wait until it
    /// answers. Of several processes of a node those are started that do not run.
    ///
    /// # Errors
    /// [`EngineError::Fenced`] when the cluster has gone on under another leader since: such a node must
    /// [`Engine::rejoin`]. Otherwise when the process cannot be started.
    fn start(&self, node: &dyn Node) -> Result<(), EngineError>;

    /// Waits until the database on `node` accepts connections.
    ///
    /// # Errors
    /// [`EngineError::Exited`] when its process has ended, [`EngineError::NotReady`] when the time is up.
    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError>;

    /// From its next start on, the database on `node` runs the programs of [`Configuration::upgrade`].
    ///
    /// # Errors
    /// [`EngineError::NothingToUpgradeTo`], also of an engine whose programs are part of this one.
    fn upgrade(&self, node: &dyn Node) -> Result<(), EngineError> {
        Err(EngineError::NothingToUpgradeTo { node: node.name().to_owned() })
    }

    /// Shuts the database on `node` down in order, sessions cut off, data flushed; kills it when the time is up.
    ///
    /// # Errors
    /// When the node cannot be reached.
    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError>;

    /// The same with the one process of that name that the engine starts on the node, where it starts several.
    ///
    /// # Errors
    /// As [`Engine::stop`].
    fn stop_process(&self, node: &dyn Node, name: &str, timeout: Duration) -> Result<(), EngineError> {
        let _ = name;
        self.stop(node, timeout)
    }

    /// Asks every node for its role. A node that does not answer is listed as silent, never guessed at.
    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles;

    /// Whether `node` itself says that nothing there takes connections of clients. A node that does not answer has not said so.
    fn turns_connections_down(&self, node: &dyn Node, patience: Duration) -> bool {
        let connected = node.connect(self.endpoint(node).port, patience);
        connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Makes the most advanced of `candidates` (nodes that are up, the lost leader not among them) the leader, makes
    /// the others follow it, and returns when it takes writes.
    ///
    /// The old leader must be known to be dead: two leaders are what comes of it otherwise.
    ///
    /// # Errors
    /// When no candidate answers, one of them already leads, or the chosen one does not take over in time.
    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError>;

    /// The processes of the database on `node` that signals ended, as its logs tell them, the oldest of each log first. Of
    /// processes that the node's init does not reap itself nobody else knows.
    fn killed_by_signals(&self, node: &dyn Node) -> Vec<Killed> {
        let _ = node;
        Vec::new()
    }

    /// Makes `node`, whose database is not running, a standby of `leader` whatever it was before, and starts it. It
    /// is never started in any other role on the way, even when this is interrupted and tried again.
    ///
    /// # Errors
    /// When `leader` does not lead, when `node` still runs, or when no way of joining worked.
    fn rejoin(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError>;
}
