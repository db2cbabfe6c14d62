//! What the scenario says on paper, set beside the run: predictions for each load, and the published report's figures.

use std::time::Duration;

use history::PhaseFacts;
use report::result::RunResult;
use scenario::{FaultAction, FaultTarget, Scenario};

use crate::asked::Asked;
use crate::datacentre;
use crate::faulting::network;
use crate::prediction::{self, Evidence};

/// Adds predictions, explanations and reproduced figures to a result.
pub fn beside(result: &mut RunResult, scenario: &Scenario, evidence: &Evidence<'_>) {
    prediction::beside(result, scenario, evidence);
    result.reproduces = crate::reproduced::reproduced(result, scenario);
}

/// The network over the whole of a phase, and the paths of all nodes and of the load's clients; `None` as above.
pub fn asked_during(
    scenario: &Scenario,
    load: &scenario::Load,
    phase: &PhaseFacts,
) -> Option<(Asked, Vec<Vec<String>>)> {
    let asked = Asked::new(datacentre::policy(&scenario.site, false), rules_during(scenario, phase)?);
    let mut paths: Vec<Vec<String>> = Vec::new();
    for (number, host) in scenario.database.nodes.iter().enumerate() {
        let mut path = scenario.site.hosts.get(*host)?.path();
        path.push(datacentre::node_name(number));
        paths.push(path);
    }
    let mut clients = load.from.path.clone();
    clients.push("clients".to_owned());
    paths.push(clients);
    Some((asked, paths))
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
            if to_s <= phase.from_s || from_s >= phase.to_s {
                continue;
            }
            let FaultAction::Network { directions, conditions } = &fault.action else { return None };
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
