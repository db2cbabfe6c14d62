//! `database.settings`: further settings of the database's own, which differ from engine to engine.
//!
//! Owns how they are called and which of them holdfast itself must decide. What one does is the database's to say.

use std::collections::BTreeMap;

use crate::catalogue::{CONTROL, ETCD, FLAWS};
use crate::decode::Decoder;
use crate::language::MOST_FREE_NAME_BYTES;
use crate::rejection::Spot;
use crate::tree::{Node, Value};
use crate::wording::shortened;

/// Settings that holdfast itself must decide, and why.
const OUR_SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "the lab decides which address a node has"),
    ("port", "clients and standbys find a node at the port the lab gives it"),
    ("data_directory", "a node's data lies on its volume"),
    ("synchronous_standby_names", "write `replication: { synchronous: any 1 }` instead"),
    ("primary_conninfo", "a standby follows whichever node is the leader"),
    ("hot_standby", "standbys are asked how far they are, which needs them readable"),
    ("unix_socket_directories", "a node's sockets lie in its own run directory"),
];

/// The same of etcd's flags; a name that ends with a hyphen stands for all that begin so.
const OUR_FLAGS: &[(&str, &str)] = &[
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
];

/// Reads the settings of an engine; of one that is unknown, as most have them.
pub(crate) fn decode(
    node: &Node,
    engine: Option<&str>,
    decoder: &mut Decoder,
) -> Option<BTreeMap<String, String>> {
    match engine {
        Some(CONTROL) => flaw(node, decoder),
        Some(ETCD) => free(node, &FLAGS, decoder),
        _ => free(node, &SETTINGS, decoder),
    }
}

/// Where the value of a setting stands.
pub(crate) fn value_at(node: &Node, name: &str) -> Option<Spot> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == name).map(|entry| entry.value.at)
}

/// How settings of an engine are called, and which are ours.
struct SettingNames {
    /// What may stand in a name beside small letters and digits.
    signs: &'static [char],
    /// What may stand in one, in words with an example.
    help: &'static str,
    /// Names that are ours; one that ends with a hyphen, all that begin so.
    ours: &'static [(&'static str, &'static str)],
}

const SETTINGS: SettingNames = SettingNames {
    signs: &['_', '.'],
    help: "a setting's name is made of up to 100 small letters, digits, `_` and `.`, as in shared_buffers",
    ours: OUR_SETTINGS,
};

const FLAGS: SettingNames = SettingNames {
    signs: &['-'],
    help: "a flag of etcd is written without the hyphens before it, in small letters, digits and `-`, as in \
           heartbeat-interval",
    ours: OUR_FLAGS,
};

fn free(node: &Node, names: &SettingNames, decoder: &mut Decoder) -> Option<BTreeMap<String, String>> {
    let entries = decoder.entries(node, "`settings`")?;
    let mut settings = BTreeMap::new();
    for entry in entries {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || names.signs.contains(&c);
        let short = entry.key.len() <= MOST_FREE_NAME_BYTES;
        if !short || !entry.key.starts_with(|c: char| c.is_ascii_lowercase()) || !entry.key.chars().all(fits)
        {
            let message = format!("`{}` cannot be a setting", shortened(&entry.key));
            decoder.findings.add("bad-name", entry.key_at, message, "not a setting's name", names.help);
            continue;
        }
        let is_ours = |name: &str| entry.key == name || (name.ends_with('-') && entry.key.starts_with(name));
        if let Some((_, why)) = names.ours.iter().find(|(name, _)| is_ours(name)) {
            decoder.findings.add(
                "our-setting",
                entry.key_at,
                format!("`{}` is set by holdfast", entry.key),
                "not yours to set",
                format!("remove it: {why}"),
            );
            continue;
        }
        let Some(text) = decoder.text(&entry.value, &format!("`{}`", entry.key)) else { continue };
        if text.value.contains(char::is_control) {
            let message = format!("`{}` holds a line break or another control character", entry.key);
            decoder.findings.add(
                "bad-setting",
                text.at,
                message,
                "not on one line",
                "write the value on one line",
            );
            continue;
        }
        settings.insert(entry.key.clone(), text.value);
    }
    Some(settings)
}

/// The settings of the control database: a flaw that is switched on, and nothing else.
fn flaw(node: &Node, decoder: &mut Decoder) -> Option<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for entry in decoder.entries(node, "`settings`")? {
        if entry.key != "flaw" {
            let message = format!("the control database has no setting `{}`", shortened(&entry.key));
            let help = "its one setting is `flaw`, such as `flaw: stale-reads`";
            decoder.findings.add("unknown-setting", entry.key_at, message, "not a setting of it", help);
            continue;
        }
        if let Some(flaw) = decoder.word(&entry.value, "flaw", FLAWS) {
            settings.insert(entry.key.clone(), flaw.value.to_owned());
        }
    }
    Some(settings)
}
