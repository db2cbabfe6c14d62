//! The composition root: a scenario becomes a lab, a database, load and faults, checks and a run directory.
//!
//! Two processes. The outer one ([`launch`]) prepares, starts the lab's supervisor and relays its news. The
//! supervisor ([`supervise()`]) is PID 1 of the lab and does the run. Where the scenario names a cluster that exists
//! ([`external`], with [`pods`]), the second process is outside of any lab. Prints nothing but the news between them.

mod beside_scenario;
mod chronicle;
mod client_numbers;
mod client_programs;
mod collector;
mod conductor;
mod directory;
mod engine_files;
pub mod external;
mod final_read;
mod in_the_lab;
mod kept_lab;
mod lab_end;
mod lab_shown;
pub mod launch;
mod load_end;
mod load_plans;
mod machine;
mod muster;
pub mod orders;
mod outcome;
mod planted_stall;
pub mod pods;
mod preparation;
mod prepared;
pub mod room;
pub mod script_files;
pub mod series;
pub mod standalone;
pub mod supervise;
mod table_progress;
mod target;

pub use beside_scenario::BesideError;
pub use directory::{DirectoryError, RunDirectory};
pub use engine_files::{PlanError, plan};
pub use kept_lab::{KeptLab, NotKept, may_be_kept};
pub use launch::{Ended, LaunchError, Message, Options, Placement, Show, boot_to_keep, launch, launch_on};
pub use orders::{LoadPulse, News, Pulse};
pub use preparation::{PreparationError, check_workloads};
pub use series::{Series, SeriesError, Turn};
pub use standalone::{Standalone, StandaloneEnd, StandaloneError, StandaloneNews, run_alone};
pub use supervise::{supervise, supervise_outside};
