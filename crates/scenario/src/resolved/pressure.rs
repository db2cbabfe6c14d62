//! Faults by which a node gets less than it asks for, resolved.

use serde::Serialize;

use super::processes::NodeTarget;

/// A node has less of what it runs on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PressureFault {
    /// The node.
    pub node: NodeTarget,
    /// The share of its processors that is taken, 0 to 1.
    pub processor: f64,
}
