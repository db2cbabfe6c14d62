//! `holdfast report`: writes the report of a run again, from its directory alone.

use std::path::Path;

use crate::exit::Exit;
use crate::printed;

/// Writes the report, shows the summary, and ends with the run's verdict's story but its own exit code: 0 when a report
/// was written. Of a matrix, its comparison.
pub fn report(run_directory: &Path) -> Result<Exit, Exit> {
    if let Some(matrix) = results::matrix::read(run_directory).map_err(Exit::wrong)? {
        let (comparison, path) =
            report::compare::write_of_matrix(run_directory, &matrix).map_err(Exit::failed)?;
        printed!("{}", report::compare::text(&comparison).trim_end());
        printed!("{}", path.display());
        return Ok(Exit::Done);
    }
    let run = results::read(run_directory).map_err(Exit::wrong)?;
    let path = report::write(run_directory).map_err(Exit::failed)?;
    printed!("{}", report::text(&run.result).trim_end());
    printed!("{}", path.display());
    Ok(Exit::Done)
}
