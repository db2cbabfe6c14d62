//! The runs of a matrix one after the other: their order and seeds, their directories, and `matrix.json`, which is whole
//! after every run.
//!
//! Each repetition runs every cell once, in an order of its own, so that what changes on the machine over time falls on
//! all cells alike (a randomised complete block design; Fisher 1935). All cells of a repetition have the same seed: they
//! ask the same. Starts nothing itself.

use std::path::{Path, PathBuf};

use history::Verdict;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use results::RunResult;
use results::matrix::{CellResult, MatrixError, MatrixResult};
use scenario::{Cell, MOST_SEED, Matrix, Scenario};

use crate::directory::{DirectoryError, RunDirectory};
use crate::launch::drawn_seed;

/// What can go wrong between runs.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The directory of the matrix.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its `matrix.json`.
    #[error("{}: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// It cannot be read or written, or is no result of a matrix.
        source: MatrixError,
    },
}

/// One run that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index of the cell.
    pub cell: usize,
    /// Which run of the cell, from 1.
    pub repetition: u32,
    /// The run's seed.
    pub seed: u64,
}

/// Every run in its order.
#[must_use]
pub fn turns(cells: usize, repeat: u32, seed: u64) -> Vec<Turn> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut turns = Vec::new();
    for repetition in 1..=repeat {
        let mut order: Vec<usize> = (0..cells).collect();
        order.shuffle(&mut rng);
        let seed = seed.wrapping_add(u64::from(repetition) - 1) & MOST_SEED;
        turns.extend(order.into_iter().map(|cell| Turn { cell, repetition, seed }));
    }
    turns
}

/// A matrix under way.
#[derive(Debug)]
pub struct Series {
    directory: RunDirectory,
    cells: Vec<Cell>,
    turns: Vec<Turn>,
    record: MatrixResult,
}

impl Series {
    /// Makes the directory, `out/<scenario>/<timestamp>`, and puts a `matrix.json` of runs still to be made into it. `base`
    /// is the scenario without its matrix; its seed is used when none is given, and one is drawn when it has none.
    ///
    /// # Errors
    /// When the directory or the file cannot be written.
    pub fn begin(
        out: &Path,
        base: &Scenario,
        matrix: Matrix,
        seed: Option<u64>,
        version: &str,
    ) -> Result<Series, SeriesError> {
        let seed = seed.or(base.seed).unwrap_or_else(drawn_seed);
        let now = jiff::Timestamp::now();
        let directory = RunDirectory::make(out, &base.name, &now.strftime("%Y-%m-%dT%H-%M-%SZ").to_string())?;
        let turns = turns(matrix.cells.len(), matrix.repeat, seed);
        let planned = |turn: &Turn| {
            let cell = &matrix.cells[turn.cell];
            CellResult {
                cell: u32::try_from(turn.cell + 1).unwrap_or(u32::MAX),
                repetition: turn.repetition,
                label: cell.label.clone(),
                values: cell.values.iter().cloned().collect(),
                settings: cell.settings.iter().cloned().collect(),
                run_dir: place(directory.path(), turn),
                result: None,
                failure: None,
                lab_dir: None,
                lab_discarded: Vec::new(),
            }
        };
        let record = MatrixResult {
            holdfast: version.to_owned(),
            scenario: base.name.clone(),
            seed,
            started_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            verdict: Verdict::Unknown,
            interrupted: None,
            axes: matrix.axes.iter().map(|axis| (axis.name.clone(), axis.values.clone())).collect(),
            repeat: matrix.repeat,
            cells: turns.iter().map(planned).collect(),
            distributions: Vec::new(),
        };
        let series = Series { directory, cells: matrix.cells, turns, record };
        series.write()?;
        Ok(series)
    }

    /// The directory of the matrix, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Every run in its order.
    #[must_use]
    pub fn turns(&self) -> Vec<Turn> {
        self.turns.clone()
    }

    /// What a run is of.
    #[must_use]
    pub fn cell(&self, turn: &Turn) -> &Cell {
        &self.cells[turn.cell]
    }

    /// Where a run's directory is to be.
    #[must_use]
    pub fn place_of(&self, turn: &Turn) -> PathBuf {
        place(self.path(), turn)
    }

    /// What is known so far.
    #[must_use]
    pub fn record(&self) -> &MatrixResult {
        &self.record
    }

    /// Notes the kept lab whose volumes a run began with, and why it was thrown away afterwards, where it was.
    pub fn note_lab(&mut self, turn: &Turn, lab: &Path, discarded: &[String]) {
        let Some(index) = self.turns.iter().position(|other| other == turn) else { return };
        let cell = &mut self.record.cells[index];
        (cell.lab_dir, cell.lab_discarded) = (Some(lab.to_owned()), discarded.to_vec());
    }

    /// Where the directory of the kept lab with this number is to be.
    #[must_use]
    pub fn place_of_lab(&self, turn: &Turn, number: u32) -> PathBuf {
        self.path().join(format!("cells/{}/lab-{number}", turn.cell + 1))
    }

    /// Notes how a run came out, or why it left nothing.
    ///
    /// # Errors
    /// When `matrix.json` cannot be written.
    pub fn note(
        &mut self,
        turn: &Turn,
        result: Option<RunResult>,
        failure: Option<String>,
    ) -> Result<(), SeriesError> {
        let Some(index) = self.turns.iter().position(|other| other == turn) else { return Ok(()) };
        let cell = &mut self.record.cells[index];
        (cell.result, cell.failure) = (result, failure);
        self.write()
    }

    /// Notes that no more runs are made, and gives the verdict of all. One that was cut short shows nothing.
    ///
    /// # Errors
    /// When `matrix.json` cannot be written.
    pub fn end(&mut self, interrupted: Option<String>) -> Result<Verdict, SeriesError> {
        self.record.verdict = if interrupted.is_some() { Verdict::Unknown } else { self.record.judged() };
        self.record.interrupted = interrupted;
        self.record.distributions = report::compare::distributions_of(&self.record);
        self.write()?;
        Ok(self.record.verdict)
    }

    fn write(&self) -> Result<(), SeriesError> {
        results::matrix::write(self.path(), &self.record).map_err(|source| SeriesError::Record {
            path: self.directory.file(results::matrix::MATRIX),
            source,
        })
    }
}

fn place(directory: &Path, turn: &Turn) -> PathBuf {
    directory.join(format!("cells/{}/run-{}", turn.cell + 1, turn.repetition))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_repetition_runs_every_cell_once_with_one_seed_and_in_an_order_drawn_from_the_seed() {
        let turns = turns(6, 4, 42);
        assert_eq!(turns.len(), 24);
        let mut orders = BTreeSet::new();
        for (number, block) in turns.chunks(6).enumerate() {
            assert_eq!(block.iter().map(|turn| turn.cell).collect::<BTreeSet<_>>().len(), 6);
            let repetition = number as u32 + 1;
            let expected = (repetition, 42 + number as u64);
            assert!(block.iter().all(|turn| (turn.repetition, turn.seed) == expected));
            orders.insert(block.iter().map(|turn| turn.cell).collect::<Vec<_>>());
        }
        assert!(orders.len() > 1, "every repetition in the same order: {orders:?}");
        assert_eq!(turns, super::turns(6, 4, 42));
        assert_ne!(
            turns.iter().map(|turn| turn.cell).collect::<Vec<_>>(),
            super::turns(6, 4, 43).iter().map(|turn| turn.cell).collect::<Vec<_>>()
        );
    }

    #[test]
    fn seeds_stay_within_what_every_reader_of_json_can_hold() {
        let last = MOST_SEED;
        let seeds: Vec<u64> = turns(1, 3, last).iter().map(|turn| turn.seed).collect();
        assert_eq!(seeds, [last, 0, 1]);
    }

    fn series(out: &Path) -> Series {
        let text = "name: m\nsite: { regions: { dc1: { zones: { a: { hosts: 1 }, b: { hosts: 1 } } } } }\n\
                    database: { engine: control, nodes: 2 }\nloads: [{ workload: register, clients: 2 }]\n\
                    schedule: [{ phase: baseline, for: 5s }]\n\
                    matrix: { axes: { loads.0.clients: [1, 8] }, repeat: 2 }\n";
        let source = scenario::Source { name: "m.yaml".to_owned(), text: text.to_owned() };
        let plan = scenario::plan(&source, &[]).expect("sound");
        Series::begin(out, &plan.scenario, plan.matrix.expect("a matrix"), Some(9), "0").expect("a series")
    }

    #[test]
    fn the_file_is_whole_from_the_start_and_an_interrupt_leaves_the_verdict_unknown() {
        let out = tempfile::tempdir().expect("temporary folder");
        let mut series = series(out.path());
        let read = |series: &Series| results::matrix::read(series.path()).expect("readable").expect("there");
        assert_eq!(read(&series).cells.len(), 4);
        assert!(read(&series).cells.iter().all(|cell| cell.result.is_none()));
        let first = series.turns()[0];
        series.note(&first, None, Some("no lab".to_owned())).expect("noted");
        assert_eq!(read(&series).cells[0].failure.as_deref(), Some("no lab"));
        assert!(read(&series).cells[0].run_dir.starts_with(series.path()));
        assert_eq!(series.end(Some("by a signal".to_owned())).expect("ended"), Verdict::Unknown);
        assert_eq!(read(&series).interrupted.as_deref(), Some("by a signal"));
    }
}
