//! One operation of one client: what it asked, when, and how it came out.
//!
//! Times are seconds on the run's clock, which starts at 0 with the first load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the client can know of an operation once it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Acknowledged: it happened.
    Ok,
    /// Refused: it did not happen.
    Fail,
    /// No definite answer: it may or may not have happened, now or later.
    Unknown,
}

/// The class an error is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// No connection could be made, or the one there was broke.
    Connection,
    /// No answer in the time the client was willing to wait.
    Timeout,
    /// A serialization failure or deadlock: the standard answer is to try again.
    Serialization,
    /// The server reached is not one that takes writes.
    ReadOnly,
    /// Anything else the server answered.
    Other,
}

impl ErrorClass {
    /// The class's name as it stands in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Connection => "connection",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Serialization => "serialization",
            ErrorClass::ReadOnly => "read-only",
            ErrorClass::Other => "other",
        }
    }
}

/// What an operation asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "f", rename_all = "kebab-case")]
pub enum Action {
    /// Ledger: insert a row whose number nobody else ever uses.
    LedgerInsert {
        /// The row's number.
        value: u64,
    },
    /// Ledger: the final read of every row, after all faults are healed. May be split over several operations,
    /// whose values are taken together; `complete` is true on the last.
    LedgerRead {
        /// The numbers found. A number found twice stands here twice.
        values: Vec<u64>,
        /// Whether all rows have now been read.
        complete: bool,
    },
    /// TPC-B: one transaction that adds `delta` to one account, teller and branch and writes a history row.
    TpcbTransaction {
        /// The amount moved.
        delta: i64,
    },
    /// TPC-B: the final read of the four sums and of the number of history rows.
    TpcbRead {
        /// Sum of all account balances.
        accounts: i64,
        /// Sum of all teller balances.
        tellers: i64,
        /// Sum of all branch balances.
        branches: i64,
        /// Sum of all history deltas.
        history: i64,
        /// Number of history rows.
        history_rows: u64,
    },
}

/// One operation, from the moment it was sent to the moment the client knew all it would ever know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The load it belongs to.
    pub load: String,
    /// The client (process, in Jepsen's words) that asked it. One client has one operation at a time.
    pub client: u64,
    /// What it asked.
    #[serde(flatten)]
    pub action: Action,
    /// When it was sent, seconds.
    #[serde(serialize_with = "crate::seconds::serialize")]
    pub invoked_s: f64,
    /// When it ended, seconds.
    #[serde(serialize_with = "crate::seconds::serialize")]
    pub completed_s: f64,
    /// How it came out.
    pub outcome: Outcome,
    /// The class of its error, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorClass>,
    /// The node that answered, by name, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Errors counted by class.
pub type ErrorCounts = BTreeMap<ErrorClass, u64>;
