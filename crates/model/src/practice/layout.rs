//! Rules about a layout: which places the nodes are in, what commits wait for, how the database is set.
//!
//! Sources by their short names: FR-1 (CockroachDB on a hyperconverged cluster), FR-2 (Cassandra on three racks), FR-3
//! (two data centres and 50 ms), and the PostgreSQL documentation's chapters.

use std::collections::{BTreeMap, BTreeSet};

use history::{HostId, NodeId};

use super::storage::{MirrorFacts, copies_apart, mirrored_storage, never_forced_behind, rebuild_waits};
use super::{Judgement, Rule, judged};
use crate::commit::Acknowledgements;
use crate::deployment::{Deployment, Path, Rules, Takeover};
use crate::survival::copies;

/// What a scenario says.
#[derive(Debug, Clone)]
pub struct LayoutFacts {
    /// The database on its site.
    pub deployment: Deployment,
    /// Whether nodes run a database; where not, they have volumes and nothing else.
    pub is_database: bool,
    /// When a node acknowledges a write; `None` where no setting that decides it is known.
    pub sync: Option<SyncFacts>,
    /// Names of the settings that the database has.
    pub known_settings: BTreeSet<String>,
    /// Settings of the database that differ from its defaults.
    pub settings: BTreeMap<String, String>,
    /// CPUs each node may use; nothing when there is no limit.
    pub cpus: Option<f64>,
    /// Bottlenecks that everything in and out of a place shares.
    pub edges: Vec<EdgeFacts>,
    /// What is said of mirrored volumes; nothing when nothing is.
    pub mirrors: Option<MirrorFacts>,
}

/// When a node acknowledges a write, as a setting of its database decides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncFacts {
    /// Whether it does so before the write is synced.
    pub acknowledged_before: bool,
    /// The setting with its value: `appendfsync = everysec`.
    pub setting: String,
    /// The settings with which each write is synced first, as a scenario has them; `None` where none is known.
    pub synced_by: Option<String>,
}

/// A bottleneck around a place.
#[derive(Debug, Clone)]
pub struct EdgeFacts {
    /// As the scenario names it.
    pub name: String,
    /// The place.
    pub around: Path,
    /// What it carries each way.
    pub rate_bits_per_s: u64,
}

/// The rules, in the order they are told.
pub const LAYOUT_RULES: &[Rule<LayoutFacts>] = &[
    Rule {
        id: "three-data-centres",
        source: "FR-3",
        remedy: "put a third data centre beside the two, with a node that can acknowledge; or accept that commits stop with the link",
        judge: three_data_centres,
    },
    Rule {
        id: "one-node-per-host",
        source: "FR-1 (anti-affinity)",
        remedy: "place each node on a separate host",
        judge: one_node_per_host,
    },
    Rule {
        id: "spread-over-racks",
        source: "FR-1, FR-2 (placement matches failure domains)",
        remedy: "place one node in each rack before a second in any",
        judge: spread_over_racks,
    },
    Rule {
        id: "acknowledged-elsewhere",
        source: "FR-2, PostgreSQL documentation, Synchronous Replication",
        remedy: "let commits wait for more standbys than share a rack, zone or region with the leader, or move those \
                 standbys",
        judge: acknowledged_elsewhere,
    },
    Rule {
        id: "spare-standby",
        source: "PostgreSQL documentation, Planning for High Availability",
        remedy: "use more standbys than a commit waits for, so that one can fail: `synchronous: any 1` with two \
                 standbys",
        judge: spare_standby,
    },
    Rule {
        id: "synchronous-before-promotion",
        source: "PostgreSQL documentation, Synchronous Replication; FR-3",
        remedy: "write `synchronous: any 1`, or expect acknowledged writes to be lost with the leader",
        judge: synchronous_before_promotion,
    },
    Rule {
        id: "failover-on",
        source: "FR-1 (high availability on)",
        remedy: "let the platform restart or promote: `failover: { ha-restart: { after: 30s } }`",
        judge: failover_on,
    },
    Rule {
        id: "spare-host",
        source: "FR-1 (high availability on)",
        remedy: "keep one spare host, so that a restart does not put two nodes on one host",
        judge: spare_host,
    },
    Rule {
        id: "four-cpus",
        source: "FR-1 (vCPU between 4 and the cores of one socket)",
        remedy: "give each node 4 CPUs or more",
        judge: four_cpus,
    },
    Rule {
        id: "edge-carries-rebuild",
        source: "FR-1 (edges sized for steady state and rebuild)",
        remedy: "size the edge for clients plus rebuild, or keep leader, standbys and clients on one side of it",
        judge: edge_carries_rebuild,
    },
    Rule {
        id: "three-replicas",
        source: "FR-2, FR-3 (replication factor 3)",
        remedy: "use three nodes: with two, no second copy is left after one failure",
        judge: three_replicas,
    },
    Rule {
        id: "mirrored-storage",
        source: "FR-1, FR-2 (failures to tolerate: 1 or more)",
        remedy: "ask for `storage: { replicas: 2 }`",
        judge: mirrored_storage,
    },
    Rule {
        id: "copies-apart",
        source: "FR-1 (anti-affinity), FR-2 (placement matches failure domains)",
        remedy: "add hosts that run no node, one for each mirror, or nodes until the loss of one host leaves a quorum of copies",
        judge: copies_apart,
    },
    Rule {
        id: "rebuild-waits",
        source: "FR-2 (faults cleared before the rebuild timer)",
        remedy: "set `storage.rebuild_after` longer than outages of hosts and disks, so that nothing is copied twice",
        judge: rebuild_waits,
    },
    Rule {
        id: "never-forced-behind",
        source: "FR-4 (asynchronous replication, promoted by hand)",
        remedy: "write `acknowledge: sync`, or remove `promote: forced` and wait for the host",
        judge: never_forced_behind,
    },
    Rule {
        id: "fsync-on",
        source: "PostgreSQL documentation, Write Ahead Log settings",
        remedy: "remove `fsync: off`: with it a power loss corrupts the database",
        judge: |facts| switched_on(facts, "fsync"),
    },
    Rule {
        id: "members-sync",
        source: "etcd documentation, Configuration flags (unsafe flags)",
        remedy: "remove `unsafe-no-fsync`: with it a power loss destroys writes that a majority acknowledged",
        judge: |facts| match setting(facts, "unsafe-no-fsync") {
            Some(value) => judged(is_off(value), format!("unsafe-no-fsync = {value}")),
            None => Judgement::DoesNotApply,
        },
    },
    Rule {
        id: "synced-before-acknowledged",
        source: "the database's documentation of its log; jepsen.io",
        remedy: "use settings that sync a write before it is acknowledged; otherwise a power loss of all acknowledging \
                 nodes destroys the last writes",
        judge: synced_before_acknowledged,
    },
    Rule {
        id: "full-page-writes-on",
        source: "PostgreSQL documentation, Write Ahead Log settings",
        remedy: "remove `full_page_writes: off`: with it a torn page cannot be repaired",
        judge: |facts| switched_on(facts, "full_page_writes"),
    },
    Rule {
        id: "synchronous-commit-on",
        source: "PostgreSQL documentation, Asynchronous Commit",
        remedy: "remove `synchronous_commit` or write `on`: lower levels acknowledge a commit before it is durable",
        judge: synchronous_commit_on,
    },
    Rule {
        id: "autovacuum-on",
        source: "PostgreSQL documentation, Routine Vacuuming",
        remedy: "remove `autovacuum: off`: with it tables bloat and transaction IDs run out",
        judge: |facts| switched_on(facts, "autovacuum"),
    },
];

fn domains(facts: &LayoutFacts, length: impl Fn(&Path) -> usize) -> BTreeSet<Path> {
    let deployment = &facts.deployment;
    let path = |host: &HostId| deployment.hosts.get(*host);
    deployment.nodes.iter().filter_map(path).map(|host| host[..length(host)].to_vec()).collect()
}

fn rack_length(host: &Path) -> usize {
    host.len().saturating_sub(1)
}

/// Acknowledgements a commit waits for, and standbys there are; nothing for a database without one log.
fn synchronous(facts: &LayoutFacts) -> Option<(usize, usize)> {
    let nodes = facts.deployment.nodes.len();
    let standbys = nodes.saturating_sub(1);
    let acknowledgements = match &facts.deployment.rules {
        Rules::SingleLog { acknowledgements, .. } => acknowledgements,
        Rules::Elected { acknowledgements, .. } => {
            return Some((copies(*acknowledgements, nodes).saturating_sub(1), standbys));
        }
        Rules::Groups { .. } => return None,
    };
    let wanted = match acknowledgements {
        Acknowledgements::None => 0,
        Acknowledgements::Any(count) => (*count).min(standbys),
        Acknowledgements::All => standbys,
    };
    Some((wanted, standbys))
}

fn takeover(facts: &LayoutFacts) -> Option<Takeover> {
    match &facts.deployment.rules {
        Rules::SingleLog { takeover, .. } => Some(*takeover),
        // Where the nodes elect their leader, nothing need be done by the platform.
        Rules::Elected { takeover: Takeover::Restart, .. } => Some(Takeover::Restart),
        Rules::Elected { .. } | Rules::Groups { .. } => None,
    }
}

fn three_data_centres(facts: &LayoutFacts) -> Judgement {
    let regions = domains(facts, |host| host.len().min(1));
    let across = match synchronous(facts) {
        Some((wanted, _)) => {
            let leader = facts.deployment.host_of(NodeId::FIRST);
            let beside = facts
                .deployment
                .others()
                .filter(|node| facts.deployment.host_of(*node).first() == leader.first())
                .count();
            // With enough standbys beside the leader commits never wait for the other data centre.
            wanted > beside
        }
        None => true,
    };
    let names: Vec<String> = regions.iter().map(|region| region.join("/")).collect();
    match (regions.len(), across) {
        (0 | 1, _) | (2, false) => Judgement::DoesNotApply,
        (2, true) => Judgement::Departs(format!(
            "two data centres ({}) with synchronous replication between them are not highly available: if the link \
             or the second one fails, commits wait, and there is no third place to decide between the two",
            names.join(", ")
        )),
        (count, _) => Judgement::Follows(format!("nodes are in {count} data centres ({})", names.join(", "))),
    }
}

fn one_node_per_host(facts: &LayoutFacts) -> Judgement {
    let nodes = &facts.deployment.nodes;
    let mut count: BTreeMap<HostId, usize> = BTreeMap::new();
    for host in nodes {
        *count.entry(*host).or_default() += 1;
    }
    let crowded = count.iter().find(|(_, nodes)| **nodes > 1);
    match crowded {
        Some((host, nodes)) => {
            let path = facts.deployment.hosts.get(*host).map(|host| host.join("/")).unwrap_or_default();
            Judgement::Departs(format!("{nodes} nodes share host {path} and fail with it"))
        }
        None => Judgement::Follows(format!("{} nodes on as many hosts", nodes.len())),
    }
}

fn spread_over_racks(facts: &LayoutFacts) -> Judgement {
    let used = domains(facts, rack_length).len();
    let there: BTreeSet<&[String]> =
        facts.deployment.hosts.iter().map(|host| &host[..rack_length(host)]).collect();
    let could = facts.deployment.nodes.len().min(there.len());
    if there.len() < 2 {
        return Judgement::DoesNotApply;
    }
    judged(
        used >= could,
        format!(
            "{} nodes are in {used} of {} racks (or zones without racks)",
            facts.deployment.nodes.len(),
            there.len()
        ),
    )
}

/// Whether a commit can be acknowledged without leaving the smallest place around the leader that not all nodes share.
fn acknowledged_elsewhere(facts: &LayoutFacts) -> Judgement {
    let Some((wanted, _)) = synchronous(facts).filter(|(wanted, _)| *wanted > 0) else {
        return Judgement::DoesNotApply;
    };
    let deployment = &facts.deployment;
    let leader = deployment.host_of(NodeId::FIRST);
    for length in (1..=leader.len()).rev() {
        let place = &leader[..length];
        let beside = deployment.others().filter(|node| deployment.host_of(*node).starts_with(place)).count();
        let elsewhere = deployment.nodes.len() - 1 - beside;
        if elsewhere > 0 && beside >= wanted {
            return Judgement::Departs(format!(
                "{beside} standbys share {} with the leader, and a commit waits for {wanted}: if that {} fails, \
                 acknowledged writes may have no other copy",
                place.join("/"),
                deployment.kind(place)
            ));
        }
    }
    Judgement::Follows(
        "every commit is acknowledged outside the leader's rack, zone and region, if there are nodes"
            .to_owned(),
    )
}

fn spare_standby(facts: &LayoutFacts) -> Judgement {
    match synchronous(facts) {
        Some((wanted, standbys)) if wanted > 0 => {
            judged(standbys > wanted, format!("a commit waits for {wanted} of {standbys} standbys"))
        }
        _ => Judgement::DoesNotApply,
    }
}

fn synchronous_before_promotion(facts: &LayoutFacts) -> Judgement {
    match (synchronous(facts), takeover(facts)) {
        (Some((wanted, _)), Some(Takeover::Promote)) => {
            judged(wanted > 0, format!("a standby is promoted, and commits wait for {wanted} standbys"))
        }
        _ => Judgement::DoesNotApply,
    }
}

fn failover_on(facts: &LayoutFacts) -> Judgement {
    match takeover(facts).filter(|_| facts.is_database) {
        Some(Takeover::None) => {
            Judgement::Departs("no failover: nothing takes over when the leader's host fails".to_owned())
        }
        Some(Takeover::Restart) => Judgement::Follows("lost nodes start on another host".to_owned()),
        Some(Takeover::Promote) => Judgement::Follows("a standby is promoted".to_owned()),
        None => Judgement::DoesNotApply,
    }
}

fn spare_host(facts: &LayoutFacts) -> Judgement {
    if takeover(facts) != Some(Takeover::Restart) {
        return Judgement::DoesNotApply;
    }
    let (hosts, nodes) = (facts.deployment.hosts.len(), facts.deployment.nodes.len());
    judged(hosts > nodes, format!("{hosts} hosts for {nodes} nodes"))
}

fn four_cpus(facts: &LayoutFacts) -> Judgement {
    match facts.cpus {
        Some(cpus) => judged(cpus >= 4.0, format!("{cpus} CPUs for each node")),
        None => Judgement::DoesNotApply,
    }
}

fn edge_carries_rebuild(facts: &LayoutFacts) -> Judgement {
    let deployment = &facts.deployment;
    let inner = facts.edges.iter().filter(|edge| deployment.kind(&edge.around) != "host");
    let mut passed = Vec::new();
    for edge in inner {
        let inside = |path: &[String]| path.starts_with(&edge.around);
        let leader = inside(deployment.host_of(NodeId::FIRST));
        let nodes = deployment.others().any(|node| inside(deployment.host_of(node)) != leader);
        let clients = deployment.clients.iter().any(|client| inside(client) != leader);
        let rate = match edge.rate_bits_per_s as f64 {
            bits if bits >= 1e9 => format!("{} Gbit/s", bits / 1e9),
            bits => format!("{} Mbit/s", bits / 1e6),
        };
        if nodes && clients {
            return Judgement::Departs(format!(
                "edge {} ({rate}) carries both the clients' traffic and the replication: a rebuild and the load share it",
                edge.name
            ));
        }
        passed.push(edge.name.clone());
    }
    if passed.is_empty() {
        return Judgement::DoesNotApply;
    }
    Judgement::Follows(format!("no rebuild shares an edge with the clients ({})", passed.join(", ")))
}

fn three_replicas(facts: &LayoutFacts) -> Judgement {
    let copies = match &facts.deployment.rules {
        Rules::SingleLog { .. } | Rules::Elected { .. } => facts.deployment.nodes.len(),
        Rules::Groups { groups, .. } => groups.iter().map(Vec::len).min().unwrap_or(0),
    };
    if copies < 2 {
        return Judgement::DoesNotApply;
    }
    judged(copies >= 3, format!("{copies} nodes hold the same data"))
}

fn setting<'a>(facts: &'a LayoutFacts, name: &str) -> Option<&'a str> {
    let found = facts.settings.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim().trim_matches('\''))
}

fn synced_before_acknowledged(facts: &LayoutFacts) -> Judgement {
    let Some(sync) = &facts.sync else { return Judgement::DoesNotApply };
    let way = sync.synced_by.as_ref().filter(|_| sync.acknowledged_before);
    let way = way.map(|settings| format!("; `settings: {{ {settings} }}` syncs each write first"));
    judged(!sync.acknowledged_before, format!("{}{}", sync.setting, way.unwrap_or_default()))
}

/// PostgreSQL takes any unambiguous beginning of these words.
fn is_off(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let begins = |word: &str, least: usize| value.len() >= least && word.starts_with(&value);
    value == "0" || begins("off", 2) || begins("false", 1) || begins("no", 1)
}

fn switched_on(facts: &LayoutFacts, name: &str) -> Judgement {
    if !facts.known_settings.contains(name) {
        return Judgement::DoesNotApply;
    }
    match setting(facts, name) {
        Some(value) => judged(!is_off(value), format!("{name} = {value}")),
        None => Judgement::Follows(format!("{name} is on (the default)")),
    }
}

fn synchronous_commit_on(facts: &LayoutFacts) -> Judgement {
    if !facts.known_settings.contains("synchronous_commit") {
        return Judgement::DoesNotApply;
    }
    match setting(facts, "synchronous_commit") {
        None => Judgement::Follows("synchronous_commit is on (the default)".to_owned()),
        Some(value) => {
            let durable = !is_off(value) && !matches!(value, "local" | "remote_write");
            judged(durable, format!("synchronous_commit = {value}"))
        }
    }
}
