//! The `database` section: engine, nodes and their places, replication, failover, settings.
//!
//! Owns reading it and what may not be asked of a database; where nodes go is in `placement`, what may stand under
//! `settings` in `settings`.

use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::{Capabilities, Quorum};
use history::{HostId, NodeId, PerHost, PerNode};

use crate::decode::{Decoder, Record};
use crate::engines::{self, EngineFiles};
use crate::language::{AFTER, DATABASE, EXPECTED, FAILOVER, INTERFERENCE, MOST_NODES, REPLICATION, VOLUMES};
use crate::lines::line;
use crate::placement::Spread;
use crate::places::Places;
use crate::platform::{self, PlatformDocument};
use crate::quoted::quoted;
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::release::{self, Release};
use crate::resolved::{
    Database, Failover, Host, IpVersion, Level, Place, RunsOn, Site, StorageClass, Synchronous, VmPlatform,
    Volumes,
};
use crate::runs_on::{self, Beside};
use crate::settings;
use crate::storage::{self, StorageContext, StorageDocument};
use crate::tree::{Node, Value};
use crate::units::{self, format_duration};
use crate::wording::shortened;

/// How many nodes hold a row where nothing is said, as databases without a leader are mostly set up.
const USUAL_COPIES: u32 = 3;
/// Most CPUs of a node.
const MOST_CPUS: f64 = 1024.0;

/// The section as written.
pub(crate) struct DatabaseDocument {
    engine: &'static Capabilities,
    release: Option<Release>,
    nodes: Spanned<NodesDocument>,
    leader: Option<Spanned<String>>,
    synchronous: Option<Spanned<Synchronous>>,
    copies: Option<Spanned<u64>>,
    failover: Failover,
    failover_at: Option<Spot>,
    settings: BTreeMap<String, String>,
    session_limit_at: Option<Spot>,
    on: Option<Spanned<RunsOn>>,
    cpus: Option<f64>,
    cpus_at: Option<Spot>,
    volumes: Volumes,
    storage: Option<StorageDocument>,
    platform: Option<PlatformDocument>,
    interference_expected: bool,
}

enum NodesDocument {
    Count(u64),
    Places(Vec<Spanned<String>>),
}

/// Reads the section.
pub(crate) fn decode(node: &Node, files: &EngineFiles, decoder: &mut Decoder) -> Option<DatabaseDocument> {
    let record = decoder.record(node, &DATABASE)?;
    let engine = record.get("engine").and_then(|node| engines::decode(node, files, decoder));
    let release = decode_release(&record, decoder);
    let nodes = record.get("nodes").and_then(|node| decode_nodes(node, decoder));
    let leader = record.get("leader").and_then(|node| decoder.text(node, "the leader's place"));
    let replication = record.get("replication").and_then(|node| decoder.record(node, &REPLICATION));
    let replication = replication.as_ref();
    let synchronous = replication
        .and_then(|record| record.get("synchronous"))
        .and_then(|node| decode_synchronous(node, decoder));
    let copies = replication
        .and_then(|record| record.get("copies"))
        .and_then(|node| decoder.count(node, "`copies`", 1, MOST_NODES));
    let failover = record.get("failover").and_then(|node| decode_failover(node, decoder));
    let settings = record.get("settings").and_then(|node| settings::decode(node, engine, decoder));
    let session_limit_at =
        record.get("settings").and_then(|node| settings::value_at(node, engine?.session_limit?.setting));
    let on = record.get("on").and_then(|node| runs_on::decode(node, decoder));
    let cpus_at = record.get("cpus").map(|node| node.at);
    let cpus = record.get("cpus").and_then(|node| decode_cpus(node, decoder));
    let volumes = record.get("volumes").and_then(|node| decoder.word(node, "kind of volume", VOLUMES));
    let storage = record.get("storage").and_then(|node| storage::decode(node, decoder));
    let platform = record.get("platform").and_then(|node| platform::decode(node, decoder));
    let interference =
        record.get("interference").and_then(|node| decoder.word(node, "kind of interference", INTERFERENCE));
    if let (Some(leader), Some(Spanned { value: NodesDocument::Places(_), .. })) = (&leader, &nodes) {
        decoder.findings.add(
            "one-too-many",
            leader.at,
            "`leader` cannot be combined with a list of nodes",
            "not together with a list",
            "put the leader's place first in `nodes` and remove `leader`",
        );
    }
    Some(DatabaseDocument {
        engine: engine?,
        release,
        nodes: nodes?,
        leader,
        synchronous,
        copies,
        failover: failover.as_ref().map_or(Failover::None, |failover| failover.value),
        failover_at: failover.map(|failover| failover.at),
        settings: settings.unwrap_or_default(),
        session_limit_at,
        on,
        cpus,
        cpus_at,
        volumes: match volumes.map(|volumes| volumes.value) {
            Some("torn") => Volumes::Torn,
            Some("directory") => Volumes::Directory,
            _ => Volumes::Virtual,
        },
        storage,
        platform,
        interference_expected: interference.is_some_and(|word| word.value == EXPECTED),
    })
}

/// Which programs are meant, where anything is said of it.
fn decode_release(record: &Record<'_>, decoder: &mut Decoder) -> Option<Release> {
    let (path, version) = (record.get("path"), record.get("version"));
    if let (Some(_), Some(version)) = (path, version) {
        decoder.findings.add(
            "one-too-many",
            version.at,
            "`version` cannot be combined with `path`",
            "not together with a folder",
            "remove `version`: the programs in the folder have one of their own",
        );
        return None;
    }
    let folder = path.and_then(|node| release::folder(node, decoder));
    folder.or_else(|| version.and_then(|node| release::version(node, decoder)))
}

fn decode_nodes(node: &Node, decoder: &mut Decoder) -> Option<Spanned<NodesDocument>> {
    let Value::List(_) = node.value else {
        let count = decoder.count(node, "the number of nodes", 1, MOST_NODES)?;
        return Some(Spanned { value: NodesDocument::Count(count.value), at: count.at });
    };
    let items = decoder.list(node, "nodes", 1)?;
    if let Some(beyond) = items.get(MOST_NODES as usize) {
        decoder.findings.add(
            "too-large",
            beyond.at,
            format!("more than {MOST_NODES} nodes"),
            "one too many",
            format!("name {MOST_NODES} or fewer"),
        );
        return None;
    }
    let places = items.iter().map(|item| decoder.text(item, "a node's place")).collect::<Option<Vec<_>>>()?;
    Some(Spanned { value: NodesDocument::Places(places), at: node.at })
}

fn decode_synchronous(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Synchronous>> {
    let text = decoder.text(node, "`synchronous`")?;
    let value = match text.value.as_str() {
        "off" => Some(Synchronous::Off),
        "all" => Some(Synchronous::All),
        other => other
            .strip_prefix("any ")
            .filter(|count| count.chars().all(|c| c.is_ascii_digit()))
            .and_then(|count| count.parse::<u32>().ok())
            .map(Synchronous::Any),
    };
    match value {
        Some(Synchronous::Any(0)) => decoder.findings.add(
            "too-small",
            text.at,
            "`any 0` waits for no standby",
            "none at all",
            "write `off` instead",
        ),
        Some(value) => return Some(Spanned { value, at: text.at }),
        None => decoder.findings.add(
            "unknown-word",
            text.at,
            format!("`{}` is not a replication mode", shortened(&text.value)),
            "unknown",
            "write `any 1` (or any other number of standbys), `all` or `off`",
        ),
    }
    None
}

fn decode_failover(node: &Node, decoder: &mut Decoder) -> Option<Spanned<Failover>> {
    if let Value::Scalar { text, .. } = &node.value {
        if text == "none" {
            return Some(Spanned { value: Failover::None, at: node.at });
        }
        if matches!(text.as_str(), "ha-restart" | "promote") {
            decoder.findings.add(
                "missing-key",
                node.at,
                format!("`{text}` needs the time until the platform acts"),
                "when?",
                format!("write `{{ {text}: {{ after: 5s }} }}`"),
            );
            return None;
        }
        decoder.word(node, "failover", &["none", "ha-restart", "promote"])?;
    }
    let record = decoder.record(node, &FAILOVER)?;
    let (kind, entry) = record.first_of(FAILOVER.exactly_one_of)?;
    if let Value::Scalar { text, .. } = &entry.value.value
        && !text.is_empty()
    {
        let after = if units::duration(text, "s").is_ok() { text.as_str() } else { "5s" };
        decoder.findings.add(
            "wrong-kind",
            entry.value.at,
            format!("`{kind}` is a map with the time until the platform acts, not a single value"),
            "needs `after`",
            format!("write `{kind}: {{ after: {after} }}`"),
        );
        return None;
    }
    let after = decoder.record(&entry.value, &AFTER)?;
    let after: Duration = decoder.duration(after.get("after")?, "`after`", "s")?.value;
    let value = if kind == "promote" { Failover::Promote { after } } else { Failover::HaRestart { after } };
    Some(Spanned { value, at: entry.key_at })
}

fn decode_cpus(node: &Node, decoder: &mut Decoder) -> Option<f64> {
    let cpus = decoder.number(node, "`cpus`")?;
    if cpus.value > 0.0 && cpus.value <= MOST_CPUS {
        return Some(cpus.value);
    }
    let message = format!("a node cannot have {} CPUs", cpus.value);
    decoder.findings.add(
        "out-of-range",
        cpus.at,
        message,
        "not possible",
        "write a number above 0, such as 0.5 or 2",
    );
    None
}

impl DatabaseDocument {
    /// What the engine can do.
    pub(crate) fn engine(&self) -> &'static Capabilities {
        self.engine
    }

    /// Where the setting stands that limits the sessions.
    pub(crate) fn session_limit_at(&self) -> Option<Spot> {
        self.session_limit_at
    }

    /// The database on the site's hosts.
    pub(crate) fn resolve(
        self,
        hosts: &PerHost<Host>,
        (places, classes): (&Places, &BTreeMap<String, StorageClass>),
        ip: IpVersion,
        findings: &mut Findings,
    ) -> Option<Database> {
        let count = match &self.nodes.value {
            NodesDocument::Count(count) => *count,
            NodesDocument::Places(places) => places.len() as u64,
        };
        self.check_leadership(findings);
        if let Some(on) = &self.on {
            let (engine, failover) = (self.engine, (self.failover, self.failover_at));
            let nodes = usize::try_from(count).unwrap_or(usize::MAX);
            runs_on::check(on, &Beside { engine, failover, cpus_at: self.cpus_at, nodes, ip }, findings);
        }
        self.check_standbys(count.saturating_sub(1), findings);
        let copies = self.copies_of(count, findings);
        let synchronous = self.synchronous_of(count, findings);
        if count > hosts.len() as u64 {
            findings.add(
                "too-few-hosts",
                self.nodes.at,
                format!("{count} nodes need {count} hosts; the site has {}", hosts.len()),
                "more nodes than hosts",
                "add hosts under `site`, or ask for fewer nodes: each needs its own host",
            );
            return None;
        }
        let nodes = match &self.nodes.value {
            NodesDocument::Count(count) => {
                place_count(*count, self.leader.as_ref(), hosts, places, findings)?
            }
            NodesDocument::Places(wanted) => place_list(wanted, hosts, places, findings)?,
        };
        let context = StorageContext { hosts, classes, nodes: &nodes, volumes: self.volumes, places };
        let storage = match self.storage {
            Some(storage) => Some(storage.resolve(&context, findings)?),
            None => None,
        };
        let platform = match self.platform {
            Some(platform) => platform.resolve((hosts, places), &nodes, self.failover, findings)?,
            None => VmPlatform::default(),
        };
        Some(Database {
            engine: self.engine,
            release: self.release,
            on: self.on.map(|on| on.value).unwrap_or_default(),
            nodes,
            synchronous,
            copies,
            failover: self.failover,
            settings: self.settings,
            cpus: self.cpus,
            volumes: self.volumes,
            storage,
            platform,
            interference_expected: self.interference_expected,
        })
    }

    /// Refuses what takes a leader where there is none.
    fn check_leadership(&self, findings: &mut Findings) {
        if !self.engine.is_leaderless() {
            return;
        }
        let engine = self.engine.name;
        if let Some(leader) = &self.leader {
            let message = format!("the engine `{engine}` has no leader: every node takes writes");
            let help = "remove `leader`; a list of places under `nodes` sets where the nodes run";
            findings.add("no-leader", leader.at, message, "nobody leads", help);
        }
        if let (Failover::Promote { .. }, Some(at)) = (self.failover, self.failover_at) {
            let message = format!(
                "the engine `{engine}` has no leader: every node takes writes, so there is no standby to promote"
            );
            let help = "write `ha-restart`, or `none`";
            findings.add("no-leader", at, message, "nobody to promote", help);
        }
    }

    /// How many nodes of each region hold each row, of so many.
    fn copies_of(&self, nodes: u64, findings: &mut Findings) -> u32 {
        let engine = self.engine.name;
        let asked = self.copies.as_ref();
        let all = u32::try_from(nodes).unwrap_or(u32::MAX);
        if self.engine.quorum != Quorum::PerRequest {
            if let Some(copies) = asked {
                let message =
                    format!("`copies` does not apply: every node of the engine `{engine}` holds every row");
                let help = "take `copies` out; `synchronous` says how many standbys a commit waits for";
                findings.add("not-a-choice", copies.at, message, "not a choice", help);
            }
            return all;
        }
        if let Some(synchronous) = &self.synchronous {
            let message =
                format!("on the engine `{engine}` each request chooses how many nodes it waits for");
            let help = "write `consistency: quorum` in each load, and `replication: { copies: 3 }` for how many nodes hold a row";
            findings.add("not-a-choice", synchronous.at, message, "not said here", help);
        }
        let Some(copies) = asked else { return all.min(USUAL_COPIES) };
        if copies.value > nodes {
            findings.push(Finding {
                code: "too-few-nodes",
                message: format!("{} copies need as many nodes; there are {nodes}", copies.value),
                at: copies.at,
                label: "more than there are nodes".to_owned(),
                help: format!("write {nodes} or less, or ask for more nodes"),
                also: Some((self.nodes.at, "the nodes".to_owned())),
            });
        }
        u32::try_from(copies.value).unwrap_or(all)
    }

    /// What a commit waits for. An engine that waits for a majority of its nodes cannot be asked for anything else.
    fn synchronous_of(&self, nodes: u64, findings: &mut Findings) -> Synchronous {
        let asked = self.synchronous.as_ref();
        if self.engine.quorum == Quorum::AsAsked {
            return asked.map_or(Synchronous::Off, |synchronous| synchronous.value);
        }
        if self.engine.quorum == Quorum::PerRequest {
            return Synchronous::Off;
        }
        let majority = match u32::try_from(nodes / 2) {
            Ok(0) | Err(_) => Synchronous::Off,
            Ok(followers) => Synchronous::Any(followers),
        };
        if let Some(other) = asked.filter(|asked| asked.value != majority) {
            let written = match majority {
                Synchronous::Any(followers) => format!("any {followers}"),
                _ => "off".to_owned(),
            };
            findings.add(
                "not-a-choice",
                other.at,
                format!("{} always waits for a majority of its {nodes} members", self.engine.name),
                "not a choice",
                format!("take `replication` out, or write `{written}`, which says the same"),
            );
        }
        majority
    }

    fn check_standbys(&self, standbys: u64, findings: &mut Findings) {
        if let Some(synchronous) = &self.synchronous {
            let wanted = match synchronous.value {
                Synchronous::Off => 0,
                Synchronous::All => 1,
                Synchronous::Any(count) => u64::from(count),
            };
            if wanted > standbys {
                findings.push(Finding {
                    code: "too-few-standbys",
                    message: match synchronous.value {
                        Synchronous::All => {
                            "a commit cannot wait for all standbys: there are none".to_owned()
                        }
                        _ => format!("a commit cannot wait for {wanted} standbys: there are only {standbys}"),
                    },
                    at: synchronous.at,
                    label: "more than there are".to_owned(),
                    help: match standbys {
                        0 => "write `off`, or ask for at least 2 nodes".to_owned(),
                        _ => format!("write `any {standbys}` or less, or ask for {} nodes", wanted + 1),
                    },
                    also: Some((self.nodes.at, "the leader and its standbys".to_owned())),
                });
            }
        }
        if let (Failover::Promote { .. }, Some(at), 0) = (self.failover, self.failover_at, standbys) {
            findings.push(Finding {
                code: "too-few-standbys",
                message: "there is no standby to promote".to_owned(),
                at,
                label: "needs a standby".to_owned(),
                help: "ask for at least 2 nodes, or write `ha-restart`".to_owned(),
                also: Some((self.nodes.at, "only the leader".to_owned())),
            });
        }
    }
}

fn place_count(
    count: u64,
    leader: Option<&Spanned<String>>,
    hosts: &PerHost<Host>,
    places: &Places,
    findings: &mut Findings,
) -> Option<PerNode<HostId>> {
    let leader = match leader {
        None => None,
        Some(written) => Some(places.find(written, None, findings)?),
    };
    let mut spread = Spread::new(hosts);
    (0..count).map(|index| spread.take(leader.as_ref().filter(|_| index == 0))).collect()
}

fn place_list(
    wanted: &[Spanned<String>],
    hosts: &PerHost<Host>,
    places: &Places,
    findings: &mut Findings,
) -> Option<PerNode<HostId>> {
    let found: Vec<Option<Place>> =
        wanted.iter().map(|written| places.find(written, None, findings)).collect();
    let found: PerNode<Place> = found.into_iter().collect::<Option<_>>()?;
    let mut spread = Spread::new(hosts);
    let mut nodes: PerNode<Option<HostId>> = vec![None; found.len()].into();
    // Who names a host gets it; the others are spread over what is left of the places they name.
    let (exact, wide): (Vec<NodeId>, Vec<NodeId>) =
        found.ids().partition(|node| found[*node].level == Level::Host);
    let mut complete = true;
    for node in exact.into_iter().chain(wide) {
        nodes[node] = spread.take(Some(&found[node]));
        if nodes[node].is_none() {
            complete = false;
            let place = &found[node];
            let message = match place.level {
                Level::Host => format!("two nodes are placed on host `{place}`"),
                _ => format!("every host of `{place}` holds a node already"),
            };
            let help = "each node needs its own host: name another place, or add hosts there";
            findings.add(
                "too-few-hosts",
                wanted[node.index()].at,
                message,
                format!("no host for {node}"),
                help,
            );
        }
    }
    if complete { nodes.into_iter().collect() } else { None }
}

/// Writes the section back, everything that was a default with it.
pub(crate) fn write(text: &mut String, database: &Database, site: &Site) {
    line(text, 0, "database:");
    line(text, 2, &format!("engine: {}", engines::written(database.engine)));
    match &database.release {
        Some(Release::Folder(path)) => line(text, 2, &format!("path: {}", quoted(path))),
        Some(Release::Version(version)) => line(text, 2, &format!("version: {}", quoted(version))),
        None => {}
    }
    runs_on::written(database.on).iter().for_each(|on| line(text, 2, on));
    line(text, 2, "nodes:");
    for host in database.nodes.iter().filter_map(|host| site.hosts.get(*host)) {
        line(text, 4, &format!("- {}", quoted(&host.path().join("/"))));
    }
    let synchronous = match database.synchronous {
        Synchronous::Off => "off".to_owned(),
        Synchronous::All => "all".to_owned(),
        Synchronous::Any(count) => format!("any {count}"),
    };
    let replication = match database.engine.quorum {
        Quorum::PerRequest => format!("{{ copies: {} }}", database.copies),
        Quorum::AsAsked | Quorum::Majority => format!("{{ synchronous: {} }}", quoted(&synchronous)),
    };
    line(text, 2, &format!("replication: {replication}"));
    let failover = match database.failover {
        Failover::None => "none".to_owned(),
        Failover::HaRestart { after } => format!("{{ ha-restart: {{ after: {} }} }}", format_duration(after)),
        Failover::Promote { after } => format!("{{ promote: {{ after: {} }} }}", format_duration(after)),
    };
    line(text, 2, &format!("failover: {failover}"));
    if !database.settings.is_empty() {
        line(text, 2, "settings:");
    }
    for (name, value) in &database.settings {
        line(text, 4, &format!("{}: {}", quoted(name), quoted(value)));
    }
    if let Some(cpus) = database.cpus {
        line(text, 2, &format!("cpus: {cpus}"));
    }
    line(text, 2, &format!("volumes: {}", database.volumes.name()));
    database.storage.iter().for_each(|of| line(text, 2, &storage::written(of, &site.hosts)));
    let platform = platform::written(&database.platform, &site.hosts);
    platform.iter().for_each(|of| line(text, 2, of));
    if database.interference_expected {
        line(text, 2, &format!("interference: {EXPECTED}"));
    }
}
