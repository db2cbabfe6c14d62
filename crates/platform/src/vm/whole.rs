//! What a VM has beside its volume where it runs containers: a disk that keeps what is on it, control groups, private settings of the
//! kernel, and a range of addresses behind its own.
//!
//! Owns what of that is new with each boot. Which settings there are, and who gets which range, its cluster says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fabric::{Fabric, FabricError, PortId, Prefix};
use lab::NodeGroups;
use lab::cgroup::CgroupError;
use lab::protocol::WholeMachine;

/// The file by which a machine's boots are told apart. Each of a VM's boots has another.
const BOOT_ID: &str = "kernel/random/boot_id";

/// What makes a VM a whole machine.
#[derive(Debug, Clone)]
pub struct Whole {
    /// Its disk, a folder outside. What is in it outlives a boot.
    pub disk: PathBuf,
    /// The groups of all such VMs.
    pub groups: Arc<NodeGroups>,
    /// Settings of the kernel that it has private files for, relative to `/proc/sys`, with what stands in each.
    pub own_settings: BTreeMap<String, String>,
    /// The addresses of its pods.
    pub pods: Prefix,
}

impl Whole {
    /// What its next boot is made of; `boot` is that boot's number.
    pub(super) fn of_boot(
        &self,
        node: &str,
        boot: u64,
        address: IpAddr,
    ) -> Result<WholeMachine, CgroupError> {
        let mut own_settings = self.own_settings.clone();
        own_settings.insert(BOOT_ID.to_owned(), boot_id(address, boot));
        let hierarchies = self.groups.make_for(node)?;
        Ok(WholeMachine { disk: self.disk.clone(), hierarchies, own_settings })
    }

    /// Tells the fabric that its pods are behind its port.
    pub(super) fn route(&self, fabric: &Fabric, port: PortId) -> Result<(), FabricError> {
        fabric.route(port, vec![self.pods])
    }
}

/// In the form that the kernel has it; another one for each node and boot.
fn boot_id(address: IpAddr, boot: u64) -> String {
    let bytes = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets()[12..].to_vec(),
    };
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    format!("{text}-0000-4000-8000-{boot:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_boot_of_each_node_has_an_id_of_its_own() {
        let of = |last, boot| boot_id(IpAddr::from([10, 2, 0, last]), boot);
        assert_eq!(of(1, 1), "0a020001-0000-4000-8000-000000000001");
        assert_ne!(of(1, 1), of(1, 2));
        assert_ne!(of(1, 1), of(2, 1));
    }
}
