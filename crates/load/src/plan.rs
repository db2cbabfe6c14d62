//! What a load is asked to do, and how it can fail as a whole.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use capabilities::Protocol;
use client::control::ControlConnector;
use client::cql::{self, CqlConnector};
use client::etcd::EtcdConnector;
use client::mysql::{self, MysqlConnector};
use client::postgres::{Encryption, PostgresConnector, ReadEngines, Reads, Settings};
use client::process::{self, ProcessConnector, Sessions, Speaks, TakesWrites, Target};
use client::raw_volume::VolumeConnector;
use client::redis::{self, RedisConnector};
use client::{Connector, Dialect, Endpoint, Password};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use workload::Workload;

use crate::defects::Defects;
use crate::pace::{Arrival, Demand, Part, Step, ThinkTime, asked, step_at};

/// Called first on the load's own thread: puts it where the clients stand (a network namespace, a CPU).
pub type OnThread = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// Leaves the thread where this process is.
#[must_use]
pub fn here() -> OnThread {
    Box::new(|| Ok(()))
}

/// Replicas of a keyspace in each data centre, as Cassandra's documentation recommends.
const REPLICAS: u32 = 3;

/// More than one thread can ask of anything.
const LARGEST_RATE_PER_S: f64 = 1e6;

/// A workload, and how much of it.
#[derive(Clone)]
pub struct LoadPlan {
    /// The load's name, unique in the run.
    pub name: String,
    /// The workload, configured.
    pub workload: Arc<dyn Workload>,
    /// How much is asked, from when on; in order of time, the first from second 0. Either every step has a rate or none.
    pub steps: Vec<Step>,
    /// Open loop: how the operations are spread.
    pub arrival: Arrival,
    /// Which part of its load it is, where several processes share one.
    pub part: Part,
    /// Closed loop: how long each client thinks.
    pub think_time: ThinkTime,
    /// Number of the first client. Give each load of a run its own range: histories tell clients apart by number, and
    /// the ledger makes its rows' numbers from it.
    pub first_client: u64,
    /// Whether every operation is handed on by itself, for the checks; figures always are.
    pub keeps_history: bool,
    /// Scale factor.
    pub scale: u32,
    /// The run's seed.
    pub seed: u64,
    /// What the database is spoken to in.
    pub protocol: Protocol,
    /// Where queries outside a transaction block go; PostgreSQL only.
    pub reads: Reads,
    /// Whether clients are spread over all nodes, where each of them takes writes; with the protocols of SQL and client programs.
    pub spreads: bool,
    /// By how many replicas reads and writes must be answered; CQL only.
    pub consistency: Consistency,
    /// Whether a write counts only once replicas have it; Redis only.
    pub wait: Option<redis::Wait>,
    /// The program that speaks for the clients; present with the protocol `process` alone.
    pub program: Option<ClientProgram>,
    /// Every node that may take the writes now or later.
    pub endpoints: Vec<Endpoint>,
    /// The database's name.
    pub database: String,
    /// The role's name.
    pub user: String,
    /// The role's password, for servers that ask.
    pub password: Option<Password>,
    /// Whether its sessions are encrypted.
    pub encryption: Encryption,
    /// How long a client waits for an answer to one statement before it gives the session up.
    pub timeout: Duration,
    /// How long a connection attempt at one node may take.
    pub connect_timeout: Duration,
    /// Defects that a test plants; none in every honest run.
    pub defects: Defects,
}

impl fmt::Debug for LoadPlan {
    /// Names it; a password must not get into a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadPlan")
            .field("name", &self.name)
            .field("workload", &self.workload.name())
            .finish_non_exhaustive()
    }
}

/// The program that speaks for a load's clients.
#[derive(Debug, Clone)]
pub struct ClientProgram {
    /// How it is started.
    pub settings: process::Settings,
    /// What it speaks.
    pub speaks: Speaks,
    /// What its driver is given for each node, by the node's name.
    pub targets: BTreeMap<String, Target>,
    /// How a node tells that it takes writes; each does where this is absent.
    pub takes_writes: Option<TakesWrites>,
    /// Statements that are run before the load's tables are made.
    pub prepare: Vec<String>,
}

/// By how many replicas reads and writes must be answered, where the client says so; what is not said is a majority's, and
/// of reads what the workload needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consistency {
    pub reads: Option<cql::Consistency>,
    pub writes: Option<cql::Consistency>,
    /// Whose clock says which of two plain writes is the later one.
    pub timestamps: cql::Timestamps,
    /// Whether a node can be asked for what it holds itself and there are several copies, so that these can be compared.
    pub compares_copies: bool,
}

/// Why a load, a preparation or a final read could not do its job.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is nothing to do, or nothing to do it to.
    #[error("load {load}: {what}")]
    ImpossiblePlan {
        load: String,
        /// What is impossible about it.
        what: String,
    },
    /// The thread could not be started or put into its place.
    #[error("load {load}: {what}: {source}")]
    Thread {
        load: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The thread panicked: a defect of the generator. What it had recorded was handed on, what was in flight as unknown.
    #[error("load {load}: its thread panicked: {message}")]
    Panicked {
        load: String,
        /// What it said.
        message: String,
    },
    /// The thread panicked, and what it had recorded since its last whole second is lost.
    #[error("load {load}: its thread panicked, and its last records are lost")]
    RecordsLost { load: String },
    /// The program that speaks for its clients is gone, or broke the rules.
    #[error("load {load}: {why}")]
    Program {
        load: String,
        /// What became of it.
        why: String,
    },
    /// A process that did a part of it elsewhere failed, or was lost.
    #[error("load {load}: {why}")]
    Elsewhere {
        load: String,
        /// What became of it.
        why: String,
        /// Whether all that its clients had done was handed over.
        recorded: bool,
    },
    /// A test had the load end.
    #[error("load {load}: a planted defect ended it")]
    Planted { load: String },
    /// Tables could not be made, or the end could not be read, in the time given.
    #[error("load {load}: {what} failed: {last_error}")]
    GaveUp {
        load: String,
        /// What was tried.
        what: &'static str,
        /// The last error seen.
        last_error: String,
    },
}

impl LoadPlan {
    /// Whether the plan as a whole can be carried out.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let impossible = |what: String| Err(LoadError::ImpossiblePlan { load: self.name.clone(), what });
        if self.steps.iter().any(|step| step.clients == 0) || self.steps.is_empty() {
            return impossible("it has no clients".to_owned());
        }
        let rates = self.steps.iter().filter_map(|step| step.rate_per_s);
        if rates.clone().any(|rate| !rate.is_finite() || rate <= 0.0 || rate > LARGEST_RATE_PER_S) {
            return impossible(format!("a rate must be above 0 and at most {LARGEST_RATE_PER_S} a second"));
        }
        if ![0, self.steps.len()].contains(&rates.count()) {
            return impossible("some of its steps have a rate and some have none".to_owned());
        }
        let in_order = self.steps.windows(2).all(|pair| pair[0].from_s < pair[1].from_s);
        if !in_order || self.steps.iter().any(|step| !step.from_s.is_finite()) {
            return impossible("its steps are not in order of time".to_owned());
        }
        if self.endpoints.is_empty() {
            return impossible("it has no endpoints".to_owned());
        }
        if self.program.is_some() != (self.protocol == Protocol::Process) {
            return impossible("a client program needs the protocol `process`".to_owned());
        }
        let last_client = self.first_client.saturating_add(u64::from(self.most_clients()) - 1);
        if last_client > workload::ledger::LARGEST_CLIENT {
            return impossible(format!(
                "client number {last_client} is above {}",
                workload::ledger::LARGEST_CLIENT
            ));
        }
        Ok(())
    }

    /// The most clients at work at once.
    #[must_use]
    pub fn most_clients(&self) -> u32 {
        self.steps.iter().map(|step| step.clients).max().unwrap_or(0)
    }

    /// What is asked at a moment of the run's clock, seconds.
    #[must_use]
    pub fn step_at(&self, at_s: f64) -> Option<&Step> {
        step_at(&self.steps, at_s)
    }

    /// What is asked between two moments of the run's clock, seconds; `None` where no time lies between them.
    #[must_use]
    pub fn asked(&self, from_s: f64, to_s: f64) -> Option<Demand> {
        asked(&self.steps, from_s, to_s)
    }

    /// Whether operations are due at a rate, whatever becomes of those before them.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.steps.iter().any(|step| step.rate_per_s.is_some())
    }

    /// Whose SQL its sessions take; nothing where they speak none.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        match self.protocol {
            Protocol::Postgres | Protocol::PostgresCompatible => Some(Dialect::Postgres),
            Protocol::Mysql => Some(Dialect::Mysql),
            Protocol::Cql => Some(Dialect::Cql),
            Protocol::Process => match self.program.as_ref()?.speaks {
                Speaks::Sql(dialect) => Some(dialect),
                Speaks::Keys => None,
            },
            Protocol::Control | Protocol::Etcd | Protocol::Redis | Protocol::Volume => None,
        }
    }

    /// A connector over the plan's endpoints whose sessions wait `timeout` for each answer.
    pub(crate) fn connector(&self, timeout: Duration) -> Box<dyn Connector> {
        let (endpoints, connect_timeout) = (self.endpoints.clone(), self.connect_timeout);
        match self.protocol {
            Protocol::Volume => Box::new(VolumeConnector::new(endpoints, timeout, connect_timeout)),
            Protocol::Control => Box::new(ControlConnector::new(endpoints, timeout, connect_timeout)),
            Protocol::Etcd => Box::new(EtcdConnector::new(endpoints, timeout, connect_timeout)),
            Protocol::Mysql if self.spreads => {
                Box::new(MysqlConnector::spread(endpoints, self.mysql_settings(timeout)))
            }
            Protocol::Mysql => Box::new(MysqlConnector::new(endpoints, self.mysql_settings(timeout))),
            Protocol::Redis => {
                Box::new(RedisConnector::with(self.redis_settings(), endpoints, timeout, connect_timeout))
            }
            Protocol::Cql => Box::new(CqlConnector::new(endpoints, self.cql_settings_of_tables(timeout))),
            Protocol::Process => self.connector_by_program(endpoints, timeout),
            Protocol::Postgres | Protocol::PostgresCompatible => {
                let connector = PostgresConnector::new(endpoints, self.settings(timeout));
                Box::new(if self.spreads { connector.spread() } else { connector })
            }
        }
    }

    fn connector_by_program(&self, endpoints: Vec<Endpoint>, timeout: Duration) -> Box<dyn Connector> {
        let Some(program) = self.program.clone() else {
            unreachable!("a plan is checked before it is carried out")
        };
        let sessions = Sessions {
            speaks: program.speaks,
            database: self.database.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            targets: program.targets,
            takes_writes: program.takes_writes,
            timeout,
            connect_timeout: self.connect_timeout,
        };
        Box::new(ProcessConnector::new(endpoints, program.settings, sessions, self.spreads))
    }

    /// The connector of the load's own clients, whose reads may go elsewhere.
    pub(crate) fn connector_of_clients(&self) -> Box<dyn Connector> {
        if self.protocol.has_consistency_levels() {
            return Box::new(CqlConnector::new(self.endpoints.clone(), self.cql_settings(self.timeout)));
        }
        if !self.protocol.has_readable_standbys() || self.reads == Reads::Leader {
            return self.connector(self.timeout);
        }
        Box::new(ReadEngines::new(self.endpoints.clone(), self.settings(self.timeout), self.reads))
    }

    fn mysql_settings(&self, timeout: Duration) -> mysql::Settings {
        mysql::Settings {
            database: self.database.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            timeout,
            connect_timeout: self.connect_timeout,
        }
    }

    /// As the load's clients ask.
    pub(crate) fn cql_settings(&self, timeout: Duration) -> cql::Settings {
        use cql::Consistency::{Quorum, Serial};
        let reads = if self.workload.compares_and_sets() { Serial } else { Quorum };
        cql::Settings {
            keyspace: self.database.clone(),
            replicas: None,
            user: self.user.clone(),
            password: self.password.clone(),
            reads: self.consistency.reads.unwrap_or(reads),
            reads_otherwise: None,
            writes: self.consistency.writes.unwrap_or(Quorum),
            timestamps: self.consistency.timestamps,
            timeout,
            connect_timeout: self.connect_timeout,
        }
    }

    /// As tables are made and read back: by every replica, and the keyspace is made where it is missing. Where a replica is
    /// gone for good, a majority is asked, if each write was acknowledged by one: the two have a replica in common.
    fn cql_settings_of_tables(&self, timeout: Duration) -> cql::Settings {
        use cql::Consistency::{All, Quorum, Serial};
        let of_clients = self.cql_settings(timeout);
        let reads = if self.workload.compares_and_sets() { Serial } else { All };
        let reads_otherwise = matches!(of_clients.writes, Quorum | All).then_some(Quorum);
        cql::Settings { replicas: Some(REPLICAS), reads, reads_otherwise, writes: All, ..of_clients }
    }

    /// A connector to one node, which answers reads from what it holds itself.
    pub(crate) fn connector_of_node(&self, endpoint: &Endpoint) -> CqlConnector {
        let reads = cql::Consistency::NodeLocal;
        let settings = cql::Settings { reads, ..self.cql_settings(self.timeout) };
        CqlConnector::new(vec![endpoint.clone()], settings)
    }

    fn redis_settings(&self) -> redis::Settings {
        redis::Settings {
            user: Some(self.user.clone()).filter(|user| !user.is_empty()),
            password: self.password.clone(),
            wait: self.wait,
        }
    }

    pub(crate) fn settings(&self, timeout: Duration) -> Settings {
        Settings {
            database: self.database.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            encryption: self.encryption.clone(),
            is_compatible: self.protocol == Protocol::PostgresCompatible,
            timeout,
            connect_timeout: self.connect_timeout,
        }
    }

    /// A client's own chance, from the seed, the load's name and the client. `stream` keeps uses apart: what is drawn
    /// for reconnecting must not shift the transactions drawn after it.
    pub(crate) fn chance(&self, client: u64, stream: u64) -> ChaCha8Rng {
        let mut seed = [0; 32];
        let words = [self.seed, fnv1a(self.name.as_bytes()), client, stream];
        for (place, word) in seed.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(seed)
    }
}

/// FNV-1a, 64 bits: spreads a name over a seed word, the same on every machine and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    use rand::Rng;

    use super::*;

    fn plan() -> LoadPlan {
        LoadPlan {
            name: "tpcb".into(),
            workload: workload::configured("tpcb", &BTreeMap::new()).expect("listed"),
            steps: vec![Step { from_s: 0.0, clients: 1, rate_per_s: None }],
            arrival: Arrival::Constant,
            part: Part::default(),
            think_time: ThinkTime::None,
            first_client: 0,
            keeps_history: true,
            scale: 1,
            protocol: Protocol::Postgres,
            reads: client::postgres::Reads::Leader,
            spreads: false,
            consistency: Consistency::default(),
            wait: None,
            program: None,
            seed: 1,
            endpoints: vec![Endpoint {
                node: "n1".into(),
                address: SocketAddr::from(([127, 0, 0, 1], 5432)).into(),
            }],
            database: "postgres".into(),
            user: "postgres".into(),
            password: None,
            encryption: Encryption::Never,
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
            defects: Defects::default(),
        }
    }

    #[test]
    fn impossible_plans_are_refused_with_their_reason() {
        fn check_with(change: impl FnOnce(&mut LoadPlan), expected: &str) {
            let mut plan = plan();
            change(&mut plan);
            let seen = plan.check().map_or_else(|error| error.to_string(), |()| "accepted".to_owned());
            assert_eq!(seen, expected);
        }
        let check = |change: fn(&mut LoadPlan), expected: &str| check_with(change, expected);
        check(|_| {}, "accepted");
        check(|plan| plan.steps[0].clients = 0, "load tpcb: it has no clients");
        check(|plan| plan.steps.clear(), "load tpcb: it has no clients");
        let rate = "load tpcb: a rate must be above 0 and at most 1000000 a second";
        check(|plan| plan.steps[0].rate_per_s = Some(1e6), "accepted");
        check(|plan| plan.steps[0].rate_per_s = Some(0.0), rate);
        check(|plan| plan.steps[0].rate_per_s = Some(f64::NAN), rate);
        let later = Step { from_s: 5.0, clients: 2, rate_per_s: None };
        let add = |step: Step| move |plan: &mut LoadPlan| plan.steps.push(step);
        check_with(add(later), "accepted");
        check_with(add(Step { from_s: 0.0, ..later }), "load tpcb: its steps are not in order of time");
        check_with(
            add(Step { rate_per_s: Some(5.0), ..later }),
            "load tpcb: some of its steps have a rate and some have none",
        );
        check(|plan| plan.endpoints.clear(), "load tpcb: it has no endpoints");
        check(|plan| plan.first_client = 8_388_607, "accepted");
        check(|plan| plan.first_client = 8_388_608, "load tpcb: client number 8388608 is above 8388607");
        check(
            |plan| plan.first_client = u64::MAX,
            "load tpcb: client number 18446744073709551615 is above 8388607",
        );
    }

    #[test]
    fn every_seed_load_client_and_use_has_a_chance_of_its_own_that_repeats() {
        let first = |seed: u64, name: &str, client, stream| {
            LoadPlan { seed, name: name.into(), ..plan() }.chance(client, stream).next_u64()
        };
        let all = [
            first(1, "a", 0, 0),
            first(2, "a", 0, 0),
            first(1, "b", 0, 0),
            first(1, "a", 1, 0),
            first(1, "a", 0, 1),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(first(1, "a", 0, 0), all[0]);
    }
}
