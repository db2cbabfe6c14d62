//! The composition root: a scenario becomes a lab, a database, load and faults, checks and a run directory.
//!
//! Two processes. The outer one ([`launch`]) prepares, starts the lab's supervisor and relays its news. The
//! supervisor ([`supervise`]) is PID 1 of the lab and does the run. Prints nothing but the news between them.

mod asked;
mod chronicle;
mod collector;
mod conductor;
mod datacentre;
mod directory;
mod evidence;
mod expectations;
mod faulting;
pub mod launch;
mod machine;
pub mod orders;
mod outcome;
mod paper;
mod platform;
mod prediction;
mod preparation;
mod round_trips;
pub mod supervise;
mod usage;
mod vm;

pub use directory::{DirectoryError, RunDirectory};
pub use launch::{Ended, LaunchError, Message, Options, Show, launch};
pub use orders::{LoadPulse, News, Pulse};
pub use supervise::supervise;
