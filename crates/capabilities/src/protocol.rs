//! The protocols that clients speak: their names, what each carries, and what is usual among the servers that speak one.
//!
//! Owns the facts. How a protocol is spoken is the crate `client`'s.

use crate::{Understands, VOLUME_WORKLOAD};

/// How clients speak to an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// PostgreSQL's, version 3.
    Postgres,
    /// The same, spoken by another database: nothing that only PostgreSQL has is asked of it.
    PostgresCompatible,
    /// That of Holdfast's own store.
    Control,
    /// etcd's JSON gateway.
    Etcd,
    /// MySQL's, as MariaDB and Galera speak it.
    Mysql,
    /// Redis', version 2 of its serialization.
    Redis,
    /// Cassandra's native protocol, version 4.
    Cql,
    /// Lines to a program that has the driver.
    Process,
    /// None: a node's volume is read and written.
    Volume,
}

/// What is usual among servers of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usual {
    /// The TCP port.
    pub port: u16,
    /// The user whom a server has from its installation on.
    pub user: &'static str,
    /// The database that a server has from its installation on and in which tables may be made.
    pub database: Option<&'static str>,
}

/// How many operations a server takes in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationLimit {
    /// The setting that says so.
    pub setting: &'static str,
    /// Without the setting.
    pub default: u64,
}

impl Protocol {
    /// Each of them.
    pub const ALL: [Protocol; 9] = [
        Protocol::Postgres,
        Protocol::PostgresCompatible,
        Protocol::Control,
        Protocol::Etcd,
        Protocol::Mysql,
        Protocol::Redis,
        Protocol::Cql,
        Protocol::Process,
        Protocol::Volume,
    ];

    /// Its name, as engine files write it where they may name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Postgres => "postgres",
            Protocol::PostgresCompatible => "postgres-compatible",
            Protocol::Control => "control",
            Protocol::Etcd => "etcd",
            Protocol::Mysql => "mysql",
            Protocol::Redis => "redis",
            Protocol::Cql => "cql",
            Protocol::Process => "process",
            Protocol::Volume => "volume",
        }
    }

    /// The one of that name; `None` also for those that no engine file may name.
    #[must_use]
    pub fn named(name: &str) -> Option<Protocol> {
        let of_files = |protocol: &Protocol| !matches!(protocol, Protocol::Control | Protocol::Volume);
        Protocol::ALL.into_iter().filter(of_files).find(|protocol| protocol.name() == name)
    }

    /// What a database's URL begins with, before `://`; nothing where no URL names one.
    #[must_use]
    pub fn schemes(self) -> &'static [&'static str] {
        match self {
            Protocol::Postgres => &["postgres", "postgresql"],
            Protocol::Mysql => &["mysql", "mariadb"],
            Protocol::Cql => &["cql"],
            _ => &[],
        }
    }

    /// The one whose URLs begin so.
    #[must_use]
    pub fn of_scheme(scheme: &str) -> Option<Protocol> {
        Protocol::ALL.into_iter().find(|protocol| protocol.schemes().contains(&scheme))
    }

    /// What is usual among its servers; `None` where there is no such thing.
    #[must_use]
    pub fn usual(self) -> Option<Usual> {
        match self {
            Protocol::Postgres | Protocol::PostgresCompatible => {
                Some(Usual { port: 5432, user: "postgres", database: Some("postgres") })
            }
            Protocol::Mysql => Some(Usual { port: 3306, user: "root", database: None }),
            Protocol::Cql => Some(Usual { port: 9042, user: "cassandra", database: None }),
            _ => None,
        }
    }

    /// Whether its clients follow libpq: a URL may ask for encryption, name a Unix socket and leave the database out, and the
    /// environment and a file may have the password.
    #[must_use]
    pub fn follows_libpq(self) -> bool {
        self == Protocol::Postgres
    }

    /// Whether clients need addresses, a user, a password and a database's name and nothing else: they can use a cluster that
    /// exists, and from another machine.
    #[must_use]
    pub fn reaches_existing_clusters(self) -> bool {
        matches!(self, Protocol::Postgres | Protocol::PostgresCompatible | Protocol::Mysql)
    }

    /// Whether a standby serves reads and says how far it has replayed its leader's log.
    #[must_use]
    pub fn has_readable_standbys(self) -> bool {
        self == Protocol::Postgres
    }

    /// Whether clients look for the one node that takes writes, and read there what no other node need have.
    #[must_use]
    pub fn reads_at_the_leader(self) -> bool {
        matches!(self, Protocol::Postgres | Protocol::Redis)
    }

    /// Which workloads it carries.
    #[must_use]
    pub fn understands(self) -> Understands {
        match self {
            Protocol::Postgres | Protocol::PostgresCompatible | Protocol::Mysql => Understands::Sql,
            // Whatever its dialect; a script's results have names, which the lines of a program have not.
            Protocol::Process => Understands::SqlBut(&["tpcc", "script"]),
            Protocol::Control | Protocol::Redis | Protocol::Etcd => Understands::of_keys(),
            Protocol::Cql => Understands::Rows(&["ycsb", "kv", "iot", "ledger", "register"]),
            Protocol::Volume => Understands::Volume(VOLUME_WORKLOAD),
        }
    }

    /// How many operations its servers take in one transaction; `None` where no workload has more than they take.
    #[must_use]
    pub fn operation_limit(self) -> Option<OperationLimit> {
        // etcd counts conditions, and what is done on either outcome of them, each by itself; the client's requests have no more of
        // each than the transaction has operations (`checkTxnRequest` of its sources).
        (self == Protocol::Etcd).then_some(OperationLimit { setting: "max-txn-ops", default: 128 })
    }

    /// Whether a client says by how many replicas each read and each write must be answered.
    #[must_use]
    pub fn has_consistency_levels(self) -> bool {
        self == Protocol::Cql
    }

    /// Workloads of which some transactions, or some requests of each, are one that reads and one that writes, and some only
    /// one.
    #[must_use]
    pub fn reads_first(self) -> &'static [&'static str] {
        match self {
            Protocol::Etcd => &["append", "bank", "tpcb"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_found_by_its_name_unless_no_engine_file_may_name_it() {
        for protocol in Protocol::ALL {
            let is_of_files = !matches!(protocol, Protocol::Control | Protocol::Volume);
            assert_eq!(Protocol::named(protocol.name()), is_of_files.then_some(protocol));
        }
        assert_eq!(Protocol::named("postgers"), None);
    }

    #[test]
    fn a_url_names_a_protocol_whose_servers_have_a_usual_port() {
        assert_eq!(Protocol::of_scheme("postgresql"), Some(Protocol::Postgres));
        assert_eq!(Protocol::of_scheme("mariadb"), Some(Protocol::Mysql));
        assert_eq!(Protocol::of_scheme("http"), None);
        let with_urls = Protocol::ALL.into_iter().filter(|protocol| !protocol.schemes().is_empty());
        assert!(with_urls.clone().all(|protocol| protocol.usual().is_some()));
        assert_eq!(with_urls.count(), 3);
    }

    #[test]
    fn a_cluster_that_exists_is_asked_as_a_usual_user_where_none_is_named() {
        let asked = Protocol::ALL.into_iter().filter(|protocol| protocol.reaches_existing_clusters());
        assert!(asked.clone().all(|protocol| protocol.usual().is_some()));
        assert_eq!(asked.count(), 3);
    }
}
