//! The control database: found at once, since it is part of this program; started, asked for its roles, promoted.
//!
//! Owns how its nodes are started and how they are spoken to on their own machines. It elects its leaders itself: what a
//! platform asks of it is seldom more than to start a process.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ::control::Flaw;
use ::control::replica::{Acknowledgements, Status};
use ::control::server::{self, SOCKET, SUBCOMMAND};

use crate::installation::{Found, Installation, Origin};
use crate::own_process::{OwnProcesses, own_program};
use crate::process::GLANCE;
use crate::processes::START_PATIENCE;
use crate::{
    Cluster, Configuration, Endpoint, Engine, EngineError, InstallError, Isolation, Node, Promotion,
    RejoinMethod, Rejoined, Roles, Synchronous,
};

/// Its name in scenarios.
pub const NAME: &str = "control";

/// The log of a node's process.
const LOG: &str = "control";
/// The one setting there is.
const FLAW: &str = "flaw";
/// How long a node may take over its answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// How long an election may take, several tries included.
const ELECTION_PATIENCE: Duration = Duration::from_secs(30);
/// After how long without a result a node is asked to stand again.
const STAND_AGAIN: Duration = Duration::from_secs(1);

/// This program, as the installation that it is.
///
/// # Errors
/// When a path is given, since there is nothing to be found at one; or when this program does not know where it is.
pub fn find(explicit: Option<&Path>) -> Result<Installation, InstallError> {
    if let Some(path) = explicit {
        let why = "the control database is part of holdfast: leave `path` out".to_owned();
        return Err(InstallError::Explicit { path: path.to_owned(), why });
    }
    let (bin, name) = own_program()?;
    Ok(Installation {
        root: bin.join(name),
        bin,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        origin: Origin::Itself,
        library_path: None,
        programs: BTreeMap::new(),
        system: None,
    })
}

/// As [`find`]: there is nothing to install.
///
/// # Errors
/// As [`find`].
pub fn install(_: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    find(None)
}

/// What `doctor` says of it.
#[must_use]
pub fn describe() -> Vec<Found> {
    let usable = find(None).map_err(|error| error.to_string());
    let path = usable.as_ref().map_or_else(|_| PathBuf::new(), |found| found.root.clone());
    vec![Found { path, origin: Origin::Itself, usable }]
}

/// Why another version of it is not to be had.
#[must_use]
pub fn has_one_version(wanted: &str) -> InstallError {
    let seen = format!("\n  it is part of holdfast, and has its version: {}", env!("CARGO_PKG_VERSION"));
    InstallError::NotFound { wanted: format!("{NAME} {wanted}"), seen }
}

#[derive(Default)]
struct State {
    /// The nodes of the cluster.
    members: BTreeMap<String, IpAddr>,
}

/// See the module.
pub struct Control {
    processes: OwnProcesses,
    configuration: Configuration,
    flaw: Option<Flaw>,
    state: Mutex<State>,
}

impl Control {
    /// The engine over this program as nodes see it.
    ///
    /// # Errors
    /// When a setting is none of its own or names no flaw.
    pub fn new(installation: &Installation, configuration: Configuration) -> Result<Self, EngineError> {
        let mut flaw = None;
        for (name, value) in &configuration.settings {
            let refused = |why| EngineError::Setting { name: name.clone(), why };
            if name != FLAW {
                return Err(refused("the control database has one setting, `flaw`"));
            }
            if value != "none" {
                let known = value.parse().map_err(|_| {
                    refused(
                        "unknown flaw; known are none, ack-before-fsync, ack-before-replication, \
                         clock-last-write-wins, dirty-read, duplicate-on-retry, forget-on-restart, lost-update, \
                         non-repeatable-order, split-brain, stale-reads and write-skew",
                    )
                })?;
                flaw = Some(known);
            }
        }
        let processes = OwnProcesses::new(installation, SUBCOMMAND, LOG, "the database")?;
        Ok(Control { processes, configuration, flaw, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acknowledgements(&self) -> Acknowledgements {
        match self.configuration.synchronous {
            Synchronous::Off => Acknowledgements::Leader,
            Synchronous::Any(count) => Acknowledgements::Followers(count),
            Synchronous::All => Acknowledgements::All,
        }
    }

    fn launch(&self, node: &dyn Node) -> Result<(), EngineError> {
        let name = node.name().to_owned();
        let (peers, is_member) = {
            let state = self.state();
            let address = |address: &IpAddr| SocketAddr::new(*address, self.configuration.port);
            let others = state.members.iter().filter(|(other, _)| **other != name);
            let peers = others.map(|(other, at)| (other.clone(), address(at))).collect();
            (peers, state.members.contains_key(&name))
        };
        if !is_member {
            return Err(EngineError::Stranger { node: name });
        }
        let settings = server::Node {
            listen: SocketAddr::new(node.address(), self.configuration.port),
            peers,
            volume: node.data_directory(),
            socket_directory: node.socket_directory(),
            acknowledgements: self.acknowledgements(),
            flaw: self.flaw,
            // Only that nodes differ matters, and that one that starts again does not do the same again.
            seed: name
                .bytes()
                .fold(node.boot(), |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into())),
            name,
        };
        self.processes.start(node, &settings)
    }

    fn ask(&self, node: &dyn Node, campaign: bool) -> Result<Status, EngineError> {
        let silent = |source| EngineError::Silent { node: node.name().to_owned(), source };
        if !self.processes.is_running(node) {
            return Err(silent(std::io::Error::other("its process is not running")));
        }
        let socket = node.socket_directory_outside().join(SOCKET);
        server::status(&socket, campaign, ANSWER_PATIENCE)
            .map_err(|error| silent(std::io::Error::other(error.to_string())))
    }

    /// Has `node` stand for election until it leads and has committed its first entry.
    fn elect(&self, node: &dyn Node) -> Result<Status, EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        let mut stand_at = Instant::now();
        while Instant::now() < deadline {
            let stand = Instant::now() >= stand_at;
            if stand {
                stand_at = Instant::now() + STAND_AGAIN;
            }
            let status = self.ask(node, stand)?;
            if status.leads && status.commit > 0 && status.commit == status.last_index {
                return Ok(status);
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.processes.not_ready(node, "it did not become the leader", ELECTION_PATIENCE))
    }

    fn await_follower(&self, node: &dyn Node, leader: &Status) -> Result<(), EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        while Instant::now() < deadline {
            let status = self.ask(node, false)?;
            if status.leader.as_ref() == Some(&leader.node) && status.last_index >= leader.last_index {
                return Ok(());
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.processes.not_ready(node, "it did not become a follower", ELECTION_PATIENCE))
    }
}

impl Engine for Control {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn isolation(&self) -> Isolation {
        // With a flaw too: that it does not keep its word is what is to be found.
        Isolation::Serializable
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let flaw = self.flaw.map_or("none", Flaw::name);
        BTreeMap::from([
            (FLAW.to_owned(), flaw.to_owned()),
            ("synchronous".to_owned(), self.configuration.synchronous.to_string()),
            ("installation".to_owned(), "part of holdfast".to_owned()),
        ])
    }

    fn endpoint(&self, node: &dyn Node) -> Endpoint {
        Endpoint {
            node: node.name().to_owned(),
            address: node.address(),
            port: self.configuration.port,
            user: String::new(),
            database: String::new(),
        }
    }

    fn shell_environment(&self, on: Option<&dyn Node>, nodes: &[Arc<dyn Node>]) -> BTreeMap<String, String> {
        // It has no programs of its own to be reached with; where its nodes are is all there is to say.
        let address =
            |node: &Arc<dyn Node>| SocketAddr::new(node.address(), self.configuration.port).to_string();
        let addresses: Vec<String> = nodes.iter().map(address).collect();
        let mut environment = BTreeMap::from([("CONTROL_NODES".to_owned(), addresses.join(","))]);
        if let Some(node) = on {
            let socket = node.socket_directory().join(SOCKET).display().to_string();
            environment.insert("CONTROL_SOCKET".to_owned(), socket);
        }
        environment
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let standbys = nodes.len().saturating_sub(1);
        let first =
            nodes.first().ok_or_else(|| EngineError::NoCandidate { reasons: "no nodes".to_owned() })?;
        if let Synchronous::Any(count) = self.configuration.synchronous
            && usize::try_from(count).is_ok_and(|count| count > standbys)
        {
            let wanted = self.configuration.synchronous.to_string();
            return Err(EngineError::Synchronous { wanted, standbys });
        }
        self.state().members = nodes.iter().map(|node| (node.name().to_owned(), node.address())).collect();
        let began = Instant::now();
        for node in nodes {
            self.launch(node.as_ref())?;
        }
        for node in nodes {
            self.wait_ready(node.as_ref(), START_PATIENCE)?;
        }
        let started_s = began.elapsed().as_secs_f64();
        let leader = self.elect(first.as_ref())?;
        for node in &nodes[1..] {
            self.await_follower(node.as_ref(), &leader)?;
        }
        let elected_s = began.elapsed().as_secs_f64() - started_s;
        Ok(Cluster {
            leader: Some(first.name().to_owned()),
            followers: nodes[1..].iter().map(|node| node.name().to_owned()).collect(),
            steps: vec![("start".to_owned(), started_s), ("elect".to_owned(), elected_s)],
        })
    }

    fn resume(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        // Nothing of it depends on whether the volumes are empty.
        self.bootstrap(nodes)
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.launch(node)
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.processes.wait_ready(node, timeout, || self.ask(node, false).map(drop))
    }

    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.processes.stop(node, timeout)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        Roles::asked(nodes, |node| self.ask(node, false).map(|status| status.leads))
    }

    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        let (mut asked, mut reasons) = (Vec::new(), Vec::new());
        for node in candidates {
            match self.ask(node.as_ref(), false) {
                Ok(status) => asked.push((node, status)),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        let chosen =
            asked.iter().max_by_key(|(_, status)| (status.leads, status.last_term, status.last_index));
        let Some((chosen, status)) = chosen else {
            return Err(EngineError::NoCandidate { reasons: reasons.join("; ") });
        };
        let mut notes = reasons;
        if status.leads {
            notes.push("the nodes had already elected it".to_owned());
        } else {
            self.elect(chosen.as_ref())?;
        }
        let position = |status: &Status| format!("{}/{}", status.last_term, status.last_index);
        let leader = chosen.name().to_owned();
        Ok(Promotion {
            positions: asked
                .iter()
                .map(|(node, status)| (node.name().to_owned(), position(status)))
                .collect(),
            followers: asked
                .iter()
                .map(|(node, _)| node.name().to_owned())
                .filter(|name| *name != leader)
                .collect(),
            leader,
            notes,
        })
    }

    fn rejoin(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        if !self.ask(leader, false)?.leads {
            return Err(EngineError::NotLeader { node: leader.name().to_owned() });
        }
        self.launch(node)?;
        Ok(Rejoined { method: RejoinMethod::Follow, notes: Vec::new() })
    }
}
