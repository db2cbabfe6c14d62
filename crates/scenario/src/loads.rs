//! The `loads` section: which workloads run, how many clients each has and where they stand.
//!
//! Owns reading it, its defaults, and writing it back.

use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::workloads::{NAMES, workload};
use capabilities::{Capabilities, Lack, SettingForm, VOLUME_WORKLOAD};

use crate::agents;
use crate::catalogue::WORKLOADS;
use crate::consistency;
use crate::decode::Decoder;
use crate::language::{LOAD, READS};
use crate::lines::line;
use crate::pace::{self, PaceDocument};
use crate::places::{CLIENTS, Places};
use crate::quoted::quoted;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::resolved::{Cluster, Consistency, Database, Level, Load, Place, Reads};
use crate::scenario::Phase;
use crate::settings;
use crate::tree::Node;
use crate::units::format_duration;
use crate::wording::listed;
use crate::workload_options;

/// How long a client waits for an answer when the file does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// An element of the section as written.
pub(crate) struct LoadDocument {
    name: Spanned<String>,
    workload: &'static str,
    workload_at: Spot,
    clients: u32,
    scale: u32,
    from: Option<Spanned<String>>,
    agents: Vec<Spanned<String>>,
    reads: Option<Spanned<&'static str>>,
    consistency: Option<Spanned<Consistency>>,
    timeout: Duration,
    pace: PaceDocument,
    options: BTreeMap<String, String>,
    operations_at: Option<Spot>,
}

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Vec<LoadDocument>> {
    let items = decoder.list(node, "loads", 1)?;
    let loads: Vec<LoadDocument> = items.iter().filter_map(|item| decode_load(item, decoder)).collect();
    let mut first: BTreeMap<&str, Spot> = BTreeMap::new();
    for load in &loads {
        if let Some(earlier) = first.insert(&load.name.value, load.name.at) {
            decoder.findings.push(Finding {
                code: "duplicate-name",
                message: format!("two loads are named `{}`", load.name.value),
                at: load.name.at,
                label: "the same name again".to_owned(),
                help: format!("give it another name, such as `name: {}-2`", load.name.value),
                also: Some((earlier, "first here".to_owned())),
            });
        }
    }
    Some(loads)
}

fn decode_load(node: &Node, decoder: &mut Decoder) -> Option<LoadDocument> {
    let record = decoder.record(node, &LOAD)?;
    let workload = record.get("workload").and_then(|node| decoder.word(node, "workload", WORKLOADS));
    let name = record.get("name").and_then(|node| decoder.name(node, "the load's name"));
    let count = |key: &'static str, what: &str, decoder: &mut Decoder| {
        record
            .get(key)
            .and_then(|node| decoder.count(node, what, 1, 100_000))
            .and_then(|count| u32::try_from(count.value).ok())
    };
    let clients = count("clients", "the number of clients", decoder);
    let scale = count("scale", "the scale", decoder);
    let from = record.get("from").and_then(|node| decoder.text(node, "the clients' place"));
    let agents = record.get("agents").and_then(|node| decoder.list(node, "`agents`", 1)).unwrap_or_default();
    let agents = agents.iter().filter_map(|node| decoder.text(node, "an agent")).collect();
    let reads = record.get("reads").and_then(|node| decoder.word(node, "where reads go", READS));
    let consistency = record.get("consistency").and_then(|node| consistency::decode(node, decoder));
    let timeout = record.get("timeout").and_then(|node| decoder.duration(node, "the timeout", "s"));
    if let Some(timeout) = timeout.as_ref().filter(|timeout| timeout.value.is_zero()) {
        decoder.findings.add(
            "too-small",
            timeout.at,
            "a timeout of zero",
            "too short",
            "write 2s, or leave it out",
        );
    }
    let pace = pace::decode(&|key| record.get(key), decoder);
    let workload = workload?;
    let operations_at = record
        .get("options")
        .and_then(|node| settings::value_at(node, self::workload(workload.value)?.operations?));
    let options = workload_options::decode(record.get("options"), &workload, decoder);
    Some(LoadDocument {
        pace,
        options,
        operations_at,
        name: name.unwrap_or(Spanned { value: workload.value.to_owned(), at: workload.at }),
        workload: workload.value,
        workload_at: workload.at,
        clients: clients?,
        scale: scale.unwrap_or(1),
        from,
        agents,
        reads,
        consistency,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |timeout| timeout.value),
    })
}

impl LoadDocument {
    /// The workload's name.
    pub(crate) fn workload(&self) -> &'static str {
        self.workload
    }

    /// Where that is written.
    pub(crate) fn workload_at(&self) -> Spot {
        self.workload_at
    }

    /// What the file says of the workload's options, by their dotted names.
    pub(crate) fn options(&self) -> &BTreeMap<String, String> {
        &self.options
    }

    /// Refuses a load of transactions with more operations than the database takes.
    pub(crate) fn check_operations(&self, database: &Database, findings: &mut Findings) {
        let limit = database.engine.protocol.operation_limit();
        let option = workload(self.workload).and_then(|facts| facts.operations);
        let (Some(limit), Some(option)) = (limit, option) else { return };
        let written = self.options.get(option).and_then(|written| written.parse::<u64>().ok());
        let setting = limit.setting;
        let most = match database.settings.get(setting).map(|written| written.trim().parse()) {
            None => limit.default,
            Some(Ok(most)) => most,
            // What is no number is the database's to refuse.
            Some(Err(_)) => return,
        };
        let Some(operations) = written.filter(|operations| *operations > most) else { return };
        let raise = match database.engine.settings {
            SettingForm::Names(_) => format!(", or `{setting}: {operations}` under `database.settings`"),
            SettingForm::OneOf { .. } | SettingForm::Nothing => String::new(),
        };
        findings.add(
            "too-many-operations",
            self.operations_at.unwrap_or(self.workload_at),
            format!("`{option}: {operations}` makes transactions of {operations} operations; the database takes {most}"),
            format!("more than {most}"),
            format!("write `{option}: {most}` or less{raise}"),
        );
    }
}

/// The workloads that an engine carries.
fn workloads_of(engine: &Capabilities) -> Vec<&'static str> {
    NAMES.iter().copied().filter(|workload| engine.understands.workload(workload)).collect()
}

/// Names of the engines that carry a workload.
fn engines_with(workload: &str) -> Vec<&'static str> {
    let carry = capabilities::engines().iter().filter(|engine| engine.understands.workload(workload));
    carry.map(|engine| engine.name).collect()
}

/// Whether the engine understands what each load asks.
pub(crate) fn check_language(documents: &[LoadDocument], engine: &Capabilities, findings: &mut Findings) {
    let name = engine.name;
    for document in documents {
        let workload = document.workload;
        let Some(lack) = engine.understands.why_not(workload) else { continue };
        let another_engine = || format!("use another engine, or one of {}", listed(&workloads_of(engine)));
        let (message, help) = match lack {
            Lack::Database => (
                format!("{lack}; `engine: {name}` has none"),
                format!("use another engine, or the workload `{VOLUME_WORKLOAD}`"),
            ),
            Lack::Sql => (format!("{lack}, and the engine `{name}` does not speak it"), another_engine()),
            Lack::Transactions => (format!("{lack}, and the engine `{name}` has none"), another_engine()),
            Lack::Dialect => (
                format!("does not support the SQL dialect of the engine `{name}`"),
                format!("use another workload, or one of the engines {}", listed(&engines_with(workload))),
            ),
            Lack::Volume => (
                "measures a node's volume without a database".to_owned(),
                format!("write `engine: {}`, or use another workload", without_database()),
            ),
        };
        let message = format!("the workload `{workload}` {message}");
        findings.add("wrong-language", document.workload_at, message, lack.to_string(), help);
    }
    if engine.has_isolation_levels {
        return;
    }
    let is_understood = |document: &&LoadDocument| engine.understands.workload(document.workload);
    let with_level = |document: &&LoadDocument| document.options.contains_key("isolation");
    for document in documents.iter().filter(is_understood).filter(with_level) {
        findings.add(
            "one-isolation-level",
            document.workload_at,
            format!(
                "transactions of the engine `{name}` have one isolation level, and none can be asked for"
            ),
            "chooses an isolation level",
            "remove the option `isolation`, or use another engine",
        );
    }
}

/// The engine that is no database.
fn without_database() -> &'static str {
    capabilities::engines().iter().find(|engine| !engine.is_database()).map_or("none", |engine| engine.name)
}

/// Workloads whose reads may be older than the latest write.
fn with_old_reads() -> Vec<&'static str> {
    let may_be_old = |name: &&str| workload(name).is_some_and(|facts| facts.reads_may_be_old);
    NAMES.iter().copied().filter(may_be_old).collect()
}

/// Whether reads may go where each load sends them, and be answered by as many nodes as it says.
pub(crate) fn check_reads(
    documents: &[LoadDocument],
    engine: &Capabilities,
    nodes: Option<usize>,
    findings: &mut Findings,
) {
    for document in documents {
        consistency::check(document.consistency.as_ref(), engine, findings);
        let Some(reads) = document.reads.as_ref().filter(|reads| reads.value != Reads::Leader.name()) else {
            continue;
        };
        let mut refuse = |message: String, help: String| {
            findings.add("reads-elsewhere", reads.at, message, "cannot go there", help);
        };
        if !engine.reads_from_replicas {
            let able = capabilities::engines().iter().filter(|engine| engine.reads_from_replicas);
            let able: Vec<&str> = able.map(|engine| engine.name).collect();
            refuse(
                format!("the engine `{}` cannot serve reads from replicas", engine.name),
                format!("leave `reads` out, or use the engine `{}`", able.join("` or `")),
            );
        } else if !with_old_reads().contains(&document.workload) {
            refuse(
                format!(
                    "replicas may return stale data, and the check of `{}` needs current reads",
                    document.workload
                ),
                format!("leave `reads` out, or use one of {}", listed(&with_old_reads())),
            );
        } else if workload_options::counts_rows(document.workload, &document.options) {
            refuse(
                "a replica may not have a row yet that was just inserted".to_owned(),
                "use one of the core workloads without inserts: a, b, c, f".to_owned(),
            );
        } else if nodes == Some(1) {
            refuse(
                "the database has one node, which has no replica".to_owned(),
                "ask for more nodes, or leave `reads` out".to_owned(),
            );
        }
    }
}

/// Refuses places for clients of a cluster that exists: they run on this machine.
pub(crate) fn check_on_a_cluster(documents: &[LoadDocument], region: Option<&str>, findings: &mut Findings) {
    for from in documents.iter().filter_map(|document| document.from.as_ref()) {
        if Some(from.value.as_str()) != region {
            let message = format!("clients cannot be placed at `{}`: they run on this machine", from.value);
            let help = "leave `from` out; run holdfast where the clients are to be";
            findings.add("no-such-place", from.at, message, "not a place of clients", help);
        }
    }
}

/// Resolves the section; `leader_region` is where clients stand unless a load says otherwise. Loads may stand on agents of a
/// `cluster`.
pub(crate) fn resolve(
    documents: Vec<LoadDocument>,
    (leader_region, cluster): (Option<&str>, Option<&Cluster>),
    places: &Places,
    schedule: &[Phase],
    findings: &mut Findings,
) -> Vec<Load> {
    let mut loads = Vec::new();
    for document in documents {
        let from = match &document.from {
            Some(written) => places.find(written, None, findings),
            None => leader_region.map(|region| Place { level: Level::Region, path: vec![region.to_owned()] }),
        };
        if let Some(place) = from.as_ref().filter(|from| places.has_clients_place(from)) {
            let at = document.from.as_ref().map_or(document.name.at, |written| written.at);
            findings.add(
                "clients-place-taken",
                at,
                format!("the site has a place `{place}/{CLIENTS}`, which is what the place of these clients is called"),
                "its clients have no name of their own",
                format!("give `{place}/{CLIENTS}` another name in `site`, or write `from: {place}/{CLIENTS}`"),
            );
        }
        let pace = document.pace.resolve(schedule, findings);
        let agents = document.agents;
        agents::check_known(&agents, cluster, findings);
        let load = from.map(|from| Load {
            name: document.name.value,
            workload: document.workload.to_owned(),
            clients: document.clients,
            pace,
            scale: document.scale,
            from,
            agents: agents.iter().map(|agent| agent.value.clone()).collect(),
            reads: match document.reads.map(|reads| reads.value) {
                Some("replicas") => Reads::Replicas,
                Some("any") => Reads::Any,
                _ => Reads::Leader,
            },
            consistency: document.consistency.map(|given| given.value).unwrap_or_default(),
            timeout: document.timeout,
            options: document.options,
        });
        if let Some(load) = &load {
            agents::check_load(load, (&agents, document.workload_at), schedule, findings);
        }
        loads.extend(load);
    }
    loads
}

/// Writes a load back, everything that was a default with it.
pub(crate) fn write(text: &mut String, load: &Load) {
    line(text, 2, &format!("- workload: {}", quoted(&load.workload)));
    line(text, 4, &format!("name: {}", quoted(&load.name)));
    line(text, 4, &format!("scale: {}", load.scale));
    line(text, 4, &format!("clients: {}", load.clients));
    pace::written(&load.pace).iter().for_each(|written| line(text, 4, written));
    line(text, 4, &format!("from: {}", quoted(&load.from.to_string())));
    if !load.agents.is_empty() {
        let names: Vec<String> = load.agents.iter().map(|name| quoted(name)).collect();
        line(text, 4, &format!("agents: [{}]", names.join(", ")));
    }
    if load.reads != Reads::Leader {
        line(text, 4, &format!("reads: {}", load.reads.name()));
    }
    if let Some(written) = consistency::written(load.consistency) {
        line(text, 4, &written);
    }
    line(text, 4, &format!("timeout: {}", format_duration(load.timeout)));
    write_options(text, load);
}

/// Options stand by dotted name: `scripts.0.text` is the key `text` of the first element of the list `scripts`.
fn write_options(text: &mut String, load: &Load) {
    if load.options.is_empty() {
        return;
    }
    line(text, 4, "options:");
    let value = |name: &str, value: &str| match workload_options::is_number(&load.workload, name) {
        true => value.to_owned(),
        false => quoted(value),
    };
    let mut groups: BTreeMap<(&str, Option<usize>), Vec<String>> = BTreeMap::new();
    for (name, given) in &load.options {
        let mut steps = name.splitn(3, '.');
        match (steps.next(), steps.next(), steps.next()) {
            (Some(list), Some(place), Some(key)) => {
                let element = groups.entry((list, place.parse().ok())).or_default();
                element.push(format!("{}: {}", quoted(key), value(name, given)));
            }
            (Some(map), Some(key), None) => {
                let entries = groups.entry((map, None)).or_default();
                entries.push(format!("{}: {}", quoted(key), value(name, given)));
            }
            _ => line(text, 6, &format!("{}: {}", quoted(name), value(name, given))),
        }
    }
    let mut last = None;
    for ((name, place), entries) in &groups {
        if last != Some(*name) {
            line(text, 6, &format!("{name}:"));
        }
        last = Some(*name);
        let dash = if place.is_some() { "- " } else { "" };
        line(text, 8, &format!("{dash}{{ {} }}", entries.join(", ")));
    }
}
