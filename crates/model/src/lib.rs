//! On paper: what the layout alone says, before anything is started. Pure: no clock, no chance, no I/O.
//!
//! Owns the arithmetic of quorums and distances. Knows nothing of scenarios or engines: both are told to it as plain
//! numbers.

pub mod commit;

pub use commit::{Acknowledgements, Distances, commit_wait};
