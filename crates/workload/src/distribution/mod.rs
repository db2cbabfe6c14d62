//! How keys are chosen: the distributions of the standard workloads, as pure functions of their source of chance.
//!
//! Owns the mathematics. Which workload uses which, and what a drawn number means, is the workload's.

pub mod hash;
pub mod hotspot;
pub mod skewed;
pub mod zipfian;

#[cfg(test)]
pub(crate) mod chi_square;

pub use hotspot::Hotspot;
pub use skewed::RejectionZipf;
pub use zipfian::{ScrambledZipfian, Zipfian};
