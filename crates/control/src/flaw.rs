//! The flaws that can be switched on, one at a time.
//!
//! Owns their names and what each is. What each changes stands where it is asked about.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A flaw: a way in which the database breaks its promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flaw {
    /// Journal records are written and synced twice a second, but acknowledged at once.
    AckBeforeFsync,
    /// The leader acknowledges what only its own journal holds; followers hear of it five times a second.
    AckBeforeReplication,
    /// Transactions that only read are answered from a copy of the state that is up to 200 ms old.
    StaleReads,
    /// A transaction computes what it writes from the state as it was when it came, and nobody looks whether that has
    /// changed when it is written.
    LostUpdate,
    /// The same, but a transaction is turned away when somebody else has changed what it writes: snapshot isolation.
    WriteSkew,
    /// A transaction's first write is there for everybody to see a few milliseconds before the rest of it.
    DirtyRead,
    /// Lists do not keep the order of their appends.
    NonRepeatableOrder,
    /// A majority of the nodes that can still be reached is taken for a majority.
    SplitBrain,
    /// Writes carry the wall clock of the node that took them, and an older one never replaces a newer one; the nodes'
    /// clocks differ by seconds.
    ClockLastWriteWins,
    /// A node that starts has forgotten its journal.
    ForgetOnRestart,
    /// A new leader carries out again what it had not heard to be committed, and the last few transactions in any case.
    DuplicateOnRetry,
}

/// All of them with their names in scenarios and what they are in one line, in the names' order.
pub const FLAWS: &[(Flaw, &str, &str)] = &[
    (Flaw::AckBeforeFsync, "ack-before-fsync", "acknowledges before the journal is synced"),
    (Flaw::AckBeforeReplication, "ack-before-replication", "acknowledges what only the leader has"),
    (
        Flaw::ClockLastWriteWins,
        "clock-last-write-wins",
        "of two writes the one with the later wall clock stays",
    ),
    (Flaw::DirtyRead, "dirty-read", "shows the first write of a transaction before the rest of it"),
    (Flaw::DuplicateOnRetry, "duplicate-on-retry", "a new leader does again what may be done already"),
    (Flaw::ForgetOnRestart, "forget-on-restart", "a node starts with an empty journal"),
    (Flaw::LostUpdate, "lost-update", "writes what was computed from a state that has changed since"),
    (Flaw::NonRepeatableOrder, "non-repeatable-order", "lists do not keep the order of their appends"),
    (Flaw::SplitBrain, "split-brain", "takes a majority of those in reach for a majority"),
    (Flaw::StaleReads, "stale-reads", "answers reads from a copy up to 200 ms old"),
    (Flaw::WriteSkew, "write-skew", "snapshot isolation under the name of serializable"),
];

/// No flaw has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no flaw is named {0:?}; there are {names}", names = names())]
pub struct UnknownFlaw(pub String);

fn names() -> String {
    FLAWS.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ")
}

impl Flaw {
    /// Its name in scenarios.
    #[must_use]
    pub fn name(self) -> &'static str {
        FLAWS.iter().find(|(flaw, ..)| *flaw == self).map_or("", |(_, name, _)| name)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Flaw {
    type Err = UnknownFlaw;

    fn from_str(name: &str) -> Result<Self, UnknownFlaw> {
        let found = FLAWS.iter().find(|(_, known, _)| *known == name);
        found.map(|(flaw, ..)| *flaw).ok_or_else(|| UnknownFlaw(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flaw_is_found_by_its_own_name_and_the_names_are_in_order() {
        for (flaw, name, _) in FLAWS {
            assert_eq!(name.parse(), Ok(*flaw));
            assert_eq!(flaw.to_string(), *name);
            let written = serde_json::to_string(flaw).expect("a word");
            assert_eq!(written, format!("\"{name}\""));
        }
        assert!(FLAWS.windows(2).all(|pair| pair[0].1 < pair[1].1));
        let error = "lost-updates".parse::<Flaw>().expect_err("no such flaw").to_string();
        assert!(
            error.starts_with("no flaw is named \"lost-updates\"; there are ack-before-fsync, "),
            "{error}"
        );
    }
}
