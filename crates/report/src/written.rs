//! Writes the report into its run directory. Beside `compare` and `export`, the only file here that does I/O.

use std::io;
use std::path::{Path, PathBuf};

use history::whole_file;
use results::ReadError;

use crate::page;

/// The report's name in the run directory.
const REPORT: &str = "report.html";

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The run directory could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file could not be written.
    #[error("{} could not be written: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Reads a run directory and writes `report.html` into it. Returns the report's path.
///
/// # Errors
/// When the directory cannot be read or the file cannot be written.
pub fn write(directory: &Path) -> Result<PathBuf, WriteError> {
    let run = results::read(directory)?;
    let path = directory.join(REPORT);
    whole_file::write(&path, page::html(&run).as_bytes())
        .map_err(|source| WriteError::File { path: path.clone(), source })?;
    Ok(path)
}
