//! What the scenario's schedule breaks, as failures that `model` can judge.
//!
//! A target by role is every place it may turn out to be; the leader is the one of the start. What the seed alone
//! decides, and what only makes the network worse, is not judged, and said so.

use std::time::Duration;

use model::deployment::{Deployment, Path};
use model::survival::{Failure, Outcome, outcome};
use scenario::{Fault, FaultAction, FaultTarget, Level, PartitionShape, Scenario};

/// One fault of the schedule, or several that stand at once.
pub struct Planned {
    /// The phase's name.
    pub phase: String,
    /// What it is.
    pub what: String,
    /// What it leaves.
    pub struck: Struck,
}

/// What a planned fault leaves.
pub enum Struck {
    /// The worst of what it may strike.
    Worst {
        /// What is struck then.
        failures: Vec<Failure>,
        /// What that leaves.
        outcome: Outcome,
    },
    /// Not judged on paper, and why.
    NotOnPaper(&'static str),
}

/// Everything that the schedule breaks, phase by phase.
pub(super) fn planned(scenario: &Scenario, deployment: &Deployment) -> Vec<Planned> {
    let mut planned = Vec::new();
    for phase in &scenario.schedule {
        let mut standing: Vec<(Duration, Duration, Vec<Failure>)> = Vec::new();
        for fault in &phase.faults {
            let what = fault.action.kind_name().to_owned();
            let struck = match strikes(&fault.action, deployment) {
                Ok(choices) => worst(deployment, choices.into_iter().map(|failure| vec![failure])),
                Err(why) => Struck::NotOnPaper(why),
            };
            if let Struck::Worst { failures, .. } = &struck {
                let (from, to) = stands(fault, phase.length);
                standing.push((from, to, failures.clone()));
            }
            planned.push(Planned { phase: phase.name.clone(), what, struck });
        }
        let together = |instant: Duration| {
            let here = standing.iter().filter(|(from, to, _)| *from <= instant && instant < *to);
            here.flat_map(|(_, _, failures)| failures.clone()).collect::<Vec<Failure>>()
        };
        // The most that stands at once begins with the beginning of one of them.
        let most = standing.iter().map(|(from, _, _)| together(*from)).max_by_key(Vec::len);
        if let Some(failures) = most.filter(|failures| failures.len() > 1) {
            planned.push(Planned {
                phase: phase.name.clone(),
                what: "all that stands at once".to_owned(),
                struck: worst(deployment, std::iter::once(failures)),
            });
        }
    }
    planned
}

fn stands(fault: &Fault, phase: Duration) -> (Duration, Duration) {
    (fault.at, fault.length.map_or(phase, |length| fault.at + length))
}

fn worst(deployment: &Deployment, choices: impl Iterator<Item = Vec<Failure>>) -> Struck {
    let judged = choices.map(|failures| (outcome(deployment, &failures), failures));
    judged.min_by_key(|(outcome, _)| *outcome).map_or(
        Struck::NotOnPaper("there is nothing it could strike"),
        |(outcome, failures)| Struck::Worst { failures, outcome },
    )
}

/// Every failure that this may turn out to be.
fn strikes(action: &FaultAction, deployment: &Deployment) -> Result<Vec<Failure>, &'static str> {
    match action {
        FaultAction::PowerOff { target } => {
            Ok(places(target, deployment).into_iter().map(Failure::Down).collect())
        }
        FaultAction::Network { .. } => Err("it changes what the network costs, not who reaches whom"),
        FaultAction::Disk { .. } => Err("it is a disk's, which is not reckoned with on paper"),
        FaultAction::Partition { shape, .. } => match shape {
            PartitionShape::Isolate(target) => {
                Ok(places(target, deployment).into_iter().map(Failure::Isolated).collect())
            }
            PartitionShape::OneWay { from, to } | PartitionShape::Between(from, to) => {
                let others = places(to, deployment);
                let pairs = places(from, deployment).into_iter().flat_map(|one| {
                    let cut = move |other: &Path| Failure::Cut(one.clone(), other.clone());
                    others.iter().map(cut).collect::<Vec<_>>()
                });
                Ok(pairs.collect())
            }
            PartitionShape::Halves | PartitionShape::Bridge(_) | PartitionShape::Ring => {
                Err("the seed decides who is cut off from whom")
            }
        },
    }
}

/// Every place that a target may turn out to be.
fn places(target: &FaultTarget, deployment: &Deployment) -> Vec<Path> {
    let (nodes, level) = match target {
        FaultTarget::Place(place) => return vec![place.path.clone()],
        FaultTarget::Leader(level) => (0..deployment.nodes.len().min(1), *level),
        FaultTarget::AFollower(level) => (1..deployment.nodes.len(), *level),
        FaultTarget::Random(level) => (0..deployment.nodes.len(), *level),
    };
    let mut places: Vec<Path> = nodes.map(|node| around(deployment.host_of(node), level)).collect();
    places.sort();
    places.dedup();
    places
}

/// The place of a level around a host; a zone without racks is its own rack.
fn around(host: &[String], level: Level) -> Path {
    let length = match level {
        Level::Region => 1,
        Level::Zone => 2,
        Level::Rack => host.len().saturating_sub(1),
        Level::Host => host.len(),
    };
    host[..length.min(host.len())].to_vec()
}
