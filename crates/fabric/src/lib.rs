//! The userspace network that joins hosts, nodes and clients.
//!
//! Owns where a packet goes and when it arrives. Each place hands over the descriptor of a TUN interface; one
//! thread carries packets between them. Knows nothing of namespaces, scenarios or databases.
//!
//! [`router`], [`policy`], [`packet`] and [`queue`] are pure: time is an argument. Only [`carrier`] does I/O, and
//! nothing here imports it but this file.

pub mod carrier;
pub mod packet;
pub mod policy;
pub mod queue;
pub mod router;

pub use carrier::{Fabric, FabricError};
pub use policy::{Path, Policy, Rule};
pub use router::{Counters, PortId};
