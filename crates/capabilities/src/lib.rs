//! What each engine can do: its protocol, how it elects, what a commit waits for, which workloads it understands; and the
//! files that say so, and all else, of the engines that are files.
//!
//! Owns the facts, the engines' names and the language of engine files. The scenario refuses what an engine cannot do, the
//! paper reckons with it, the loads speak its protocol: each asks here, and none of them knows an engine by name. How a
//! database is installed and started is the engine's own.

pub mod file;
mod protocol;
mod shipped;
pub mod workloads;

use std::fmt;
use std::time::Duration;

pub use file::EngineFile;
pub use protocol::{OperationLimit, Protocol, Usual};
pub use shipped::{engines, names};

use crate::workloads::Timed;

/// What an engine can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capabilities {
    /// Its name in scenarios: `postgres`.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// How clients speak to it.
    pub protocol: Protocol,
    /// The TCP port on which its nodes serve clients.
    pub client_port: u16,
    /// Who chooses the leader.
    pub leadership: Leadership,
    /// At which requests a transaction waits for acknowledgements.
    pub commit: Commit,
    /// Who chooses how many nodes a commit waits for.
    pub quorum: Quorum,
    /// The setting with which a node acknowledges a write before it is synced; `None` where nothing is known of one.
    pub unsynced: Option<Unsynced>,
    /// How far a node's clock may be off; `None` where nothing is known.
    pub clock_tolerance: Option<ClockTolerance>,
    /// Which workloads it understands.
    pub understands: Understands,
    /// Whether a transaction can ask for an isolation level of its own.
    pub has_isolation_levels: bool,
    /// Whether it promises that transactions take effect in the order of real time (strict serializability).
    pub keeps_real_time_order: bool,
    /// Whether reads can be sent to replicas.
    pub reads_from_replicas: bool,
    /// Whether each node answers reads from its own copy alone, so that what nodes hold can be compared.
    pub answers_for_itself: bool,
    /// The file name of the program that a pod of it runs, or why no pod can.
    pub pod_program: Result<&'static str, NoPods>,
    /// What may stand under `database.settings`.
    pub settings: SettingForm,
    /// The settings that limit its sessions; `None` where nothing does.
    pub session_limit: Option<SessionLimit>,
    /// The file that says how it is run; `None` where that is written in Rust.
    pub file: Option<&'static EngineFile>,
}

/// Why no pod of a cluster that runs containers can run an engine's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPods {
    /// Nobody has said what one would run.
    Unknown,
    /// A node has several processes of it, and a pod runs one.
    SeveralProcesses,
    /// Each start of a node has to know who leads, which no cluster tells a pod.
    AsksWhoLeads,
    /// Something is asked of a node whenever it has become ready, and nobody does when a cluster has started its pod.
    AskedOnceReady,
    /// A pod has the network of its node, and this port of it is taken by what runs pods there.
    PortTaken(u16),
}

/// How far a node's clock may be off before a database notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTolerance {
    /// Nothing that it decides depends on the time of day.
    Any,
    /// So far.
    UpTo(Duration),
    /// Something does, and its makers state no bound: what it is.
    Unstated(&'static str),
}

/// The isolation a database claims for a transaction that asks for nothing special. Checks hold it to this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// The whole transaction sees one snapshot; write conflicts are refused.
    SnapshotIsolation,
    /// As if transactions ran one after another.
    Serializable,
}

impl Isolation {
    /// The level's name as it stands in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Isolation::ReadCommitted => "read committed",
            Isolation::SnapshotIsolation => "snapshot isolation",
            Isolation::Serializable => "serializable",
        }
    }
}

/// Who chooses the leader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Leadership {
    /// The platform, by `failover`.
    Platform,
    /// The nodes, by a majority.
    Elected(Election),
    /// Nobody: every node takes writes.
    Nobody,
}

/// Who chooses how many nodes a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quorum {
    /// Nobody: it is a majority of all nodes.
    Majority,
    /// The scenario, by `replication.synchronous`.
    AsAsked,
    /// Each load, by its `consistency`: so many of the nodes that hold a row, which are `replication.copies`.
    PerRequest,
}

/// When a node acknowledges a write before it is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsynced {
    /// The setting that decides it.
    pub setting: &'static str,
    /// The values with which it does.
    pub values: &'static [&'static str],
    /// The setting's value where the scenario does not set it.
    pub default: &'static str,
    /// The settings with which each write is synced first, as `database.settings` has them: `appendfsync: always`; `None` where
    /// none is known.
    pub synced_by: Option<&'static str>,
}

impl Unsynced {
    /// Whether it does, with what the settings say; and the value that decided.
    pub fn applies<'a>(&self, written: impl Fn(&str) -> Option<&'a str>) -> (bool, String) {
        let value = written(self.setting).unwrap_or(self.default).trim().to_owned();
        (self.values.iter().any(|one| one.eq_ignore_ascii_case(&value)), value)
    }
}

/// When followers elect another leader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Election {
    /// How long a follower hears no leader before it asks for votes, at least.
    pub timeout: Period,
    /// How often the leader gives a sign of life.
    pub heartbeat: Period,
    /// The oldest that the last sign of life may be, in heartbeats, when the timeout begins to count.
    pub heartbeats_late: f64,
}

/// A length of time that a setting may change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Period {
    /// The setting, in milliseconds; `None` where it is fixed.
    pub setting: Option<&'static str>,
    /// Without the setting, milliseconds.
    pub default_ms: f64,
}

impl Period {
    /// Milliseconds, with what the settings say of it.
    pub fn ms<'a>(&self, written: impl Fn(&str) -> Option<&'a str>) -> f64 {
        self.setting.and_then(written).and_then(|value| value.trim().parse().ok()).unwrap_or(self.default_ms)
    }
}

impl Election {
    /// The shortest time after the leader's loss at which another can be elected, seconds.
    pub fn s_least<'a>(&self, written: impl Fn(&str) -> Option<&'a str>) -> f64 {
        let late_ms = self.heartbeats_late * self.heartbeat.ms(&written);
        ((self.timeout.ms(&written) - late_ms) / 1e3).max(0.0)
    }
}

/// At which requests a transaction waits for acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// Once, at its end.
    AtEnd,
    /// At each request that writes.
    AtEachRequest {
        /// Workloads of which some transactions are a request that reads and one that writes, and some only one.
        reads_first: &'static [&'static str],
    },
}

/// Which workloads an engine understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Understands {
    /// All that ask a database, in SQL.
    Sql,
    /// All that ask a database, in SQL, but these, which have no form in its dialect.
    SqlBut(&'static [&'static str]),
    /// These; it speaks no SQL.
    Only(&'static [&'static str]),
    /// These, each of whose transactions is one statement about rows by their keys; it has no others.
    Rows(&'static [&'static str]),
    /// It is no database: this one, which asks a volume.
    Volume(&'static str),
}

/// The workload that asks a volume and no database.
pub const VOLUME_WORKLOAD: &str = "rawio";

impl Understands {
    /// Whether a load of `workload` can run on the engine.
    #[must_use]
    pub fn workload(&self, workload: &str) -> bool {
        match self {
            Understands::Sql => workload != VOLUME_WORKLOAD,
            Understands::SqlBut(these) => workload != VOLUME_WORKLOAD && !these.contains(&workload),
            Understands::Only(these) | Understands::Rows(these) => these.contains(&workload),
            Understands::Volume(this) => *this == workload,
        }
    }

    /// Those that a client program carries in the SQL of the standard, which has no word for "insert or update", and literals of
    /// its own for moments.
    #[must_use]
    pub fn of_the_standard() -> Self {
        Understands::SqlBut(&["tpcc", "script", "kv", "iot"])
    }

    /// Those that are transactions over keys and values.
    #[must_use]
    pub const fn of_keys() -> Self {
        Understands::Only(&["tpcb", "ycsb", "kv", "iot", "ledger", "append", "bank", "register"])
    }

    /// Why a load of `workload` cannot run on the engine; nothing where it can.
    #[must_use]
    pub fn why_not(&self, workload: &str) -> Option<Lack> {
        if self.workload(workload) {
            return None;
        }
        let timed = workloads::workload(workload).map(|facts| facts.timed);
        Some(match self {
            Understands::Volume(_) => Lack::Database,
            _ if workload == VOLUME_WORKLOAD => Lack::Volume,
            Understands::Sql | Understands::SqlBut(_) => Lack::Dialect,
            Understands::Rows(_) if matches!(timed, Some(Timed::These(_) | Timed::All)) => Lack::Transactions,
            Understands::Only(_) | Understands::Rows(_) => Lack::Sql,
        })
    }
}

/// What a workload needs and an engine lacks; as text, words that stand behind the workload's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// There is only a volume.
    Database,
    /// There is a database.
    Volume,
    /// It speaks another SQL.
    Dialect,
    /// It speaks none.
    Sql,
    /// Each statement stands by itself.
    Transactions,
}

impl fmt::Display for Lack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Lack::Database => "needs a database",
            Lack::Volume => "needs a bare volume",
            Lack::Dialect => "has no form in its SQL",
            Lack::Sql => "needs SQL",
            Lack::Transactions => "needs transactions of several statements",
        })
    }
}

/// What may stand under `database.settings`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingForm {
    /// Lines of a configuration file, or a program's flags.
    Names(SettingNames),
    /// One setting with these values.
    OneOf {
        name: &'static str,
        /// What it may be; the first is the default.
        values: &'static [&'static str],
    },
    Nothing,
}

/// How an engine's settings are written, and which of them Holdfast decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingNames {
    /// What may stand in a name beside small letters and digits.
    pub signs: &'static [char],
    /// What may stand in one, in words, with an example.
    pub help: &'static str,
    /// Names of settings that there are, one a line: what is unknown but close to one of them is misspelt. Other
    /// versions have other settings, so that a name which is close to none is handed on.
    pub known: &'static str,
    /// Names that Holdfast decides, with the reason; one that ends with a hyphen stands for all that begin so.
    pub decided: &'static [(&'static str, &'static str)],
}

/// The settings that limit an engine's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimit {
    /// How many sessions a node takes.
    pub setting: &'static str,
    /// How many of them are kept for administrators.
    pub reserved_setting: &'static str,
    /// The same without the setting.
    pub reserved: u32,
}

impl Capabilities {
    /// Whether the engine is a database. Where not, nodes have a volume and nothing on it.
    #[must_use]
    pub fn is_database(&self) -> bool {
        self.protocol != Protocol::Volume
    }

    /// The processes that the engine starts on a node, in their order: each name, and the file name of the program that runs.
    #[must_use]
    pub fn processes(&self) -> Vec<(&str, &str)> {
        match self.file {
            Some(file) => file.processes.iter().map(|process| (&*process.name, &*process.becomes)).collect(),
            None => Vec::new(),
        }
    }

    /// The programs that are looked for on the machine, by their file names: those of its processes, those that these start
    /// themselves, and tools.
    #[must_use]
    pub fn programs(&self) -> Vec<&str> {
        self.file.map_or_else(Vec::new, |file| file.find.programs.iter().map(String::as_str).collect())
    }

    /// Whether the nodes elect their leader themselves.
    #[must_use]
    pub fn elects(&self) -> bool {
        matches!(self.leadership, Leadership::Elected(_))
    }

    /// Whether every node takes writes, so that none can be called the leader.
    #[must_use]
    pub fn is_leaderless(&self) -> bool {
        self.leadership == Leadership::Nobody
    }
}

/// The engine of that name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Capabilities> {
    engines().iter().copied().find(|engine| engine.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_found_by_its_name_and_each_name_stands_once() {
        for engine in engines() {
            assert_eq!(named(engine.name), Some(*engine));
        }
        assert_eq!(named("postgers"), None);
    }

    #[test]
    fn a_workload_runs_where_it_is_understood() {
        assert!(Understands::Sql.workload("tpcc") && !Understands::Sql.workload("rawio"));
        let but_one = Understands::SqlBut(&["tpcc"]);
        assert_eq!(but_one.why_not("kv"), None);
        assert_eq!(but_one.why_not("tpcc"), Some(Lack::Dialect));
        assert_eq!(but_one.why_not("rawio"), Some(Lack::Volume));
        assert_eq!(Understands::Volume("rawio").why_not("kv"), Some(Lack::Database));
        let keys = Understands::of_keys();
        assert!(["ycsb", "kv", "iot", "tpcb", "bank"].iter().all(|one| keys.workload(one)));
        assert_eq!(keys.why_not("tpcc"), Some(Lack::Sql));
        assert!(but_one.workload("kv") && !but_one.workload("tpcc") && !but_one.workload("rawio"));
        assert!(
            Understands::Only(&["bank"]).workload("bank") && !Understands::Only(&["bank"]).workload("kv")
        );
        let rows = Protocol::Cql.understands();
        assert!(["ycsb", "kv", "iot", "ledger", "register"].iter().all(|one| rows.workload(one)));
        for several in ["tpcb", "tpcc", "bank", "append"] {
            assert_eq!(rows.why_not(several), Some(Lack::Transactions), "{several}");
        }
        assert_eq!(rows.why_not("script"), Some(Lack::Sql), "a script may have one statement");
        assert_eq!(rows.why_not("rawio"), Some(Lack::Volume));
        assert!(
            Understands::Volume("rawio").workload("rawio") && !Understands::Volume("rawio").workload("kv")
        );
    }

    #[test]
    fn every_engine_that_ships_says_what_it_tolerates_of_a_clock() {
        let silent: Vec<&str> = engines()
            .iter()
            .filter(|engine| engine.clock_tolerance.is_none())
            .map(|engine| engine.name)
            .collect();
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn an_engine_that_can_acknowledge_before_a_sync_says_which_settings_sync_first() {
        for unsynced in engines().iter().filter_map(|engine| engine.unsynced) {
            let settings = unsynced.synced_by.expect("every engine that ships says so");
            let value_of = |one: &'static str| one.strip_prefix(unsynced.setting)?.strip_prefix(": ");
            let value = settings.split(", ").find_map(value_of).expect("its own setting is among them");
            let (before, _) = unsynced.applies(|name| (name == unsynced.setting).then_some(value));
            assert!(!before, "{settings}");
        }
    }

    #[test]
    fn an_election_counts_from_the_last_heartbeat_and_heeds_the_settings() {
        let election = Election {
            timeout: Period { setting: Some("election-timeout"), default_ms: 1000.0 },
            heartbeat: Period { setting: None, default_ms: 100.0 },
            heartbeats_late: 2.0,
        };
        let shorter = |name: &str| (name == "election-timeout").then_some("500");
        assert!((election.s_least(|_| None) - 0.8).abs() < 1e-9);
        assert!((election.s_least(shorter) - 0.3).abs() < 1e-9);
        assert!(election.s_least(|_| Some("1")).abs() < 1e-9, "never before the leader is lost");
        assert!(
            (election.s_least(|_| Some("soon")) - 0.8).abs() < 1e-9,
            "what is no number is the engine's to refuse"
        );
    }
}
