//! The log of a replica: what is to be done, in the order it is to be done in.
//!
//! Owns the entries and the counting from 1. What is committed is the replica's to know.

use serde::{Deserialize, Serialize};

use crate::state::Command;

/// One entry: the term of the leader that made it, and what it asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub term: u64,
    /// What is to be done.
    pub command: Command,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Log {
    entries: Vec<Entry>,
}

impl Log {
    /// The number of the last entry; 0 when there is none.
    #[must_use]
    pub fn last_index(&self) -> u64 {
        self.entries.len() as u64
    }

    /// The term of the last entry; 0 when there is none.
    #[must_use]
    pub fn last_term(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.term)
    }

    /// The term of an entry; 0 for the place before the first, nothing beyond the last.
    #[must_use]
    pub fn term_at(&self, index: u64) -> Option<u64> {
        if index == 0 { Some(0) } else { self.get(index).map(|entry| entry.term) }
    }

    /// The entry of that number.
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&Entry> {
        self.entries.get(place(index)?)
    }

    /// At most `count` entries from that number on.
    #[must_use]
    pub fn from(&self, index: u64, count: usize) -> &[Entry] {
        let begin = place(index).unwrap_or(0).min(self.entries.len());
        let end = begin.saturating_add(count).min(self.entries.len());
        &self.entries[begin..end]
    }

    /// Adds an entry; answers with its number.
    pub fn push(&mut self, entry: Entry) -> u64 {
        self.entries.push(entry);
        self.last_index()
    }

    /// Puts an entry at a place that is in the log or right behind its end, and drops all that stood there and beyond.
    /// Answers whether there is such a place.
    pub fn put(&mut self, index: u64, entry: Entry) -> bool {
        let Some(place) = place(index).filter(|place| *place <= self.entries.len()) else { return false };
        self.entries.truncate(place);
        self.entries.push(entry);
        true
    }
}

fn place(index: u64) -> Option<usize> {
    usize::try_from(index.checked_sub(1)?).ok()
}
