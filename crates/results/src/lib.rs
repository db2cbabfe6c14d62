//! A run's directory as values: `result.json`, the rows of `timeline.csv`, `links.csv` and `hosts.csv`, `matrix.json`.
//!
//! Owns the form of the results and their reader, also of a run that was killed before it had one. Computes no figure and
//! makes no sentence of them: `verdict` fills them, `report` shows them.

mod barren_load;
mod by_second;
mod claim;
mod derive;
mod doubts;
mod fault;
pub mod folder;
mod hosts_csv;
mod lab;
mod leadership;
mod links_csv;
mod load;
pub mod losses;
mod lost_writes;
pub mod matrix;
mod prediction;
mod run;
mod run_directory;
mod timeline_csv;
mod volume;

pub use barren_load::Barren;
pub use by_second::{LoadSeconds, Second, by_load, recorded_until};
pub use doubts::{AgentDoubt, Doubt};
pub use fault::{FaultLoadResult, FaultResult, RecoveryResult, fault_name, new_leader_s, of_all};
pub use hosts_csv::HostRow;
pub use lab::{
    CPU_PARTS, FailedRollbackResult, InterferenceResult, KernelPathResult, LabResult, LinkResult,
    ModelledSyncsResult, PairOfPlaces, PlacementResult, WarningResult,
};
pub use leadership::LeadershipResult;
pub use links_csv::LinkRow;
pub use load::{EndedEarly, LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult};
pub use prediction::{PredictionResult, Relation};
pub use run::{
    CheckResult, ExpectationResult, ReproducedFigure, ReproducedReport, ReproducedStep, RunResult,
};
pub use run_directory::{LONGEST_FILE_BYTES, ReadError, RunDirectory, read};
pub use timeline_csv::LATEST_SECOND;
pub use volume::{
    CatchUpResult, ComponentResult, LagResult, MeanwhileResult, OpeningResult, RequestsResult, ResyncResult,
    SyncsResult, VolumeResult,
};
