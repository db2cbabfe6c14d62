//! Faults as they happen: struck, shown to have taken effect, healed, shown to have healed; and the receipt of each.
//!
//! Owns imposing, healing and every look that is evidence: datagrams and streams over the network, probes of disks, echoes
//! and process lists for power. What the platform does about a fault is `platform`'s; when one strikes, `faults`'.

mod clock_looks;
mod datagrams;
mod disk_looks;
mod faulting;
mod flapping;
mod guest_clock;
mod looks;
mod memory_looks;
mod migration_looks;
mod network_watch;
mod observations;
#[cfg(test)]
mod pairs;
mod power_probe;
mod pressure_looks;
mod process_looks;
mod samples;
mod stations;

pub use datagrams::site::look as look_at_links;
pub use faulting::Faulting;
pub use process_looks::{InstalledFiles, Upgrade};
pub use stations::{matrix, stations};
