//! How an engine is found and installed, what it promises, and what may be set of it.
//!
//! Owns reading these parts of the file.

use super::super::language::{
    CLAIMS, CLIENT as CLIENT_TABLE, ELECTS, FIND, PAPER, PERIOD_OF_A_SETTING, SETTINGS, TESTED, VERSION, WAY,
};
use super::*;

/// Where programs are when the file does not say.
const USUAL_FOLDER: &str = "usr/bin";

/// How programs are asked for their version.
const VERSION_WORDS: &[&str] = &["--version", "-version", "-V", "-v", "version"];

/// `client`.
pub(super) struct ClientPart {
    pub(super) protocol: Protocol,
    pub(super) user: String,
    pub(super) database: String,
}

/// `claims`.
pub(super) struct ClaimsPart {
    pub(super) isolation: Isolation,
    pub(super) in_real_time: bool,
    pub(super) has_levels: bool,
    pub(super) replica_reads: bool,
}

impl Reader<'_> {
    pub(super) fn find(&mut self, node: &Node) -> Option<Find> {
        let record = self.decoder.record(node, &FIND)?;
        if let Some(programs) = record.get("programs").and_then(|node| self.texts(node, "`programs`")) {
            self.programs = programs;
        }
        let folders = record.get("folders").map(|node| self.texts(node, "`folders`"));
        let at_least = record.get("at-least").and_then(|node| self.decoder.text(node, "the version"));
        if let Some(written) = &at_least
            && !written.value.starts_with(|c: char| c.is_ascii_digit())
        {
            self.decoder.findings.add(
                "not-a-number",
                written.at,
                format!("`{}` is no version", yaml::wording::shortened(&written.value)),
                "not a version",
                "write numbers with dots between them, such as \"3.4\"",
            );
        }
        let version = record.get("version").and_then(|node| self.decoder.record(node, &VERSION))?;
        let command = version.get("command").and_then(|node| self.version_command(node));
        let after =
            version.get("after").and_then(|node| self.decoder.text(node, "what stands before the version"));
        let (version_program, version_arguments) = command?;
        Some(Find {
            programs: self.programs.clone(),
            folders: match folders {
                Some(folders) => folders?,
                None => vec![USUAL_FOLDER.to_owned()],
            },
            version_program,
            version_arguments,
            version_after: after.map(|after| after.value).unwrap_or_default(),
            at_least: at_least?.value,
        })
    }

    /// The one command that is run outside of the lab, as whoever runs the scenario: it may ask for the version only.
    fn version_command(&mut self, node: &Node) -> Option<(String, Vec<String>)> {
        let (program, _) = self.command(node, Context::Machine)?;
        let mut arguments = Vec::new();
        for item in self.decoder.list(node, "a command", 1)?.iter().skip(1) {
            let argument = self.decoder.text(item, "an argument")?;
            if !VERSION_WORDS.contains(&argument.value.as_str()) {
                self.decoder.findings.add(
                    "version-command",
                    argument.at,
                    format!("`{}` asks for more than a version", yaml::wording::shortened(&argument.value)),
                    "not a way to ask for it",
                    format!(
                        "this command is run outside of the lab: write {}",
                        yaml::wording::either(VERSION_WORDS)
                    ),
                );
                return None;
            }
            arguments.push(argument.value);
        }
        Some((program, arguments))
    }

    pub(super) fn install(&mut self, node: &Node) -> Option<Vec<Way>> {
        let items = self.decoder.list(node, "`install`", 1)?;
        let read: Vec<Option<Way>> = items.iter().map(|item| self.way(item)).collect();
        read.into_iter().collect()
    }

    fn way(&mut self, node: &Node) -> Option<Way> {
        let record = self.decoder.record(node, &WAY)?;
        let (way, entry) = record.first_of(&["apt", "pip"])?;
        let (mine, others) = match way {
            "apt" => (&["dependencies"][..], &["version", "sha256", "megabytes"][..]),
            _ => (&["version", "sha256", "megabytes"][..], &["dependencies"][..]),
        };
        for other in others {
            if let Some(at) = record.key_at(other) {
                let message = format!("`{other}` does nothing beside `{way}`");
                let help =
                    format!("take it out; beside `{way}` there may be {}", yaml::wording::listed(mine));
                self.decoder.findings.add("unused-key", at, message, "does nothing here", help);
                return None;
            }
        }
        if way == "apt" {
            let dependencies =
                record.get("dependencies").map(|node| self.decoder.flag(node, "`dependencies`"));
            return Some(Way::Apt {
                packages: self.texts(&entry.value, "`apt`")?,
                dependencies: match dependencies {
                    Some(flag) => flag?.value,
                    None => false,
                },
            });
        }
        for needed in mine {
            if record.key_at(needed).is_none() {
                let message =
                    format!("`pip` needs `{needed}`: what is installed is pinned, and its checksum known");
                let label = format!("`{needed}` is missing here");
                self.decoder.findings.add(
                    "missing-key",
                    entry.key_at,
                    message,
                    label,
                    format!("add `{needed}:`"),
                );
                return None;
            }
        }
        let version = record.get("version").and_then(|node| self.decoder.text(node, "the version"));
        let megabytes =
            record.get("megabytes").and_then(|node| self.decoder.count(node, "its size", 1, 10_000));
        Some(Way::Pip {
            name: self.decoder.text(&entry.value, "the wheel's name")?.value,
            version: version?.value,
            megabytes: u32::try_from(megabytes?.value).ok()?,
            checksums: record.get("sha256").and_then(|node| self.checksums(node))?,
        })
    }

    fn checksums(&mut self, node: &Node) -> Option<Vec<(String, String)>> {
        let mut checksums = Vec::new();
        for entry in self.decoder.entries(node, "`sha256`")? {
            let sum = self.decoder.text(&entry.value, "a checksum")?;
            if sum.value.len() != 64 || !sum.value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                self.decoder.findings.add(
                    "bad-checksum",
                    sum.at,
                    "this is no SHA-256",
                    "not 64 hexadecimal digits",
                    "write the whole checksum, as `sha256sum FILE` gives it",
                );
                return None;
            }
            checksums.push((entry.key.clone(), sum.value));
        }
        Some(checksums)
    }

    pub(super) fn client(&mut self, node: &Node) -> Option<ClientPart> {
        let record = self.decoder.record(node, &CLIENT_TABLE)?;
        let protocol = record.get("protocol").and_then(|node| self.decoder.word(node, "protocol", PROTOCOLS));
        let user = record.get("user").and_then(|node| self.decoder.text(node, "the user"));
        let database = record.get("database").and_then(|node| self.decoder.text(node, "the database"));
        let called = protocol?.value;
        let protocol = Protocol::named(called)?;
        let needed = [("user", user.is_some()), ("database", database.is_some())];
        let is_sql = matches!(protocol, Protocol::Postgres | Protocol::Mysql);
        for (key, _) in needed.iter().filter(|(_, there)| is_sql && !there) {
            let message = format!("the protocol {called} needs `{key}`");
            let label = format!("`{key}` is missing here");
            self.decoder.findings.add(
                "missing-key",
                node.head,
                message,
                label,
                format!("add `{key}: {called}`"),
            );
        }
        Some(ClientPart {
            protocol,
            user: user.map(|user| user.value).unwrap_or_default(),
            database: match (database, protocol) {
                (Some(database), _) => database.value,
                // A keyspace is the clients' own to make.
                (None, Protocol::Cql) => "holdfast".to_owned(),
                (None, _) => String::new(),
            },
        })
    }

    pub(super) fn claims(&mut self, node: &Node) -> Option<ClaimsPart> {
        let record = self.decoder.record(node, &CLAIMS)?;
        let isolation =
            record.get("isolation").and_then(|node| self.decoder.word(node, "isolation", ISOLATIONS));
        let order = record.get("order").and_then(|node| self.decoder.word(node, "order", ORDERS));
        let mut flag = |key: &'static str| {
            let flag = record.get(key).and_then(|node| self.decoder.flag(node, &format!("`{key}`")));
            flag.is_some_and(|flag| flag.value)
        };
        let (has_levels, replica_reads) = (flag("isolation-levels"), flag("replica-reads"));
        Some(ClaimsPart {
            isolation: match isolation?.value {
                "read-committed" => Isolation::ReadCommitted,
                "snapshot-isolation" => Isolation::SnapshotIsolation,
                _ => Isolation::Serializable,
            },
            in_real_time: order.is_some_and(|order| order.value == REAL_TIME),
            has_levels,
            replica_reads,
        })
    }

    /// When it commits, whether the scenario chooses what is waited for, and when another leader is elected.
    pub(super) fn paper(&mut self, node: &Node) -> Option<(&'static str, bool, Election)> {
        let record = self.decoder.record(node, &PAPER)?;
        let commit = record.get("commit").and_then(|node| self.decoder.word(node, "time to commit", COMMITS));
        let quorum = record.get("quorum").and_then(|node| self.decoder.word(node, "quorum", QUORUMS));
        let elects = record.get("elects").and_then(|node| self.decoder.record(node, &ELECTS))?;
        let timeout = elects.get("timeout").and_then(|node| self.period(node, "`timeout`"));
        let heartbeat = elects.get("heartbeat").and_then(|node| self.period(node, "`heartbeat`"));
        let late = match elects.get("heartbeats-late") {
            Some(node) => self.decoder.number(node, "`heartbeats-late`")?.value,
            None => 1.0,
        };
        let election = Election { timeout: timeout?, heartbeat: heartbeat?, heartbeats_late: late };
        Some((commit?.value, quorum?.value != MAJORITY, election))
    }

    fn period(&mut self, node: &Node, what: &str) -> Option<Period> {
        if matches!(node.value, yaml::Value::Scalar { .. }) {
            let fixed = self.decoder.duration(node, what, "ms")?;
            return Some(Period { setting: None, default_ms: fixed.value.as_secs_f64() * 1e3 });
        }
        let record = self.decoder.record(node, &PERIOD_OF_A_SETTING)?;
        let setting = record.get("setting").and_then(|node| self.decoder.text(node, "the setting"));
        let default = record.get("default").and_then(|node| self.decoder.duration(node, what, "ms"));
        Some(Period { setting: Some(kept(setting?.value)), default_ms: default?.value.as_secs_f64() * 1e3 })
    }

    pub(super) fn settings(&mut self, node: &Node) -> Option<SettingForm> {
        let record = self.decoder.record(node, &SETTINGS)?;
        let signs = record.get("signs").and_then(|node| self.decoder.text(node, "the signs"));
        let help = record.get("help").and_then(|node| self.decoder.text(node, "the help"));
        let known = record.get("known").map(|node| self.texts(node, "`known`"));
        let mut decided: Vec<(&'static str, &'static str)> = Vec::new();
        if let Some(node) = record.get("decided") {
            for entry in self.decoder.entries(node, "`decided`")? {
                let why = self.decoder.text(&entry.value, "the reason")?;
                decided.push((kept(entry.key.clone()), kept(why.value)));
            }
        }
        let signs: Vec<char> = signs.map(|signs| signs.value.chars().collect()).unwrap_or_default();
        let known = match known {
            Some(known) => known?.join("\n"),
            None => String::new(),
        };
        Some(SettingForm::Names(SettingNames {
            signs: signs.leak(),
            help: kept(help?.value),
            known: kept(known),
            decided: decided.leak(),
        }))
    }

    pub(super) fn tested(&mut self, node: &Node) -> Option<Tested> {
        let record = self.decoder.record(node, &TESTED)?;
        let here = record.get("here").and_then(|node| self.decoder.flag(node, "`here`"));
        let versions = record.get("versions").map(|node| self.texts(node, "`versions`"));
        let from = record.get("from").and_then(|node| self.decoder.text(node, "where it is from"));
        let here = here?.value;
        let (needed, is_there) =
            if here { ("versions", versions.is_some()) } else { ("from", from.is_some()) };
        if !is_there {
            let message = format!("`here: {here}` needs `{needed}`");
            let help = if here {
                "add the versions that were run, such as `versions: [\"1.2\"]`"
            } else {
                "add where it is from, such as `from: its documentation, \"Deploying\"`"
            };
            let label = format!("`{needed}` is missing here");
            self.decoder.findings.add("missing-key", node.head, message, label, help);
        }
        Some(Tested {
            here,
            versions: match versions {
                Some(versions) => versions?,
                None => Vec::new(),
            },
            from: from.map(|from| from.value),
        })
    }
}
