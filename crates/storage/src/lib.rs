//! Volumes on hosts: what a node keeps its data on, what a power-off takes from it, and the marks that show it.
//!
//! Owns the hosts' disks by name, virtual disks, mirrored volumes with all that their components say to each other, and the
//! canary of each volume. What is durable when is `disk`'s; which host a node is started on is for `platform`.

mod canary;
mod host_disks;
mod host_place;
mod loss;
mod mirrored;
mod node_volume;
mod part;
mod result;
mod resync;
mod rollback;
mod seen;
mod syncs;
mod virtual_disk;
mod whereabouts;

pub use canary::{Canary, Excuse, Excused, Tell, VolumeKind, not_yet_on_copy};
pub use host_disks::HostDisks;
pub use host_place::HostPlace;
pub use mirrored::{MirroredDisk, Move, OpenError, Opening, Plan};
pub use node_volume::NodeVolume;
pub use part::VolumePart;
pub use result::{Run, results};
pub use rollback::PowerOffs;
pub use seen::Seen;
pub use virtual_disk::VirtualDisk;
pub use whereabouts::Whereabouts;
