//! An engine file's text to what it says, or to every mistake in it with its place.
//!
//! Owns which values make sense together. The keys are `language`'s.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use yaml::template::Template;
use yaml::tree;
use yaml::{Decoder, Findings, Node, Record, Rejection, Spanned, Spot, Text};

use super::language::{
    AT_END, COMMITS, ENGINE, FIRST_ALONE, INT, ISOLATIONS, LANGUAGE, MAJORITY, ORDERS, PROTOCOLS, QUORUMS,
    REAL_TIME, SIGNALS, STARTS,
};
use super::names::{self, Context};
use super::{EngineFile, Find, Process, Roles, StopSignal, Tested, Way};
use crate::{
    Capabilities, Commit, Election, Isolation, Leadership, Period, Protocol, SettingForm, SettingNames,
    Understands,
};

mod asking;
mod client;
mod facts;
mod image;
mod killed;

/// The name of the port that clients connect to.
const CLIENT: &str = "client";

/// Engines by the texts of their files: each is read once and known until the program ends.
static KNOWN: LazyLock<Mutex<BTreeMap<(String, String), &'static Capabilities>>> =
    LazyLock::new(Mutex::default);

/// Reads an engine file. `name` is what messages call it.
///
/// # Errors
/// When it is no sound engine file, with every mistake found.
pub fn read(name: &str, text: &str) -> Result<&'static Capabilities, Rejection> {
    let key = (name.to_owned(), text.to_owned());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = known.get(&key) {
        return Ok(engine);
    }
    let texts = [Text { name: name.to_owned(), text: text.to_owned() }];
    let mut findings = Findings::default();
    let engine = read_text(name, text, &mut findings).filter(|_| findings.is_empty());
    match engine {
        Some(engine) => {
            let engine: &'static Capabilities = Box::leak(Box::new(engine));
            known.insert(key, engine);
            Ok(engine)
        }
        None => Err(findings.into_rejection(&texts, &LANGUAGE)),
    }
}

/// Kept until the program ends, as everything about an engine is.
fn kept(text: String) -> &'static str {
    text.leak()
}

fn read_text(name: &str, text: &str, findings: &mut Findings) -> Option<Capabilities> {
    let root = match tree::read(text, 0, 0, &LANGUAGE) {
        Ok(root) => root,
        Err(finding) => {
            findings.push(*finding);
            return None;
        }
    };
    let mut reader =
        Reader { decoder: Decoder::new(&LANGUAGE), text, programs: Vec::new(), ports: BTreeMap::new() };
    let engine = reader.engine(name, &root);
    *findings = std::mem::take(&mut reader.decoder.findings);
    engine
}

/// Reads the parts of a file, and knows of the others what each needs.
struct Reader<'t> {
    decoder: Decoder,
    text: &'t str,
    programs: Vec<String>,
    ports: BTreeMap<String, u16>,
}

/// At which requests a transaction waits, by the word for it.
fn commit(word: &str, protocol: Protocol) -> Commit {
    match word == AT_END {
        true => Commit::AtEnd,
        false => Commit::AtEachRequest { reads_first: protocol.reads_first() },
    }
}

/// Where a template stands that has these words in it; two braces in a row are one that is meant literally.
fn node_with(node: &Node, words: &str) -> Option<Spot> {
    match &node.value {
        yaml::Value::Scalar { text, .. } => text.replace("{{", "").contains(words).then_some(node.head),
        yaml::Value::List(items) => items.iter().find_map(|item| node_with(item, words)),
        yaml::Value::Map(entries) => entries.iter().find_map(|entry| node_with(&entry.value, words)),
    }
}

impl Reader<'_> {
    /// A template, its names being those of the context.
    fn template(&mut self, node: &Node, what: &str, context: Context, alone: bool) -> Option<Template> {
        let text = self.decoder.text(node, what)?;
        let names = names::known(context, &self.programs, &self.ports);
        Template::decode(&mut self.decoder, self.text, &text, &names, alone)
    }

    fn templates(&mut self, node: &Node, what: &str, context: Context) -> Option<BTreeMap<String, Template>> {
        let entries = self.decoder.entries(node, what)?;
        let mut read = BTreeMap::new();
        for entry in entries {
            let value = self.template(&entry.value, &format!("`{}`", entry.key), context, false)?;
            read.insert(entry.key.clone(), value);
        }
        Some(read)
    }

    fn texts(&mut self, node: &Node, what: &str) -> Option<Vec<String>> {
        let items = self.decoder.list(node, what, 1)?;
        items.iter().map(|item| Some(self.decoder.text(item, what)?.value)).collect()
    }

    /// A program, one of `find.programs`, and its arguments.
    fn command(&mut self, node: &Node, context: Context) -> Option<(String, Vec<Template>)> {
        let items = self.decoder.list(node, "a command", 1)?;
        let (first, rest) = items.split_first()?;
        let program = self.program(first)?;
        let arguments: Vec<Option<Template>> =
            rest.iter().map(|item| self.template(item, "an argument", context, true)).collect();
        Some((program, arguments.into_iter().collect::<Option<_>>()?))
    }

    /// One of `find.programs`.
    fn program(&mut self, node: &Node) -> Option<String> {
        let program = self.decoder.text(node, "the program")?;
        if !self.programs.contains(&program.value) {
            self.not_listed(&program, "program", "find.programs", &self.programs.clone());
            return None;
        }
        Some(program.value)
    }

    /// The name of a port of the file.
    fn port(&mut self, node: &Node) -> Option<String> {
        let port = self.decoder.text(node, "the port's name")?;
        if self.ports.contains_key(&port.value) {
            return Some(port.value);
        }
        let known: Vec<String> = self.ports.keys().cloned().collect();
        self.not_listed(&port, "port", "ports", &known);
        None
    }

    fn not_listed(&mut self, written: &Spanned<String>, what: &str, under: &str, known: &[String]) {
        let near = yaml::wording::nearest(&written.value, known.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("name it under `{under}`"),
            None => format!("name it under `{under}`; there are {}", yaml::wording::listed(known)),
        };
        let message = format!("there is no {what} `{}`", yaml::wording::shortened(&written.value));
        self.decoder.findings.add("unknown-word", written.at, message, format!("not under `{under}`"), help);
    }

    fn links_and_memory(&mut self, record: &Record<'_>) -> (bool, Option<u64>) {
        let links = record.get("links").and_then(|node| self.decoder.flag(node, "`links`"));
        let memory =
            record.get("memory").and_then(|node| self.decoder.size(node, "the memory of a node", "MiB"));
        (links.is_some_and(|links| links.value), memory.map(|memory| memory.value))
    }

    /// Refuses a hand-over to nobody.
    fn check_hand_over(&mut self, record: &Record<'_>, roles: Option<&Option<Roles>>) {
        match roles {
            Some(None) => self.refuse_hand_over(record),
            Some(Some(Roles { identity: None, .. })) => self.refuse_unknown_identity(record),
            _ => {}
        }
    }

    fn refuse_hand_over(&mut self, record: &Record<'_>) {
        let Some(at) = record.key_at("hand-over") else { return };
        let message = "`hand-over` needs a leader, and `roles: none` says that no node leads";
        self.decoder.findings.add("unused-key", at, message, "does nothing here", "take it out");
    }

    fn refuse_unknown_identity(&mut self, record: &Record<'_>) {
        let Some(at) = record.get("hand-over").and_then(|node| node_with(node, "{to.identity}")) else {
            return;
        };
        let message = "`{to.identity}` is what the field `roles.identity` says, and `roles` has none";
        let help = "write `identity: FIELD` in `roles`, or `{to.name}` for the node's name";
        self.decoder.findings.add("no-identity", at, message, "empty", help);
    }

    fn engine(&mut self, source: &str, root: &Node) -> Option<Capabilities> {
        let record = self.decoder.record(root, &ENGINE)?;
        let name = record.get("engine").and_then(|node| self.decoder.name(node, "the engine's name"));
        let summary = record.get("summary").and_then(|node| self.decoder.text(node, "the summary"));
        // Names of programs and ports are known to all that stands behind them.
        let find = record.get("find").and_then(|node| self.find(node));
        let ports = record.get("ports").and_then(|node| self.all_ports(node));
        let install = record.get("install").map_or(Some(Vec::new()), |node| self.install(node));
        let environment = self.values(&record, "environment", Context::Machine);
        let processes = record.get("processes").and_then(|node| self.processes(node));
        let roles = record.get("roles").and_then(|node| self.roles(node));
        let leads = roles.as_ref().is_none_or(Option::is_some);
        let hand_over = record.get("hand-over").map(|node| self.hand_over(node));
        let (once_ready, bootstrap) = self.once_ready_and_bootstrap(&record);
        let shell = self.values(&record, "shell", Context::Shell);
        let (has_links, memory_bytes) = self.links_and_memory(&record);
        let client = record.get("client").and_then(|node| self.client(node));
        let claims = record.get("claims").and_then(|node| self.claims(node));
        let paper = record.get("paper").and_then(|node| self.paper(node, leads));
        self.check_hand_over(&record, roles.as_ref());
        let settings = record.get("settings").map_or(Some(SettingForm::Nothing), |node| self.settings(node));
        let tested = record.get("tested").and_then(|node| self.tested(node));
        let (name, client, claims, paper) = (name?.value, client?, claims?, paper?);
        let understands = client.understands();
        let file: &'static EngineFile = Box::leak(Box::new(EngineFile {
            source: source.to_owned(),
            text: self.text.to_owned(),
            name: name.clone(),
            find: find?,
            install: install?,
            by_hand: self.by_hand(&record),
            environment,
            ports: ports?,
            processes: processes?,
            roles: roles?,
            hand_over: hand_over.map_or(Some(None), |hand_over| hand_over.map(Some))?,
            once_ready: once_ready?,
            bootstrap: bootstrap?,
            shell,
            user: client.user,
            database: client.database,
            client_program: client.program,
            isolation: claims.isolation,
            has_links,
            memory_bytes,
            tested: tested?,
        }));
        Some(Capabilities {
            name: kept(name),
            summary: kept(summary?.value),
            protocol: client.protocol,
            client_port: *self.ports.get(CLIENT)?,
            leadership: paper.election.map_or(Leadership::Nobody, Leadership::Elected),
            commit: commit(paper.commit, client.protocol),
            quorum: paper.quorum,
            unsynced: paper.unsynced,
            clock_tolerance: paper.clock_tolerance,
            understands,
            has_isolation_levels: claims.has_levels,
            keeps_real_time_order: claims.in_real_time,
            reads_from_replicas: claims.replica_reads && client.protocol.has_readable_standbys(),
            answers_for_itself: claims.replica_reads,
            pod_program: file.pod_program(),
            settings: settings?,
            session_limit: None,
            file: Some(file),
        })
    }

    fn values(
        &mut self,
        record: &Record<'_>,
        key: &'static str,
        context: Context,
    ) -> BTreeMap<String, Template> {
        let read = record.get(key).and_then(|node| self.templates(node, &format!("`{key}`"), context));
        read.unwrap_or_default()
    }

    fn by_hand(&mut self, record: &Record<'_>) -> Vec<(String, String)> {
        let Some(entries) = record.get("by-hand").and_then(|node| self.decoder.named(node, "`by-hand`"))
        else {
            return Vec::new();
        };
        let read = |(name, node): (Spanned<String>, &Node)| {
            Some((name.value, self.decoder.text(node, "a command")?.value))
        };
        entries.into_iter().filter_map(read).collect()
    }

    fn all_ports(&mut self, node: &Node) -> Option<BTreeMap<String, u16>> {
        for (name, node) in self.decoder.named(node, "`ports`")? {
            let port = self.decoder.count(node, "a port", 1, 65_535)?;
            self.ports.insert(name.value, u16::try_from(port.value).ok()?);
        }
        if !self.ports.contains_key(CLIENT) {
            self.decoder.findings.add(
                "missing-key",
                node.head,
                "no port is called `client`",
                "`client` is missing here",
                "add `client: 5432`, the port that the loads connect to",
            );
            return None;
        }
        Some(self.ports.clone())
    }
}
