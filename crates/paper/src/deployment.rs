//! The scenario's database on its site, in the model's terms.

use capabilities::Leadership;
use model::Acknowledgements;
use model::deployment::{Deployment, Rules, Takeover};
use scenario::{Failover, Scenario, Synchronous, node_name};

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
    let rules = if scenario.database.engine.elects() {
        Rules::Elected { acknowledgements, takeover }
    } else {
        Rules::SingleLog { acknowledgements, takeover }
    };
    Deployment {
        hosts: scenario.site.hosts.iter().map(scenario::Host::path).collect(),
        nodes: scenario.database.nodes.clone(),
        clients: clients.collect(),
        rules,
        storage: storage::of(scenario),
    }
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
    let within = |node: &usize| deployment.host_of(*node).starts_with(place);
    (0..deployment.nodes.len()).filter(within).map(node_name).collect()
}
