//! A node of the cluster: whether it is there, and what keeps pods from it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, ObjectError, text};
use super::pod::is_ready;

/// Where a node says which zone it is in; the second is an older name.
const ZONES: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
/// The taint of a node that is not heard of.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// Which of its boots this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Its condition `Ready`; none where the cluster does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_ready: Option<bool>,
    /// Its taints, as `key=value:effect` or `key:effect`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<String>,
    /// Whether it takes no new pods.
    pub is_cordoned: bool,
    /// The zone that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl Node {
    /// Reads one.
    ///
    /// # Errors
    /// When a field is missing that every node has.
    pub fn read(object: &Value) -> Result<Node, ObjectError> {
        let fields = Fields::of("Node", object)?;
        let labels = fields.named_texts("/metadata/labels");
        Ok(Node {
            name: fields.needed("/metadata/name")?,
            boot_id: fields.owned("/status/nodeInfo/bootID"),
            is_ready: is_ready(fields.list("/status/conditions")),
            taints: fields.list("/spec/taints").iter().filter_map(taint).collect(),
            is_cordoned: fields.is_set("/spec/unschedulable"),
            zone: ZONES.iter().find_map(|label| labels.get(*label).cloned()),
        })
    }

    /// Whether the cluster takes it for lost: it is not ready, or not heard of.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_ready != Some(true) || self.taints.iter().any(|taint| taint.starts_with(UNREACHABLE))
    }
}

fn taint(part: &Value) -> Option<String> {
    let (key, effect) = (text(part, "/key")?, text(part, "/effect").unwrap_or_default());
    Some(match text(part, "/value") {
        Some(value) => format!("{key}={value}:{effect}"),
        None => format!("{key}:{effect}"),
    })
}
