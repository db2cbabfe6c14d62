//! The labs that runs of the same settings share: each booted before the first of them, removed after the last, and thrown away
//! in between after a run that left it in doubt.
//!
//! Owns when that is, and what is told of it. What a kept lab is `run` knows.

use std::collections::{BTreeMap, BTreeSet};

use run::{Ended, KeptLab, LaunchError, Options, Placement, Series, Turn};

use super::{Desk, refusal};
use crate::exit::Exit;

/// Labs kept at once: each has the volumes of a whole cluster.
const LABS_MAX: usize = 4;

/// The labs, between two runs.
pub struct Kept {
    /// By the index of the cell whose runs begin with them.
    labs: BTreeMap<usize, KeptLab>,
    /// The cells whose runs begin with a kept lab.
    cells: BTreeSet<usize>,
    /// Labs booted so far, by cell.
    booted: BTreeMap<usize, u32>,
}

impl Kept {
    /// For the runs of a series. `every_run_boots`: somebody asked for none. Says why where none can be kept.
    pub fn new(series: &Series, every_run_boots: bool, desk: &mut Desk) -> Kept {
        let mut kept = Kept { labs: BTreeMap::new(), cells: BTreeSet::new(), booted: BTreeMap::new() };
        if every_run_boots {
            return kept;
        }
        let turns = series.turns();
        let mut why_not: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for turn in turns.iter().filter(|turn| turn.repetition == 2) {
            let cell = series.cell(turn);
            let may_be = match run::may_be_kept(&cell.scenario) {
                Ok(()) if kept.cells.len() == LABS_MAX => Err(format!("{LABS_MAX} labs are kept at once")),
                Ok(()) => Ok(()),
                Err(why) => Err(why.to_string()),
            };
            match may_be {
                Ok(()) => drop(kept.cells.insert(turn.cell)),
                Err(why) => why_not.entry(why).or_default().push(&cell.label),
            }
        }
        if !why_not.is_empty() {
            // A database that was just started again is not one that was just loaded: cells are compared, so all begin alike.
            kept.cells.clear();
        }
        for (why, labels) in why_not {
            let labels = labels.join("; ");
            desk.terminal.note(&format!("every run boots a lab of its own: {why} ({labels})"));
        }
        kept
    }

    /// Does one run: on the kept lab, where there is one.
    pub fn launch(
        &mut self,
        (turn, series): (&Turn, &mut Series),
        options: &Options,
        desk: &mut Desk,
    ) -> Result<Ended, LaunchError> {
        let Some(lab) = self.labs.remove(&turn.cell) else { return desk.launch(options) };
        let directory = lab.path().to_owned();
        let (launched, lab) = desk.launch_on(lab, options);
        let discarded = match lab {
            Ok(lab) => {
                self.labs.insert(turn.cell, lab);
                Vec::new()
            }
            Err(why) => why,
        };
        series.note_lab(turn, &directory, &discarded);
        if launched.is_err() {
            self.cells.remove(&turn.cell);
            self.labs.remove(&turn.cell).map(KeptLab::end);
            desk.terminal
                .note("the lab is discarded, and every further run boots its own: there is no result");
        } else if !discarded.is_empty() {
            desk.terminal.note(&format!("the lab is discarded: {}", discarded.join("; ")));
        }
        launched
    }

    /// Boots a lab for the run that is due, where there is to be one and is none.
    ///
    /// # Errors
    /// When it cannot be for a reason that holds for the runs too.
    pub fn boot_if_needed(
        &mut self,
        (turn, series): (&Turn, &Series),
        options: &Options,
        desk: &mut Desk,
    ) -> Result<(), Exit> {
        if !self.cells.contains(&turn.cell) || self.labs.contains_key(&turn.cell) {
            return Ok(());
        }
        let number = self.booted.entry(turn.cell).or_default();
        *number += 1;
        // What is asked of the runs is not asked of the lab that they begin with.
        let options = Options {
            place: Placement::At(series.place_of_lab(turn, *number)),
            prevent_faults: false,
            planted: faults::Planted::new(),
            captures: Vec::new(),
            ..options.clone()
        };
        let why = match desk.boot_to_keep(&options) {
            Ok(lab) => {
                self.labs.extend(lab.map(|lab| (turn.cell, lab)));
                return Ok(());
            }
            Err(LaunchError::Lab { why, .. }) => why,
            // A run that removes its volumes at its end may still have room.
            Err(LaunchError::Room(why)) => why.to_string(),
            Err(error) => return Err(refusal(error)),
        };
        self.cells.remove(&turn.cell);
        desk.terminal.note(&format!("every run boots a lab of its own: none can be kept: {why}"));
        Ok(())
    }

    /// The run of the turn is over, and it was the last of its cell where `is_last`: its lab is removed. Returns what could not
    /// be removed, in words.
    pub fn end_of(&mut self, turn: &Turn, is_last: bool) -> Vec<String> {
        let ended = if is_last { self.labs.remove(&turn.cell) } else { None };
        ended.map(KeptLab::end).unwrap_or_default()
    }

    /// Removes all labs. Returns what could not be removed, in words.
    pub fn end(self) -> Vec<String> {
        self.labs.into_values().flat_map(KeptLab::end).collect()
    }
}
