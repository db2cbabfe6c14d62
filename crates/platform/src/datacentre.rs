//! The pretend datacentre: the scenario's site turned into a running fabric, powered hosts, VMs and client places.
//!
//! Owns who stands where and who has power. What the database on the VMs does is the engine's business. Dropping it
//! removes everything.

mod attaching;
mod consumption;
mod containers;
mod facts;
mod volumes;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use disk::SnapshotError;
use engine::{Engine, Node};
use fabric::{Fabric, FabricError, PortId};
use faults::{Lie, Planted};
use history::{HostId, NodeId, PerHost, PerNode};
use lab::attachment::AttachmentError;
use lab::cgroup::CpuGroups;
use lab::entrance::{self, Entrance, EntranceError, Inside};
use lab::memory_groups::MemoryGroups;
use lab::node_clock::NodeClockError;
use lab::protocol::{NodeSetUp, ShownPrograms};
use lab::routing::RoutingError;
use lab::{Addresses, Attachment, Family, NodeClock, supervisor};
use paper::network::LinkRates;
use storage::HostDisks;
use storage::MirroredDisk;
use storage::{Canary, VolumeKind};

pub use self::containers::Containers;
pub use self::volumes::VolumeContent;
use crate::fabric_rules::policy_for_fabric;
use crate::folders::{FolderError, Folders};
use crate::kernel_path::{KernelPath, KernelPathShown, WayPast};
use crate::vm::{CpuShare, Network, PowerCut, Shares, Vm, VmError};

/// What can go wrong while the datacentre is built or changed.
#[derive(Debug, thiserror::Error)]
pub enum DatacentreError {
    /// The network.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A node's clock.
    #[error(transparent)]
    Clock(#[from] NodeClockError),
    /// A host or client place could not be attached.
    #[error("{place}: {source}")]
    Attachment {
        /// Its path.
        place: String,
        /// The step of joining the network that failed.
        source: AttachmentError,
    },
    /// The kernel's own path, of a place or as a whole.
    #[error("{place}: {source}")]
    KernelPath {
        /// Its path.
        place: String,
        /// The step that failed.
        source: RoutingError,
    },
    /// A descriptor could not be copied.
    #[error("{place}: interface: {source}")]
    Descriptor {
        /// Its path.
        place: String,
        /// What the operating system answered.
        source: std::io::Error,
    },
    #[error(transparent)]
    Vm(#[from] VmError),
    /// A folder of a node.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The way into a host or a place of clients could not be told.
    #[error(transparent)]
    Entrance(#[from] EntranceError),
    /// The scenario's version of IP is not to be had.
    #[error(
        "`site.ip: 6` is not possible: the kernel has no IPv6 (it was started with `ipv6.disable=1`, or built without)"
    )]
    NoIpv6,
    /// A component of a mirrored volume.
    #[error("{place}: component of a mirrored volume: {source}")]
    Component {
        /// Where, or whose.
        place: String,
        /// What the operating system answered.
        source: std::io::Error,
    },
    /// A host has lost its power while it was needed.
    #[error("{place} has no power")]
    NoPower {
        /// Its path.
        place: String,
    },
    /// The snapshot of a node's volume could not be taken or returned to.
    #[error("node {node}: snapshot of its volume: {source}")]
    Snapshot {
        node: String,
        /// What could not be kept or returned.
        source: SnapshotError,
    },
    /// More places of a kind than there are addresses.
    #[error("more than {0} places of a kind")]
    TooMany(usize),
}

/// What the place of clients within a place is called.
const CLIENTS: &str = "clients";
/// Places of one kind at most: the last two bytes of their address.
const PLACES_MAX: usize = 60_000;

/// A physical machine.
#[derive(Debug)]
pub struct Host {
    /// Names from the region down.
    pub path: Vec<String>,
    /// Its address, in the family the scenario's site speaks.
    pub address: IpAddr,
    attachment: Attachment,
    way_past: Option<WayPast>,
    port: Mutex<Option<PortId>>,
}

impl Host {
    /// Whether it has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.power().is_some()
    }

    /// Its port, which is another one each time it has power again.
    fn power(&self) -> Option<PortId> {
        *self.port.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &OwnedFd {
        &self.attachment.namespace
    }

    /// Its path as one string.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.join("/")
    }
}

/// Where clients stand.
#[derive(Debug)]
pub struct ClientPlace {
    attachment: Attachment,
    family: Family,
}

impl ClientPlace {
    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &OwnedFd {
        &self.attachment.namespace
    }

    /// Its address, in the family the scenario's site speaks.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.attachment.addresses.in_family(self.family)
    }
}

/// All hosts, links, disks and VMs of a lab.
#[derive(Debug)]
pub struct Datacentre {
    // Order matters: fields are dropped from the top, and VMs must go before the network they leave.
    /// The VMs: `n1`, `n2` ...
    pub vms: PerNode<Arc<Vm>>,
    /// The hosts, in the scenario's order.
    pub hosts: PerHost<Host>,
    pub disks: HostDisks,
    /// Where loads stand, by the path of the place.
    pub client_places: BTreeMap<String, ClientPlace>,
    /// The node that controls the cluster which runs containers on the VMs, where there is one. It is on no host of the site.
    pub control: Option<Arc<Vm>>,
    /// The network.
    pub fabric: Arc<Fabric>,
    kernel_path: KernelPath,
    /// Lies planted by a test; empty in every honest run.
    pub planted: Planted,
}

/// What the loss of hosts came to.
#[derive(Debug)]
pub struct PowerOff {
    /// VMs that died with them.
    pub died: Vec<NodeId>,
    /// What could not be done of it.
    pub troubles: Vec<DatacentreError>,
}

/// What a datacentre is built from beside the scenario.
#[derive(Debug)]
pub struct BuildSettings<'a> {
    /// Where the folders of nodes lie.
    pub folders: Folders,
    /// Whether user numbers above 0 are mapped.
    pub users_mapped: bool,
    /// The database's programs, where nodes must be shown them: those it begins with, and those it may be upgraded to.
    pub programs: Vec<ShownPrograms>,
    /// Whether the database has symbolic links on its volume.
    pub follows_links: bool,
    /// Control groups for the nodes' processor time.
    pub cpu_groups: Option<Arc<CpuGroups>>,
    /// Control groups for the nodes' memory, where a fault may take it.
    pub memory_groups: Option<Arc<MemoryGroups>>,
    /// Whether nodes have wall clocks of their own.
    pub clocks: bool,
    /// What the nodes' volumes are.
    pub volumes: scenario::Volumes,
    /// What is on them.
    pub content: VolumeContent,
    /// What makes the VMs nodes of a cluster that runs containers, where they are.
    pub containers: Option<Containers>,
    /// Where chance begins, the network's and that of torn writes.
    pub seed: u64,
    /// Lies planted by a test; empty in every honest run.
    pub planted: &'a Planted,
}

impl Datacentre {
    /// Builds it: network up, hosts on, VMs made but without power.
    ///
    /// # Errors
    /// When the kernel refuses a part; what was made is removed.
    pub fn build(
        scenario: &scenario::Scenario,
        settings: &BuildSettings<'_>,
    ) -> Result<Datacentre, DatacentreError> {
        let family = family(scenario)?;
        let options = fabric::Options { seed: settings.seed, busy_poll: scenario.site.busy_poll };
        let fabric = Arc::new(Fabric::start_with(options)?);
        let kernel_path = KernelPath::of(scenario.site.network_path, settings.planted)
            .map_err(|source| DatacentreError::KernelPath { place: "the site".to_owned(), source })?;
        let ways = (&*fabric, &kernel_path);
        let planted = settings.planted.clone();
        fabric.set_policy(policy_for_fabric(&scenario.site, LinkRates::Unlimited, &planted))?;
        let mut hosts = Vec::new();
        for (number, host) in scenario.site.hosts.numbered() {
            let path = host.path();
            let addresses = addresses(1, number.index())?;
            let (attachment, port, way_past) = attaching::attach(ways, &path, addresses)?;
            let address = attachment.addresses.in_family(family);
            hosts.push(Host { path, address, attachment, way_past, port: Mutex::new(Some(port)) });
        }
        let mut client_places = BTreeMap::new();
        for load in &scenario.loads {
            let path = load.from.to_string();
            if !client_places.contains_key(&path) {
                let mut place = load.from.path.clone();
                place.push(CLIENTS.to_owned());
                let (attachment, ..) = attaching::attach(ways, &place, addresses(3, client_places.len())?)?;
                client_places.insert(path, ClientPlace { attachment, family });
            }
        }
        let names: Vec<String> = hosts.iter().map(Host::name).collect();
        let disks = HostDisks::new(&names, scenario.site.disks, settings.folders.volume_of("probes")?);
        let (vms, hosts) = (PerNode::default(), hosts.into());
        let mut datacentre =
            Datacentre { vms, hosts, disks, client_places, control: None, fabric, kernel_path, planted };
        let names = containers::node_names(scenario, settings, family)?;
        datacentre.vms = datacentre.make_vms(scenario, settings, (family, &names))?;
        if let Some(containers) = &settings.containers {
            datacentre.control =
                Some(Arc::new(datacentre.make_control(containers, settings, (family, names))?));
        }
        Ok(datacentre)
    }

    fn make_vms(
        &self,
        scenario: &scenario::Scenario,
        settings: &BuildSettings<'_>,
        (family, names): (Family, &BTreeMap<String, Vec<IpAddr>>),
    ) -> Result<PerNode<Arc<Vm>>, DatacentreError> {
        let mut vms = Vec::new();
        for node in scenario.database.nodes.ids() {
            let name = node.to_string();
            let making = if volumes::is_new_virtual_disk(scenario, settings) {
                Some(settings.folders.volume_of(&format!("{name}-making"))?)
            } else {
                None
            };
            let clock = settings.clocks.then(|| NodeClock::make(&name)).transpose()?.map(Arc::new);
            if let (Some(clock), true) = (&clock, settings.planted.contains(&Lie::ClockCOnly)) {
                clock.leave_out_static_programs();
            }
            let cpus = scenario.database.cpus;
            let share = settings.cpu_groups.clone().map(|groups| CpuShare { groups, cpus });
            let memory = settings.memory_groups.as_ref();
            let entrances = [
                // The processes of one that runs containers are in groups of its own.
                share
                    .as_ref()
                    .filter(|_| settings.containers.is_none())
                    .and_then(|share| share.entrance(&name)),
                // A node that is in none cannot be pressed, which its receipt says.
                memory.and_then(|groups| groups.entrance(&name).ok().flatten()),
            ];
            let set_up = NodeSetUp {
                groups: entrances.into_iter().flatten().collect(),
                clock: clock.as_ref().map(|clock| clock.folder().to_owned()),
                volume: settings.folders.volume_of(&name)?,
                making,
                sockets: PathBuf::from(supervisor::SOCKETS_FOLDER).join(&name),
                logs: settings.folders.logs_of(&name)?,
                programs: settings.programs.clone(),
                follows_links: settings.follows_links,
                names: names.clone(),
                users_mapped: settings.users_mapped,
                whole_machine: None,
                name,
            };
            let network = Network {
                addresses: addresses(2, node.index())?,
                family,
                fabric: self.fabric.clone(),
                kernel_path: self.kernel_path.clone(),
            };
            let volume = self.node_volume(&set_up, node, (scenario, settings))?;
            let seed = settings.seed.wrapping_add(node.index() as u64);
            let canary = Canary::new(
                &set_up.name,
                VolumeKind::of(settings.volumes),
                volume.mirrored().is_none(),
                seed,
            );
            let leaves_process = settings.planted.contains(&Lie::ProcessLeft);
            let shares = Shares { cpu: share, memory: settings.memory_groups.clone() };
            let containers = settings.containers.as_ref();
            let whole = containers.map(|containers| containers.of(node, settings)).transpose()?.flatten();
            let vm = Vm::make(network, set_up, (shares, clock, whole), (volume, canary), leaves_process)?;
            vms.push(Arc::new(vm));
        }
        Ok(vms.into())
    }

    /// Names of the hosts and places of clients, under which a person enters them.
    #[must_use]
    pub fn places_without_a_database(&self) -> Vec<String> {
        let places = self.client_places.keys().map(|path| format!("{path}/{CLIENTS}"));
        let control = self.control.iter().map(|control| control.name().to_owned());
        places.chain(self.hosts.iter().map(Host::name)).chain(control).collect()
    }

    /// Lets people in everywhere: onto every node, host and place of clients.
    ///
    /// # Errors
    /// When the lab's files for it cannot be written.
    pub fn let_people_in(
        &self,
        engine: &dyn Engine,
        settings: &BuildSettings<'_>,
    ) -> Result<(), DatacentreError> {
        let nodes: Vec<Arc<dyn Node>> = self.vms.iter().map(|vm| vm.clone() as Arc<dyn Node>).collect();
        for vm in self.vms.iter().chain(&self.control) {
            vm.let_in(engine.shell_environment(Some(vm.as_ref()), &nodes))?;
        }
        let environment = engine.shell_environment(None, &nodes);
        let names: BTreeMap<String, Vec<IpAddr>> =
            nodes.iter().map(|node| (node.name().to_owned(), node.addresses())).collect();
        let hosts = self.hosts.iter().map(|host| (host.name(), &host.attachment));
        let places =
            self.client_places.iter().map(|(path, place)| (format!("{path}/{CLIENTS}"), &place.attachment));
        for (name, attachment) in hosts.chain(places) {
            let inside = Inside::Network {
                descriptor: attachment.namespace.as_raw_fd(),
                programs: settings.programs.clone(),
                names: names.clone(),
            };
            let (inside, environment) = (Some(inside), environment.clone());
            entrance::open(&name, &Entrance { inside, environment, users_mapped: settings.users_mapped })?;
        }
        Ok(())
    }

    /// Boots a VM on a host; where `may_force`, from a component of its volume that may lack something, if the scenario allows
    /// that.
    ///
    /// # Errors
    /// When the lab cannot, or when the host or the one that serves the volume has lost its power meanwhile.
    pub fn power_on_vm(&self, vm: NodeId, host: HostId, may_force: bool) -> Result<(), DatacentreError> {
        let of = &self.vms[vm];
        let before: PerHost<Option<PortId>> = self.hosts.iter().map(Host::power).collect();
        let booted = of.power_on(host, &self.hosts[host].path, may_force).map_err(DatacentreError::from);
        let served_by = of.volume().mirrored().and_then(MirroredDisk::serving_host);
        let off = |host: &HostId| has_lost_power(before[*host], self.hosts[*host].power());
        let off = [Some(host), served_by].into_iter().flatten().find(off);
        let ended = match (booted, off) {
            (Ok(()), None) => return Ok(()),
            // What lost its power in the midst of a boot did not find a node to end.
            (Ok(()), Some(off)) => {
                self.power_off_vm(vm)?;
                DatacentreError::NoPower { place: self.hosts[off].name() }
            }
            (Err(error), _) => error,
        };
        // Nor a component that served it.
        for host in self.hosts.ids().filter(|host| !self.hosts[*host].is_on()) {
            let stopped = of.volume().mirrored().map_or(Ok(()), |disk| disk.host_is_off(host));
            stopped
                .map_err(|source| DatacentreError::Component { place: self.hosts[host].name(), source })?;
        }
        Err(ended)
    }

    /// VMs that lose their power when these hosts do: those on them, and those elsewhere whose volume one of them serves.
    #[must_use]
    pub fn vms_dying_with(&self, hosts: &[HostId]) -> Vec<NodeId> {
        let dies = |vm: &NodeId| {
            let vm = &self.vms[*vm];
            let served_by = vm.volume().mirrored().and_then(MirroredDisk::serving_host);
            hosts.contains(&vm.host()) || served_by.is_some_and(|host| hosts.contains(&host))
        };
        self.vms_on().into_iter().filter(dies).collect()
    }

    /// Cuts the power of hosts and of every VM on them; the network first, all at once as far as one thread can. What goes
    /// wrong with one keeps no other on; the platform switches off those whose disk is gone.
    #[must_use]
    pub fn power_off_hosts(&self, hosts: &[HostId]) -> PowerOff {
        let mut troubles = Vec::new();
        let mut note = |done: Result<(), DatacentreError>| troubles.extend(done.err());
        for host in hosts {
            if let Some(port) = self.hosts[*host].port.lock().unwrap_or_else(PoisonError::into_inner).take() {
                note(self.fabric.detach(port).map_err(DatacentreError::from));
            }
        }
        let died = self.vms_dying_with(hosts);
        for vm in &died {
            note(self.vms[*vm].cut_off().map_err(DatacentreError::from));
        }
        // Components first, so that none makes durable what reaches it after its host is gone; that of a node's own host
        // ends with the node.
        for host in hosts {
            note(self.components_on(*host, MirroredDisk::host_is_off));
        }
        for vm in &died {
            let drive = self.vms[*vm].volume().mirrored().and_then(MirroredDisk::serving_host);
            let cut = match drive.is_some_and(|host| !hosts.contains(&host)) {
                true => PowerCut::OfNode,
                false => PowerCut::OfHost,
            };
            note(self.vms[*vm].power_off(cut).map_err(DatacentreError::from));
        }
        for host in hosts {
            note(self.components_on(*host, MirroredDisk::host_is_off));
        }
        PowerOff { died, troubles }
    }

    /// Cuts the power of one VM, its host staying on: what a cluster does to a node that it no longer trusts.
    ///
    /// # Errors
    /// When the fabric is gone, or its packets cannot be brought back from the kernel's own path; it is off all the same.
    pub fn power_off_vm(&self, vm: NodeId) -> Result<(), DatacentreError> {
        let cut_off = self.vms[vm].cut_off();
        // Whatever the network says: a node that is not trusted must not run on and write to its disk.
        let powered_off = self.vms[vm].power_off(PowerCut::OfNode);
        cut_off?;
        Ok(powered_off?)
    }

    /// Gives a host its power back. The VMs that were on it stay off until the platform starts them.
    ///
    /// # Errors
    /// When it cannot be joined to the network again.
    pub fn power_on_host(&self, host: HostId) -> Result<(), DatacentreError> {
        let of = &self.hosts[host];
        let mut port = of.port.lock().unwrap_or_else(PoisonError::into_inner);
        if port.is_none() {
            let way_past = of.way_past.clone();
            let attached = attaching::attach_again(&self.fabric, &of.path, &of.attachment, way_past);
            *port = Some(attached?);
        }
        drop(port);
        self.components_on(host, MirroredDisk::host_is_on)
    }

    /// Tells every mirrored volume of what became of a host.
    fn components_on(
        &self,
        host: HostId,
        tell: impl Fn(&MirroredDisk, HostId) -> std::io::Result<()>,
    ) -> Result<(), DatacentreError> {
        let mut all_done = Ok(());
        for disk in self.vms.iter().filter_map(|vm| vm.volume().mirrored()) {
            // One that cannot do it keeps none of the others from being told.
            all_done = all_done.and(tell(disk, host));
        }
        all_done.map_err(|source| DatacentreError::Component { place: self.hosts[host].name(), source })
    }

    /// From here on links carry no more than their rate.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn hold_to_rates(&self, site: &scenario::Site) -> Result<(), DatacentreError> {
        Ok(self.fabric.set_policy(policy_for_fabric(site, LinkRates::AsWritten, &self.planted))?)
    }

    /// Which pairs went past the fabric; nothing where the scenario does not ask for the kernel's own path.
    #[must_use]
    pub fn kernel_path(&self) -> Option<KernelPathShown> {
        self.kernel_path.shown(&self.fabric)
    }

    /// Whether packets may go past the network of the lab, so that each sender has a way of its own.
    #[must_use]
    pub fn has_kernel_path(&self) -> bool {
        self.kernel_path.is_used()
    }

    /// The host that a VM runs on, or ran on last.
    #[must_use]
    pub fn host_of(&self, vm: NodeId) -> &Host {
        &self.hosts[self.vms[vm].host()]
    }

    /// VMs that have power.
    #[must_use]
    pub fn vms_on(&self) -> Vec<NodeId> {
        self.vms.ids().filter(|vm| self.vms[*vm].is_on()).collect()
    }
}

/// Whether a host has no power, or had none for a while.
fn has_lost_power(before: Option<PortId>, now: Option<PortId>) -> bool {
    now.is_none() || before.is_some_and(|before| now != Some(before))
}

/// The family of the addresses that the scenario's database and clients use.
fn family(scenario: &scenario::Scenario) -> Result<Family, DatacentreError> {
    match scenario.site.ip {
        scenario::IpVersion::V4 => Ok(Family::V4),
        scenario::IpVersion::V6 if lab::has_ipv6() => Ok(Family::V6),
        scenario::IpVersion::V6 => Err(DatacentreError::NoIpv6),
    }
}

/// The addresses of the place with this number among its kind: 1 hosts, 2 nodes, 3 client places.
fn addresses(kind: u8, index: usize) -> Result<Addresses, DatacentreError> {
    if index >= PLACES_MAX {
        return Err(DatacentreError::TooMany(PLACES_MAX));
    }
    let number = index + 1;
    Ok(Addresses::of(Ipv4Addr::new(10, kind, (number >> 8) as u8, (number & 0xff) as u8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_lost_its_power_for_a_moment_took_what_was_booting_on_it_along() {
        let (first, second) = (Some(PortId(1)), Some(PortId(2)));
        assert!(!has_lost_power(first, first));
        assert!(has_lost_power(first, None));
        assert!(has_lost_power(first, second), "it has power again");
        assert!(!has_lost_power(None, second), "it had none when the boot began");
        assert!(has_lost_power(None, None));
    }
}
