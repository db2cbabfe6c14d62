//! What an engine answers when asked who leads, and what it did when the leader changed.
//!
//! Owns the answers' forms only.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::EngineError;
use crate::node::{Node, at_once};

/// A cluster that has just been made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// The node that takes writes; `None` where all of them do.
    pub leader: Option<String>,
    /// The nodes that follow it, in the order given; all nodes where none leads.
    pub followers: Vec<String>,
    /// Wall seconds of each step, in order.
    pub steps: Vec<(String, f64)>,
}

/// Every node's role at one moment, as each node itself sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Roles {
    /// Nodes that say they take writes, by name.
    pub leaders: Vec<String>,
    /// Nodes that say they follow, by name.
    pub followers: Vec<String>,
    /// Nodes that take writes where every node does and none leads.
    pub equals: Vec<String>,
    /// Nodes that did not answer, and why.
    pub silent: BTreeMap<String, String>,
}

impl Roles {
    /// What each node answers to whether it leads. All are asked at once: a silent node must not make the others' answers
    /// stale, nor add its patience to that of the next.
    pub(crate) fn asked(
        nodes: &[Arc<dyn Node>],
        leads: impl Fn(&dyn Node) -> Result<bool, EngineError> + Sync,
    ) -> Roles {
        let mut roles = Roles::default();
        for (node, leads) in nodes.iter().zip(at_once(nodes, leads)) {
            let name = node.name().to_owned();
            match leads {
                Ok(true) => roles.leaders.push(name),
                Ok(false) => roles.followers.push(name),
                Err(error) => drop(roles.silent.insert(name, error.to_string())),
            }
        }
        roles.leaders.sort();
        roles.followers.sort();
        roles
    }

    /// The leader, when there is exactly one.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        match self.leaders.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Whether several nodes take writes at once.
    #[must_use]
    pub fn is_split_brain(&self) -> bool {
        self.leaders.len() > 1
    }
}

/// A change of leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Promotion {
    /// The new leader.
    pub leader: String,
    /// How far each candidate asked had got, in the database's own notation.
    pub positions: BTreeMap<String, String>,
    /// The nodes that were made to follow it.
    pub followers: Vec<String>,
    /// What a reader has to know: nodes that could not be asked, acknowledgements now waited for ...
    pub notes: Vec<String>,
}

/// How a node came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejoinMethod {
    /// Its data were simply brought up to date.
    Follow,
    /// What it alone had was undone first.
    Rewind,
    /// Its data were thrown away and copied anew.
    Copy,
}

/// A node's return as a standby.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rejoined {
    /// How.
    pub method: RejoinMethod,
    /// Why gentler ways were not taken, acknowledgements now waited for ...
    pub notes: Vec<String>,
}
