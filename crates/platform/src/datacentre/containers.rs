//! VMs that run containers, and the node beside them from which their cluster is controlled.
//!
//! Owns what each is made of. What runs on them is the cluster's business.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fabric::Prefix;
use history::{HostId, NodeId, PerNode};
use lab::protocol::NodeSetUp;
use lab::{Family, NodeGroups, supervisor};
use storage::{Canary, NodeVolume, VolumeKind};

use super::{BuildSettings, Datacentre, DatacentreError, addresses};
use crate::vm::{Network, Shares, Vm, Whole};

/// Nodes by name, with their addresses.
pub(super) type NodeNames = BTreeMap<String, Vec<IpAddr>>;

/// What makes VMs nodes of a cluster that runs containers.
#[derive(Debug)]
pub struct Containers {
    /// The control groups of all of them.
    pub groups: Arc<NodeGroups>,
    /// Settings of the kernel that each has private files for, relative to `/proc/sys`.
    pub own_settings: BTreeMap<String, String>,
    /// The addresses of the containers on each.
    pub pods: PerNode<Prefix>,
    /// The name of the node that controls them, which is its place in the network as well.
    pub control: String,
}

/// The kind of address of a node that is on no host of the site, beside 1 for hosts, 2 for nodes, 3 for places of clients.
const BESIDE_THE_SITE: u8 = 4;

impl Containers {
    /// What a VM gets.
    pub(super) fn of(
        &self,
        node: NodeId,
        settings: &BuildSettings<'_>,
    ) -> Result<Option<Whole>, DatacentreError> {
        let Some(pods) = self.pods.get(node).copied() else { return Ok(None) };
        Ok(Some(Whole {
            disk: settings.folders.volume_of(&format!("{node}-disk"))?,
            groups: self.groups.clone(),
            own_settings: self.own_settings.clone(),
            pods,
        }))
    }

    /// The names and addresses of nodes that are not the database's.
    pub(super) fn names(&self, family: Family) -> Result<(String, Vec<IpAddr>), DatacentreError> {
        Ok((self.control.clone(), addresses(BESIDE_THE_SITE, 0)?.all(family)))
    }
}

impl Datacentre {
    /// The node that controls the cluster: a machine with a plain folder as its volume, which has power as long as the lab is there.
    pub(super) fn make_control(
        &self,
        containers: &Containers,
        settings: &BuildSettings<'_>,
        (family, names): (Family, NodeNames),
    ) -> Result<Vm, DatacentreError> {
        let name = containers.control.clone();
        let set_up = NodeSetUp {
            groups: Vec::new(),
            clock: None,
            volume: settings.folders.volume_of(&name)?,
            making: None,
            sockets: PathBuf::from(supervisor::SOCKETS_FOLDER).join(&name),
            logs: settings.folders.logs_of(&name)?,
            programs: settings.programs.clone(),
            follows_links: true,
            names,
            users_mapped: settings.users_mapped,
            whole_machine: None,
            name: name.clone(),
        };
        let network = Network {
            addresses: addresses(BESIDE_THE_SITE, 0)?,
            family,
            fabric: self.fabric.clone(),
            kernel_path: self.kernel_path.clone(),
        };
        let canary = Canary::new(&name, VolumeKind::Directory, true, settings.seed);
        let volume = (NodeVolume::Directory, canary);
        let vm = Vm::make(network, set_up, (Shares::default(), None, None), volume, false)?;
        Ok(vm)
    }

    /// Gives the node that controls the cluster power, where there is one.
    ///
    /// # Errors
    /// When the lab cannot boot it.
    pub fn power_on_control(&self) -> Result<(), DatacentreError> {
        let Some(control) = &self.control else { return Ok(()) };
        // It is on no host, and its path is its name alone.
        Ok(control.power_on(HostId::FIRST, &[], false)?)
    }
}

/// The names of all nodes, with their addresses.
pub(super) fn node_names(
    scenario: &scenario::Scenario,
    settings: &BuildSettings<'_>,
    family: Family,
) -> Result<NodeNames, DatacentreError> {
    let nodes = scenario.database.nodes.ids();
    let nodes = nodes.map(|node| Ok((node.to_string(), addresses(2, node.index())?.all(family))));
    let control = settings.containers.iter().map(|containers| containers.names(family));
    nodes.chain(control).collect()
}
