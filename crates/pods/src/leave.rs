//! What the login must be allowed in the cluster for a scenario, and whether it is. Nothing but that is asked.
//!
//! Owns what each command file that ships does to a cluster. The verbs are `kubernetes`' business.

use std::collections::BTreeSet;

use kubernetes::permit::{granted, needs};
use kubernetes::{Act, Grant, Kubectl, Need, Scope};
use scenario::{ExternalFault, FaultAction, Scenario};

use crate::fleet::fleet_plan;
use crate::kubectl::kubectl;

/// What a scenario's run must be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// Each verb.
    pub asked: Vec<NeededVerb>,
    /// Command files of the scenario's own, whose commands may need more.
    pub not_known: Vec<String>,
    /// Why not all of it was asked: kubectl is not there, or the cluster does not answer.
    pub unanswered: Option<String>,
}

/// A verb that the login must be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededVerb {
    pub verb: String,
    /// The resource, with a part of it behind a slash: `pods/exec`.
    pub resource: String,
    /// The namespace; none for the whole cluster.
    pub namespace: Option<String>,
    /// Whether there is no run without it.
    pub is_required: bool,
    /// What for.
    pub why: String,
    /// What the cluster says of it; none where it said nothing.
    pub answer: Option<Grant>,
}

/// What a scenario of pods needs, and which of it the login has; none for another scenario.
#[must_use]
pub fn leave(scenario: &Scenario) -> Option<Leave> {
    let kubernetes = scenario.cluster.as_ref()?.kubernetes.as_ref()?;
    let kubectl = kubectl(kubernetes);
    let Needed { needs, not_known } = needed(scenario);
    let mut unanswered = None;
    let asked = needs.iter().map(|need| ask(&kubectl, need, &mut unanswered)).collect();
    Some(Leave { asked, not_known: not_known.into_iter().collect(), unanswered })
}

/// What a scenario needs, whoever runs it.
pub(crate) struct Needed {
    /// Each verb.
    pub(crate) needs: Vec<Need>,
    /// Command files of the scenario's own, whose commands may need more.
    pub(crate) not_known: BTreeSet<String>,
}

/// What a scenario of pods needs. Nothing is asked.
pub(crate) fn needed(scenario: &Scenario) -> Needed {
    let mut acts: BTreeSet<Act> = BTreeSet::new();
    let (mut looks, mut not_known) = (false, BTreeSet::new());
    for fault in faults(scenario) {
        match Does::of(&fault.command.name).filter(|_| fault.command.text.is_none()) {
            Some(does) => {
                acts.extend(does.acts);
                looks |= does.looks_from_within;
            }
            None => {
                not_known.insert(fault.command.name.clone());
            }
        }
    }
    if fleet_plan(scenario).is_some() {
        acts.insert(Act::Generators);
    }
    let mut needs = needs(&acts);
    let exec = from_within();
    if looks && !needs.iter().any(|need| (&need.verb, &need.resource) == (&exec.verb, &exec.resource)) {
        needs.push(exec);
    }
    Needed { needs, not_known }
}

fn faults(scenario: &Scenario) -> impl Iterator<Item = &ExternalFault> {
    scenario.faults().filter_map(|fault| match &fault.action {
        FaultAction::External(fault) => Some(fault),
        _ => None,
    })
}

/// Asks, unless an earlier question had no answer: each may take long.
fn ask(kubectl: &Kubectl, need: &Need, unanswered: &mut Option<String>) -> NeededVerb {
    let answer = if unanswered.is_none() {
        granted(kubectl, need).map_err(|error| *unanswered = Some(error.to_string())).ok()
    } else {
        None
    };
    NeededVerb {
        verb: need.verb.clone(),
        resource: need.resource.clone(),
        namespace: need.scope.namespace(&kubectl.namespace),
        is_required: need.is_required,
        why: need.why.clone(),
        answer,
    }
}

/// A command in the pod that looks.
fn from_within() -> Need {
    Need {
        verb: "create".to_owned(),
        resource: "pods/exec".to_owned(),
        scope: Scope::Namespace,
        is_required: true,
        why: "look from within the pod".to_owned(),
    }
}

/// What a command file that ships does to a cluster.
struct Does {
    acts: &'static [Act],
    /// Whether its looks are commands in the pod.
    looks_from_within: bool,
}

impl Does {
    /// Nothing of a file that knows no cluster.
    fn of(name: &str) -> Option<Does> {
        let acts: &'static [Act] = match name {
            "kubernetes-chaos-partition" => &[Act::ChaosMeshNetwork],
            "kubernetes-chaos-pod-kill" => &[Act::ChaosMeshPod],
            "kubernetes-container-kill" => &[Act::ContainerKill],
            "kubernetes-evict" => &[Act::NodeCordon, Act::PodEvict],
            "kubernetes-network-policy" => &[Act::NetworkPolicy],
            "kubernetes-out-of-service" => &[Act::NodeTaint],
            "kubernetes-pod-delete" => &[Act::PodDelete],
            _ => return None,
        };
        let looks_from_within =
            acts.iter().any(|act| matches!(act, Act::ChaosMeshNetwork | Act::NetworkPolicy));
        Some(Does { acts, looks_from_within })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_command_file_of_pods_it_is_known_what_it_does() {
        let of_pods = remote::shipped().iter().filter(|file| file.name.starts_with("kubernetes-"));
        let names: Vec<&str> = of_pods.map(|file| file.name.as_str()).collect();
        assert!(names.len() >= 7, "{names:?}");
        for name in names {
            assert!(Does::of(name).is_some_and(|does| !does.acts.is_empty()), "{name}");
        }
        assert!(Does::of("systemd-kill").is_none());
    }
}
