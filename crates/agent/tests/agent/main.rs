//! Agents in this process: what they answer to whoever commands them, and how the parts of one load become one.

mod agents;
mod merging;
