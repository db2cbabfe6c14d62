//! What the scenario's schedule breaks, as failures that `model` can judge.
//!
//! A target by role is every place it may turn out to be, a split of the nodes every way the seed may choose; the leader is
//! the one of the start. What only makes the network or a disk worse is not judged, and said so.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::ClockTolerance;
use faults::partition::{Split, possible};
use history::NodeId;
use model::deployment::{Deployment, Path};
use model::survival::{Failure, Outcome, outcome};
use scenario::{
    DiskFault, DiskTarget, Fault, FaultAction, FaultTarget, Level, MigrationFault, NodeTarget,
    PartitionShape, ProcessDeed, ProcessFault, Scenario, Takes,
};

use crate::processes::{self, takes_over_after};
use crate::storage::{failure_of, not_judged};

/// More ways in which a fault may strike are not looked through.
const MOST_CHOICES: usize = 10_000;
/// How long a node stands still for the last round of a migration, at most, where nothing longer is asked for.
const LAST_ROUND: Duration = Duration::from_millis(300);

/// One fault of the schedule, or several that stand at once.
pub struct JudgedFault {
    /// The phase's name.
    pub phase: String,
    pub what: String,
    /// What it leaves.
    pub judgement: Judgement,
}

/// What a planned fault leaves.
#[derive(Clone)]
pub enum Judgement {
    /// The worst of what it may strike.
    Worst {
        /// How many things it may strike: more than one where its target is a role or drawn from the seed.
        choices: usize,
        /// What is struck then.
        failures: Vec<Failure>,
        /// What that leaves.
        outcome: Outcome,
    },
    /// Not judged on paper, and why.
    NotOnPaper(Cow<'static, str>),
}

/// Everything that the schedule breaks, phase by phase.
pub(crate) fn planned(scenario: &Scenario, deployment: &Deployment) -> Vec<JudgedFault> {
    let mut planned = Vec::new();
    // What the same fault leaves is reckoned once, however often the schedule has it.
    let mut known: Vec<(&FaultAction, Judgement)> = Vec::new();
    // On the run's time line: a fault may outlast its phase and meet those of the next.
    let mut standing: Vec<Standing> = Vec::new();
    let run_ends: Duration = scenario.schedule.iter().map(|phase| phase.length).sum();
    let mut begins = Duration::ZERO;
    for phase in &scenario.schedule {
        let ends = begins + phase.length;
        standing.retain(|earlier| earlier.to > begins);
        for fault in &phase.faults {
            let what = fault.action.kind_name().to_owned();
            let (from, to) = stands(fault, begins, (ends, run_ends));
            let same = known.iter().find(|(action, _)| **action == fault.action);
            let judgement = match (fault.action.takes(), same) {
                // What it leaves depends on how long it stands.
                (Takes::Processes(action), _) => {
                    match struck_processes(action, to - from, (scenario, deployment)) {
                        Ok(choices) => worst(deployment, choices.into_iter()),
                        Err(why) => Judgement::NotOnPaper(why.into()),
                    }
                }
                (Takes::Time(action), _) => {
                    let off_ns = action.deviation.offset_ns_after(to - from).abs();
                    Judgement::NotOnPaper(time_is_wrong(off_ns / 1e9, scenario))
                }
                (Takes::Pause(action), _) => {
                    Judgement::NotOnPaper(moves(action, takes_over_after(scenario)).into())
                }
                (_, Some((_, judgement))) => judgement.clone(),
                (_, None) => {
                    let judgement = match strikes(&fault.action, deployment) {
                        Ok(choices) => worst(deployment, choices.into_iter()),
                        Err(why) => Judgement::NotOnPaper(why.into()),
                    };
                    known.push((&fault.action, judgement.clone()));
                    judgement
                }
            };
            if let Judgement::Worst { failures, .. } = &judgement {
                standing.push(Standing { from, to, failures: failures.clone() });
            }
            planned.push(JudgedFault { phase: phase.name.clone(), what, judgement });
            planned.extend(lags(&fault.action, &phase.name, scenario));
        }
        let failures = most_at_once(&standing, begins);
        begins = ends;
        if failures.len() > 1 {
            planned.push(JudgedFault {
                phase: phase.name.clone(),
                what: "all faults that overlap".to_owned(),
                judgement: worst(deployment, std::iter::once(failures)),
            });
        }
    }
    planned
}

/// Failures of one fault and how long they stand.
struct Standing {
    from: Duration,
    to: Duration,
    failures: Vec<Failure>,
}

/// The most failures that stand at once when a fault begins that does so at `since` or later; of equals the last in the schedule.
fn most_at_once(standing: &[Standing], since: Duration) -> Vec<Failure> {
    let counts = |moment: fn(&Standing) -> Duration| {
        let mut counts: BTreeMap<Duration, usize> = BTreeMap::new();
        for each in standing {
            *counts.entry(moment(each)).or_default() += each.failures.len();
        }
        let mut sum = 0;
        counts.values_mut().for_each(|count| {
            sum += *count;
            *count = sum;
        });
        counts
    };
    let (begun, ended) = (counts(|each| each.from), counts(|each| each.to));
    let up_to = |counts: &BTreeMap<Duration, usize>, instant| {
        counts.range(..=instant).next_back().map_or(0, |(_, count)| *count)
    };
    let beginnings = standing.iter().map(|each| each.from).filter(|from| *from >= since);
    let most = beginnings.max_by_key(|at| up_to(&begun, *at) - up_to(&ended, *at));
    let Some(instant) = most else { return Vec::new() };
    let here = standing.iter().filter(|each| each.from <= instant && instant < each.to);
    let mut failures: Vec<Failure> = here.flat_map(|each| each.failures.clone()).collect();
    // The same failure twice leaves what it leaves once.
    failures.sort();
    failures.dedup();
    failures
}

/// From when to when a fault of a phase that begins then stands, in a run that ends then.
fn stands(
    fault: &Fault,
    begins: Duration,
    (phase_ends, run_ends): (Duration, Duration),
) -> (Duration, Duration) {
    let from = begins + fault.at;
    let is_for_good = || match fault.action.takes() {
        Takes::Processes(action) => action.how == ProcessDeed::Kill { restart_after: None },
        _ => false,
    };
    let to = match fault.length {
        Some(length) => from + length,
        None if is_for_good() => run_ends,
        None => phase_ends,
    };
    (from, to)
}

fn worst(deployment: &Deployment, choices: impl Iterator<Item = Vec<Failure>>) -> Judgement {
    let mut count = 0;
    let judged = choices.inspect(|_| count += 1).map(|failures| (outcome(deployment, &failures), failures));
    // Of equals the one after which the platform has most to do.
    let badness = |outcome: &Outcome| (outcome.service, outcome.data, Reverse(outcome.action));
    let worst = judged.min_by_key(|(outcome, _)| badness(outcome));
    worst.map_or(Judgement::NotOnPaper("it affects nothing in this site".into()), |(outcome, failures)| {
        Judgement::Worst { choices: count, failures, outcome }
    })
}

/// The clock of a node that moves with a clock of its own: it lags by the stun afterwards.
fn lags(action: &FaultAction, phase: &str, scenario: &Scenario) -> Option<JudgedFault> {
    let Takes::Pause(migration) = action.takes() else { return None };
    let lags_s = migration.stun.max(LAST_ROUND).as_secs_f64();
    migration.has_guest_clock.then(|| JudgedFault {
        phase: phase.to_owned(),
        what: format!("{}: the guest's clock", action.kind_name()),
        judgement: Judgement::NotOnPaper(time_is_wrong(lags_s, scenario)),
    })
}

/// What to expect of a clock that is so far off, by what the engine says of clocks.
fn time_is_wrong(off_s: f64, scenario: &Scenario) -> Cow<'static, str> {
    let expected = match scenario.database.engine.clock_tolerance {
        None => {
            "its clock is wrong, and the engine states no tolerance (`paper.clock-tolerance` of its file): leases and time stamps may be wrong"
        }
        Some(ClockTolerance::Unstated(what)) => {
            return format!("its clock is wrong, and the engine's makers state no tolerance: {what}").into();
        }
        Some(ClockTolerance::Any) => {
            "its clock is wrong, and the engine does not depend on the time of day: no effect on clients expected"
        }
        Some(ClockTolerance::UpTo(most)) if off_s <= most.as_secs_f64() => {
            "its clock stays within the engine's tolerance: no effect on clients expected"
        }
        Some(ClockTolerance::UpTo(_)) => {
            "its clock goes beyond the engine's tolerance: expect the node to give up, or leases and time stamps to be wrong"
        }
    };
    expected.into()
}

/// What to expect of a node that moves, where another takes a silent leader's place after that time.
fn moves(action: &MigrationFault, takes_over_after: Option<Duration>) -> &'static str {
    match takes_over_after {
        Some(after) if action.stun >= after => {
            "its stun is longer than the election timeout: if it is the leader, expect a failover"
        }
        _ => "it moves while it runs: clients should notice only its stun",
    }
}

/// Every failure that this may turn out to be.
fn strikes(action: &FaultAction, deployment: &Deployment) -> Result<Vec<Vec<Failure>>, &'static str> {
    match action.takes() {
        Takes::Power(target) => {
            Ok(places(target, deployment).into_iter().map(|place| vec![Failure::Down(place)]).collect())
        }
        Takes::NothingJudged(why) => Err(why),
        Takes::Processes(_) | Takes::Time(_) | Takes::Pause(_) => Err("the outcome depends on its duration"),
        Takes::Disk(DiskFault { target, defect }) => {
            let struck = disks(target, deployment);
            match struck.iter().find_map(|struck| not_judged(defect, deployment, struck)) {
                Some(why) => Err(why),
                None => Ok(struck.into_iter().map(|failure| vec![failure]).collect()),
            }
        }
        Takes::Reach(shape) => match shape {
            PartitionShape::Isolate(target) => Ok(places(target, deployment)
                .into_iter()
                .map(|place| vec![Failure::Isolated(place)])
                .collect()),
            PartitionShape::OneWay { from, to } | PartitionShape::Between(from, to) => {
                let others = places(to, deployment);
                if places(from, deployment).len() * others.len() > MOST_CHOICES {
                    return Err("the target is a role, and there are too many possible partitions");
                }
                let pairs = places(from, deployment).into_iter().flat_map(|one| {
                    let cut = move |other: &Path| vec![Failure::Cut(one.clone(), other.clone())];
                    others.iter().map(cut).collect::<Vec<_>>()
                });
                Ok(pairs.collect())
            }
            PartitionShape::Halves => splits([Split::Halves], deployment),
            PartitionShape::Ring => splits([Split::Ring], deployment),
            PartitionShape::Bridge(target) => {
                let within = |place: &Path, node: &NodeId| deployment.host_of(*node).starts_with(place);
                let nodes = deployment.nodes.ids();
                let bridge = |place: Path| nodes.clone().filter(|node| within(&place, node)).collect();
                splits(places(target, deployment).into_iter().map(bridge).map(Split::Bridge), deployment)
            }
        },
    }
}

/// Every node whose processes these may turn out to be.
fn struck_processes(
    fault: &ProcessFault,
    stands: Duration,
    (scenario, deployment): (&Scenario, &Deployment),
) -> Result<Vec<Vec<Failure>>, &'static str> {
    let count = deployment.nodes.len();
    let nodes = match fault.node {
        NodeTarget::Named(node) => node.index()..node.index() + 1,
        NodeTarget::Leader => 0..count.min(1),
        NodeTarget::AFollower => 1..count,
        NodeTarget::Random => 0..count,
    };
    let of = |node: NodeId| {
        let host = deployment.host_of(node);
        processes::failure_of(fault, stands, (host, deployment), takes_over_after(scenario))
            .map(|failure| vec![failure])
    };
    nodes.map(NodeId::new).map(of).collect()
}

/// Every way in which the seed may part the nodes. Those that stand on one host are not parted.
fn splits(
    shapes: impl IntoIterator<Item = Split>,
    deployment: &Deployment,
) -> Result<Vec<Vec<Failure>>, &'static str> {
    let nodes: Vec<NodeId> = deployment.nodes.ids().collect();
    let mut choices = Vec::new();
    for shape in shapes {
        let ways = possible(&shape, &nodes)
            .ok_or("the seed chooses the partition, and there are too many possible ones")?;
        let place = |node: NodeId| deployment.host_of(node).to_vec();
        let cut = |(from, to): (NodeId, NodeId)| {
            (place(from) != place(to)).then(|| Failure::Cut(place(from), place(to)))
        };
        choices.extend(ways.into_iter().map(|way| way.into_iter().filter_map(cut).collect::<Vec<Failure>>()));
    }
    // Where nobody is parted nothing fails.
    Ok(if choices.is_empty() { vec![Vec::new()] } else { choices })
}

/// Every disk that a target may turn out to be.
fn disks(target: &DiskTarget, deployment: &Deployment) -> Vec<Failure> {
    let (node, cache) = match target {
        DiskTarget::Named { host, disk } => return vec![failure_of(deployment, &host.path, disk)],
        DiskTarget::Of { node, cache } => (node, *cache),
    };
    let under = |node: NodeId| {
        let host = deployment.nodes[node];
        let volume = deployment.storage.volume(node)?;
        let component = volume.serving(host)?;
        let groups = &deployment.storage.groups;
        let group = groups.iter().find(|group| group.capacity.contains(&component.disk));
        let before = group.and_then(|group| group.cache.as_ref());
        let disk = if cache { before? } else { &component.disk };
        Some(failure_of(deployment, &deployment.hosts[component.host], disk))
    };
    let mut found: Vec<Failure> = nodes_of(node, deployment).filter_map(under).collect();
    found.sort();
    found.dedup();
    found
}

/// Nodes that a role may turn out to be.
fn nodes_of(target: &FaultTarget, deployment: &Deployment) -> impl Iterator<Item = NodeId> + use<> {
    let count = deployment.nodes.len();
    let numbers = match target {
        FaultTarget::Place(_) => 0..0,
        FaultTarget::Leader(_) => 0..count.min(1),
        FaultTarget::AFollower(_) => 1..count,
        FaultTarget::Coordinator(_) | FaultTarget::Random(_) => 0..count,
    };
    numbers.map(NodeId::new)
}

/// Every place that a target may turn out to be.
fn places(target: &FaultTarget, deployment: &Deployment) -> Vec<Path> {
    let level = match target {
        FaultTarget::Place(place) => return vec![place.path.clone()],
        FaultTarget::Leader(level)
        | FaultTarget::AFollower(level)
        | FaultTarget::Coordinator(level)
        | FaultTarget::Random(level) => *level,
    };
    let nodes = nodes_of(target, deployment);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(from_ms: u64, to_ms: u64, hosts: &[&str]) -> Standing {
        let failures = hosts.iter().map(|host| Failure::Down(vec![(*host).to_owned()])).collect();
        Standing { from: Duration::from_millis(from_ms), to: Duration::from_millis(to_ms), failures }
    }

    #[test]
    fn what_stands_at_once_is_found_and_a_fault_that_has_ended_is_not_in_it() {
        let check = |faults: &[Standing], expected: &[&str]| {
            let found = most_at_once(faults, Duration::ZERO);
            let names: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(names, expected);
        };
        check(&[], &[]);
        check(&[standing(0, 5, &["a"]), standing(5, 9, &["b"])], &["b"]);
        check(&[standing(0, 6, &["a"]), standing(5, 9, &["b"])], &["a", "b"]);
        check(
            &[standing(0, 9, &["a"]), standing(1, 2, &["b", "c"]), standing(3, 4, &["d"])],
            &["a", "b", "c"],
        );
        check(&[standing(0, 9, &["a"]), standing(1, 2, &["a"]), standing(3, 4, &["b"])], &["a", "b"]);
    }

    /// Against every instant by itself.
    #[test]
    fn no_instant_has_more_than_is_found() {
        let faults: Vec<Standing> = (0..200_u64)
            .map(|number| {
                let from = number * 7919 % 101;
                standing(from, from + 1 + number * 104_729 % 37, &[&format!("h{number}")])
            })
            .collect();
        let at = |instant: u64| {
            let instant = Duration::from_millis(instant);
            faults.iter().filter(|each| each.from <= instant && instant < each.to).count()
        };
        assert_eq!(Some(most_at_once(&faults, Duration::ZERO).len()), (0..150).map(at).max());
    }

    /// What is said of each phase's faults: the phase, the kind, and the failures or why there are none.
    fn told(schedule: &str) -> Vec<String> {
        let text = format!(
            "name: x\nsite: {{ regions: {{ r: {{ zones: {{ z: {{ hosts: 3 }} }} }} }} }}\n\
             database: {{ engine: postgres, nodes: 3, failover: {{ promote: {{ after: 3s }} }} }}\n\
             loads: [{{ workload: ledger, clients: 1 }}]\nschedule: [{{ phase: baseline, for: 5s }}, {schedule}]\n"
        );
        let source = scenario::Source { name: "x".to_owned(), text };
        let scenario = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{:?}", error.problems()));
        let judged = planned(&scenario, &crate::deployment::deployment(&scenario));
        let of_one = |judged: JudgedFault| {
            let words = match judged.judgement {
                Judgement::Worst { failures, .. } => {
                    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                }
                Judgement::NotOnPaper(why) => why.into_owned(),
            };
            format!("{} {}: {words}", judged.phase, judged.what)
        };
        judged.into_iter().map(of_one).collect()
    }

    #[test]
    fn a_fault_that_outlasts_its_phase_is_judged_with_those_of_the_next() {
        let off = |host: &str, length: &str| format!("{{ power-off: {{ host: {host} }}, for: {length} }}");
        let two = |length: &str| {
            let (one, other) = (off("h1", length), off("h2", "5s"));
            told(&format!(
                "{{ phase: one, for: 9s, faults: [{one}] }}, {{ phase: two, for: 9s, faults: [{other}] }}, \
                 {{ phase: rest, for: 9s }}"
            ))
        };
        let alone = ["one power-off: r/z/h1", "two power-off: r/z/h2"];
        assert_eq!(two("9s"), alone);
        assert_eq!(two("10s"), [&alone[..], &["two all faults that overlap: r/z/h1, r/z/h2"]].concat());
    }

    #[test]
    fn processes_that_are_never_started_again_stand_still_beyond_their_phase() {
        let killed = |restart: &str| {
            told(&format!(
                "{{ phase: one, for: 2s, faults: [{{ process: {{ of: n1, how: kill, restart: {restart} }} }}] }}, \
                 {{ phase: rest, for: 9s }}"
            ))
        };
        assert_eq!(killed("never"), ["one process: database on r/z/h1"]);
        let soon = ["one process: it ends before a failover, and the page cache survives"];
        assert_eq!(killed("{ after: 1s }"), soon);
    }
}
