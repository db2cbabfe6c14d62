//! The engines that are part of Holdfast: an entry for each that is written in Rust, and every file of `engines/`.
//!
//! Owns the entries' facts, with the document that each comes from where the database promises something.

use std::sync::LazyLock;

use crate::{
    Capabilities, ClockTolerance, Commit, Election, Leadership, NoPods, Period, Protocol, Quorum,
    SessionLimit, SettingForm, SettingNames, Understands, VOLUME_WORKLOAD, file,
};

/// Engines that are files, each with its text, by name: all of `engines/`, as `build.rs` lists them.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/engine_files.rs"));

/// A file that is shipped is sound, or the program does not start; a test reads each.
static ENGINES: LazyLock<Vec<&'static Capabilities>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| {
        file::read(name, text).unwrap_or_else(|rejection| panic!("{name}: {:?}", rejection.problems()))
    };
    [&POSTGRES].into_iter().chain(FILES.iter().map(read)).chain([&CONTROL, &NONE]).collect()
});

static NAMES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| ENGINES.iter().map(|engine| engine.name).collect());

/// Every engine that a scenario may name.
#[must_use]
pub fn engines() -> &'static [&'static Capabilities] {
    &ENGINES
}

/// What scenarios call the engines whose files ship, in order.
#[must_use]
pub fn names() -> &'static [&'static str] {
    &NAMES
}

static POSTGRES: Capabilities = Capabilities {
    name: "postgres",
    summary: "PostgreSQL 13 or newer: one leader, streaming standbys; synchronous any N, all or off",
    protocol: Protocol::Postgres,
    client_port: 5432,
    leadership: Leadership::Platform,
    commit: Commit::AtEnd,
    quorum: Quorum::AsAsked,
    unsynced: None,
    clock_tolerance: Some(ClockTolerance::Any),
    understands: Understands::Sql,
    has_isolation_levels: true,
    // Its documentation promises no order in time.
    keeps_real_time_order: false,
    reads_from_replicas: true,
    answers_for_itself: true,
    pod_program: Ok("postgres"),
    settings: SettingForm::Names(SettingNames {
        signs: &['_', '.'],
        help: "a setting's name is made of up to 100 small letters, digits, `_` and `.`, as in shared_buffers",
        known: include_str!("settings/postgres.txt"),
        decided: &[
            ("listen_addresses", "the lab decides which address a node has"),
            ("port", "clients and standbys find a node at the port the lab gives it"),
            ("data_directory", "a node's data must be on its volume"),
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
    file: None,
};

static CONTROL: Capabilities = Capabilities {
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
    quorum: Quorum::AsAsked,
    unsynced: None,
    clock_tolerance: Some(ClockTolerance::Any),
    understands: Understands::of_keys(),
    has_isolation_levels: false,
    keeps_real_time_order: true,
    reads_from_replicas: false,
    answers_for_itself: false,
    pod_program: Err(NoPods::Unknown),
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
    file: None,
};

static NONE: Capabilities = Capabilities {
    name: "none",
    summary: "no database: the nodes' volumes themselves, for the workload rawio",
    protocol: Protocol::Volume,
    client_port: 5432,
    leadership: Leadership::Platform,
    commit: Commit::AtEnd,
    quorum: Quorum::AsAsked,
    unsynced: None,
    clock_tolerance: Some(ClockTolerance::Any),
    understands: Understands::Volume(VOLUME_WORKLOAD),
    has_isolation_levels: false,
    keeps_real_time_order: false,
    reads_from_replicas: false,
    answers_for_itself: false,
    pod_program: Err(NoPods::Unknown),
    settings: SettingForm::Nothing,
    session_limit: None,
    file: None,
};
