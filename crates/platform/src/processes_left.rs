//! Whether a node without power has processes left: evidence from the kernel, in words.

use std::io;

use history::Verdict;
use lab::probe::NodeNamespaces;

/// Whether a node's processes are gone, asked of the kernel. The namespaces were opened while it had power; where they could
/// not be, nobody knows.
#[must_use]
pub fn processes_left(node: &str, namespaces: &io::Result<NodeNamespaces>) -> (Verdict, String) {
    let namespaces = match namespaces {
        Ok(namespaces) => namespaces,
        Err(error) => {
            return (Verdict::Unknown, format!("the namespaces of {node} could not be opened: {error}"));
        }
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_that_could_not_be_opened_leave_doubt() {
        let refused = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let told = "the namespaces of n1 could not be opened: permission denied".to_owned();
        assert_eq!(processes_left("n1", &refused), (Verdict::Unknown, told));
    }
}
