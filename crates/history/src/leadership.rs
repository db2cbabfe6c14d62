//! Who said that they lead: what the monitor of the leaders saw, in a run whose nodes elect their leader themselves.
//!
//! Owns the words. When to look is the platform's business.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Several nodes that said that they led at the same time, two of them in two looks in a row. One that was silent in between has not
/// ceased to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeadersAtOnce {
    /// Their names, in order: two or more.
    pub nodes: Vec<String>,
    /// From the first of these looks to the last, seconds.
    pub for_s: f64,
    /// Whether they still did when the run ended.
    pub to_the_end: bool,
}

impl LeadersAtOnce {
    /// What to do about it.
    pub const REMEDY: &str = "see the checks of the loads: if both acknowledged writes, have the old leader fenced before another is \
                              promoted";
}

impl fmt::Display for LeadersAtOnce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let still = if self.to_the_end { ", and still did when the run ended" } else { "" };
        let nodes = self.nodes.join(" and ");
        write!(formatter, "{nodes} said that they led at the same time, for {:.1} s{still}", self.for_s)
    }
}
