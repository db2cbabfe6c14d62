//! A node's way onto the network when it boots: its limit, its interfaces, its port.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use fabric::{Fabric, PortId};
use lab::{Addresses, Family};

use super::{Vm, VmError};
use crate::kernel_path::{self, Joining, KernelPath};

/// A VM's place in the network.
#[derive(Debug, Clone)]
pub struct Network {
    /// Its addresses, which it keeps wherever it runs.
    pub addresses: Addresses,
    /// The family that its database and the clients use.
    pub family: Family,
    /// The network itself.
    pub fabric: Arc<Fabric>,
    /// The way past it, where there is one.
    pub kernel_path: KernelPath,
}

impl Vm {
    /// Holds a node that has just been booted to its CPU limit, and joins it to the network.
    pub(super) fn join(&self, node: &lab::Node, tun: OwnedFd, place: &[String]) -> Result<PortId, VmError> {
        let limited = self.enter_its_share(node.init_pid());
        limited.map_err(|source| VmError::Limit { node: self.name.clone(), source })?;
        let Network { addresses, family, fabric, kernel_path: past } = &self.network;
        let way_past = past
            .join(node.namespace(), *addresses, Some(&self.name))
            .map_err(|source| VmError::KernelPath { node: self.name.clone(), source })?;
        let (place, addresses) = (self.path_on(place), addresses.all(*family));
        let port = kernel_path::attach(fabric, Joining { place, addresses, tun, way_past });
        let joined = port.and_then(|port| {
            let routed = self.whole.as_ref().map_or(Ok(()), |whole| whole.route(fabric, port));
            routed.map(|()| port)
        });
        joined.map_err(|source| VmError::Network { node: self.name.clone(), source })
    }
}
