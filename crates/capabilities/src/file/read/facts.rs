//! How an engine is found and installed, what it promises, and what may be set of it.
//!
//! Owns reading these parts of the file.

use super::super::language::{
    ANY_TIME, AS_ASKED, CLAIMS, ELECTS, FIND, NO_TOLERANCE, NONE, PAPER, PER_REQUEST, PERIOD_OF_A_SETTING,
    SETTINGS, TESTED, UNSYNCED, VERSION, WAY,
};
use super::super::{Jar, VersionSource};
use super::*;
use crate::{ClockTolerance, Quorum, Unsynced};

/// Where programs are when the file does not say.
const USUAL_FOLDER: &str = "usr/bin";

/// How programs are asked for their version.
const VERSION_WORDS: &[&str] = &["--version", "-version", "-V", "-v", "version"];

pub(super) struct ClaimsPart {
    pub(super) isolation: Isolation,
    pub(super) in_real_time: bool,
    pub(super) has_levels: bool,
    pub(super) replica_reads: bool,
}

pub(super) struct PaperPart {
    pub(super) commit: &'static str,
    pub(super) quorum: Quorum,
    /// Where one leads.
    pub(super) election: Option<Election>,
    pub(super) unsynced: Option<Unsynced>,
    pub(super) clock_tolerance: Option<ClockTolerance>,
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
                format!("`{}` is not a version", yaml::wording::shortened(&written.value)),
                "not a version",
                "write numbers with dots between them, such as \"3.4\"",
            );
        }
        let version = record.get("version").and_then(|node| self.version(node));
        Some(Find {
            programs: self.programs.clone(),
            folders: match folders {
                Some(folders) => folders?,
                None => vec![USUAL_FOLDER.to_owned()],
            },
            version: version?,
            at_least: at_least?.value,
        })
    }

    fn version(&mut self, node: &Node) -> Option<VersionSource> {
        let record = self.decoder.record(node, &VERSION)?;
        match record.first_of(&["command", "file"])? {
            ("command", entry) => {
                let (program, arguments) = self.version_command(&entry.value)?;
                let after = record.get("after");
                let after = after.and_then(|node| self.decoder.text(node, "the text before the version"));
                let after = after.map(|after| after.value).unwrap_or_default();
                Some(VersionSource::Command { program, arguments, after })
            }
            (_, entry) => {
                if !self.alone(&record, &["after"], "file") {
                    return None;
                }
                let items = self.decoder.list(&entry.value, "`file`", 1)?;
                let read: Vec<_> = items.iter().map(|item| self.version_in_name(item)).collect();
                Some(VersionSource::File(read.into_iter().collect::<Option<_>>()?))
            }
        }
    }

    /// What stands before and behind the version in a file's name.
    fn version_in_name(&mut self, node: &Node) -> Option<(String, String)> {
        let name = self.decoder.text(node, "a file's name")?;
        match name.value.split_once('*') {
            Some((before, behind)) if !behind.contains('*') && !name.value.contains('/') => {
                Some((before.to_owned(), behind.to_owned()))
            }
            _ => {
                self.decoder.findings.add(
                    "no-version",
                    name.at,
                    format!(
                        "`{}` does not mark the place of the version",
                        yaml::wording::shortened(&name.value)
                    ),
                    "not a name with one `*`",
                    "write the name of a file with `*` in place of the version, such as `my-database-*.jar`",
                );
                None
            }
        }
    }

    /// Whether none of these keys stands beside `way`, where they mean nothing.
    fn alone(&mut self, record: &Record<'_>, others: &[&'static str], way: &str) -> bool {
        let found = others.iter().find_map(|other| Some((other, record.key_at(other)?)));
        if let Some((other, at)) = found {
            let message = format!("`{other}` has no effect with `{way}`");
            self.decoder.findings.add("unused-key", at, message, "does nothing here", "take it out");
        }
        found.is_none()
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
                    format!(
                        "`{}` may do more than print a version",
                        yaml::wording::shortened(&argument.value)
                    ),
                    "not a way to ask for it",
                    format!(
                        "this command runs outside the lab, so only these are allowed: {}",
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
        let (way, entry) = record.first_of(&["apt", "pip", "maven", "image"])?;
        let (mine, others) = match way {
            "apt" => (&["dependencies"][..], &["version", "sha256", "megabytes"][..]),
            "pip" => (&["version", "sha256", "megabytes"][..], &["dependencies"][..]),
            _ => (&["megabytes"][..], &["version", "sha256", "dependencies"][..]),
        };
        for other in others {
            if let Some(at) = record.key_at(other) {
                let message = format!("`{other}` has no effect with `{way}`");
                let help =
                    format!("remove it; with `{way}` the allowed keys are {}", yaml::wording::listed(mine));
                self.decoder.findings.add("unused-key", at, message, "does nothing here", help);
                return None;
            }
        }
        let megabytes = match record.get("megabytes") {
            Some(node) => u32::try_from(self.decoder.count(node, "its size", 1, 10_000)?.value).ok(),
            None => None,
        };
        match way {
            "apt" => self.apt(&record, &entry.value),
            "maven" => Some(Way::Maven { jars: self.jars(&entry.value)?, megabytes }),
            "image" => Some(Way::Image { source: self.image(&entry.value)?, megabytes }),
            _ => {
                if !self.is_pinned(&record, mine, entry.key_at) {
                    return None;
                }
                let version = record.get("version").and_then(|node| self.decoder.text(node, "the version"));
                Some(Way::Pip {
                    name: self.decoder.text(&entry.value, "the wheel's name")?.value,
                    version: version?.value,
                    megabytes: megabytes?,
                    checksums: record.get("sha256").and_then(|node| self.checksums(node))?,
                })
            }
        }
    }

    fn apt(&mut self, record: &Record<'_>, packages: &Node) -> Option<Way> {
        let dependencies = record.get("dependencies").map(|node| self.decoder.flag(node, "`dependencies`"));
        Some(Way::Apt {
            packages: self.texts(packages, "`apt`")?,
            dependencies: match dependencies {
                Some(flag) => flag?.value,
                None => false,
            },
        })
    }

    /// Whether all that pins a wheel is there.
    fn is_pinned(&mut self, record: &Record<'_>, needed: &[&'static str], at: Spot) -> bool {
        let missing = needed.iter().find(|needed| record.key_at(needed).is_none());
        if let Some(needed) = missing {
            let message =
                format!("`pip` needs `{needed}`: what is installed is pinned, and its checksum known");
            let label = format!("`{needed}` is missing here");
            self.decoder.findings.add("missing-key", at, message, label, format!("add `{needed}:`"));
        }
        missing.is_none()
    }

    pub(super) fn jars(&mut self, node: &Node) -> Option<Vec<Jar>> {
        let mut jars = Vec::new();
        for entry in self.decoder.entries(node, "`maven`")? {
            let parts: Vec<&str> = entry.key.split(':').collect();
            // They become a part of an address and of a file's name.
            let is_plain = |part: &&str| {
                let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
                part.chars().all(sound) && part.starts_with(|c: char| c.is_ascii_alphanumeric())
            };
            let (3 | 4, true) = (parts.len(), parts.iter().all(is_plain)) else {
                self.decoder.findings.add(
                    "bad-coordinate",
                    entry.key_at,
                    format!("`{}` names no jar", yaml::wording::shortened(&entry.key)),
                    "not the form of one",
                    "write `group:artifact:version`, such as `org.slf4j:slf4j-api:1.7.36`, with its SHA-256 behind it",
                );
                return None;
            };
            let part = |number: usize| parts.get(number).map(|part| (*part).to_owned());
            jars.push(Jar {
                group: part(0)?,
                artifact: part(1)?,
                version: part(2)?,
                classifier: part(3),
                sha256: self.checksum(&entry.value)?,
            });
        }
        Some(jars)
    }

    fn checksums(&mut self, node: &Node) -> Option<Vec<(String, String)>> {
        let entries = self.decoder.entries(node, "`sha256`")?;
        entries.iter().map(|entry| Some((entry.key.clone(), self.checksum(&entry.value)?))).collect()
    }

    pub(super) fn checksum(&mut self, node: &Node) -> Option<String> {
        let sum = self.decoder.text(node, "a checksum")?;
        if sum.value.len() == 64 && sum.value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(sum.value.to_ascii_lowercase());
        }
        self.decoder.findings.add(
            "bad-checksum",
            sum.at,
            "this is not a SHA-256",
            "not 64 hexadecimal digits",
            "write the whole checksum, as `sha256sum FILE` gives it",
        );
        None
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

    /// When it commits, what it waits for, and when another leader is elected where one leads.
    pub(super) fn paper(&mut self, node: &Node, leads: bool) -> Option<PaperPart> {
        let record = self.decoder.record(node, &PAPER)?;
        let commit = record.get("commit").and_then(|node| self.decoder.word(node, "time to commit", COMMITS));
        let quorum = record.get("quorum").and_then(|node| self.decoder.word(node, "quorum", QUORUMS));
        let election = match (record.get("elects"), leads) {
            (Some(node), true) => Some(self.election(node)?),
            (None, false) => None,
            (Some(_), false) => {
                let at = record.key_at("elects")?;
                self.decoder.findings.add(
                    "unused-key",
                    at,
                    "`elects` needs a leader, and `roles: none` says that every node takes writes",
                    "does nothing here",
                    "remove it, or state under `roles` how to tell that a node is the leader",
                );
                return None;
            }
            (None, true) => {
                self.decoder.findings.add(
                    "missing-key",
                    node.head,
                    "`paper` does not say when the nodes elect another leader",
                    "`elects` is missing here",
                    "add `elects: { timeout: 1s, heartbeat: 100ms }`, or write `roles: none` where every node takes writes",
                );
                return None;
            }
        };
        let quorum_at = record.get("quorum").map_or(node.head, |node| node.at);
        let quorum = match quorum?.value {
            MAJORITY => Quorum::Majority,
            AS_ASKED => Quorum::AsAsked,
            PER_REQUEST if !leads => Quorum::PerRequest,
            _ => {
                self.decoder.findings.add(
                    "no-choice",
                    quorum_at,
                    "`quorum: per-request` needs `roles: none`",
                    "needs `roles: none`",
                    "write `majority` or `as-asked`, or `roles: none`",
                );
                return None;
            }
        };
        let unsynced = match record.get("unsynced") {
            Some(node) => Some(self.unsynced(node)?),
            None => None,
        };
        let clock_tolerance = match record.get("clock-tolerance") {
            Some(node) => Some(self.clock_tolerance(node)?),
            None => None,
        };
        Some(PaperPart { commit: commit?.value, quorum, election, unsynced, clock_tolerance })
    }

    fn clock_tolerance(&mut self, node: &Node) -> Option<ClockTolerance> {
        match &node.value {
            yaml::Value::Scalar { text, .. } if text == ANY_TIME => Some(ClockTolerance::Any),
            yaml::Value::Scalar { .. } => {
                let most = self.decoder.duration(node, "`clock-tolerance`", "ms")?;
                Some(ClockTolerance::UpTo(most.value))
            }
            _ => {
                let why = self.decoder.record(node, &NO_TOLERANCE)?.get(NONE)?;
                Some(ClockTolerance::Unstated(kept(self.decoder.text(why, "the reason")?.value)))
            }
        }
    }

    fn unsynced(&mut self, node: &Node) -> Option<Unsynced> {
        let record = self.decoder.record(node, &UNSYNCED)?;
        let setting = record.get("setting").and_then(|node| self.decoder.text(node, "the setting"));
        let values = record.get("is").and_then(|node| self.texts(node, "`is`"));
        let default = record.get("default").and_then(|node| self.decoder.text(node, "its value"));
        let synced_by = match record.get("synced-by") {
            Some(node) => Some(kept(self.decoder.text(node, "the settings")?.value)),
            None => None,
        };
        let values: Vec<&'static str> = values?.into_iter().map(kept).collect();
        Some(Unsynced {
            setting: kept(setting?.value),
            values: values.leak(),
            default: kept(default?.value),
            synced_by,
        })
    }

    fn election(&mut self, node: &Node) -> Option<Election> {
        let elects = self.decoder.record(node, &ELECTS)?;
        let timeout = elects.get("timeout").and_then(|node| self.period(node, "`timeout`"));
        let heartbeat = elects.get("heartbeat").and_then(|node| self.period(node, "`heartbeat`"));
        let late = match elects.get("heartbeats-late") {
            Some(node) => self.decoder.number(node, "`heartbeats-late`")?.value,
            None => 1.0,
        };
        Some(Election { timeout: timeout?, heartbeat: heartbeat?, heartbeats_late: late })
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
