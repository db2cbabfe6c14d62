//! What the nodes of the database are called, in scenarios, files and messages.

/// The name of the node with this number, from 0: `n1` for the first.
#[must_use]
pub fn node_name(number: usize) -> String {
    format!("n{}", number + 1)
}
