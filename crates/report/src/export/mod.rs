//! A run in the forms that other programs read: Jepsen's histories, tables, test results, metrics.
//!
//! Owns the choice of form and the reading of the history; every form is a file of its own. Reads run directories only.

mod jepsen;
mod junit;
mod openmetrics;
mod tables;

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use history::whole_file::{self, Link};
use history::{HistoryReader, Operation};

pub use tables::Rows;

use results::ReadError;
use results::matrix;

/// The history's name in a run directory.
const HISTORY: &str = "history.jsonl.zst";

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The operations of one load as a history of Jepsen's, in EDN.
    Jepsen,
    /// A table, comma-separated with a heading (RFC 4180, lines ended by a line feed).
    Csv(Rows),
    /// Expectations, checks and faults as test cases in JUnit's XML.
    Junit,
    /// The result as OpenMetrics 1.0 text.
    OpenMetrics,
}

/// Why a run could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The run directory.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The run's history is not there or not whole.
    #[error("{}: {what}", path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A `matrix.json` that is not one.
    #[error("{}: {source}", path.display())]
    Matrix {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        source: results::matrix::MatrixError,
    },
    /// The directory of a matrix in a form of one run.
    #[error("{} is the directory of a matrix, and this form takes a single run: give one of those under {}", path.display(), path.join("cells").display())]
    OneOfMany {
        /// The directory.
        path: PathBuf,
    },
    /// No load of this name.
    #[error("the run has no load {load}; it has {known}")]
    NoLoad {
        /// The name given.
        load: String,
        /// Those there are.
        known: String,
    },
    /// No load whose operations Jepsen has a form for.
    #[error("jepsen: no load of the run can be written in this form ({why})")]
    NoForm {
        /// Why, load by load.
        why: String,
    },
    /// Several loads, which no checker of Jepsen's takes together.
    #[error("jepsen: a history holds one kind of operation; choose a load with --load: {loads}")]
    SeveralLoads {
        /// Those that have a form.
        loads: String,
    },
    #[error("junit: {0}")]
    Xml(#[from] quick_junit::SerializeError),
    /// A table.
    #[error("csv: {0}")]
    Csv(#[source] csv::Error),
    /// The sink.
    #[error("export: {0}")]
    Io(#[from] io::Error),
}

impl From<csv::Error> for ExportError {
    fn from(error: csv::Error) -> ExportError {
        if !error.is_io_error() {
            return ExportError::Csv(error);
        }
        match error.into_kind() {
            csv::ErrorKind::Io(error) => ExportError::Io(error),
            // What was asked first says that there is no other.
            other => ExportError::Io(io::Error::other(format!("{other:?}"))),
        }
    }
}

/// Writes a run in a form; the runs of a matrix together as test results. `load` picks one load's operations where a form has operations; without it, all of them, or
/// the only one that has the form.
///
/// # Errors
/// When the directory or its history cannot be read, the form has no words for the operations, or the sink fails.
pub fn export(
    directory: &Path,
    format: Format,
    load: Option<&str>,
    sink: &mut impl Write,
) -> Result<(), ExportError> {
    let matrix = matrix::read(directory)
        .map_err(|source| ExportError::Matrix { path: directory.to_owned(), source })?;
    match (matrix, format) {
        (Some(matrix), Format::Junit) => {
            junit::write_matrix(&matrix, sink)?;
            return Ok(sink.flush()?);
        }
        (Some(_), _) => return Err(ExportError::OneOfMany { path: directory.to_owned() }),
        (None, _) => {}
    }
    let run = results::read(directory)?;
    if let Some(load) = load
        && !run.result.loads.iter().any(|known| known.name == load)
    {
        let known: Vec<&str> = run.result.loads.iter().map(|load| load.name.as_str()).collect();
        return Err(ExportError::NoLoad { load: load.to_owned(), known: known.join(", ") });
    }
    match format {
        Format::Jepsen => jepsen::write(&operations(directory, load)?, sink)?,
        Format::Csv(Rows::Operations) => tables::operations(&operations(directory, load)?, sink)?,
        Format::Csv(Rows::Timeline) => tables::timeline(&run.timeline, load, sink)?,
        Format::Csv(Rows::Figures) => tables::figures(&run.result, load, sink)?,
        Format::Junit => junit::write(&run.result, sink)?,
        Format::OpenMetrics => openmetrics::write(&run.result, load, sink)?,
    }
    sink.flush()?;
    Ok(())
}

fn operations(directory: &Path, load: Option<&str>) -> Result<Vec<Operation>, ExportError> {
    let path = directory.join(HISTORY);
    let told = |what: String| ExportError::History { path: path.clone(), what };
    let file = whole_file::open(&path, Link::Refused).map_err(|error| told(error.to_string()))?;
    let mut operations = Vec::new();
    for operation in HistoryReader::new(BufReader::new(file)).map_err(|error| told(error.to_string()))? {
        // Half a history would be judged as if it were a whole one.
        let operation = operation.map_err(|error| told(error.to_string()))?;
        if load.is_none_or(|load| operation.load == load) {
            operations.push(operation);
        }
    }
    Ok(operations)
}
