//! What becomes of a node's volume when the node's power is cut, with that of its host or alone.

use std::io;

use disk::Mount;
use storage::NodeVolume;

use super::Vm;

/// What loses its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerCut {
    /// The node and the disk that it is served from.
    OfHost,
    /// The node alone: that disk's host goes on.
    OfNode,
}

impl Vm {
    /// The boot with this mount is over: what was not durable on its volume is taken back.
    pub(super) fn take_back(&self, mount: Option<&Mount>, cut: PowerCut) -> io::Result<()> {
        if cut == PowerCut::OfNode {
            self.volume.drive_keeps_its_power();
        }
        match (&self.volume, mount) {
            (NodeVolume::Virtual(disk), Some(mount)) => disk.lose(mount),
            (NodeVolume::Mirrored(disk), Some(mount)) => disk.lose(mount),
            _ => Ok(()),
        }
    }

    /// Ends a boot that failed.
    pub(super) fn give_up(&self, node: &lab::Node, mount: Option<&Mount>) {
        node.strike();
        if let Some(mount) = mount {
            mount.power_off();
        }
        node.power_off();
        // Why the boot failed is what is told.
        let _ = self.take_back(mount, PowerCut::OfNode);
    }
}
