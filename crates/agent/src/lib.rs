//! The load generator under another's command: the same clients and the same recording, in a process on another machine.
//!
//! Two sides. An agent ([`serve`]) reads orders and tells news, a line each. Whoever conducts the run has a [`Group`] of agents
//! for each load that they share, and a thread ([`relay`]) that stands for the load and makes their records one. Owns the words
//! between the two, the comparison of their clocks and the merging. How an agent's machine is reached, and which load runs
//! where, is the caller's.

mod batch_words;
mod group;
mod merge;
mod moments;
mod offset;
mod plan_words;
mod relay;
mod serve;
mod teller;
mod words;

pub use group::{Group, GroupError, Link};
pub use merge::Merger;
pub use offset::{Comparison, Offset, RoundTrip, best};
pub use plan_words::{NotForAgents, PlanWords};
pub use relay::{AgentLoad, IfLost, relay};
pub use serve::{ServeEnd, serve};
