//! What can be said without running: a scenario analysed on paper, predictions beside what a run measured, and a published
//! report's figures beside this run's.
//!
//! Owns the way from a scenario to `model`'s terms and the network that a scenario asks for. Starts nothing; only
//! `this_host`, `host_facts` and `capacity` read files.

mod analysis;
pub mod at_scale;
pub mod capacity;
mod commits;
mod deployment;
mod host_facts;
mod needs;
pub mod network;
mod obstacles;
mod phase_network;
mod prediction;
mod processes;
mod reproduced;
mod requested;
mod schedule;
mod storage;
mod stranding;
mod this_host;
mod too_short;

pub use analysis::{Analysis, analyse, practice_of_this_host};
pub use commits::{CommitCost, NotComputed, PhaseCost};
pub use deployment::nodes_in;
pub use host_facts::facts_of_this_host;
pub use needs::{Fits, Needs, fits, needs};
pub use obstacles::{obstacles_in_words, rule_in_words};
pub use prediction::{Evidence, add_predictions};
pub use reproduced::reproduced;
pub use requested::{Narrowest, RequestedNetwork};
pub use schedule::{JudgedFault, Judgement};
pub use stranding::PlacementSurvey;
pub use this_host::meminfo_kib;
pub use too_short::TooShort;
