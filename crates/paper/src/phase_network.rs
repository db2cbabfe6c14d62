//! The network that a scenario asks for over the whole of a phase: the site's links and the faults that stand throughout.

use std::time::Duration;

use history::PhaseFacts;
use scenario::{FaultAction, FaultTarget, NetworkFault, Scenario, Takes};

use crate::network::{self, LinkRates};
use crate::requested::RequestedNetwork;

/// The network over the whole of a phase, and the paths of all nodes and of the load's clients; `None` where it changes within
/// the phase.
pub(crate) fn requested_during(
    scenario: &Scenario,
    load: &scenario::Load,
    phase: &PhaseFacts,
) -> Option<(RequestedNetwork, Vec<Vec<String>>)> {
    let requested = RequestedNetwork::new(
        network::policy(&scenario.site, LinkRates::Unlimited),
        rules_during(scenario, phase)?,
    );
    let mut paths: Vec<Vec<String>> = Vec::new();
    for (node, host) in scenario.database.nodes.numbered() {
        let mut path = scenario.site.hosts.get(*host)?.path();
        path.push(node.to_string());
        paths.push(path);
    }
    let mut clients = load.from.path.clone();
    clients.push("clients".to_owned());
    paths.push(clients);
    Some((requested, paths))
}

/// The network faults that stand over the whole of a phase, as rules.
fn rules_during(scenario: &Scenario, phase: &PhaseFacts) -> Option<Vec<fabric::Rule>> {
    let mut rules = Vec::new();
    let mut begins = Duration::ZERO;
    for planned in &scenario.schedule {
        let ends = begins + planned.length;
        for fault in &planned.faults {
            let from_s = (begins + fault.at).as_secs_f64();
            let to_s = fault.length.map_or(ends, |length| begins + fault.at + length).as_secs_f64();
            // A wrong clock delays nothing.
            let is_elsewhere = to_s <= phase.from_s || from_s >= phase.to_s;
            if is_elsewhere || matches!(fault.action.takes(), Takes::Time(_)) {
                continue;
            }
            let FaultAction::Network(NetworkFault { directions, conditions }) = &fault.action else {
                return None;
            };
            if fault.flap.is_some() || from_s > phase.from_s || to_s < phase.to_s {
                return None;
            }
            for (from, to) in directions {
                let (FaultTarget::Place(from), FaultTarget::Place(to)) = (from, to) else { return None };
                rules.push(network::conditions_rule(&from.path, &to.path, conditions));
            }
        }
        begins = ends;
    }
    Some(rules)
}
