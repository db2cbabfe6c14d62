//! A time line from the files of a run, for a report on a run that was killed.
//!
//! Owns putting the two files together: latencies and counts come from the interval log, numbers of errors
//! from the table.

use std::io::BufRead;

use crate::csv::TimelineRow;
use crate::hlog::{HlogError, HlogReader};
use crate::timeline::{Timeline, TimelineError};

/// What can be wrong with the files of a time line.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// In `timeline.hlog`.
    #[error("timeline.hlog: {0}")]
    Hlog(#[from] HlogError),
    /// In what they say.
    #[error("time line: {0}")]
    Timeline(#[from] TimelineError),
}

/// A time line that was read back.
pub struct Restored {
    /// The time line. Its errors have no classes.
    pub timeline: Timeline,
    /// Whether the log was torn at its end, as it is when its writer was killed; all before it is here.
    pub truncated: bool,
}

/// Reads a time line back from `timeline.hlog` and the rows of `timeline.csv`.
///
/// # Errors
/// When the log is damaged anywhere but at a torn end.
pub fn restore(hlog: impl BufRead, rows: &[TimelineRow]) -> Result<Restored, RestoreError> {
    let mut restored = Restored { timeline: Timeline::new(), truncated: false };
    for entry in HlogReader::new(hlog) {
        match entry {
            Ok(entry) => {
                restored.timeline.add_histogram(
                    &entry.load,
                    &entry.operation,
                    entry.second,
                    &entry.histogram,
                )?;
            }
            Err(HlogError::Truncated { .. }) => restored.truncated = true,
            Err(error) => return Err(error.into()),
        }
    }
    for row in rows {
        restored.timeline.add_unclassified_errors(&row.load, &row.operation, row.second, row.errors)?;
    }
    Ok(restored)
}
