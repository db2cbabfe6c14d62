//! What must hold for the verdict pass, as the rest of the program sees it.
//!
//! Owns these types, not how they are read from YAML.

use serde::Serialize;

use crate::quantity::Quantity;

/// A gate: a quantity, a comparison and a bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expectation {
    /// As written, scope and all: `lost_writes`, `tpcb.fault.latency_p99`.
    pub name: String,
    /// What is measured.
    pub quantity: Quantity,
    /// Of which load; of each where there is none.
    pub load: Option<String>,
    /// In which phases, or after which faults.
    pub within: Within,
    /// As written, for messages: `< 30s`.
    pub wanted: String,
    pub comparison: Comparison,
    /// The bound, in the quantity's base unit: seconds, writes, transactions per second, microseconds for
    /// latencies, or a ratio (1 = 100 %).
    pub bound: f64,
}

/// The phases or faults an expectation is about. It must hold in each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// Every phase but warm-up, or every fault: whatever the quantity is measured of.
    Each,
    /// All phases but warm-up taken together.
    WholeRun,
    /// The phases of this name.
    Phase(String),
    /// These faults, by their numbers in the order of the schedule, from 0.
    Faults(Vec<usize>),
}

/// How a measured value is held against its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    Equal,
    /// Below.
    Less,
    AtMost,
    /// Above.
    Greater,
    AtLeast,
}
