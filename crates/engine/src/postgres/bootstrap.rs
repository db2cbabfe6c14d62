//! A new cluster: the leader's data made, the standbys' copied from it, all at once, until a write is acknowledged.
//!
//! Owns the order of these steps and nothing that happens later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::configuration::{HOST_BASED_AUTHENTICATION, USER, connection_string, validate_node_name};
use super::{CONFIGURATION_FILE, DATA, Postgres, State, file_error};
use crate::node::at_once;
use crate::{Cluster, EngineError, Node, Synchronous};

/// How long a server may take to start on new data, on a busy machine.
pub(super) const START_PATIENCE: Duration = Duration::from_secs(60);
/// How long standbys may take to stream, and the first write to be acknowledged.
const JOIN_PATIENCE: Duration = Duration::from_secs(60);
/// How often the leader is asked who streams.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A transaction that leaves nothing behind and yet commits through the log, and so waits for acknowledgements.
pub(super) const EMPTY_WRITE: &str = "SELECT pg_logical_emit_message(true, 'holdfast', 'quorum')";

impl Postgres {
    pub(super) fn make_cluster(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        let (leader, standbys) = leader_and_standbys(nodes)?;
        self.enrol(leader, standbys)?;
        let mut steps = Steps::new();

        self.initialise(leader)?;
        steps.done("initdb");
        self.launch(leader)?;
        self.await_ready(leader, START_PATIENCE)?;
        self.make_slots(leader)?;
        steps.done("leader started");

        for answer in at_once(standbys, |standby| {
            self.copy(standby, leader, &Self::data_in_making(standby))?;
            take_what_was_made(standby)?;
            self.configure_standby(standby)?;
            self.launch(standby)
        }) {
            answer?;
        }
        steps.done("standbys copied");
        self.await_cluster(leader, standbys, steps)
    }

    /// Returns when every standby follows and a write was acknowledged by all it has to be acknowledged by.
    pub(super) fn await_cluster(
        &self,
        leader: &dyn Node,
        standbys: &[Arc<dyn Node>],
        mut steps: Steps,
    ) -> Result<Cluster, EngineError> {
        for standby in standbys {
            self.await_streaming(leader, standby.as_ref(), JOIN_PATIENCE)?;
            self.await_ready(standby.as_ref(), JOIN_PATIENCE)?;
        }
        steps.done("standbys streaming");
        self.admin.query_within(leader, EMPTY_WRITE, JOIN_PATIENCE)?;
        steps.done("first write acknowledged");

        Ok(steps.cluster(leader, standbys))
    }

    /// Remembers the nodes and their roles; refuses what could not work.
    pub(super) fn enrol(&self, leader: &dyn Node, standbys: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        let enough = match self.configuration.synchronous {
            Synchronous::Off => true,
            Synchronous::Any(count) => {
                count > 0 && usize::try_from(count).is_ok_and(|count| count <= standbys.len())
            }
            Synchronous::All => !standbys.is_empty(),
        };
        if !enough {
            let wanted = self.configuration.synchronous.to_string();
            return Err(EngineError::Synchronous { wanted, standbys: standbys.len() });
        }
        let mut state = State { leader: Some(leader.name().to_owned()), ..State::default() };
        for node in std::iter::once(leader).chain(standbys.iter().map(AsRef::as_ref)) {
            validate_node_name(node.name())?;
            if state.members.insert(node.name().to_owned(), node.address()).is_some() {
                return Err(EngineError::NodeName { name: node.name().to_owned(), why: "two nodes have it" });
            }
            state.present.insert(node.name().to_owned());
        }
        for standby in standbys {
            state.upstream.insert(standby.name().to_owned(), leader.name().to_owned());
        }
        *self.state() = state;
        Ok(())
    }

    /// Makes new data. Nothing is synced here: a volume is new until the cluster is up, and synced whole by whoever
    /// means to cut its power.
    fn initialise(&self, node: &dyn Node) -> Result<(), EngineError> {
        let data = Self::data_in_making(node);
        let arguments =
            ["-D", &data, "-U", USER, "-A", "trust", "-k", "--no-sync", "--locale=C", "--encoding=UTF8"];
        self.run_on(node, "initdb", &arguments)?;
        take_what_was_made(node)?;
        // The one change to the data's own configuration, the same on every node: what differs is beside the data.
        let path = format!("{DATA}/postgresql.conf");
        let own = node.read_file(path.as_ref()).map_err(|source| file_error(node, &path, source))?;
        self.write(node, &path, &format!("{own}\ninclude '../{CONFIGURATION_FILE}'\n"))?;
        self.write(node, &format!("{DATA}/pg_hba.conf"), HOST_BASED_AUTHENTICATION)?;
        self.write_configuration(node)
    }

    /// Makes a slot for every other node, which holds the log for it from now on.
    pub(super) fn make_slots(&self, leader: &dyn Node) -> Result<(), EngineError> {
        let names: Vec<String> = {
            let state = self.state();
            let others = state.members.keys().filter(|name| *name != leader.name());
            // Names are of a-z, 0-9 and _ only.
            others.map(|name| format!("('{name}')")).collect()
        };
        if names.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT pg_create_physical_replication_slot(name, true) FROM (VALUES {}) AS wanted (name) \
             WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = wanted.name)",
            names.join(", ")
        );
        self.admin.query(leader, &sql).map(|_| ())
    }

    /// Copies the leader's data onto a standby's empty volume and makes a standby of it.
    ///
    /// The log written meanwhile is not copied as well (`-X none`): the slot, which was there before, keeps it, and
    /// the standby streams it from there when it starts. That saves a process and a connection for each standby.
    pub(super) fn copy_from(&self, standby: &dyn Node, leader: &dyn Node) -> Result<(), EngineError> {
        self.copy(standby, leader, &Self::data(standby))?;
        self.configure_standby(standby)
    }

    fn copy(&self, standby: &dyn Node, leader: &dyn Node, data: &str) -> Result<(), EngineError> {
        let connection = connection_string(standby.name(), leader.address(), self.configuration.port);
        let arguments =
            ["-D", data, "-d", &connection, "-X", "none", "-c", "fast", "--no-sync", "--no-manifest"];
        self.run_on(standby, "pg_basebackup", &arguments).map(drop)
    }

    fn configure_standby(&self, standby: &dyn Node) -> Result<(), EngineError> {
        self.write(standby, &format!("{DATA}/standby.signal"), "")?;
        self.write_configuration(standby)
    }

    /// Waits until the leader itself says that the standby streams from it.
    pub(super) fn await_streaming(
        &self,
        leader: &dyn Node,
        standby: &dyn Node,
        patience: Duration,
    ) -> Result<(), EngineError> {
        let sql = format!(
            "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{}' AND state = 'streaming'",
            standby.name()
        );
        let deadline = Instant::now() + patience;
        loop {
            if self.value(leader, &sql)? != "0" {
                return Ok(());
            }
            if !self.is_running(standby) {
                // Ended: its log says why.
                self.await_ready(standby, Duration::ZERO)?;
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready(standby, "the standby does not stream", patience));
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }
}

fn take_what_was_made(node: &dyn Node) -> Result<(), EngineError> {
    node.take_what_was_made().map_err(|source| file_error(node, DATA, source))
}

/// A cluster's leader, and its standbys.
pub(super) type Parted<'a> = (&'a dyn Node, &'a [Arc<dyn Node>]);

/// The first node leads, the others follow.
pub(super) fn leader_and_standbys(nodes: &[Arc<dyn Node>]) -> Result<Parted<'_>, EngineError> {
    let nobody = || EngineError::NoCandidate { reasons: "a cluster needs a node".to_owned() };
    let (leader, standbys) = nodes.split_first().ok_or_else(nobody)?;
    Ok((leader.as_ref(), standbys))
}

/// Steps with their wall time.
pub(super) struct Steps {
    last: Instant,
    taken: Vec<(String, f64)>,
}

impl Steps {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), taken: Vec::new() }
    }

    pub(super) fn done(&mut self, what: &str) {
        let now = Instant::now();
        self.taken.push((what.to_owned(), now.duration_since(self.last).as_secs_f64()));
        self.last = now;
    }

    /// The cluster that they have made.
    pub(super) fn cluster(self, leader: &dyn Node, standbys: &[Arc<dyn Node>]) -> Cluster {
        Cluster {
            leader: Some(leader.name().to_owned()),
            followers: standbys.iter().map(|standby| standby.name().to_owned()).collect(),
            steps: self.taken,
        }
    }
}
