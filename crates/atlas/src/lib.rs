//! The atlas: what engines did under the same faults on the same site, run after run. The published figures as values, the
//! ones that ship, and which of them a run's fault is compared with.
//!
//! Owns the form of `docs/atlas/atlas.json` and of a cell's own file, and what is drawn from a run. Makes no run
//! (`cargo xtask atlas` does), judges none and writes no sentences. Pure.

mod likeness;
mod run;

use std::collections::BTreeSet;

use history::FaultId;
use scenario::{Scenario, Source};
use serde::{Deserialize, Serialize};

pub use likeness::{Likeness, Whom};
pub use run::{LoadFigures, Run};

/// The atlas that is part of this build.
const SHIPPED: &str = include_str!("../../../docs/atlas/atlas.json");

/// Text that is no atlas.
#[derive(Debug, thiserror::Error)]
#[error("not an atlas: {0}")]
pub struct NotAnAtlas(#[from] serde_json::Error);

/// All published cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Atlas {
    /// By engine and fault, in the order of the pages.
    pub cells: Vec<Entry>,
}

/// A cell as it is published: with the scenario that makes it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its fault in a sentence.
    pub title: String,
    /// The scenario's text.
    pub scenario: String,
    /// The runs.
    #[serde(flatten)]
    pub cell: Cell,
}

/// An engine under a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The engine, as scenarios name it; with the beginning of its version behind a hyphen where it is another one: `etcd-3.5`.
    pub engine: String,
    /// The fault, as files name it: `leader-off`.
    pub fault: String,
    /// In the order in which they were made.
    pub runs: Vec<Run>,
}

impl Cell {
    /// One without a run.
    #[must_use]
    pub fn new(engine: &str, fault: &str) -> Cell {
        Cell { engine: engine.to_owned(), fault: fault.to_owned(), runs: Vec::new() }
    }

    /// The versions of the database that ran, each once, in the order in which they first did.
    #[must_use]
    pub fn versions(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let versions = self.runs.iter().map(|run| run.engine_version.as_str());
        versions.filter(|version| !version.is_empty() && seen.insert(*version)).collect()
    }
}

/// What there is for a fault of a run.
#[derive(Debug)]
pub enum Found<'a> {
    /// The cell, and its scenario as read.
    Cell(&'a Entry, Box<Scenario>),
    /// Nothing of this engine.
    NoEngine,
    /// Cells of this engine, none of them with such a fault.
    NoSuchFault {
        /// Their titles.
        known: Vec<&'a str>,
        /// How many have a scenario that this version cannot read: one of them may be the one.
        unreadable: usize,
    },
}

impl Atlas {
    /// Reads the text of `atlas.json`.
    ///
    /// # Errors
    /// When it is not one.
    pub fn read(text: &str) -> Result<Atlas, NotAnAtlas> {
        Ok(serde_json::from_str(text)?)
    }

    /// The one that is part of this build.
    ///
    /// # Errors
    /// When the build has a damaged one.
    pub fn shipped() -> Result<Atlas, NotAnAtlas> {
        Atlas::read(SHIPPED)
    }

    /// The engines there is anything of, each once.
    #[must_use]
    pub fn engines(&self) -> BTreeSet<&str> {
        self.cells.iter().map(|entry| entry.cell.engine.as_str()).collect()
    }

    /// The cell of this engine whose fault is like that one; of those of several versions the one with `version`, if there is one.
    #[must_use]
    pub fn find(&self, (engine, version): (&str, &str), likeness: &Likeness) -> Found<'_> {
        let (mut known, mut unreadable) = (Vec::new(), 0);
        let mut found: Option<(&Entry, Scenario)> = None;
        let is_of_engine = |entry: &&Entry| {
            let rest = entry.cell.engine.strip_prefix(engine);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        for entry in self.cells.iter().filter(is_of_engine) {
            let source = Source { name: entry.cell.fault.clone(), text: entry.scenario.clone() };
            match scenario::parse(&source, &[]) {
                Ok(scenario) if Likeness::of(&scenario, FaultId::FIRST, None).as_ref() == Some(likeness) => {
                    if found.is_none() || entry.cell.versions().contains(&version) {
                        found = Some((entry, scenario));
                    }
                }
                Ok(_) => known.push(entry.title.as_str()),
                Err(_) => unreadable += 1,
            }
        }
        if let Some((entry, scenario)) = found {
            return Found::Cell(entry, Box::new(scenario));
        }
        if known.is_empty() && unreadable == 0 {
            return Found::NoEngine;
        }
        Found::NoSuchFault { known, unreadable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETCD: &str = "\
name: cell
site: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }
database: { engine: etcd, nodes: 3 }
loads: [{ workload: ledger, clients: 4, from: dc1 }]
schedule:
  - { phase: baseline, for: 8s }
  - { phase: fault, for: 16s, faults: [{ power-off: { host: leader }, for: 10s }] }
";

    fn entry(scenario: &str) -> Entry {
        Entry {
            title: "The leader's host loses power".to_owned(),
            scenario: scenario.to_owned(),
            cell: Cell::new("etcd", "leader-off"),
        }
    }

    fn like(whom: Whom) -> Likeness {
        Likeness { kind: "power-off", form: String::new(), whom }
    }

    #[test]
    fn the_atlas_that_ships_is_one_and_every_scenario_in_it_can_be_read() {
        let atlas = Atlas::shipped().expect("an atlas");
        for entry in &atlas.cells {
            let source = Source { name: entry.cell.fault.clone(), text: entry.scenario.clone() };
            let scenario = scenario::parse(&source, &[]).unwrap_or_else(|rejection| panic!("{rejection}"));
            let likeness =
                Likeness::of(&scenario, FaultId::FIRST, None).expect("a fault that is like something");
            // Where all nodes are alike, the loss of the first and of the second are alike too.
            let version = entry.cell.versions().first().copied().unwrap_or_default();
            let engine = scenario.database.engine.name;
            let found = atlas.find((engine, version), &likeness);
            let is_found = matches!(found, Found::Cell(found, _) if scenario.database.engine.is_leaderless() || found == entry);
            assert!(
                is_found,
                "{}/{}: two cells are alike: {likeness:?}",
                entry.cell.engine, entry.cell.fault
            );
        }
    }

    #[test]
    fn a_cell_is_found_by_its_engine_and_by_what_its_fault_is_like() {
        let atlas = Atlas { cells: vec![entry(ETCD)] };
        assert!(matches!(atlas.find(("etcd", "3.4.23"), &like(Whom::Leader)), Found::Cell(..)));
        assert!(matches!(atlas.find(("redis", "7"), &like(Whom::Leader)), Found::NoEngine));
        let found = atlas.find(("etcd", "3.4.23"), &like(Whom::Follower));
        assert!(
            matches!(&found, Found::NoSuchFault { known, unreadable: 0 } if known.len() == 1),
            "{found:?}"
        );
        let atlas = Atlas { cells: vec![entry("name: of a later version")] };
        let found = atlas.find(("etcd", "3.4.23"), &like(Whom::Leader));
        assert!(
            matches!(&found, Found::NoSuchFault { known, unreadable: 1 } if known.is_empty()),
            "{found:?}"
        );
    }

    #[test]
    fn an_atlas_is_read_back_as_it_was_written_and_anything_else_is_refused() {
        let atlas = Atlas { cells: vec![entry(ETCD)] };
        let text = serde_json::to_string(&atlas).expect("text");
        assert!(text.contains(r#""engine":"etcd""#), "a cell's keys stand beside its title: {text}");
        assert_eq!(Atlas::read(&text).expect("an atlas"), atlas);
        for text in ["", "{}", "{", "[]", r#"{"cells": [{}]}"#] {
            assert!(Atlas::read(text).is_err(), "{text}");
        }
    }
}
