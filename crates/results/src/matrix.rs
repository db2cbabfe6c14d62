//! `matrix.json`, the public result of a matrix: which settings were run, in which order, and how each came out.
//!
//! Keys are only ever added. Owns the form and its place in a directory; the page of a matrix is `compare`'s.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use history::Verdict;
use history::whole_file::{self, Link, WholeFileError};
use serde::{Deserialize, Serialize};

use crate::claim::held_to_its_parts;
use crate::run::RunResult;
use crate::run_directory;

/// The file's name in the directory of a matrix.
pub const MATRIX: &str = "matrix.json";
/// The page of the comparison, beside it.
pub const COMPARISON: &str = "compare.html";

/// The whole of `matrix.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixResult {
    /// Holdfast's version.
    pub holdfast: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed that the order and the runs' seeds come from.
    pub seed: u64,
    /// When the first run began, RFC 3339.
    pub started_at: String,
    /// `fail` if any run failed, else `unknown` if any was or was not made, else `pass`.
    pub verdict: Verdict,
    /// Why it was cut short; null when every run was made.
    pub interrupted: Option<String>,
    /// Each axis with its values as they are called.
    pub axes: BTreeMap<String, Vec<String>>,
    /// How often each cell is run.
    pub repeat: u32,
    /// Every run, made or not, in the order of running.
    pub cells: Vec<CellResult>,
    /// How each figure came out over the runs of a cell; empty until the end, and of cells with fewer than two results.
    #[serde(default)]
    pub distributions: Vec<DistributionResult>,
}

/// One figure over the runs of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DistributionResult {
    /// Number of the cell, from 1.
    pub cell: u32,
    /// What it is of: a load's name, `fault 1, power-off of host: leader`, `run`.
    pub of: String,
    /// Its name, as in expectations: `first_success`, `throughput_per_s`, `lost_writes`.
    pub figure: String,
    /// `s`, `us`, `per_s`, `count`; empty where the figure's name says it.
    pub unit: String,
    /// Runs that left a result and were not cut short.
    pub runs: usize,
    /// Of these, the runs that have such a figure: one that never recovered has no recovery time.
    pub runs_with_value: usize,
    /// Whether a run has such a figure as the least that it may be, as lost writes of which a check could not tell all: then
    /// so are the values here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The middle value. A run without one ranks behind all others: null where the rank falls on such a run.
    pub median: Option<f64>,
    /// What nine of ten runs keep to; null below ten runs, and where the rank falls on a run without a value.
    pub nine_of_ten: Option<f64>,
    /// The worst; null where a run has none.
    pub worst: Option<f64>,
    /// Directory of the run with the worst, or of the first one without a value; null where no run has one.
    pub worst_run_dir: Option<PathBuf>,
}

/// One run of a matrix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Number of the cell, from 1, in the order of the axes.
    pub cell: u32,
    /// Which run of the cell, from 1.
    pub repetition: u32,
    /// What the cell is called.
    pub label: String,
    /// The value of each axis as it is called.
    pub values: BTreeMap<String, String>,
    /// Every setting by its dotted path.
    pub settings: BTreeMap<String, String>,
    /// The run directory.
    pub run_dir: PathBuf,
    /// The run's `result.json`; null when it was not made or left none.
    pub result: Option<RunResult>,
    /// Why there is no result, when the run was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The directory of the kept lab whose volumes the run began with; absent where it booted a lab of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab_dir: Option<PathBuf>,
    /// Why that lab was thrown away after the run, where it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lab_discarded: Vec<String>,
}

impl CellResult {
    /// The run's verdict; `unknown` without a result.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.result.as_ref().map_or(Verdict::Unknown, |result| result.verdict)
    }
}

impl MatrixResult {
    /// The verdict of all runs together.
    #[must_use]
    pub fn judged(&self) -> Verdict {
        self.cells.iter().fold(Verdict::Pass, |verdict, cell| verdict.and(cell.verdict()))
    }
}

/// Why a `matrix.json` could not be read.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a file to be read.
    #[error("{MATRIX}: {0}")]
    File(#[from] WholeFileError),
    /// It is not what it should be.
    #[error("not the result of a matrix: {0}")]
    Form(#[from] serde_json::Error),
}

/// Reads the `matrix.json` of a directory; none where there is none. A pass that its runs do not bear out is `unknown`.
///
/// # Errors
/// When it cannot be read or is none.
pub fn read(directory: &Path) -> Result<Option<MatrixResult>, MatrixError> {
    match whole_file::read(&directory.join(MATRIX), Link::Refused, run_directory::LONGEST_FILE_BYTES) {
        Ok(bytes) => Ok(Some(held_to_its_cells(serde_json::from_slice(&bytes)?))),
        Err(error) if error.is_absence() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn held_to_its_cells(mut matrix: MatrixResult) -> MatrixResult {
    for cell in &mut matrix.cells {
        cell.result = cell.result.take().map(held_to_its_parts);
    }
    if matrix.verdict == Verdict::Pass && matrix.judged() != Verdict::Pass {
        matrix.verdict = Verdict::Unknown;
    }
    matrix
}

/// Writes `matrix.json` whole.
///
/// # Errors
/// When it cannot be written.
pub fn write(directory: &Path, matrix: &MatrixResult) -> Result<(), MatrixError> {
    let text = serde_json::to_string_pretty(matrix)?;
    Ok(whole_file::write(&directory.join(MATRIX), format!("{text}\n").as_bytes())?)
}

/// Where a run is: below the matrix's directory, which may have been moved with all its runs. Where a `matrix.json` or a link
/// leads out of it, it is not followed: it may be a stranger's. `None` where there is nothing but such a link.
#[must_use]
pub fn found_at(directory: &Path, recorded: &Path) -> Option<PathBuf> {
    let names: Vec<Component<'_>> =
        recorded.components().filter(|name| matches!(name, Component::Normal(_))).collect();
    let end_from = |from: usize| directory.join(names[from..].iter().collect::<PathBuf>());
    // Whether the names from there on lead over a link.
    let is_linked = |from: usize| {
        let mut path = directory.to_owned();
        names[from..].iter().any(|name| {
            path.push(name);
            path.is_symlink()
        })
    };
    let found = (0..names.len()).find(|from| !is_linked(*from) && end_from(*from).is_dir());
    let last = names.len().saturating_sub(1);
    let place = found.or_else(|| (!is_linked(last)).then_some(last));
    place.map(end_from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_matrix_that_was_moved_with_its_runs_is_still_found() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let run = folder.path().join("cells/2/run-1");
        fs::create_dir_all(&run).expect("a run directory");
        let found = |recorded: &str| found_at(folder.path(), Path::new(recorded));
        for elsewhere in ["/elsewhere/m/cells/2/run-1", "cells/2/run-1", "../../cells/2/run-1"] {
            assert_eq!(found(elsewhere).as_ref(), Some(&run));
        }
        assert_eq!(found("../../.."), Some(folder.path().join("")));
        assert_eq!(found("/etc"), Some(folder.path().join("etc")));
        // Neither over a link in the midst nor over one at the end.
        std::os::unix::fs::symlink("cells", folder.path().join("linked")).expect("a link");
        std::os::unix::fs::symlink("/etc", folder.path().join("etc")).expect("a link");
        assert_eq!(found("linked/2/run-1"), Some(folder.path().join("run-1")));
        assert_eq!(found("/etc"), None);
    }

    #[test]
    fn a_directory_without_a_matrix_is_none_and_a_damaged_one_is_told() {
        let folder = tempfile::tempdir().expect("temporary folder");
        assert!(read(folder.path()).expect("readable").is_none());
        fs::write(folder.path().join(MATRIX), "{").expect("written");
        assert!(matches!(read(folder.path()), Err(MatrixError::Form(_))));
    }
}
