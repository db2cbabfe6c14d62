//! What clients ask: transactions of micro-operations on keys, carried out whole or not at all.
//!
//! Owns the words and their sizes. What they do to the state is `state`'s.

use serde::{Deserialize, Serialize};

/// The most micro-operations a transaction may have.
pub const OPERATIONS_MAX: usize = 1_000;

/// What stands under a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A list of whole numbers, oldest first.
    List(Vec<i64>),
    /// Unicode, of any length.
    Text(String),
    /// Something that is none of the others, as far as it can be shown: no client of ours put it there. Only ever found.
    Foreign(String),
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Operation {
    /// What stands under the key.
    Read { key: String },
    /// Put a value under the key, whatever stood there.
    Write {
        key: String,
        /// What stands there from then on.
        value: Value,
    },
    /// Put a value under the key if what stands there is as expected; else the whole transaction is refused.
    CompareAndSet {
        key: String,
        /// What must stand there; nothing when nothing may.
        expected: Option<Value>,
        /// What stands there from then on.
        new: Value,
    },
    /// Add an element at the end of the list under the key; a missing list counts as empty.
    Append { key: String, element: i64 },
    /// Add to the number under the key; a missing one counts as 0. Refuses the whole transaction when the sum would be
    /// below the floor, or beyond what 64 bits hold.
    Add {
        key: String,
        /// What is added; may be negative.
        amount: i64,
        /// The least the sum may be.
        floor: Option<i64>,
    },
    /// Put a value under a key where nothing stands; else the whole transaction is refused.
    Insert {
        key: String,
        /// What stands there from then on.
        value: Value,
    },
    /// Keys with this prefix and what stands under them, in the keys' order.
    Scan {
        /// What the keys begin with.
        prefix: String,
        /// Only keys beyond this one.
        after: Option<String>,
        /// At most so many.
        limit: u32,
    },
}

impl Operation {
    /// Whether it can change anything.
    #[must_use]
    pub fn writes(&self) -> bool {
        !matches!(self, Operation::Read { .. } | Operation::Scan { .. })
    }
}

/// What a step found; one for each, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// Of a read: what stood there.
    Value(Option<Value>),
    /// Of a scan: keys and what stood there.
    Entries(Vec<(String, Value)>),
    /// Of anything that writes: it is done.
    Done,
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// It happened, whole.
    Committed {
        /// What its steps found, in order.
        found: Vec<Found>,
    },
    /// A condition of its own was not met: it did not happen and never will.
    Refused {
        /// Which step, from 0.
        step: u32,
        /// Why, a lowercase fragment.
        reason: String,
    },
    /// Another transaction was in its way: it did not happen and never will. Trying again is the answer.
    Conflict {
        /// The key they met at.
        key: String,
    },
    /// This node does not lead: it did not happen and never will.
    NotLeader {
        /// The node that leads, as far as this one knows.
        leader: Option<String>,
    },
    /// This node stopped leading before it was decided: it may happen or not.
    Unknown,
}
