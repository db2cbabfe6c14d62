//! The order in which a cluster is started, on nodes that only note what they are asked.

mod noting_node;
mod starting;
