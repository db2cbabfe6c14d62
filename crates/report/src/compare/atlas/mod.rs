//! Runs beside the atlas: is mine good? Each fault of each variant beside the published runs of the same engine under the same
//! kind of fault.
//!
//! Owns what is held against what, and what there is to say where nothing is. What keeps the two from being comparable is in
//! `obstacles`, the figures and how they stand are in `figures`, their words in `words`.

mod figures;
mod gate;
mod obstacles;
mod page;
mod text;
mod words;

use ::atlas::{Atlas, Entry, Found, Likeness};
use history::{FaultId, Verdict};
use scenario::{Scenario, Source};

use super::source::Taken;
use figures::Figure;
use obstacles::{Obstacle, Obstacles};

pub(super) use gate::judge;
pub(super) use page::html;
pub(super) use text::text;

/// The scope of expressions that are about the atlas.
pub(super) const SCOPE: &str = "atlas";

/// Fewest repetitions on which a word about a run is based. Of five equal runs and a sixth, chance makes the sixth the worst
/// once in six.
pub(super) const REPETITIONS_MIN: usize = 5;

/// An atlas to hold runs against.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// What it is called: `the atlas of Holdfast 0.2.0`.
    pub name: &'a str,
    /// Its cells.
    pub atlas: &'a Atlas,
}

/// Runs beside an atlas.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AtlasComparison {
    /// What the atlas is called.
    pub(super) name: String,
    /// By variant and fault.
    pub(super) standings: Vec<Standing>,
}

/// A fault of a variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// The variant's place.
    pub(super) variant: usize,
    /// Which fault, and what it is called; none where the variant has none.
    pub(super) fault: Option<(FaultId, String)>,
    pub(super) beside: Result<Box<Against>, Nothing>,
}

/// Why there is nothing to hold a variant or a fault against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Nothing {
    /// All of its runs are left out.
    NoRun,
    /// Its scenario cannot be read.
    NoScenario {
        /// A clause without a full stop, to stand behind a colon.
        why: String,
    },
    /// It has no fault.
    NoFault,
    /// Whom the fault struck is not known, or is not the same in all runs.
    WhomUnknown,
    /// No cell of this engine.
    NoEngine {
        engine: String,
        /// Engines there are.
        known: Vec<String>,
    },
    /// No cell of this engine with such a fault.
    NoSuchFault {
        engine: String,
        /// What the fault is like.
        likeness: Likeness,
        /// Titles of the cells there are.
        known: Vec<String>,
        /// Cells that could not be read.
        unreadable: usize,
    },
}

/// A fault of a variant beside a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Against {
    pub(super) engine: String,
    /// The cell's name in the atlas: `leader-off`.
    pub(super) cell: String,
    /// Its fault in a sentence.
    pub(super) title: String,
    /// Versions of the database in the runs that are counted.
    pub(super) versions: Vec<String>,
    /// How many runs of the cell are counted.
    pub(super) repetitions: usize,
    /// Runs of the cell whose verdict is unknown, and which are not counted.
    pub(super) undecided: usize,
    /// Runs of other versions, which are not counted either.
    pub(super) of_other_versions: usize,
    /// Our runs with doubts about their measurement.
    pub(super) doubted: usize,
    /// The atlas', among those that are counted; none where that was not kept.
    pub(super) doubted_there: Option<usize>,
    /// How many runs of ours there are.
    pub(super) ours: usize,
    /// What keeps the two from being compared.
    pub(super) obstacles: Obstacles,
    pub(super) figures: Vec<Figure>,
    /// Facts of the machines, ours and theirs.
    pub(super) machines: Vec<MachineFact>,
}

/// A fact of the machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MachineFact {
    /// Its name in a run's facts: `cores`.
    pub(super) name: &'static str,
    /// Its values in the variant's runs, each once.
    pub(super) ours: Vec<String>,
    /// In the atlas' runs.
    pub(super) theirs: Vec<String>,
}

impl MachineFact {
    pub(super) fn is_same(&self) -> bool {
        self.ours == self.theirs
    }
}

/// What figures depend on, of a run's facts about its machine.
const MACHINE: [&str; 5] = ["cpu", "cores", "memory_bytes", "kernel", "volumes"];

impl Against {
    /// Whether anything at all is said of how the figures stand.
    pub(super) fn has_enough(&self) -> bool {
        self.repetitions >= REPETITIONS_MIN
    }

    pub(super) fn is_same_machine(&self) -> bool {
        self.machines.iter().all(MachineFact::is_same)
    }
}

/// A run whose figures count, with its scenario as read.
struct Ours<'t> {
    taken: &'t Taken,
    scenario: Scenario,
}

/// Each fault of each variant beside its cell.
pub(super) fn beside(groups: &[Vec<&Taken>], reference: Reference<'_>) -> AtlasComparison {
    let of_variant = |(variant, group): (usize, &Vec<&Taken>)| {
        let counted = group.iter().filter(|taken| taken.run.left_out.is_none());
        let ours: Result<Vec<Ours<'_>>, Nothing> = counted.map(|taken| read(taken)).collect();
        let nothing = |why| vec![Standing { variant, fault: None, beside: Err(why) }];
        let ours = match ours {
            Ok(ours) => ours,
            Err(why) => return nothing(why),
        };
        let Some(first) = ours.first() else { return nothing(Nothing::NoRun) };
        let faults = &first.taken.run.result.faults;
        if faults.is_empty() {
            return nothing(Nothing::NoFault);
        }
        let of_fault = |(number, fault)| Standing {
            variant,
            fault: Some((number, super::quantity::name_of(fault))),
            beside: against(&ours, number, reference.atlas).map(Box::new),
        };
        FaultId::of_each(faults).map(of_fault).collect()
    };
    AtlasComparison {
        name: reference.name.to_owned(),
        standings: groups.iter().enumerate().flat_map(of_variant).collect(),
    }
}

fn read(taken: &Taken) -> Result<Ours<'_>, Nothing> {
    let unread = |why: String| Nothing::NoScenario { why };
    let text = taken.scenario_yaml.clone().ok_or_else(|| unread("scenario.yaml is not there".to_owned()))?;
    let source = Source { name: "scenario.yaml".to_owned(), text };
    match scenario::parse(&source, &[]) {
        Ok(scenario) => Ok(Ours { taken, scenario }),
        Err(rejection) => {
            let first = rejection.problems().first().map(|problem| problem.message().to_owned());
            Err(unread(format!("scenario.yaml: {}", first.unwrap_or_default())))
        }
    }
}

/// What the fault is like, where that is the same in all runs.
fn likeness(ours: &[Ours<'_>], number: FaultId) -> Option<Likeness> {
    let of_run = |run: &Ours<'_>| {
        let fault = run.taken.run.result.faults.get(number.index())?;
        let led = run.taken.leaders.iter().rev().find(|(since_s, _)| *since_s <= fault.asked_s);
        let nodes = &run.scenario.database.nodes;
        let leader = led.and_then(|(_, name)| nodes.named(name));
        Likeness::of(&run.scenario, number, leader).filter(|likeness| likeness.kind == fault.kind)
    };
    let first = of_run(ours.first()?)?;
    ours.iter().all(|run| of_run(run).as_ref() == Some(&first)).then_some(first)
}

fn against(ours: &[Ours<'_>], number: FaultId, atlas: &Atlas) -> Result<Against, Nothing> {
    let Some(first) = ours.first() else { return Err(Nothing::NoRun) };
    let engine = first.taken.run.result.facts.engine.clone();
    if !atlas.engines().contains(engine.as_str()) {
        let known = atlas.engines().into_iter().map(str::to_owned).collect();
        return Err(Nothing::NoEngine { engine, known });
    }
    let likeness = likeness(ours, number).ok_or(Nothing::WhomUnknown)?;
    match atlas.find((&engine, &first.taken.run.result.facts.engine_version), &likeness) {
        Found::Cell(entry, scenario) => Ok(beside_cell(ours, number, entry, &scenario)),
        Found::NoEngine => Err(Nothing::NoEngine { engine, known: Vec::new() }),
        Found::NoSuchFault { known, unreadable } => {
            let known = known.into_iter().map(str::to_owned).collect();
            Err(Nothing::NoSuchFault { engine, likeness, known, unreadable })
        }
    }
}

fn beside_cell(ours: &[Ours<'_>], number: FaultId, entry: &Entry, theirs: &Scenario) -> Against {
    let decided: Vec<&::atlas::Run> =
        entry.cell.runs.iter().filter(|run| run.verdict != Verdict::Unknown).collect();
    let our_versions = each_once(ours.iter().map(|run| run.taken.run.result.facts.engine_version.clone()));
    let of_version = |run: &&::atlas::Run| our_versions.contains(&run.engine_version);
    let alike: Vec<&::atlas::Run> = decided.iter().copied().filter(of_version).collect();
    // Where no run is of this version, all are shown, and that it is another one.
    let runs = if alike.is_empty() { decided.clone() } else { alike };
    let versions = each_once(runs.iter().map(|run| run.engine_version.clone()));
    let mut obstacles = obstacles::between(ours, number, theirs);
    if versions != our_versions {
        let version = Obstacle::Version { ours: our_versions, theirs: versions.clone() };
        obstacles.of_all.insert(0, version);
    }
    let machines = MACHINE.map(|name| MachineFact {
        name,
        ours: each_once(ours.iter().filter_map(|run| run.taken.run.result.facts.machine.get(name).cloned())),
        theirs: each_once(runs.iter().filter_map(|run| run.machine.get(name).cloned())),
    });
    let is_doubted = |run: &&Ours<'_>| !run.taken.run.result.lab.warnings.is_empty();
    let warnings: Option<Vec<usize>> = runs.iter().map(|run| run.warnings).collect();
    let figures = figures::all(ours, number, &runs, theirs, &obstacles);
    Against {
        engine: entry.cell.engine.clone(),
        cell: entry.cell.fault.clone(),
        title: entry.title.clone(),
        versions,
        repetitions: runs.len(),
        undecided: entry.cell.runs.len() - decided.len(),
        of_other_versions: decided.len() - runs.len(),
        doubted: ours.iter().filter(is_doubted).count(),
        doubted_there: warnings.map(|all| all.iter().filter(|warnings| **warnings > 0).count()),
        ours: ours.len(),
        obstacles,
        figures,
        machines: machines.into(),
    }
}

/// Values in their order, each once.
fn each_once(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}
