//! PostgreSQL: one leader, standbys that stream its log, promotion by an operator.
//!
//! Owns what this engine remembers of its cluster and how its parts answer the `Engine` trait.

pub mod admin;
mod bootstrap;
mod configuration;
mod find;
mod install;
mod killed;
mod lsn;
mod pods;
mod process;
mod promote;
mod rejoin;
mod resume;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use admin::ask_once;
pub use admin::{AdminQuery, SocketAdmin};
pub use find::{describe, find};
pub use install::{install_into, install_version};
pub use lsn::{Lsn, NotAnLsn};
pub use pods::TcpAdmin;

use crate::Killed;
use crate::installation::numbers;
use crate::releases::Releases;
use crate::{
    Cluster, Command, Configuration, Endpoint, Engine, EngineError, Finished, Installation, Isolation, Node,
    ProcessId, Promotion, Rejoined, Roles,
};

/// The folder of the data within the volume; the volume's own root stays ours.
const DATA: &str = "data";
/// Our configuration, beside the data and so never copied from another node with them.
const CONFIGURATION_FILE: &str = "holdfast.conf";
/// Present while a rejoin is under way: data in between two states, never to be started as they are.
const REJOINING_FILE: &str = "rejoining";
/// Its name in scenarios.
pub const NAME: &str = "postgres";
/// The log each node's server writes.
const LOG: &str = "postgres";

/// The PostgreSQL engine over one installation, and the one cluster it runs.
pub struct Postgres {
    releases: Releases,
    configuration: Configuration,
    admin: Box<dyn AdminQuery>,
    state: Mutex<State>,
}

/// What is remembered of the cluster.
#[derive(Debug, Default)]
struct State {
    /// Every node's address, by name.
    members: BTreeMap<String, IpAddr>,
    /// Who leads, as far as we made it so.
    leader: Option<String>,
    /// Whom an attempt has chosen to lead that did not come to its end: whether it leads is not known.
    half_promoted: Option<String>,
    /// The leader each standby was last made to follow.
    upstream: BTreeMap<String, String>,
    /// Nodes that are part of the cluster as it now is: all but those lost at a promotion and not back yet.
    present: BTreeSet<String>,
    /// The server last started on each node and the boot it belongs to.
    processes: BTreeMap<String, (u64, ProcessId)>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").field("releases", &self.releases).finish_non_exhaustive()
    }
}

impl Postgres {
    /// An engine that asks its questions over the nodes' Unix sockets.
    ///
    /// # Errors
    /// [`EngineError::Setting`] when a setting of the scenario will not do.
    pub fn new(installation: Installation, configuration: Configuration) -> Result<Self, EngineError> {
        let admin = Box::new(SocketAdmin::new(configuration.port));
        Self::with_admin(installation, configuration, admin)
    }

    /// An engine that asks its questions another way.
    ///
    /// # Errors
    /// [`EngineError::Setting`] when a setting of the scenario will not do.
    pub fn with_admin(
        installation: Installation,
        configuration: Configuration,
        admin: Box<dyn AdminQuery>,
    ) -> Result<Self, EngineError> {
        configuration::validate(&configuration.settings)?;
        let releases = Releases::new(installation, configuration.upgrade.clone());
        Ok(Self { releases, configuration, admin, state: Mutex::default() })
    }

    /// The state; each change of it is whole, so that a panic elsewhere while it was locked does no harm.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The environment an installation's programs need.
    fn environment(installation: &Installation) -> BTreeMap<String, String> {
        let mut environment = BTreeMap::from([
            // Messages are read by us and by people who search for them.
            ("LC_ALL".to_owned(), "C".to_owned()),
            ("TZ".to_owned(), "UTC".to_owned()),
            ("PATH".to_owned(), format!("{}:/usr/bin:/bin", installation.bin.display())),
        ]);
        if let Some(path) = &installation.library_path {
            environment.insert("LD_LIBRARY_PATH".to_owned(), path.display().to_string());
        }
        environment
    }

    /// A command of the node's installation with the environment its programs need.
    fn command(&self, node: &dyn Node, program: &str, arguments: &[&str]) -> Command {
        let installation = self.releases.of(node.name());
        let environment = Self::environment(installation);
        let program =
            if program.starts_with('/') { PathBuf::from(program) } else { installation.bin.join(program) };
        Command { program, arguments: arguments.iter().map(|text| (*text).to_owned()).collect(), environment }
    }

    /// Runs a program on a node to its end and insists that it succeeds.
    fn run_on(&self, node: &dyn Node, program: &str, arguments: &[&str]) -> Result<Finished, EngineError> {
        let finished = node.run(&self.command(node, program, arguments))?;
        if finished.status.success() {
            return Ok(finished);
        }
        Err(EngineError::Program {
            node: node.name().to_owned(),
            program: program.to_owned(),
            status: finished.status,
            output: last_lines(&finished.stderr, 6),
        })
    }

    /// One value of one row.
    fn value(&self, node: &dyn Node, sql: &str) -> Result<String, EngineError> {
        let rows = self.admin.query(node, sql)?;
        match rows.as_slice() {
            [row] => match row.as_slice() {
                [Some(value)] => Ok(value.clone()),
                _ => Err(unexpected(node, sql, &rows)),
            },
            _ => Err(unexpected(node, sql, &rows)),
        }
    }

    /// Whether a node takes writes.
    fn takes_writes(&self, node: &dyn Node, patience: Duration) -> Result<bool, EngineError> {
        let sql = "SELECT pg_is_in_recovery()";
        let rows = self.admin.query_within(node, sql, patience)?;
        match rows.first().and_then(|row| row.first()).and_then(Option::as_deref) {
            Some("f") => Ok(true),
            Some("t") => Ok(false),
            _ => Err(unexpected(node, sql, &rows)),
        }
    }

    /// Writes a node's configuration for its place in the cluster as it is remembered now.
    fn write_configuration(&self, node: &dyn Node) -> Result<(), EngineError> {
        let text = {
            let state = self.state();
            let upstream = match state.upstream.get(node.name()) {
                None => None,
                Some(leader) => {
                    let address = state.members.get(leader).copied();
                    let stranger = || EngineError::Stranger { node: leader.clone() };
                    let address = address.ok_or_else(stranger)?;
                    Some(configuration::Upstream { address, has_slot: true })
                }
            };
            // A standby's own figure takes effect should it be promoted; then it counts who is present.
            let standbys =
                if upstream.is_some() { state.members.len() } else { state.present.len() }.saturating_sub(1);
            let placement = configuration::Placement {
                name: node.name(),
                addresses: node.addresses(),
                socket_directory: node.socket_directory().display().to_string(),
                others: state
                    .members
                    .keys()
                    .map(String::as_str)
                    .filter(|name| *name != node.name())
                    .collect(),
                acknowledgements: configuration::acknowledgements(self.configuration.synchronous, standbys),
                upstream,
            };
            configuration::text(&self.configuration, &placement)
        };
        self.write(node, CONFIGURATION_FILE, &text)
    }

    fn write(&self, node: &dyn Node, path: &str, text: &str) -> Result<(), EngineError> {
        node.write_file(Path::new(path), text).map_err(|source| file_error(node, path, source))
    }

    /// Removes a file if it is there.
    fn remove(&self, node: &dyn Node, path: &str) -> Result<(), EngineError> {
        match node.remove_file(Path::new(path)) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(file_error(node, path, source))
            }
            _ => Ok(()),
        }
    }

    fn exists(&self, node: &dyn Node, path: &str) -> Result<bool, EngineError> {
        node.exists(Path::new(path)).map_err(|source| file_error(node, path, source))
    }

    /// The data's folder as the node's programs see it.
    fn data(node: &dyn Node) -> String {
        node.data_directory().join(DATA).display().to_string()
    }

    /// The same while the volume's first content is being made.
    fn data_in_making(node: &dyn Node) -> String {
        node.making_directory().join(DATA).display().to_string()
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        self.releases.first().version.clone()
    }

    fn follows_links(&self) -> bool {
        // Tablespaces, and a log that was moved, are links in the data directory.
        true
    }

    fn isolation(&self) -> Isolation {
        let asked = self.configuration.settings.iter();
        let level = asked
            .filter(|(name, _)| name.eq_ignore_ascii_case("default_transaction_isolation"))
            .map(|(_, value)| value.to_ascii_lowercase())
            .next_back();
        match level.as_deref() {
            Some("serializable") => Isolation::Serializable,
            Some("repeatable read") => Isolation::SnapshotIsolation,
            _ => Isolation::ReadCommitted,
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut words = configuration::in_words(&self.configuration);
        words.insert("isolation".to_owned(), self.isolation().name().to_owned());
        // How it was found is known outside the lab alone, and stands beside this as `found`.
        words.insert("installation".to_owned(), self.releases.first().bin.display().to_string());
        words
    }

    fn endpoint(&self, node: &dyn Node) -> Endpoint {
        Endpoint {
            node: node.name().to_owned(),
            address: node.address(),
            port: self.configuration.port,
            user: configuration::USER.to_owned(),
            database: configuration::DATABASE.to_owned(),
        }
    }

    fn shell_environment(&self, on: Option<&dyn Node>, nodes: &[Arc<dyn Node>]) -> BTreeMap<String, String> {
        let installation = on.map_or(self.releases.first(), |node| self.releases.of(node.name()));
        let mut environment = Self::environment(installation);
        let mut put = |name: &str, value: String| environment.insert(name.to_owned(), value);
        put("PGPORT", self.configuration.port.to_string());
        put("PGUSER", configuration::USER.to_owned());
        put("PGDATABASE", configuration::DATABASE.to_owned());
        // A file of its own in the home directory would be the only thing a session leaves.
        put("PSQL_HISTORY", "/dev/null".to_owned());
        match on {
            // The socket answers whatever befalls the network, which may be what the person looks into.
            Some(node) => {
                put("PGHOST", node.socket_directory().display().to_string());
                put("PGDATA", Self::data(node));
            }
            None => {
                let addresses: Vec<String> = nodes.iter().map(|node| node.address().to_string()).collect();
                put("PGHOST", addresses.join(","));
                if nodes.len() > 1 {
                    put("PGTARGETSESSIONATTRS", "read-write".to_owned());
                }
                // A node without power does not say no; the next one is to be tried.
                put("PGCONNECT_TIMEOUT", "2".to_owned());
            }
        }
        environment
    }

    fn bootstrap(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        self.make_cluster(nodes)
    }

    fn rest(&self, nodes: &[Arc<dyn Node>]) -> Result<(), EngineError> {
        self.end_cluster(nodes)
    }

    fn resume(&self, nodes: &[Arc<dyn Node>]) -> Result<Cluster, EngineError> {
        self.resume_cluster(nodes)
    }

    fn start(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.start_in_its_role(node)
    }

    fn wait_ready(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.await_ready(node, timeout)
    }

    fn upgrade(&self, node: &dyn Node) -> Result<(), EngineError> {
        self.releases.upgrade(node)
    }

    fn stop(&self, node: &dyn Node, timeout: Duration) -> Result<(), EngineError> {
        self.shut_down(node, timeout)
    }

    fn leader(&self, nodes: &[Arc<dyn Node>]) -> Roles {
        const PATIENCE: Duration = Duration::from_secs(1);
        Roles::asked(nodes, |node| self.takes_writes(node, PATIENCE))
    }

    fn promote(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        self.promote_one_of(candidates)
    }

    fn killed_by_signals(&self, node: &dyn Node) -> Vec<Killed> {
        killed::in_log(&node.log_lines_with(LOG, killed::TERMINATED).join("\n"))
    }

    fn rejoin(&self, node: &dyn Node, leader: &dyn Node) -> Result<Rejoined, EngineError> {
        self.rejoin_leader(node, leader)
    }
}

/// Why data of one version cannot be gone on with under another. "Upgrading a PostgreSQL Cluster" in its documentation: only the
/// major version counts.
#[must_use]
pub fn cannot_be_upgraded(from: &str, to: &str) -> Option<String> {
    let major = |version: &str| numbers(version).first().copied();
    (major(from) != major(to)).then(|| {
        "the data of one major version cannot be read by another; name a minor version of the same one"
            .to_owned()
    })
}

fn file_error(node: &dyn Node, path: &str, source: std::io::Error) -> EngineError {
    EngineError::File { node: node.name().to_owned(), path: PathBuf::from(path), source }
}

fn unexpected(node: &dyn Node, sql: &str, rows: &admin::Rows) -> EngineError {
    EngineError::Answer {
        node: node.name().to_owned(),
        statement: sql.to_owned(),
        answer: format!("{rows:?}"),
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_another_minor_version_can_follow() {
        assert_eq!(cannot_be_upgraded("15.18", "15.20"), None);
        assert_eq!(cannot_be_upgraded("18.6", "18beta1"), None);
        assert!(cannot_be_upgraded("15.18", "16.1").is_some_and(|why| why.contains("major version")));
    }
}
