//! Why nobody can tell in which seconds throughput was low.
//!
//! Owns the reasons as facts. Their words are made where they are shown.

use serde::{Deserialize, Serialize};

/// Why throughput after a fault cannot be compared with the baseline second by second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Incomparable {
    /// No phase is the baseline, or none of its seconds is whole.
    NoBaseline,
    /// Nothing succeeded in the baseline.
    IdleBaseline,
    /// The baseline has too few whole seconds.
    ShortBaseline {
        /// How many it has.
        seconds: u64,
        /// How many it takes.
        needed: u64,
    },
    /// A second of the baseline is itself below 50 % of its mean.
    UnevenBaseline {
        /// Successes in its slowest second.
        slowest: u64,
        /// Their mean a second.
        per_s: f64,
    },
    /// Something else was asked of the load than in the baseline: another number of clients, or too little for a second to tell.
    OtherDemand {
        /// The first such second.
        second: u64,
    },
    /// No whole second passed before the next fault was asked for or the loads were told to stop.
    NoWholeSecond,
    /// The load's record ends early.
    NotRecorded,
}
