//! Where the runs of a comparison come from: run directories, and directories of a matrix, which stand for their runs.
//!
//! The only file of the comparison that reads files, and it reads no others than a run's own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use history::EventKind;
use history::whole_file::{self, Link};
use measure::{OperationFigures, Restored};

use super::{Run, settings};
use crate::written::WriteError;
use results::RunDirectory;
use results::matrix::{self, MatrixResult};
use results::{LONGEST_FILE_BYTES, ReadError};

/// Why runs could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One thing cannot be compared.
    #[error(
        "{runs} run to compare; give two or more run directories, the directory of a matrix, or --with atlas"
    )]
    TooFew {
        /// How many there are.
        runs: usize,
    },
    /// The same run, by its own path or by a link to it.
    #[error("{} is given twice, and a run is no repetition of itself; leave it out once", path.display())]
    Twice {
        /// As given the second time.
        path: PathBuf,
    },
    /// A directory that does not tell what a run was.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The page could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A `matrix.json` that is not one.
    #[error("{}: {source}", path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: matrix::MatrixError,
    },
}

/// A run directory to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The directory.
    pub path: PathBuf,
    /// What its settings are called; without it they are read from the run's scenario.
    pub label: Option<String>,
    /// The value of each axis, where it is a run of a matrix; else empty.
    pub axes: BTreeMap<String, String>,
    /// Why there is nothing to read, where it is a run of a matrix that left no result.
    pub without_result: Option<String>,
}

impl Given {
    /// A directory that is read for what it is, under a name or without one.
    #[must_use]
    pub fn at(path: PathBuf, label: Option<String>) -> Given {
        Given { path, label, axes: BTreeMap::new(), without_result: None }
    }
}

/// What every operation of a load did, by load and second.
pub(super) type Seconds = BTreeMap<String, BTreeMap<u64, BTreeMap<String, OperationFigures>>>;

/// A run as read for a comparison.
pub(super) struct Taken {
    pub(super) run: Run,
    pub(super) label: Option<String>,
    pub(super) axes: BTreeMap<String, String>,
    pub(super) settings: BTreeMap<String, String>,
    /// The resolved scenario's text.
    pub(super) scenario_yaml: Option<String>,
    /// Who led from when on: seconds and the node's name, in order of time.
    pub(super) leaders: Vec<(f64, String)>,
    /// By load and second; none when the files of its time line cannot be read.
    pub(super) seconds: Option<Seconds>,
    pub(super) notes: Vec<String>,
}

/// Directories as the user gave them: that of a matrix stands for the runs it holds.
///
/// # Errors
/// When a `matrix.json` cannot be read.
pub fn expand(paths: &[PathBuf]) -> Result<Vec<Given>, CompareError> {
    let mut given = Vec::new();
    for written in paths {
        let (label, path) = labelled(written);
        match matrix::read(&path) {
            Ok(Some(found)) => {
                given.extend(of_matrix(&path, &found).into_iter().map(|cell| match (&label, cell.label) {
                    (Some(side), Some(of_cell)) => {
                        let mut axes = cell.axes;
                        // Which of several matrices it is of.
                        axes.insert(String::new(), side.clone());
                        Given { label: Some(format!("{side}, {of_cell}")), axes, ..cell }
                    }
                    (_, label) => Given { label, ..cell },
                }))
            }
            Ok(None) => given.push(Given::at(path, label)),
            Err(source) => {
                return Err(CompareError::Matrix { path: path.join(matrix::MATRIX), source });
            }
        }
    }
    Ok(given)
}

/// `NAME=DIR` as a name and a directory; a directory that is there as written has no name.
fn labelled(written: &Path) -> (Option<String>, PathBuf) {
    let named = written.to_str().filter(|_| !written.exists()).and_then(|text| text.split_once('='));
    match named {
        Some((name, path)) if !name.is_empty() && !name.contains('/') => (Some(name.to_owned()), path.into()),
        _ => (None, written.to_owned()),
    }
}

/// The runs of a matrix, cell by cell: the others are compared with the first cell, whichever ran first. Those
/// without a result are among them.
pub(crate) fn of_matrix(directory: &Path, matrix: &MatrixResult) -> Vec<Given> {
    let mut cells: Vec<_> = matrix.cells.iter().collect();
    cells.sort_by_key(|cell| (cell.cell, cell.repetition));
    let why = |failure: &Option<String>| failure.clone().unwrap_or_else(|| "not made".to_owned());
    let given = |cell: &&matrix::CellResult| {
        let is_elsewhere = || "its directory is a link, which is not followed".to_owned();
        let (path, elsewhere) = match matrix::found_at(directory, &cell.run_dir) {
            Some(path) => (path, None),
            None => (cell.run_dir.clone(), Some(is_elsewhere())),
        };
        let without_result = cell.result.is_none().then(|| why(&cell.failure)).or(elsewhere);
        Given { path, label: Some(cell.label.clone()), axes: cell.values.clone(), without_result }
    };
    cells.iter().map(given).collect()
}

/// The first that was given before.
pub(super) fn given_twice<'g>(given: &[&'g Given]) -> Option<&'g Given> {
    let mut seen = BTreeSet::new();
    let mut is_new = |path: &Path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    given.iter().copied().find(|given| !is_new(&given.path))
}

/// Reads one run.
pub(super) fn take(given: &Given) -> Result<Taken, CompareError> {
    let read = results::read(&given.path)?;
    let interrupted = read.events.iter().find_map(|event| match &event.kind {
        EventKind::Interrupted { why } => Some(why.clone()),
        _ => None,
    });
    let ended_early = read.result.loads.iter().find(|load| load.ended_early.is_some());
    let left_out = match (read.has_ended, ended_early) {
        (false, _) => Some("the run did not complete".to_owned()),
        (true, Some(load)) => Some(format!("its load {} ended early", load.name)),
        (true, None) => interrupted,
    };
    let mut notes = Vec::new();
    let recorded_s = read.timeline.iter().map(|row| row.second + 1).max().unwrap_or(0);
    let seconds = match seconds(&read, recorded_s) {
        Ok(seconds) => Some(seconds),
        Err(why) => {
            notes.push(format!("{}: its seconds cannot be compared: {why}", given.path.display()));
            None
        }
    };
    let settings = settings::of(&read);
    let leaders = leaders(&read);
    let scenario_yaml = read.scenario_yaml;
    let run = Run { path: given.path.clone(), result: read.result, left_out };
    Ok(Taken {
        run,
        label: given.label.clone(),
        axes: given.axes.clone(),
        settings,
        scenario_yaml,
        leaders,
        seconds,
        notes,
    })
}

fn leaders(run: &RunDirectory) -> Vec<(f64, String)> {
    let nodes = &run.result.facts.site.nodes;
    let first =
        nodes.iter().find(|node| node.role == "leader").map(|node| (f64::NEG_INFINITY, node.name.clone()));
    let later = run.events.iter().filter_map(|event| match &event.kind {
        EventKind::Leader { node } => Some((event.t_s, node.clone())),
        _ => None,
    });
    first.into_iter().chain(later).collect()
}

/// `recorded_s` is the end of the last second there is anything of.
fn seconds(run: &RunDirectory, recorded_s: u64) -> Result<Seconds, String> {
    if run.is_timeline_damaged {
        return Err("timeline.csv is missing, or some lines cannot be read".to_owned());
    }
    let log = whole_file::open(&run.path.join("timeline.hlog"), Link::Refused);
    let log = log.map_err(|error| format!("timeline.hlog: {error}"))?;
    let restored = measure::restore(BufReader::new(log.take(LONGEST_FILE_BYTES)), &run.timeline);
    let Restored { timeline, truncated } = restored.map_err(|error| error.to_string())?;
    if truncated {
        return Err("timeline.hlog is cut off".to_owned());
    }
    let mut seconds = Seconds::new();
    for load in &run.result.loads {
        let end_s = load.phases.iter().map(|phase| phase.to_s).fold(0.0, f64::max).ceil();
        let by_second = seconds.entry(load.name.clone()).or_default();
        for second in 0..(end_s as u64).min(recorded_s) {
            let figures = timeline.summarize(&load.name, second as f64, (second + 1) as f64);
            by_second.insert(second, figures.map_err(|error| error.to_string())?.operations);
        }
    }
    Ok(seconds)
}
