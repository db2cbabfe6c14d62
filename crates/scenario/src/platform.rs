//! `database.platform`: capacities, rules, admission, what is moved, and what corrects clocks.
//!
//! Owns reading it and refusing what does not hold from the beginning. What follows from it when a host is lost is the
//! business of the crate `placement`.

use std::collections::BTreeMap;
use std::time::Duration;

use history::{HostId, NodeId, PerHost, PerNode};
use placement::{Bond, Drs, Group, Rule, Strength, Violation, stranded_by, violations};

use crate::decode::Decoder;
use crate::language::{
    ADMISSIONS, CORRECTIONS, DRS, GROUPS, ISOLATIONS, MOST_NODES, PLATFORM, RULE, STRENGTHS, TIME_SERVICE,
};
use crate::places::Places;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{ClockCorrection, Failover, Host, IsolationResponse, Memory, TimeService, VmPlatform};
use crate::tree::Node;
use crate::units::{format_duration, format_size};
use crate::wording::{listed, nearest, shortened};

/// How often a clock is compared where nothing is said: the default of chrony(8) and ntpd(8) is from 16 s to 64 s.
const POLL: Duration = Duration::from_secs(16);
const POLL_MIN: Duration = Duration::from_millis(100);

/// The section as written.
pub(crate) struct PlatformDocument {
    at: Spot,
    host_memory: Option<Spanned<u64>>,
    node_memory: Option<Spanned<u64>>,
    host_nodes: Option<Spanned<u64>>,
    priority: Vec<Spanned<String>>,
    rules: Vec<RuleDocument>,
    admission_at: Option<Spot>,
    drs: Drs,
    time_service: Option<TimeService>,
    isolation: Option<Spanned<IsolationResponse>>,
}

struct RuleDocument {
    at: Spot,
    bond: BondDocument,
    nodes: Option<Vec<Spanned<String>>>,
    strength: Strength,
}

enum BondDocument {
    Apart(Group),
    Within(Vec<Spanned<String>>),
}

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<PlatformDocument> {
    let record = decoder.record(node, &PLATFORM)?;
    let host_memory = record.get("host_memory").and_then(|node| decoder.size(node, "`host_memory`", "GiB"));
    let node_memory = record.get("node_memory").and_then(|node| decoder.size(node, "`node_memory`", "GiB"));
    let host_nodes =
        record.get("host_nodes").and_then(|node| decoder.count(node, "`host_nodes`", 1, MOST_NODES));
    let priority = record.get("priority").map(|node| texts(node, "`priority`", "a node's name", decoder));
    let rules = record.get("rules").and_then(|node| decoder.list(node, "rules", 1));
    let rules: Vec<Option<RuleDocument>> =
        rules.unwrap_or_default().iter().map(|node| decode_rule(node, decoder)).collect();
    let admission = record.get("admission").and_then(|node| decoder.word(node, "admission", ADMISSIONS));
    let drs = record.get("drs").and_then(|node| decoder.word(node, "way to balance", DRS));
    let drs = match drs.map(|word| word.value) {
        Some("conservative") => Drs::Conservative,
        Some("eager") => Drs::Eager,
        _ => Drs::Off,
    };
    let isolation =
        record.get("isolation").and_then(|node| decoder.word(node, "isolation response", ISOLATIONS));
    let isolation = isolation.map(|word| match word.value {
        "power-off" => Spanned { value: IsolationResponse::PowerOff, at: word.at },
        _ => Spanned { value: IsolationResponse::LeaveRunning, at: word.at },
    });
    let time_service = match record.get("time_service") {
        Some(node) => Some(decode_time_service(node, decoder)?),
        None => None,
    };
    if let (Some(alone), None, missing) | (None, Some(alone), missing) =
        (&host_memory, &node_memory, if host_memory.is_some() { "node_memory" } else { "host_memory" })
    {
        decoder.findings.add(
            "missing-key",
            alone.at,
            format!("memory of hosts and of nodes is given together; `{missing}` is missing"),
            "alone",
            format!("add `{missing}: 16GiB`"),
        );
    }
    Some(PlatformDocument {
        at: node.at,
        host_memory,
        node_memory,
        host_nodes,
        priority: priority.unwrap_or(Some(Vec::new()))?,
        rules: rules.into_iter().collect::<Option<_>>()?,
        admission_at: admission.filter(|word| word.value != "off").map(|word| word.at),
        drs,
        time_service,
        isolation,
    })
}

fn decode_time_service(node: &Node, decoder: &mut Decoder) -> Option<TimeService> {
    let record = decoder.record(node, &TIME_SERVICE)?;
    let how = match decoder.word(record.get("how")?, "way to correct a clock", CORRECTIONS)?.value {
        "slew" => ClockCorrection::Slew,
        _ => ClockCorrection::Step,
    };
    let mut time = |key: &'static str, absent: Duration| match record.get(key) {
        Some(node) => decoder.duration(node, &format!("`{key}`"), "s"),
        None => Some(Spanned { value: absent, at: node.at }),
    };
    let (poll, notice) = (time("poll", POLL), time("notice", Duration::ZERO));
    let (poll, notice) = (poll?, notice?);
    if poll.value < POLL_MIN {
        let message = format!("a time service that compares the clock every {}", format_duration(poll.value));
        decoder.findings.add("too-small", poll.at, message, "too often", "write 100ms or more");
    }
    Some(TimeService { how, poll: poll.value, notice: notice.value })
}

fn texts(node: &Node, list: &str, what: &str, decoder: &mut Decoder) -> Option<Vec<Spanned<String>>> {
    decoder.list(node, list, 1)?.iter().map(|item| decoder.text(item, what)).collect()
}

fn decode_rule(node: &Node, decoder: &mut Decoder) -> Option<RuleDocument> {
    let record = decoder.record(node, &RULE)?;
    let nodes = record.get("nodes").map(|node| texts(node, "`nodes`", "a node's name", decoder));
    let strength =
        record.get("strength").and_then(|node| decoder.word(node, "strength of a rule", STRENGTHS));
    let (kind, entry) = record.first_of(RULE.exactly_one_of)?;
    let bond = if kind == "apart" {
        BondDocument::Apart(match decoder.word(&entry.value, "group of hosts", GROUPS)?.value {
            "racks" => Group::Rack,
            "zones" => Group::Zone,
            _ => Group::Host,
        })
    } else {
        BondDocument::Within(texts(&entry.value, "`within`", "a place", decoder)?)
    };
    let strength = match strength.map(|word| word.value) {
        Some("should") => Strength::Should,
        _ => Strength::Must,
    };
    Some(RuleDocument {
        at: entry.key_at,
        bond,
        nodes: nodes.unwrap_or(Some(Vec::new())).map(Some)?,
        strength,
    })
}

impl PlatformDocument {
    /// The platform over nodes on hosts, if it holds from the beginning.
    pub(crate) fn resolve(
        self,
        (hosts, places): (&PerHost<Host>, &Places),
        nodes: &PerNode<HostId>,
        failover: Failover,
        findings: &mut Findings,
    ) -> Option<VmPlatform> {
        let before = findings.len();
        let count = nodes.len();
        let priority = nodes_named(&self.priority, count, findings);
        let rules: Vec<Option<Rule>> =
            self.rules.iter().map(|rule| rule.resolve(hosts, places, count, findings)).collect();
        let memory = self.host_memory.as_ref().zip(self.node_memory.as_ref());
        let platform = VmPlatform {
            memory: memory.map(|(host, node)| Memory { host_bytes: host.value, node_bytes: node.value }),
            host_nodes: self.host_nodes.as_ref().map(|most| most.value as u32),
            priority: priority?,
            rules: rules.into_iter().collect::<Option<_>>()?,
            admits_one_host_failure: self.admission_at.is_some(),
            drs: self.drs,
            time_service: self.time_service,
            isolation: self.isolation.as_ref().map(|isolation| isolation.value),
        };
        self.check_isolation(hosts, failover, findings);
        self.check_beginning(&platform, hosts, nodes, findings);
        if findings.len() == before {
            self.check_admission(&platform, (hosts, nodes), failover, findings);
        }
        (findings.len() == before).then_some(platform)
    }

    /// Refuses a rule or a capacity that is broken before anything happens.
    fn check_beginning(
        &self,
        platform: &VmPlatform,
        hosts: &PerHost<Host>,
        nodes: &PerNode<HostId>,
        findings: &mut Findings,
    ) {
        let cluster = platform.cluster_of(hosts.iter().map(Host::path), nodes);
        let path = |host: HostId| hosts[host].path().join("/");
        let mut told = BTreeMap::new();
        for violation in violations(&cluster) {
            let (at, message) = match violation {
                Violation::Memory { has_bytes, needed_bytes, .. } => (
                    self.node_memory.as_ref().map_or(self.at, |memory| memory.at),
                    format!(
                        "a node needs {}, and a host has {}",
                        format_size(needed_bytes),
                        format_size(has_bytes)
                    ),
                ),
                // At least one, and each node starts on a host of its own.
                Violation::Full { .. } => (self.at, "a host has more nodes than it may run".to_owned()),
                Violation::Together { rule, one, other } => (
                    self.rules[rule].at,
                    format!(
                        "{one} and {other} begin on {} and {}, which the rule forbids",
                        path(nodes[one]),
                        path(nodes[other])
                    ),
                ),
                Violation::Outside { rule, vm, host } => {
                    (self.rules[rule].at, format!("{vm} begins on {}, which the rule forbids", path(host)))
                }
            };
            told.entry(at.start).or_insert((at, message));
        }
        for (at, message) in told.into_values() {
            findings.add(
                "broken-from-the-start",
                at,
                message,
                "does not hold at the start",
                "name places in `database.nodes` so that it holds, change it, or write `strength: should`",
            );
        }
    }

    /// Refuses a response that nothing waits for, or that nothing can ever ask for.
    fn check_isolation(&self, hosts: &PerHost<Host>, failover: Failover, findings: &mut Findings) {
        let Some(isolation) = &self.isolation else { return };
        if failover == Failover::None {
            let message = "`isolation` needs a time limit: how long a host may reach no other host";
            let help = "write `failover: { ha-restart: { after: 5s } }`, or leave `isolation` out";
            findings.add("nothing-restarts", isolation.at, message, "responds after no time", help);
        } else if hosts.len() < 2 {
            let message = "the site has a single host, so there is no other for it to reach";
            let help = "give the site another host: `hosts: 2`, or leave `isolation` out";
            findings.add("no-other-host", isolation.at, message, "nobody to reach", help);
        }
    }

    /// Refuses a site on which a node would stay off after the loss of one host, where that is asked for.
    fn check_admission(
        &self,
        platform: &VmPlatform,
        (hosts, nodes): (&PerHost<Host>, &PerNode<HostId>),
        failover: Failover,
        findings: &mut Findings,
    ) {
        let Some(at) = self.admission_at else { return };
        if !matches!(failover, Failover::HaRestart { .. }) {
            let message =
                "`admission` reserves capacity for restarts, and nothing in the scenario restarts nodes";
            let help = "write `failover: { ha-restart: { after: 5s } }`, or leave `admission` out";
            return findings.add("nothing-restarts", at, message, "reserves for nothing", help);
        }
        let cluster = platform.cluster_of(hosts.iter().map(Host::path), nodes);
        let strands = |host: &HostId| stranded_by(&cluster, &[*host]).first().map(|first| (*host, first.vm));
        if let Some((host, vm)) = nodes.iter().find_map(strands) {
            let host = hosts[host].path().join("/");
            findings.add(
                "not-admitted",
                at,
                format!("after the loss of {host} no other host can run {vm}"),
                "does not hold",
                "add hosts or memory, relax a rule, or write `admission: off`; `check` then says why each host is \
                 excluded",
            );
        }
    }
}

impl RuleDocument {
    fn resolve(
        &self,
        hosts: &PerHost<Host>,
        places: &Places,
        count: usize,
        findings: &mut Findings,
    ) -> Option<Rule> {
        let named = self.nodes.as_ref().filter(|named| !named.is_empty());
        let vms = match named {
            Some(named) => nodes_named(named, count, findings)?,
            None => (0..count).map(NodeId::new).collect(),
        };
        let bond = match &self.bond {
            BondDocument::Apart(by) => Bond::Apart { vms, by: *by },
            BondDocument::Within(written) => {
                let found: Vec<_> = written.iter().map(|place| places.find(place, None, findings)).collect();
                let found: Vec<_> = found.into_iter().collect::<Option<_>>()?;
                let is_in =
                    |host: &HostId| found.iter().any(|place| hosts[*host].path().starts_with(&place.path));
                Bond::Within { vms, hosts: hosts.ids().filter(is_in).collect() }
            }
        };
        Some(Rule { bond, strength: self.strength })
    }
}

/// Nodes by their names, each once.
fn nodes_named(written: &[Spanned<String>], count: usize, findings: &mut Findings) -> Option<Vec<NodeId>> {
    let names: PerNode<String> = (0..count).map(|index| NodeId::new(index).to_string()).collect();
    let mut found = Vec::new();
    for text in written {
        let (code, message, help) = match names.named(&text.value) {
            Some(node) if !found.contains(&node) => {
                found.push(node);
                continue;
            }
            Some(_) => (
                "duplicate-node",
                format!("`{}` is named twice", text.value),
                "name each node once".to_owned(),
            ),
            None => (
                "unknown-node",
                format!("there is no node `{}`", shortened(&text.value)),
                match nearest(&text.value, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("nodes are {}", listed(&names)),
                },
            ),
        };
        findings.add(code, text.at, message, "unknown node", help);
        return None;
    }
    Some(found)
}

/// The platform as lines of a resolved scenario's `database`; none where nothing is said.
pub(crate) fn written(platform: &VmPlatform, hosts: &PerHost<Host>) -> Vec<String> {
    if *platform == VmPlatform::default() {
        return Vec::new();
    }
    let names = |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = vec!["platform:".to_owned()];
    if let Some(Memory { host_bytes, node_bytes }) = platform.memory {
        lines.push(format!("  host_memory: {}", format_size(host_bytes)));
        lines.push(format!("  node_memory: {}", format_size(node_bytes)));
    }
    lines.extend(platform.host_nodes.map(|most| format!("  host_nodes: {most}")));
    if !platform.priority.is_empty() {
        lines.push(format!("  priority: [{}]", names(&platform.priority)));
    }
    if platform.admits_one_host_failure {
        lines.push("  admission: one-host-failure".to_owned());
    }
    match platform.drs {
        Drs::Off => {}
        Drs::Conservative => lines.push("  drs: conservative".to_owned()),
        Drs::Eager => lines.push("  drs: eager".to_owned()),
    }
    if let Some(isolation) = platform.isolation {
        let word = if isolation == IsolationResponse::PowerOff { "power-off" } else { "leave-running" };
        lines.push(format!("  isolation: {word}"));
    }
    if let Some(TimeService { how, poll, notice }) = platform.time_service {
        let how = if how == ClockCorrection::Step { "step" } else { "slew" };
        let (poll, notice) = (format_duration(poll), format_duration(notice));
        lines.push(format!("  time_service: {{ how: {how}, poll: {poll}, notice: {notice} }}"));
    }
    if !platform.rules.is_empty() {
        lines.push("  rules:".to_owned());
    }
    for Rule { bond, strength } in &platform.rules {
        let (bond, vms) = match bond {
            Bond::Apart { vms, by } => {
                let by = match by {
                    Group::Host => "hosts",
                    Group::Rack => "racks",
                    Group::Zone => "zones",
                };
                (format!("apart: {by}"), vms)
            }
            Bond::Within { vms, hosts: within } => {
                let path = |host: &HostId| format!("\"{}\"", hosts[*host].path().join("/"));
                let within: Vec<String> = within.iter().map(path).collect();
                (format!("within: [{}]", within.join(", ")), vms)
            }
        };
        let strength = if *strength == Strength::Should { "should" } else { "must" };
        lines.push(format!("    - {{ {bond}, nodes: [{}], strength: {strength} }}", names(vms)));
    }
    lines
}
