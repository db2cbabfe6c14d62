//! etcd: found, started as a cluster with a static list of members, asked for its roles.
//!
//! Owns how its nodes are started and how they are spoken to on their own machines. It elects its leaders itself: what a
//! platform asks of it is seldom more than to start a process. A write always waits for a majority of all members.

mod find;
mod gateway;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::gateway::Status;
use crate::installation::Installation;
use crate::process::GLANCE;
use crate::processes::{Processes, START_PATIENCE};
use crate::{
    Cluster, Command, Configuration, Endpoint, Engine, EngineError, Isolation, Node, Promotion, RejoinMethod,
    Rejoined, Roles,
};

pub use find::{describe, find, install, install_into};

/// Its name in scenarios.
pub const NAME: &str = "etcd";

/// The log of a node's process.
const LOG: &str = "etcd";
/// More lines than the usage that etcd prints has.
const USAGE_LINES: usize = 60;
/// The port on which members speak to each other.
const PEER_PORT: u16 = 2380;
/// Its data on the volume.
const DATA: &str = "etcd";
/// How long a node may take over its answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);
/// How long the first write may take, an election of their own included.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the members may take to agree on who leads.
const ELECTION_PATIENCE: Duration = Duration::from_secs(30);
/// After how long without a result the leader is asked again to hand over.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// See the module.
pub struct Etcd {
    installation: Installation,
    configuration: Configuration,
    processes: Processes,
    /// The nodes of the cluster.
    members: Mutex<BTreeMap<String, IpAddr>>,
}

impl Etcd {
    /// The engine over an installation as nodes see it. Its settings are the server's own flags, without the hyphens
    /// before them.
    #[must_use]
    pub fn new(installation: Installation, configuration: Configuration) -> Etcd {
        let processes = Processes::new(LOG, "etcd");
        Etcd { installation, configuration, processes, members: Mutex::default() }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<String, IpAddr>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client_urls(&self, addresses: &[IpAddr]) -> String {
        urls(addresses, self.configuration.port)
    }

    fn arguments(&self, node: &dyn Node) -> Result<Vec<String>, EngineError> {
        let members = self.members();
        if !members.contains_key(node.name()) {
            return Err(EngineError::Stranger { node: node.name().to_owned() });
        }
        let listed = members.iter().map(|(name, address)| format!("{name}={}", urls(&[*address], PEER_PORT)));
        let own = [node.address()];
        let mut flags = vec![
            ("name", node.name().to_owned()),
            ("data-dir", node.data_directory().join(DATA).display().to_string()),
            ("listen-peer-urls", urls(&own, PEER_PORT)),
            ("initial-advertise-peer-urls", urls(&own, PEER_PORT)),
            ("listen-client-urls", self.client_urls(&node.addresses())),
            ("advertise-client-urls", self.client_urls(&own)),
            ("initial-cluster", listed.collect::<Vec<_>>().join(",")),
            ("initial-cluster-state", "new".to_owned()),
            ("initial-cluster-token", "holdfast".to_owned()),
            ("logger", "zap".to_owned()),
            ("log-outputs", "stderr".to_owned()),
        ];
        let given = &self.configuration.settings;
        flags.retain(|(name, _)| !given.contains_key(*name));
        flags.extend(given.iter().map(|(name, value)| (name.as_str(), value.clone())));
        Ok(flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect())
    }

    fn launch(&self, node: &dyn Node) -> Result<(), EngineError> {
        let command = Command {
            program: self.installation.bin.join("etcd"),
            arguments: self.arguments(node)?,
            environment: BTreeMap::new(),
        };
        self.processes.start(node, &command)
    }

    fn ask(&self, node: &dyn Node) -> Result<Status, EngineError> {
        let silent = |source| EngineError::Silent { node: node.name().to_owned(), source };
        if !self.processes.is_running(node) {
            return Err(silent(std::io::Error::other("its process is not there")));
        }
        gateway::status(node, self.configuration.port, ANSWER_PATIENCE).map_err(silent)
    }

    /// Has `wanted` lead: whoever leads is asked to hand over.
    fn elect(&self, wanted: &dyn Node, nodes: &[Arc<dyn Node>]) -> Result<Status, EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        let mut ask_at = Instant::now();
        while Instant::now() < deadline {
            let status = self.ask(wanted)?;
            if status.leads() {
                return Ok(status);
            }
            if Instant::now() >= ask_at {
                let leads = |node: &&Arc<dyn Node>| self.ask(node.as_ref()).is_ok_and(|other| other.leads());
                if let Some(leader) = nodes.iter().find(leads) {
                    ask_at = Instant::now() + ASK_AGAIN;
                    // It refuses while the other lags behind, and is then asked again.
                    let port = self.configuration.port;
                    let _ = gateway::hand_over(leader.as_ref(), port, &status.member, ANSWER_PATIENCE);
                }
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.processes.not_ready(wanted, "it does not come to lead", ELECTION_PATIENCE))
    }

    fn await_follower(&self, node: &dyn Node, leader: &Status) -> Result<(), EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        while Instant::now() < deadline {
            let status = self.ask(node)?;
            if status.leader == leader.member && status.applied >= leader.applied {
                return Ok(());
            }
            std::thread::sleep(GLANCE);
        }
        Err(self.processes.not_ready(node, "it does not come to follow", ELECTION_PATIENCE))
    }

    /// Everybody who answers, and why the others do not.
    fn all_asked(&self, nodes: &[Arc<dyn Node>]) -> (Vec<(String, Status)>, Vec<String>) {
        let (mut asked, mut reasons) = (Vec::new(), Vec::new());
        for node in nodes {
            match self.ask(node.as_ref()) {
                Ok(status) => asked.push((node.name().to_owned(), status)),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        (asked, reasons)
    }
}

/// The line with which etcd turned down one of its flags, where it did: its whole usage stands behind it.
fn refused_flag(node: &dyn Node) -> Option<String> {
    let log = node.log_tail(LOG, USAGE_LINES);
    let refused =
        |line: &&str| line.contains("flag provided but not defined") || line.contains("invalid value");
    log.lines().find(refused).map(ToOwned::to_owned)
}

fn urls(addresses: &[IpAddr], port: u16) -> String {
    let url = |address: &IpAddr| format!("http://{}", SocketAddr::new(*address, port));
    addresses.iter().map(url).collect::<Vec<_>>().join(",")
}

impl Engine for Etcd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        self.installation.version.clone()
    }

    fn isolation(&self) -> Isolation {
        Isolation::Serializable
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.configuration.settings.clone();
        settings.insert("synchronous".to_owned(), "a majority, always".to_owned());
        settings.insert("installation".to_owned(), self.installation.bin.display().to_string());
        settings
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
        let addresses: Vec<IpAddr> = match on {
            Some(node) => vec![node.address()],
            None => nodes.iter().map(|node| node.address()).collect(),
        };
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.installation.bin.display());
        BTreeMap::from([
            ("ETCDCTL_API".to_owned(), "3".to_owned()),
            ("ETCDCTL_ENDPOINTS".to_owned(), self.client_urls(&addresses)),
            ("PATH".to_owned(), path),
        ])
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let first =
            nodes.first().ok_or_else(|| EngineError::NoCandidate { reasons: "no nodes".to_owned() })?;
        *self.members() = nodes.iter().map(|node| (node.name().to_owned(), node.address())).collect();
        let began = Instant::now();
        for node in nodes {
            self.launch(node.as_ref())?;
        }
        // They answer once a majority of them has elected a leader.
        for node in nodes {
            self.wait_ready(node.as_ref(), START_PATIENCE)?;
        }
        let started_s = began.elapsed().as_secs_f64();
        self.elect(first.as_ref(), nodes)?;
        gateway::write(first.as_ref(), self.configuration.port, WRITE_PATIENCE)
            .map_err(|source| EngineError::Silent { node: first.name().to_owned(), source })?;
        let leader = self.ask(first.as_ref())?;
        for node in &nodes[1..] {
            self.await_follower(node.as_ref(), &leader)?;
        }
        let elected_s = began.elapsed().as_secs_f64() - started_s;
        Ok(Cluster {
            leader: first.name().to_owned(),
            followers: nodes[1..].iter().map(|node| node.name().to_owned()).collect(),
            steps: vec![("start".to_owned(), started_s), ("elect".to_owned(), elected_s)],
        })
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.launch(node)
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        let ready = self.processes.wait_ready(node, timeout, || self.ask(node).is_ok());
        ready.map_err(|error| match (error, refused_flag(node)) {
            (EngineError::Exited { node, .. }, Some(log)) => EngineError::Exited { node, log },
            (error, _) => error,
        })
    }

    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.processes.stop(node, timeout)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        let leads = |node: &Arc<dyn Node>| self.ask(node.as_ref()).map(|status| status.leads());
        Roles::told(nodes.iter().map(|node| (node.name().to_owned(), leads(node))))
    }

    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        let deadline = Instant::now() + ELECTION_PATIENCE;
        loop {
            let (asked, mut notes) = self.all_asked(candidates);
            if let Some((leader, _)) = asked.iter().find(|(_, status)| status.leads()) {
                notes.push("the members had elected it by themselves".to_owned());
                let position = |status: &Status| format!("{}/{}", status.term, status.applied);
                return Ok(Promotion {
                    positions: asked.iter().map(|(node, status)| (node.clone(), position(status))).collect(),
                    followers: asked
                        .iter()
                        .map(|(node, _)| node.clone())
                        .filter(|node| node != leader)
                        .collect(),
                    leader: leader.clone(),
                    notes,
                });
            }
            if asked.is_empty() || Instant::now() >= deadline {
                notes.push("the members elect nobody by themselves".to_owned());
                return Err(EngineError::NoCandidate { reasons: notes.join("; ") });
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn rejoin(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        if !self.ask(leader)?.leads() {
            return Err(EngineError::NotLeader { node: leader.name().to_owned() });
        }
        self.launch(node)?;
        Ok(Rejoined { method: RejoinMethod::Follow, notes: Vec::new() })
    }
}
