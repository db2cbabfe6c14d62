//! What keeps a run and a cell of the atlas from being compared: other settings, another number of nodes, a fault of another
//! length.
//!
//! Owns which settings matter to which figures. Where hosts stand and what they are called, seeds, expectations and the lengths
//! of phases are not among them.

use std::collections::{BTreeMap, BTreeSet};

use history::{FaultId, Verdict};
use scenario::Scenario;

use super::Ours;
use crate::compare::settings::flat;

/// Something that keeps figures from being compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::compare) enum Obstacle {
    /// Other versions of the database.
    Version {
        /// In the variant's runs.
        ours: Vec<String>,
        /// In the atlas' runs.
        theirs: Vec<String>,
    },
    /// Another number of nodes.
    Nodes {
        ours: usize,
        /// The atlas'.
        theirs: usize,
    },
    /// A setting with another value.
    Setting {
        /// Its path in the resolved scenario; of the fault, within the fault.
        path: String,
        /// Ours; none where it is not there.
        ours: Option<String>,
        /// The atlas'.
        theirs: Option<String>,
    },
    /// The run was on a cluster that exists.
    External,
    /// Another fault struck while this one counted.
    OtherFault,
    /// Runs whose verdict is unknown.
    Undecided {
        /// How many.
        runs: usize,
        /// Of so many.
        of: usize,
        /// The first one's first reason.
        why: String,
    },
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::compare) struct Obstacles {
    /// To every figure.
    pub(in crate::compare) of_all: Vec<Obstacle>,
    /// Besides, to throughput and latency: other loads.
    pub(in crate::compare) of_loads: Vec<Obstacle>,
}

/// Whose settings matter to how a database recovers, and to how fast it is.
const OF_ALL: [&str; 6] =
    ["database", "site.storage_classes", "site.disks", "site.links", "site.edges", "site.network"];
/// Settings among them that say where something is, or what is foreseen.
const NOT_OF_ALL: [&str; 5] =
    ["database.nodes", "database.path", "database.version", "database.interference", "database.platform"];
/// The last words of settings of loads that do not matter.
const NOT_OF_LOADS: [&str; 2] = ["from", "name"];
/// Whom a fault strikes, which its likeness says, and when.
const WHOM_AND_WHEN: [&str; 15] = [
    "at", "host", "rack", "zone", "region", "isolate", "from", "to", "between", "bridge", "of", "disk",
    "cache-of", "node", "nodes",
];

/// Between a fault of our runs and a cell.
pub(super) fn between(ours: &[Ours<'_>], number: FaultId, theirs: &Scenario) -> Obstacles {
    let mut obstacles = Obstacles::default();
    let Some(first) = ours.first() else { return obstacles };
    let of_all = &mut obstacles.of_all;
    if first.taken.run.result.facts.is_external {
        of_all.push(Obstacle::External);
    }
    let (our_nodes, their_nodes) = (first.scenario.database.nodes.len(), theirs.database.nodes.len());
    if our_nodes != their_nodes {
        of_all.push(Obstacle::Nodes { ours: our_nodes, theirs: their_nodes });
    }
    // Both written by the same version, so that a default of one is not taken for a setting of the other.
    let (here, there) = (settings(&first.scenario), settings(theirs));
    let is_of_all = |path: &str| {
        OF_ALL.iter().any(|top| is_below(path, top)) && !NOT_OF_ALL.iter().any(|top| is_below(path, top))
    };
    of_all.extend(differing(&here, &there, is_of_all));
    let here_fault = of_fault(&here, &first.scenario, number);
    let there_fault = of_fault(&there, theirs, FaultId::FIRST);
    of_all.extend(differing(&here_fault, &there_fault, |_| true));
    if ours.iter().any(|run| is_disturbed(run, number)) {
        of_all.push(Obstacle::OtherFault);
    }
    let undecided: Vec<_> =
        ours.iter().map(|run| &run.taken.run.result).filter(|run| run.verdict == Verdict::Unknown).collect();
    if let Some(run) = undecided.first() {
        let why = run.reasons.first().cloned().unwrap_or_default();
        of_all.push(Obstacle::Undecided { runs: undecided.len(), of: ours.len(), why });
    }
    let is_of_loads = |path: &str| {
        let last = path.rsplit('.').next().unwrap_or_default();
        is_below(path, "loads") && !NOT_OF_LOADS.contains(&last)
    };
    obstacles.of_loads = differing(&here, &there, is_of_loads);
    obstacles
}

fn settings(scenario: &Scenario) -> BTreeMap<String, String> {
    flat(&scenario::to_yaml(scenario, 0)).unwrap_or_default()
}

fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn differing(
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
    matters: impl Fn(&str) -> bool,
) -> Vec<Obstacle> {
    let paths: BTreeSet<&String> = ours.keys().chain(theirs.keys()).filter(|path| matters(path)).collect();
    let differing = paths.into_iter().filter(|path| ours.get(*path) != theirs.get(*path));
    let obstacle = |path: &String| Obstacle::Setting {
        path: path.clone(),
        ours: ours.get(path).cloned(),
        theirs: theirs.get(path).cloned(),
    };
    differing.map(obstacle).collect()
}

/// The settings of a fault but those that say whom it strikes and when.
fn of_fault(
    settings: &BTreeMap<String, String>,
    scenario: &Scenario,
    number: FaultId,
) -> BTreeMap<String, String> {
    let (index, mut before) = (number.index(), 0);
    for (phase, at) in scenario.schedule.iter().enumerate() {
        if index < before + at.faults.len() {
            let top = format!("schedule.{phase}.faults.{}.", index - before);
            let below = settings.iter().filter_map(|(path, value)| Some((path.strip_prefix(&top)?, value)));
            // The first word is the fault's kind, which may be called as a key is.
            let is_strength = |path: &str| {
                let mut words = path.split('.').enumerate();
                !words.any(|(place, word)| (place > 0 || word == "at") && WHOM_AND_WHEN.contains(&word))
            };
            return below
                .filter(|(path, _)| is_strength(path))
                .map(|(path, value)| (path.to_owned(), value.clone()))
                .collect();
        }
        before += at.faults.len();
    }
    BTreeMap::new()
}

/// Whether another fault stood while this one's figures were taken.
fn is_disturbed(run: &Ours<'_>, number: FaultId) -> bool {
    let faults = &run.taken.run.result.faults;
    let Some(fault) = faults.get(number.index()) else { return false };
    let until_s = fault.charged_until_s.unwrap_or(f64::INFINITY);
    let mut others = FaultId::of_each(faults).filter(|(other, _)| *other != number);
    others
        .any(|(_, other)| other.asked_s < until_s && other.healed_s.unwrap_or(f64::INFINITY) > fault.asked_s)
}
