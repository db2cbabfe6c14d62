//! Where VMs run: hosts with capacity, rules of what keeps apart or together, and the decisions that follow, each with its
//! reason.
//!
//! A pure core: no clock, no chance, no I/O. Owns which host a VM is started on or moved to, and why. When that is asked, and
//! who carries it out, is the platform's business; sentences are made there.

mod admission;
mod audit;
mod balance;
mod breaches;
mod choice;
mod cluster;
mod reasons;
mod rules;

pub use admission::{Stranded, stranded_by};
pub use audit::{Violation, violations};
pub use balance::{Drs, rebalance};
pub use choice::{Data, Holds, Wanted, hosts_in_order, start};
pub use cluster::{Capacity, Cluster, Host, Vm};
pub use reasons::{Better, Decision, Left, MoveReason, Obstacle, StartReason};
pub use rules::{Bond, Group, Rule, Strength};
