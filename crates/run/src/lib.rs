//! The composition root: a scenario becomes a lab, a database, load and faults, checks and a run directory.
//!
//! Two processes. The outer one ([`launch`]) prepares, starts the lab's supervisor and relays its news. The
//! supervisor ([`supervise()`]) is PID 1 of the lab and does the run. Where the scenario names a cluster that exists
//! (`external.rs`), the second process is outside of any lab. Prints nothing but the news between them.

mod chronicle;
mod client_programs;
mod collector;
mod conductor;
mod directory;
mod external;
mod in_the_lab;
mod kept_lab;
mod lab_end;
mod lab_shown;
pub mod launch;
mod leaders_at_the_end;
mod load_plans;
pub mod orders;
mod outcome;
mod preparation;
mod prepared;
pub mod series;
pub mod standalone;
pub mod supervise;
mod table_progress;
mod target;

pub use directory::{DirectoryError, RunDirectory};
pub use kept_lab::{KeptLab, NotKept, may_be_kept};
pub use launch::{Ended, LaunchError, Message, Options, Placement, Show, boot_to_keep, launch, launch_on};
pub use orders::{LoadPulse, News, Pulse};
pub use preparation::timing as cluster_timing;
pub use series::{Series, SeriesError, Turn};
pub use standalone::{Standalone, StandaloneEnd, StandaloneError, StandaloneNews, run_alone};
pub use supervise::{supervise, supervise_outside};
