//! The userspace network that joins hosts, nodes and clients.
//!
//! Owns where a packet goes and when it arrives. Each place hands over the descriptor of a TUN interface; one
//! thread carries packets between them. Knows nothing of namespaces, scenarios or databases.
//!
//! Everything but [`carrier`], [`fabric`] and [`recorder`] is pure: time and randomness are arguments. Only
//! [`carrier`] and [`recorder`] do I/O, and nothing pure imports them. [`network`] puts the pure parts together.
//! [`bypass`] decides which packets need not pass here at all; who tells a kernel so is handed in.

pub mod bypass;
pub mod capture;
mod carrier;
pub mod chance;
pub mod checksum;
mod commands;
pub mod counters;
pub mod fabric;
pub mod fragment;
pub mod link;
pub mod network;
mod options;
pub mod overlay;
pub mod packet;
pub mod policy;
mod prefix;
pub mod queue;
mod recorder;
pub mod reset;
pub mod router;
pub mod segment;

pub use bypass::{Bypass, Ways};
pub use chance::{Distribution, Jitter, Probability};
pub use counters::{Counters, PairCounters};
pub use fabric::{CaptureGuard, CountGuard, Fabric, FabricError, RuleGuard};
pub use link::LinkCounters;
pub use options::Options;
pub use policy::{Block, Path, Policy, QueueLimit, Rule, SharedLink, Span};
pub use prefix::Prefix;
pub use recorder::Tap;
pub use router::{Pair, PortId};

#[cfg(test)]
mod bypass_model;
#[cfg(test)]
mod network_fates;
#[cfg(test)]
mod network_model;
