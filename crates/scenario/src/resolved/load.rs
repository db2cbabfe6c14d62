//! A load, as the rest of the program sees it.
//!
//! Owns these types, not how they are read from YAML.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::Place;
use super::pace::Pace;

/// A workload at a number of clients, from a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Unique name; the workload's own where the file gives none.
    pub name: String,
    /// The workload's name.
    pub workload: String,
    /// Closed loop: clients. Open loop: the most connections at once.
    pub clients: u32,
    /// How much they ask.
    pub pace: Pace,
    /// Scale factor (tpcb: 1 = 100,000 accounts).
    pub scale: u32,
    /// Where the clients stand; a place of any level.
    pub from: Place,
    /// Names of the agents that its clients are spread over; none where they are in the process that conducts the run.
    pub agents: Vec<String>,
    /// Where reads go.
    pub reads: Reads,
    /// By how many of the nodes that hold a row reads and writes must be answered.
    pub consistency: Consistency,
    /// How long a client waits for an answer.
    pub timeout: Duration,
    /// Options of the workload as text, by dotted name (`read`, `scripts.0.text`), defaults included.
    pub options: BTreeMap<String, String>,
}

/// By how many of the nodes that hold a row reads and writes must be answered, where the file says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Consistency {
    pub reads: Option<ConsistencyLevel>,
    pub writes: Option<ConsistencyLevel>,
    /// Whose clock says which of two plain writes is the later one.
    pub timestamps: Timestamps,
}

/// Whose clock gives a plain write its time, by which the last one wins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Timestamps {
    /// The client's.
    #[default]
    Client,
    /// That of the node that is asked.
    Coordinator,
}

/// How many that are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ConsistencyLevel {
    One,
    /// One in the region of the node that is asked.
    LocalOne,
    /// A majority.
    Quorum,
    /// A majority of those in the region of the node that is asked.
    LocalQuorum,
    All,
    /// Reads only: a majority, which finishes lightweight transactions first.
    Serial,
}

impl ConsistencyLevel {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::One => "one",
            ConsistencyLevel::LocalOne => "local-one",
            ConsistencyLevel::Quorum => "quorum",
            ConsistencyLevel::LocalQuorum => "local-quorum",
            ConsistencyLevel::All => "all",
            ConsistencyLevel::Serial => "serial",
        }
    }
}

/// Where the reads of a load go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Reads {
    /// Where its writes go.
    #[default]
    Leader,
    /// To replicas only.
    Replicas,
    /// To any node, the leader among them.
    Any,
}

impl Reads {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reads::Leader => "leader",
            Reads::Replicas => "replicas",
            Reads::Any => "any",
        }
    }
}
