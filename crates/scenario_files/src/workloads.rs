//! Whether the workloads of a scenario can be had as it asks for them, with the scripts of their files read into it.
//!
//! Owns that a message about a script names the file it stands in. Which options a workload takes is `workload`'s business.

use std::path::Path;

use scenario::{Rejection, Scenario, Source};
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
        /// The option that is wrong, and with what.
        source: ConfigurationError,
    },
}

impl WorkloadError {
    /// The same as a rejection with a caret, where it is about a file that the scenario names.
    #[must_use]
    pub fn rejection(&self, source: &Source, overrides: &[(String, String)]) -> Option<Rejection> {
        match self {
            WorkloadError::ScriptFile(misnamed) => misnamed.pointed_at(source, overrides),
            WorkloadError::Misconfigured { .. } => None,
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
    for load in &scenario.loads {
        let Err(error) = workload::configured(&load.workload, &load.options) else { continue };
        let source = match files.get(&load.name) {
            Some(files) => files.name_file_in(error),
            None => error,
        };
        return Err(WorkloadError::Misconfigured { load: load.name.clone(), source });
    }
    Ok(())
}
