//! Survival as text: what single and double failures leave, equal outcomes together.

use std::collections::BTreeMap;

use history::{HostId, NodeId};
use model::deployment::{Deployment, Rules};
use model::storage::{Acknowledge, Component, Volume};
use model::survival::{Action, Failure, Outcome, Smallest};
use model::{Crowded, crowded};
use paper::{Analysis, JudgedFault, Judgement, nodes_in};

use super::{beside, counted};

/// Of pairs with the same outcome, so many are named.
const NAMED_PAIRS: usize = 6;
/// Of single failures with the same outcome, so many are named.
const NAMED_SINGLES: usize = 40;
/// Of hosts that hold several copies of the same data, so many are named.
const NAMED_HOSTS: usize = 3;
/// Where what failed stands.
const LABEL: usize = 44;

pub(super) fn survival(paper: &Analysis) -> Vec<String> {
    let survey = &paper.survey;
    let smallest = |what: &str, smallest: &Smallest| beside("  ", 2, &told(paper, what, smallest));
    let mut lines = vec![String::new()];
    lines.extend(smallest("destroy the last copy of acknowledged writes", &survey.loses_data));
    lines.extend(smallest("stop some service", &survey.stops_service));
    lines.push(String::new());
    lines.push("After failures, once the platform has restarted or promoted what it can".to_owned());
    lines.extend(beside("", 2, &setting(paper)));
    lines.push(String::new());
    lines.push(format!("  {:42}{}", "left by one failure", "failures"));
    let mut singles: BTreeMap<Outcome, Vec<&Failure>> = BTreeMap::new();
    for (failure, outcome) in &survey.singles {
        singles.entry(*outcome).or_default().push(failure);
    }
    for (outcome, failures) in &singles {
        lines.extend(beside(&label(*outcome), LABEL, &some_of(&folded(paper, failures), NAMED_SINGLES)));
    }
    lines.push(String::new());
    lines.extend(doubles(paper));
    if !paper.planned.is_empty() {
        lines.push(String::new());
        lines.push("  faults of the schedule".to_owned());
        if paper.planned.len() > 1 {
            lines.push(
                "    each judged with leader and nodes where they are before the run; where an earlier fault"
                    .to_owned(),
            );
            lines.push("    moves them, the report judges what was hit".to_owned());
        }
        lines.extend(schedule(paper));
    }
    lines
}

fn setting(paper: &Analysis) -> String {
    let deployment = &paper.deployment;
    let nodes: Vec<String> = deployment
        .nodes
        .ids()
        .map(|node| format!("{node} on {}", deployment.host_of(node).join("/")))
        .collect();
    let leads = match deployment.rules {
        _ if !paper.is_database => "",
        Rules::SingleLog { .. } => "; n1 is the leader",
        Rules::Elected { .. } => "; n1 is the first leader, the next is elected by a majority",
        Rules::Groups { .. } => "; every node takes writes, and none leads",
    };
    let volumes = volumes(deployment);
    format!("{}{leads}. {volumes}Failures do not stop clients.", nodes.join(", "))
}

/// What the nodes keep their data on, and which hosts hold more than one copy.
fn volumes(deployment: &Deployment) -> String {
    let storage = &deployment.storage;
    if storage.volumes.is_empty() {
        return String::new();
    }
    let in_use = storage.disks_in_use().len();
    let there =
        deployment.hosts.len() * storage.groups.iter().map(|group| group.capacity.len()).sum::<usize>();
    let disks = format!("{in_use} of {there} capacity disks hold data. ");
    let Some(mirrored) = storage.volumes.iter().find(|volume| volume.is_mirrored()) else { return disks };
    let acknowledged = match mirrored.acknowledge {
        Acknowledge::Sync => "durable on all of them",
        Acknowledge::Semi => "durable on the node's own and received by the others",
        Acknowledge::Async => "durable on the node's own",
    };
    let components = |(node, volume): (NodeId, &Volume)| {
        let others = volume.components.iter().filter(|of| deployment.nodes[node] != of.host);
        let names: Vec<String> = others.map(|of| deployment.hosts[of.host].join("/")).collect();
        format!("{node} on {}", names.join(" and "))
    };
    let mirrors: Vec<String> = storage.volumes.numbered().map(components).collect();
    let mut text = format!(
        "Volumes have {} components, a sync is acknowledged when {acknowledged}; beside its own host: {}. {disks}",
        mirrored.components.len(),
        mirrors.join(", ")
    );
    let crowded = crowded(deployment);
    for shared in crowded.iter().take(NAMED_HOSTS) {
        text.push_str(&copies_on(deployment, shared));
    }
    let rest = crowded.len().saturating_sub(NAMED_HOSTS);
    if rest > 0 {
        text.push_str(&counted(rest, "more host holds several. ", "more hosts hold several. "));
    }
    text
}

/// What dies with one host.
fn copies_on(deployment: &Deployment, shared: &Crowded) -> String {
    let named = |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" and ");
    let copies = shared.nodes.len() + shared.mirrors.len();
    let what = match shared.nodes.as_slice() {
        [] => format!("components of {}", named(&shared.mirrors)),
        nodes => format!("{} and a component of {}", named(nodes), named(&shared.mirrors)),
    };
    format!("{} holds {what}: {copies} copies are lost with it. ", deployment.hosts[shared.host].join("/"))
}

/// Pairs that do more harm than either failure alone; the rest is counted.
fn doubles(paper: &Analysis) -> Vec<String> {
    let Some(doubles) = &paper.survey.doubles else {
        return vec![
            "  two failures at once: too many pairs for `holdfast check`; `holdfast predict` searches them"
                .to_owned(),
        ];
    };
    let alone: BTreeMap<&Failure, Outcome> =
        paper.survey.singles.iter().map(|(failure, outcome)| (failure, *outcome)).collect();
    let mut worse: BTreeMap<Outcome, Vec<String>> = BTreeMap::new();
    for (pair, outcome) in doubles {
        let least =
            |part: &dyn Fn(&Outcome) -> bool| pair.iter().any(|failure| alone.get(failure).is_some_and(part));
        let service = least(&|alone| alone.service <= outcome.service);
        let data = least(&|alone| alone.data <= outcome.data);
        if !(service && data) {
            let [one, other] = pair;
            worse.entry(*outcome).or_default().push(format!(
                "{} + {}",
                named(paper, one),
                named(paper, other)
            ));
        }
    }
    let count: usize = worse.values().map(Vec::len).sum();
    let pairs = counted(doubles.len(), "pair", "pairs");
    let worse_than_alone = match count {
        0 => "no pair is worse than its worse single failure".to_owned(),
        1 => "1 is worse than either failure alone:".to_owned(),
        count => format!("{count} are worse than either failure alone:"),
    };
    let mut lines = vec![format!("  two failures at once: {pairs}; {worse_than_alone}")];
    for (outcome, pairs) in &worse {
        lines.extend(beside(&label(*outcome), LABEL, &some_of(pairs, NAMED_PAIRS)));
    }
    lines
}

fn label(outcome: Outcome) -> String {
    let action = match outcome.action {
        Action::None => "",
        Action::Restarted => ", restarted",
        Action::Promoted => ", promoted",
    };
    format!("    {}{action}; writes {}", outcome.service, outcome.data)
}

/// `host dc1/a/h1 (n1)`, with the wider place of which it is all there is.
fn named(paper: &Analysis, failure: &Failure) -> String {
    let deployment = &paper.deployment;
    let place = match failure {
        Failure::Down(place) => place,
        Failure::Disk(disk) | Failure::DiskGroup(disk) => {
            let lies = lies_on(deployment, disk);
            let holds = if lies.is_empty() { "holds nothing".to_owned() } else { lies.join(" ") };
            return format!("{failure} ({holds})");
        }
        Failure::Cut(..) | Failure::Isolated(_) | Failure::Silent(_) => return failure.to_string(),
    };
    let hosts = deployment.hosts_in(place);
    let whole = (1..place.len()).find(|length| deployment.hosts_in(&place[..*length]) == hosts);
    let whole = whole.map(|length| {
        let wider = &place[..length];
        format!("all of {} {}", deployment.kind(wider), wider.join("/"))
    });
    let nodes = nodes_in(deployment, place);
    let remarks: Vec<String> =
        whole.into_iter().chain((!nodes.is_empty()).then(|| nodes.join(" "))).collect();
    let remarks = if remarks.is_empty() { String::new() } else { format!(" ({})", remarks.join(", ")) };
    format!("{} {}{remarks}", deployment.kind(place), place.join("/"))
}

/// Failures by name. Hosts and racks that hold nothing are counted where there are several of a kind.
fn folded(paper: &Analysis, failures: &[&Failure]) -> Vec<String> {
    let mut idle: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
    let mut names = Vec::new();
    for failure in failures {
        match idle_kind(&paper.deployment, failure) {
            Some(kind) => idle.entry(kind).or_default().push(failure),
            None => names.push(named(paper, failure)),
        }
    }
    for (kind, of_kind) in idle {
        match of_kind.as_slice() {
            one_or_two @ ([_] | [_, _]) => {
                names.extend(one_or_two.iter().map(|failure| named(paper, failure)));
            }
            more => names.push(format!("{} {kind}s without a node", more.len())),
        }
    }
    names
}

/// What kind of place fails, where no node and no copy of a volume is in it.
fn idle_kind(deployment: &Deployment, failure: &Failure) -> Option<&'static str> {
    let Failure::Down(place) = failure else { return None };
    let holds = |host: HostId| deployment.hosts.get(host).is_some_and(|path| path.starts_with(place));
    let mut components = deployment.storage.volumes.iter().flat_map(|volume| &volume.components);
    let is_idle = nodes_in(deployment, place).is_empty() && !components.any(|of| holds(of.host));
    is_idle.then(|| deployment.kind(place))
}

/// Nodes of whose volumes a component lies on a disk, or behind a cache disk.
fn lies_on(deployment: &Deployment, disk: &[String]) -> Vec<String> {
    let Some((name, host)) = disk.split_last() else { return Vec::new() };
    let storage = &deployment.storage;
    let here = |of: &Component| {
        let is_struck = of.disk == *name || storage.behind(name).contains(&of.disk);
        is_struck && deployment.hosts.get(of.host).is_some_and(|path| path.as_slice() == host)
    };
    let nodes = storage.volumes.ids().filter(|node| storage.volumes[*node].components.iter().any(here));
    nodes.map(|node| node.to_string()).collect()
}

fn some_of(all: &[String], most: usize) -> String {
    let named: Vec<&str> = all.iter().take(most).map(String::as_str).collect();
    let rest = all.len().saturating_sub(most);
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("{}{rest}", named.join("; "))
}

fn told(paper: &Analysis, what: &str, smallest: &Smallest) -> String {
    match smallest {
        Smallest::Found { set, alike } => {
            let names: Vec<String> = set.iter().map(|failure| named(paper, failure)).collect();
            let others = match alike {
                0 | 1 => String::new(),
                2 => ", or 1 other set of that size".to_owned(),
                alike => format!(", or {} other sets of that size", alike - 1),
            };
            let count = match set.len() {
                1 => "One failure".to_owned(),
                count => format!("{count} failures together"),
            };
            format!("{count} can {what}: {}{others}.", names.join(" + "))
        }
        Smallest::MoreThan(size) => {
            let failures = if *size == 1 { "failure" } else { "failures" };
            format!("No set of up to {size} {failures} can {what}; larger sets were not searched.")
        }
    }
}

/// Faults of the schedule; those that follow each other and read the same are counted.
fn schedule(paper: &Analysis) -> Vec<String> {
    let told: Vec<(String, String)> = paper.planned.iter().map(|planned| scheduled(paper, planned)).collect();
    let mut lines = Vec::new();
    for same in told.chunk_by(|one, next| one == next) {
        let (head, tail) = &same[0];
        let times = if same.len() > 1 { format!(", {} times", same.len()) } else { String::new() };
        lines.extend(beside(&format!("{head}{times}  "), LABEL, tail));
    }
    lines
}

/// A fault, and what it leaves.
fn scheduled(paper: &Analysis, planned: &JudgedFault) -> (String, String) {
    let head = format!("    {}: {}", planned.phase, planned.what);
    let tail = match &planned.judgement {
        Judgement::Worst { choices, failures, outcome } => {
            let names: Vec<String> = failures.iter().map(|failure| named(paper, failure)).collect();
            let names =
                if names.is_empty() { "all nodes reach each other".to_owned() } else { names.join(" + ") };
            let worst = if *choices > 1 { format!("worst of {choices}: ") } else { String::new() };
            format!("{worst}{names}: {}", label(*outcome).trim_start())
        }
        Judgement::NotOnPaper(why) => format!("not judged: {why}"),
    };
    (head, tail)
}
