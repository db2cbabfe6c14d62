//! What is known of a pod only when a fault strikes it: the parameters of command files that ask for it, and what stands in its place in
//! commands that are shown and not run.

use std::collections::BTreeMap;

use scenario::{Cluster, Member};

/// The parameter of command files that is the pod's node.
pub const NODE: &str = "node";
/// The parameter of a command file that gets the pod's name.
pub const POD: &str = "pod";
/// The parameter of command files that is the context.
pub const CONTEXT: &str = "context";

/// What stands in commands that are shown and not run for what is known of a pod only when a fault strikes it; nothing of a
/// machine.
#[must_use]
pub fn values_on_paper(cluster: &Cluster, member: &Member) -> BTreeMap<String, String> {
    let node = cluster.kubernetes.as_ref().map(|_| (NODE.to_owned(), node_on_paper(&member.name)));
    node.into_iter().collect()
}

/// What stands for the node of a member's pod in commands that are shown and not run.
#[must_use]
pub fn node_on_paper(member: &str) -> String {
    format!("node-of-{member}")
}
