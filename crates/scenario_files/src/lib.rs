//! The files that a scenario names: engine files, scripts and command files. Each is read once, before anything starts, and from then
//! on part of the scenario, so that the run directory holds all that was run.
//!
//! Owns which files may be read, where a mistake in one is told, and which machines its commands may strike. The languages of these
//! files are `capabilities`', `workload`'s and `remote`'s; `scenario` reads no file and knows paths only. Strikes nothing.

mod beside_scenario;
mod command_files;
mod engine_files;
mod reach;
mod script_files;
mod workloads;

pub use beside_scenario::BesideError;
pub use command_files::{PlannedStrike, asks_for, check_commands, commands_at, permit, planned_strikes};
pub use engine_files::{PlanError, plan};
pub use reach::{reach_by, reach_of};
pub use script_files::{MisnamedFile, ScriptFileError, ScriptFiles, read_scripts};
pub use workloads::{WorkloadError, check_workloads};
