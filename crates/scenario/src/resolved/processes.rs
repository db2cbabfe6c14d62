//! Faults of processes, resolved.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::node_name;

/// A node of the database that a fault is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeTarget {
    /// This one, by its number from 0.
    Named(usize),
    /// The one that leads when the fault strikes.
    Leader,
    /// One of the others; which one, the seed decides.
    AFollower,
    /// Any; which one, the seed decides.
    Random,
}

impl fmt::Display for NodeTarget {
    /// As it is written in a scenario.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeTarget::Named(number) => f.write_str(&node_name(*number)),
            NodeTarget::Leader => f.write_str("leader"),
            NodeTarget::AFollower => f.write_str("a-follower"),
            NodeTarget::Random => f.write_str("random"),
        }
    }
}

/// What happens to the processes of the database on a node. Its host, its volume and its memory stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessFault {
    /// The node.
    pub node: NodeTarget,
    /// What is done to them.
    pub how: ProcessDeed,
    /// The one program that it is done to; all of the node's where absent.
    pub only: Option<OneProgram>,
}

/// What is done to processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessDeed {
    /// SIGKILL.
    Kill {
        /// How long afterwards they are started again; never where absent.
        restart_after: Option<Duration>,
    },
    /// SIGSTOP, until the fault is healed.
    Stop,
    /// Stopped in order as the engine does it, and started again at once.
    Restart,
}

impl ProcessDeed {
    /// The word in scenarios.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ProcessDeed::Kill { .. } => "kill",
            ProcessDeed::Stop => "stop",
            ProcessDeed::Restart => "restart",
        }
    }
}

/// One program of several that a node runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OneProgram {
    /// Its name in scenarios.
    pub name: String,
    /// The file name of its program.
    pub program: String,
}
