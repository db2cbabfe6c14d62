//! Whether the workloads of a scenario can be had as it asks for them, with the scripts of their files read into it.
//!
//! Owns that a message about a script names the file it stands in. Which options a workload takes is `workload`'s business.

use std::path::Path;

use scenario::{Refusal, Rejection, Scenario, Source, point_at};
use workload::ConfigurationError;

use crate::script_files::{MisnamedFile, read_all_scripts};

/// Why a load's workload cannot be had as the scenario asks for it.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A script's file.
    #[error(transparent)]
    ScriptFile(#[from] MisnamedFile),
    /// It does not take its options.
    #[error("load {load}: {source}")]
    Misconfigured {
        load: String,
        /// Its place among the loads.
        place: usize,
        /// The option that is wrong, and with what.
        source: Box<ConfigurationError>,
    },
}

impl WorkloadError {
    /// The same as a rejection with a caret where it is about the text that all cells of a matrix have in common: in one cell
    /// an option may be as an axis has it.
    #[must_use]
    pub fn rejection_of_all(&self, source: &Source, overrides: &[(String, String)]) -> Option<Rejection> {
        matches!(self, WorkloadError::ScriptFile(_)).then(|| self.rejection(source, overrides))?
    }

    /// The same as a rejection with a caret, where it is about something that the scenario says.
    #[must_use]
    pub fn rejection(&self, source: &Source, overrides: &[(String, String)]) -> Option<Rejection> {
        match self {
            WorkloadError::ScriptFile(misnamed) => misnamed.pointed_at(source, overrides),
            WorkloadError::Misconfigured { load, place, source: error } => {
                let ConfigurationError::BadOption { option, value, wanted, .. } = error.as_ref() else {
                    return None;
                };
                let refusal = |label: &str| Refusal {
                    code: "bad-option",
                    message: format!("load {load}: the option `{option}` cannot be `{value}`"),
                    label: label.to_owned(),
                    help: wanted.clone(),
                };
                let at = |path: &str, label| point_at(source, overrides, path, refusal(label));
                // What is not written is as it is when absent, and does not fit what is.
                at(&format!("loads.{place}.options.{option}"), "does not fit")
                    .or_else(|| at(&format!("loads.{place}.workload"), "of this load"))
            }
        }
    }
}

/// Whether every load's workload takes its options: what the scenario language cannot see by itself, such as shares that
/// do not add up or a script that cannot be read.
///
/// Scripts that stand in files, whose paths begin at `folder`, are read into the scenario first.
///
/// # Errors
/// Of the first load that cannot be had, or whose file cannot be read.
pub fn check_workloads(scenario: &mut Scenario, folder: &Path) -> Result<(), WorkloadError> {
    let files = read_all_scripts(scenario, folder)?;
    for (place, load) in scenario.loads.iter().enumerate() {
        let Err(error) = workload::configured(&load.workload, &load.options) else { continue };
        let source = match files.get(&load.name) {
            Some(files) => files.name_file_in(error),
            None => error,
        };
        return Err(WorkloadError::Misconfigured {
            load: load.name.clone(),
            place,
            source: Box::new(source),
        });
    }
    Ok(())
}
