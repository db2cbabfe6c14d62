//! The pretend datacentre and the virtualisation platform on it: hosts, VMs, client places, and what the platform does when
//! a host or a volume is lost and when it returns; and whether this machine has room for it all.
//!
//! Owns who stands where and who has power. The policy is a pure core: `decisions` says what is done, the crate `placement`
//! where. Breaks nothing itself;
//! how a database starts, is promoted and rejoins is its engine's knowledge.

mod balancing;
mod databases;
mod datacentre;
mod decisions;
mod fabric_rules;
mod fencing;
mod folders;
mod isolation;
mod kernel_path;
mod leader_watch;
mod migrating;
mod migration;
mod nearness;
mod placing;
mod platform;
mod processes;
mod processes_left;
mod promotion;
mod reasons;
mod rollbacks;
pub mod room;
mod starting;
mod time_service;
mod vm;
mod volume_watch;

pub use datacentre::{
    BuildSettings, ClientPlace, Containers, Datacentre, DatacentreError, Host, PowerOff, VolumeContent,
};
pub use fabric_rules::for_fabric;
pub use folders::{FolderError, Folders};
pub use kernel_path::KernelPathShown;
pub use leader_watch::LeaderWatch;
pub use migrating::{MigrationOrder, MigrationWatch, NotMigrated};
pub use platform::Platform;
pub use processes::STOP_PATIENCE;
pub use processes_left::processes_left;
pub use vm::{Arrival, Holder, Standstill, Vm, Whereabouts};
pub use volume_watch::VolumeWatch;
