//! The text of PostgreSQL's configuration on each node, and the reason for everything in it that is not the default.
//!
//! Owns the settings. Owns neither where the files lie nor when they are written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{Configuration, EngineError, Synchronous};

/// The superuser `initdb` makes, which clients use as well.
pub const USER: &str = "holdfast";
/// The database everything happens in.
pub const DATABASE: &str = "postgres";

/// Who may connect: everybody, because the lab is a network of its own that nobody else is on.
pub const HOST_BASED_AUTHENTICATION: &str = "\
# The lab is a private network: whoever is on it is one of its nodes or clients.
local all         all           trust
local replication all           trust
host  all         all 0.0.0.0/0 trust
host  all         all ::0/0     trust
host  replication all 0.0.0.0/0 trust
host  replication all ::0/0     trust
";

/// What differs from PostgreSQL's defaults, or is stated because results depend on it: name, value, reason.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("fsync", "on", "stated: whether committed data survive a power-off depends on it"),
    (
        "full_page_writes",
        "on",
        "stated: torn pages after a power-off are repaired with it, and pg_rewind needs it",
    ),
    (
        "synchronous_commit",
        "on",
        "stated: a commit waits for the standbys' flush, not only for their receipt",
    ),
    ("shared_buffers", "128MB", "stated: several nodes share one machine's memory"),
    ("wal_level", "replica", "stated: standbys stream the log"),
    ("hot_standby", "on", "stated: a standby can be asked for its position before it is promoted"),
    ("max_slot_wal_keep_size", "4GB", "a standby that is away must not fill the leader's volume"),
    ("wal_keep_size", "256MB", "a returning node finds the log since before the promotion it missed"),
    ("wal_receiver_status_interval", "1s", "standbys report at least once a second, so silence is noticed"),
    (
        "wal_receiver_timeout",
        "5s",
        "a standby gives a silent leader up (default 60s would outlast the fault)",
    ),
    ("wal_sender_timeout", "5s", "a leader gives a silent standby up (default 60s)"),
    ("wal_retrieve_retry_interval", "200ms", "a standby tries its leader again soon (default 5s)"),
    (
        "tcp_keepalives_idle",
        "5s",
        "sessions of clients that lost power must not hold their locks for two hours",
    ),
    ("tcp_keepalives_interval", "1s", "the same"),
    ("tcp_keepalives_count", "3", "the same"),
    ("log_line_prefix", "%m [%p] %a ", "times to the millisecond, beside the run's events"),
    ("log_timezone", "UTC", "logs of different machines can be laid side by side"),
    ("timezone", "UTC", "results must not depend on the machine's time zone"),
];

/// Settings the engine must have to itself: with another value the cluster could not be run.
const OWNED: &[&str] = &[
    "archive_mode",
    "cluster_name",
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "hot_standby",
    "ident_file",
    "include",
    "include_dir",
    "include_if_exists",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "primary_conninfo",
    "primary_slot_name",
    "recovery_target",
    "recovery_target_inclusive",
    "recovery_target_lsn",
    "recovery_target_name",
    "recovery_target_time",
    "recovery_target_timeline",
    "recovery_target_xid",
    "restore_command",
    "synchronous_standby_names",
    "unix_socket_directories",
    "unix_socket_permissions",
];

/// Whom a node follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The leader's address.
    pub address: IpAddr,
    /// Whether the leader has a slot for it.
    pub has_slot: bool,
}

/// One node's place in the cluster, as far as its configuration tells it.
#[derive(Debug, Clone)]
pub struct Placement<'a> {
    /// The node.
    pub name: &'a str,
    pub addresses: Vec<IpAddr>,
    /// Where its socket goes.
    pub socket_directory: String,
    /// Every other node of the cluster, by name.
    pub others: Vec<&'a str>,
    /// How many acknowledgements a commit waits for when this node leads.
    pub acknowledgements: usize,
    /// Whom it follows; nobody when it leads.
    pub upstream: Option<Upstream>,
}

/// Refuses settings that would break the cluster or the file's syntax.
pub fn validate(settings: &BTreeMap<String, String>) -> Result<(), EngineError> {
    for (name, value) in settings {
        let refuse = |why| Err(EngineError::Setting { name: name.clone(), why });
        let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let well_formed = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.".contains(letter));
        if !starts_well || !well_formed {
            return refuse("not a name PostgreSQL could have given a setting");
        }
        if OWNED.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse("the engine sets it itself and needs this value");
        }
        if value.chars().any(|letter| letter == '\n' || letter == '\r' || letter == '\0') {
            return refuse("the value must be on one line");
        }
    }
    Ok(())
}

/// Refuses names that cannot be the name of a replication slot, which each node's is.
pub fn validate_node_name(name: &str) -> Result<(), EngineError> {
    let refuse = |why| Err(EngineError::NodeName { name: name.to_owned(), why });
    if name.is_empty() || name.len() > 63 {
        return refuse("1 to 63 characters are allowed");
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_') {
        return refuse("only a-z, 0-9 and _ are allowed");
    }
    Ok(())
}

/// How many acknowledgements commits wait for with so many standbys there to give them.
pub fn acknowledgements(synchronous: Synchronous, standbys: usize) -> usize {
    match synchronous {
        Synchronous::Off => 0,
        Synchronous::Any(count) => standbys.min(usize::try_from(count).unwrap_or(usize::MAX)),
        Synchronous::All => standbys,
    }
}

/// `ANY 1 ("n2", "n3")`, or nothing when no acknowledgement is waited for.
pub fn synchronous_standby_names(acknowledgements: usize, others: &[&str]) -> String {
    if acknowledgements == 0 || others.is_empty() {
        return String::new();
    }
    let names: Vec<String> = others.iter().map(|name| format!("\"{name}\"")).collect();
    format!("ANY {acknowledgements} ({})", names.join(", "))
}

/// How a program of `name` reaches the database at `address` as a replication client.
///
/// `tcp_user_timeout` ends attempts to reach a silent address, which the log receiver would otherwise leave to the
/// kernel's two minutes (it ignores `connect_timeout`).
pub fn connection_string(name: &str, address: IpAddr, port: u16) -> String {
    format!(
        "host={address} port={port} user={USER} application_name={name} sslmode=disable gssencmode=disable \
         connect_timeout=5 keepalives_idle=2 keepalives_interval=1 keepalives_count=3 tcp_user_timeout=3000"
    )
}

/// The whole of `holdfast.conf` for one node.
pub fn text(configuration: &Configuration, placement: &Placement<'_>) -> String {
    let mut text =
        String::from("# Written by Holdfast; each value that is not PostgreSQL's default has its reason.\n");
    let mut put = |name: &str, value: &str, reason: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {}  # {reason}", quoted(value));
    };
    let addresses: Vec<String> = placement.addresses.iter().map(IpAddr::to_string).collect();
    put("listen_addresses", &addresses.join(","), "the node's own addresses, which move with it");
    put("port", &configuration.port.to_string(), "the cluster's");
    put(
        "unix_socket_directories",
        &placement.socket_directory,
        "outside the data, which are copied between nodes",
    );
    put("cluster_name", placement.name, "the node's name, in the process list");
    let senders = (2 * placement.others.len() + 4).max(10).to_string();
    put(
        "max_wal_senders",
        &senders,
        "every other node streams or copies, twice over after a broken connection",
    );
    put("max_replication_slots", &senders, "one for every other node, whoever leads");
    put(
        "synchronous_standby_names",
        &synchronous_standby_names(placement.acknowledgements, &placement.others),
        "on every node, so that one that is promoted waits for acknowledgements from its first moment",
    );
    if let Some(upstream) = &placement.upstream {
        let connection = connection_string(placement.name, upstream.address, configuration.port);
        put("primary_conninfo", &connection, "the leader");
        if upstream.has_slot {
            put("primary_slot_name", placement.name, "the leader keeps the log for a standby that is away");
        }
    }
    let sessions = configuration.max_connections.to_string();
    put(
        "max_connections",
        &sessions,
        "all clients' sessions go to one leader, twice over after a broken connection",
    );
    for (name, value, reason) in SETTINGS {
        put(name, value, reason);
    }
    for (name, value) in &configuration.settings {
        put(name, value, "from the scenario");
    }
    text
}

/// The settings as the report shows them.
pub fn in_words(configuration: &Configuration) -> BTreeMap<String, String> {
    let mut words: BTreeMap<String, String> =
        SETTINGS.iter().map(|(name, value, _)| ((*name).to_owned(), value.trim().to_owned())).collect();
    words.remove("log_line_prefix");
    words.insert("max_connections".to_owned(), configuration.max_connections.to_string());
    words.extend(
        configuration.settings.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())),
    );
    words.insert("synchronous".to_owned(), configuration.synchronous.to_string());
    words.insert("data_checksums".to_owned(), "on".to_owned());
    words
}

/// A value in PostgreSQL's quotes.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn configuration(synchronous: Synchronous, settings: &[(&str, &str)]) -> Configuration {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Configuration {
            synchronous,
            settings,
            port: 5432,
            max_connections: 2_023,
            upgrade: None,
            copies: 1,
            places: Vec::new(),
        }
    }

    /// The value each setting ends up with: the last one written wins, as in PostgreSQL.
    fn check(
        synchronous: Synchronous,
        settings: &[(&str, &str)],
        leads: bool,
        expected: &[(&str, Option<&str>)],
    ) {
        let upstream = (!leads).then(|| Upstream { address: IpAddr::from([10, 0, 0, 1]), has_slot: true });
        let placement = Placement {
            name: "n2",
            addresses: vec![IpAddr::from([10, 0, 0, 2]), IpAddr::from([0xfd00, 0, 0, 0, 0x10, 0, 0, 2])],
            socket_directory: "/run/db".to_owned(),
            others: vec!["n1", "n3"],
            acknowledgements: acknowledgements(synchronous, 2),
            upstream,
        };
        let text = text(&configuration(synchronous, settings), &placement);
        for (name, value) in expected {
            let written = text.lines().rev().find_map(|line| line.strip_prefix(&format!("{name} = ")));
            let written = written.and_then(|rest| rest.rsplit_once("  # ")).map(|(value, _)| value);
            assert_eq!(written, *value, "{name} in\n{text}");
        }
    }

    #[test]
    fn the_acknowledgements_waited_for_are_those_asked_for() {
        let names = "synchronous_standby_names";
        check(Synchronous::Any(1), &[], true, &[(names, Some(r#"'ANY 1 ("n1", "n3")'"#))]);
        check(Synchronous::Any(2), &[], true, &[(names, Some(r#"'ANY 2 ("n1", "n3")'"#))]);
        check(Synchronous::All, &[], true, &[(names, Some(r#"'ANY 2 ("n1", "n3")'"#))]);
        check(Synchronous::Off, &[], true, &[(names, Some("''"))]);
    }

    #[test]
    fn a_standby_waits_for_acknowledgements_from_the_moment_it_is_promoted() {
        check(
            Synchronous::Any(1),
            &[],
            false,
            &[
                ("synchronous_standby_names", Some(r#"'ANY 1 ("n1", "n3")'"#)),
                ("primary_slot_name", Some("'n2'")),
            ],
        );
    }

    #[test]
    fn a_node_listens_on_both_its_addresses_and_on_nothing_else() {
        let both = "'10.0.0.2,fd00::10:0:0:2'";
        check(Synchronous::Off, &[], true, &[("listen_addresses", Some(both))]);
    }

    #[test]
    fn a_leader_follows_nobody() {
        check(Synchronous::Off, &[], true, &[("primary_conninfo", None), ("primary_slot_name", None)]);
    }

    #[test]
    fn every_node_takes_the_sessions_of_all_clients_unless_the_settings_say_otherwise() {
        let name = "max_connections";
        for leads in [true, false] {
            check(Synchronous::Off, &[], leads, &[(name, Some("'2023'"))]);
            check(Synchronous::Off, &[(name, "5100")], leads, &[(name, Some("'5100'"))]);
        }
        assert_eq!(
            in_words(&configuration(Synchronous::Off, &[])).get(name).map(String::as_str),
            Some("2023")
        );
        let asked = configuration(Synchronous::Off, &[(name, "5100")]);
        assert_eq!(in_words(&asked).get(name).map(String::as_str), Some("5100"));
    }

    #[test]
    fn the_scenario_has_the_last_word() {
        check(Synchronous::Off, &[("fsync", "off")], true, &[("fsync", Some("'off'"))]);
        check(Synchronous::Off, &[("search_path", r"it's\")], true, &[("search_path", Some(r"'it''s\\'"))]);
    }

    fn check_setting(name: &str, value: &str, expected: Result<(), &str>) {
        let found = validate(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert_eq!(found.map_err(|error| error.to_string()), expected.map_err(ToOwned::to_owned));
    }

    #[test]
    fn settings_that_would_break_the_cluster_are_refused() {
        check_setting("work_mem", "8MB", Ok(()));
        check_setting("auto_explain.log_min_duration", "1s", Ok(()));
        let owned = "the engine sets it itself and needs this value";
        check_setting("Port", "1", Err(&format!("setting `Port`: {owned}")));
        check_setting("a b", "1", Err("setting `a b`: not a name PostgreSQL could have given a setting"));
        check_setting("", "1", Err("setting ``: not a name PostgreSQL could have given a setting"));
        check_setting("work_mem", "1\nfsync=off", Err("setting `work_mem`: the value must be on one line"));
    }

    #[test]
    fn fewer_standbys_than_acknowledgements_mean_as_many_as_there_are() {
        assert_eq!(acknowledgements(Synchronous::Any(2), 1), 1);
        assert_eq!(acknowledgements(Synchronous::All, 0), 0);
        assert_eq!(synchronous_standby_names(0, &["n1"]), "");
    }

    proptest! {
        #[test]
        fn a_quoted_value_reads_back_as_it_was(value in "[^\n\r\0]*") {
            let inner = quoted(&value);
            let inner = &inner[1..inner.len() - 1];
            prop_assert_eq!(inner.replace("''", "'").replace("\\\\", "\\"), value);
        }
    }
}
