//! The engines that are part of Holdfast, one entry each.
//!
//! Owns their facts, with the document that each comes from where the database promises something.

use crate::{
    Capabilities, Commit, Election, Leadership, Period, Protocol, SessionLimit, SettingForm, SettingNames,
    Understands, VOLUME_WORKLOAD,
};

/// Every engine that a scenario may name.
pub const ENGINES: &[Capabilities] = &[POSTGRES, ETCD, CONTROL, NONE];

/// Their names.
pub const NAMES: [&str; ENGINES.len()] = {
    let mut names = [""; ENGINES.len()];
    let mut number = 0;
    while number < names.len() {
        names[number] = ENGINES[number].name;
        number += 1;
    }
    names
};

const POSTGRES: Capabilities = Capabilities {
    name: "postgres",
    summary: "PostgreSQL 13 or newer: one leader, streaming standbys; synchronous any N, all or off",
    protocol: Protocol::Postgres,
    client_port: 5432,
    leadership: Leadership::Platform,
    commit: Commit::AtEnd,
    chooses_acknowledgements: true,
    understands: Understands::Sql,
    has_isolation_levels: true,
    // Its documentation promises no order in time.
    keeps_real_time_order: false,
    reads_from_replicas: true,
    settings: SettingForm::Names(SettingNames {
        signs: &['_', '.'],
        help: "a setting's name is made of up to 100 small letters, digits, `_` and `.`, as in shared_buffers",
        known: include_str!("settings/postgres.txt"),
        decided: &[
            ("listen_addresses", "the lab decides which address a node has"),
            ("port", "clients and standbys find a node at the port the lab gives it"),
            ("data_directory", "a node's data lies on its volume"),
            ("synchronous_standby_names", "write `replication: { synchronous: any 1 }` instead"),
            ("primary_conninfo", "a standby follows whichever node is the leader"),
            ("hot_standby", "standbys are asked how far they are, which needs them readable"),
            ("unix_socket_directories", "a node's sockets lie in its own run directory"),
        ],
    }),
    // What PostgreSQL keeps for superusers; the clients of a lab are superusers, so that it keeps nothing from them.
    session_limit: Some(SessionLimit {
        setting: "max_connections",
        reserved_setting: "superuser_reserved_connections",
        reserved: 3,
    }),
};

const ETCD: Capabilities = Capabilities {
    name: "etcd",
    summary: "etcd 3.4 or newer, unmodified: a store of keys and values that elects its leader; waits for a majority",
    protocol: Protocol::Etcd,
    client_port: 2379,
    // Its defaults ("Tuning"). It counts in heartbeats, and the last may be one old.
    leadership: Leadership::Elected(Election {
        timeout: Period { setting: Some("election-timeout"), default_ms: 1000.0 },
        heartbeat: Period { setting: Some("heartbeat-interval"), default_ms: 100.0 },
        heartbeats_late: 2.0,
    }),
    commit: Commit::AtEachRequest { reads_first: &["append", "bank"] },
    chooses_acknowledgements: false,
    understands: Understands::Only(&["ledger", "append", "bank", "register"]),
    has_isolation_levels: false,
    // "KV API guarantees": strict serializability.
    keeps_real_time_order: true,
    reads_from_replicas: false,
    settings: SettingForm::Names(SettingNames {
        signs: &['-'],
        help: "a flag of etcd is written without the hyphens before it, in small letters, digits and `-`, as in \
               heartbeat-interval",
        known: include_str!("settings/etcd.txt"),
        decided: &[
            ("name", "a member is called as its node is"),
            ("data-dir", "a node's data lies on its volume"),
            ("wal-dir", "a node's data lies on its volume"),
            ("listen-", "the lab decides which addresses a node has"),
            ("advertise-", "the lab decides which addresses a node has"),
            ("initial-", "the members are the nodes of the scenario"),
            ("discovery", "the members are the nodes of the scenario"),
            ("discovery-", "the members are the nodes of the scenario"),
            ("force-new-cluster", "the members are the nodes of the scenario"),
            ("proxy", "every node is a member"),
            ("config-file", "every flag stands in the scenario"),
            ("enable-grpc-gateway", "it is what the clients speak to"),
            ("logger", "its log is kept with the run"),
            ("log-", "its log is kept with the run"),
        ],
    }),
    session_limit: None,
};

const CONTROL: Capabilities = Capabilities {
    name: "control",
    summary: "holdfast's own small replicated store, nothing to install; a flaw can be switched on by `settings`",
    protocol: Protocol::Control,
    client_port: 5432,
    leadership: Leadership::Elected(Election {
        timeout: Period { setting: None, default_ms: 600.0 },
        heartbeat: Period { setting: None, default_ms: 100.0 },
        heartbeats_late: 1.0,
    }),
    commit: Commit::AtEachRequest { reads_first: &[] },
    chooses_acknowledgements: true,
    understands: Understands::Only(&["tpcb", "ledger", "append", "bank", "register"]),
    has_isolation_levels: false,
    keeps_real_time_order: true,
    reads_from_replicas: false,
    settings: SettingForm::OneOf {
        name: "flaw",
        values: &[
            "none",
            "ack-before-fsync",
            "ack-before-replication",
            "clock-last-write-wins",
            "dirty-read",
            "duplicate-on-retry",
            "forget-on-restart",
            "lost-update",
            "non-repeatable-order",
            "split-brain",
            "stale-reads",
            "write-skew",
        ],
    },
    session_limit: None,
};

const NONE: Capabilities = Capabilities {
    name: "none",
    summary: "no database: the nodes' volumes themselves, for the workload rawio",
    protocol: Protocol::Volume,
    client_port: 5432,
    leadership: Leadership::Platform,
    commit: Commit::AtEnd,
    chooses_acknowledgements: true,
    understands: Understands::Volume(VOLUME_WORKLOAD),
    has_isolation_levels: false,
    keeps_real_time_order: false,
    reads_from_replicas: false,
    settings: SettingForm::Nothing,
    session_limit: None,
};
