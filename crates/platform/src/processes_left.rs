//! Whether a node without power has processes left: evidence from the kernel, in words.

use history::Verdict;
use lab::probe::NodeNamespaces;

/// Whether a node's processes are gone, asked of the kernel.
#[must_use]
pub fn processes_left(node: &str, namespaces: &NodeNamespaces) -> (Verdict, String) {
    let count = namespaces.count();
    match namespaces.processes() {
        Ok(left) if left.is_empty() => {
            (Verdict::Pass, format!("no process of {node} is left in any of its {count} namespaces"))
        }
        Ok(left) => {
            let still = match left.len() {
                1 => format!("1 process of {node} still runs"),
                many => format!("{many} processes of {node} still run"),
            };
            (Verdict::Fail, format!("{still} in the node's namespaces"))
        }
        Err(error) => (Verdict::Unknown, format!("the processes of {node} could not be listed: {error}")),
    }
}
