//! The scenario's database on its site, in the model's terms.

use std::collections::BTreeMap;

use capabilities::{Leadership, Quorum as Choice};
use history::{NodeId, PerNode};
use model::Acknowledgements;
use model::deployment::{Deployment, Level, Quorum, Rules, Takeover};
use model::practice::SyncFacts;
use scenario::{ConsistencyLevel, Failover, Scenario, Synchronous};

use crate::storage;

/// The scenario's database on its site.
#[must_use]
pub fn deployment(scenario: &Scenario) -> Deployment {
    let takeover = match scenario.database.failover {
        Failover::None => Takeover::None,
        Failover::HaRestart { .. } => Takeover::Restart,
        Failover::Promote { .. } => Takeover::Promote,
    };
    let clients = scenario.loads.iter().map(|load| {
        let mut path = load.from.path.clone();
        path.push("clients".to_owned());
        path
    });
    let acknowledgements = acknowledgements(scenario);
    let rules = match scenario.database.engine.leadership {
        Leadership::Platform => Rules::SingleLog { acknowledgements, takeover },
        Leadership::Elected(_) => Rules::Elected { acknowledgements, takeover },
        Leadership::Nobody => groups(scenario),
    };
    Deployment {
        hosts: scenario.site.hosts.iter().map(scenario::Host::path).collect(),
        nodes: scenario.database.nodes.clone(),
        clients: clients.collect(),
        rules,
        storage: storage::of(scenario),
    }
}

/// The rules of a database without a leader.
fn groups(scenario: &Scenario) -> Rules {
    let database = &scenario.database;
    let synced = sync_of_writes(scenario).is_none_or(|sync| !sync.acknowledged_before);
    let nodes = database.nodes.ids();
    if database.engine.quorum != Choice::PerRequest {
        return Rules::Groups { groups: vec![nodes.collect()], quorums: vec![Quorum::Majority], synced };
    }
    // Regions and their racks, each with its nodes; a zone without racks is one.
    let mut regions: BTreeMap<&[String], BTreeMap<Vec<String>, Vec<NodeId>>> = BTreeMap::new();
    let paths: PerNode<Vec<String>> =
        database.nodes.iter().map(|host| scenario.site.hosts[*host].path()).collect();
    for node in nodes {
        let path = &paths[node];
        let rack = path[..path.len() - 1].to_vec();
        regions.entry(&path[..1]).or_default().entry(rack).or_default().push(node);
    }
    let copies = |racks: &BTreeMap<Vec<String>, Vec<NodeId>>| {
        let there = racks.values().map(Vec::len).sum::<usize>();
        (database.copies as usize).min(there)
    };
    let regions: Vec<(Vec<Vec<NodeId>>, usize)> =
        regions.values().map(|racks| (racks.values().cloned().collect(), copies(racks))).collect();
    let groups = Deployment::replicas_in_regions(&regions);
    Rules::Groups { groups, quorums: quorums(scenario), synced }
}

/// What the loads wait for, each way once. What a load does not say is a quorum.
fn quorums(scenario: &Scenario) -> Vec<Quorum> {
    let level = |level: Option<ConsistencyLevel>| match level {
        Some(ConsistencyLevel::One) => Level::One,
        Some(ConsistencyLevel::LocalOne) => Level::LocalOne,
        Some(ConsistencyLevel::LocalQuorum) => Level::LocalQuorum,
        Some(ConsistencyLevel::All) => Level::All,
        Some(ConsistencyLevel::Quorum | ConsistencyLevel::Serial) | None => Level::Quorum,
    };
    let mut quorums: Vec<Quorum> = Vec::new();
    for load in &scenario.loads {
        let consistency = load.consistency;
        let quorum = Quorum::Counted { read: level(consistency.reads), write: level(consistency.writes) };
        if !quorums.contains(&quorum) {
            quorums.push(quorum);
        }
    }
    quorums
}

/// When a node acknowledges a write; `None` where the engine has no setting that decides it.
pub(crate) fn sync_of_writes(scenario: &Scenario) -> Option<SyncFacts> {
    let unsynced = scenario.database.engine.unsynced?;
    let (acknowledged_before, value) =
        unsynced.applies(|name| scenario.database.settings.get(name).map(String::as_str));
    Some(SyncFacts {
        acknowledged_before,
        setting: format!("{} = {value}", unsynced.setting),
        synced_by: unsynced.synced_by.map(str::to_owned),
    })
}

/// The shortest time after which followers that hear no leader elect another, seconds; `None` where they never do.
pub(crate) fn election_s_least(scenario: &Scenario) -> Option<f64> {
    let Leadership::Elected(election) = scenario.database.engine.leadership else { return None };
    Some(election.s_least(|name| scenario.database.settings.get(name).map(String::as_str)))
}

/// What a commit waits for.
#[must_use]
pub fn acknowledgements(scenario: &Scenario) -> Acknowledgements {
    match scenario.database.synchronous {
        Synchronous::Off => Acknowledgements::None,
        Synchronous::Any(count) => Acknowledgements::Any(count as usize),
        Synchronous::All => Acknowledgements::All,
    }
}

/// `n1, n2` for the nodes on hosts of a place.
#[must_use]
pub fn nodes_in(deployment: &Deployment, place: &[String]) -> Vec<String> {
    let within = |node: &NodeId| deployment.host_of(*node).starts_with(place);
    deployment.nodes.ids().filter(within).map(|node| node.to_string()).collect()
}
