//! What the replicas of a cluster say to each other.
//!
//! Owns the messages' form. Any of them may be lost, delayed, repeated or overtaken by another.

use serde::{Deserialize, Serialize};

use crate::log::Entry;

/// A message from one replica to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum Message {
    /// Vote for me.
    AskVote {
        /// The term to lead.
        term: u64,
        /// The number of my last entry.
        last_index: u64,
        /// The term of my last entry.
        last_term: u64,
        /// Nothing is promised yet: would you? Keeps a node that was cut off from unseating a leader that is well.
        rehearsal: bool,
    },
    /// The answer to it.
    Vote {
        /// The term asked for when granted; otherwise the voter's own.
        term: u64,
        /// Yes or no.
        granted: bool,
        rehearsal: bool,
    },
    /// I lead; put these entries behind that one. Without entries: I lead.
    Append {
        /// The leader's term.
        term: u64,
        /// The number of the entry before the first of these.
        previous_index: u64,
        /// The term of that entry.
        previous_term: u64,
        entries: Vec<Entry>,
        /// The last entry that is committed.
        commit: u64,
    },
    /// The answer to it.
    Appended {
        /// The follower's term.
        term: u64,
        /// Whether my log is now yours up to `index`.
        agreed: bool,
        /// Up to where it is; when we do not agree, where to try next.
        index: u64,
    },
}
