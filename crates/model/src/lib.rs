//! On paper: what the layout alone says, before anything is started. Pure: no clock, no I/O, chance only from a seed.
//!
//! Owns the arithmetic of quorums, failures and distances. Knows nothing of scenarios or engines: both are told to it as
//! its own small types.

pub mod capacity;
pub mod commit;
pub mod cost;
mod crowded;
pub mod deployment;
pub mod practice;
pub mod scale;
pub mod storage;
pub mod survival;

pub use commit::{Acknowledgements, Distances, commit_wait};
pub use crowded::{Crowded, crowded};
pub use deployment::Deployment;
pub use storage::Storage;
