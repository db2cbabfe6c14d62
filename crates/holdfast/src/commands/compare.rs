//! `holdfast compare`: runs beside each other, from their directories alone.

use std::path::{Path, PathBuf};

use report::compare::{CompareError, WHERE};

use crate::exit::Exit;
use crate::printed;

/// Compares, shows the table, and ends with 0 whatever the runs' verdicts: it is about differences.
pub fn compare(run_directories: &[PathBuf], out: Option<&Path>) -> Result<Exit, Exit> {
    let given = report::compare::expand(run_directories).map_err(Exit::wrong)?;
    let path = out.unwrap_or(Path::new(WHERE));
    let comparison = report::compare::write(&given, path).map_err(|error| match error {
        CompareError::Write(_) => Exit::failed(error),
        error => Exit::wrong(error),
    })?;
    printed!("{}", report::compare::text(&comparison).trim_end());
    printed!("{}", std::path::absolute(path).map_err(Exit::failed)?.display());
    Ok(Exit::Done)
}
