//! The pretend datacentre: the scenario's site turned into a running fabric, powered hosts, VMs and client places.
//!
//! Owns who stands where and who has power. What the database on the VMs does is the engine's business. Dropping it
//! removes everything.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fabric::{Fabric, FabricError, Policy, PortId};
use history::{HostFacts, LinkFacts, NodeFacts, SiteFacts};
use lab::attachment::AttachmentError;
use lab::cgroup::CpuLimits;
use lab::protocol::NodeSetUp;
use lab::{Attachment, supervisor};

use crate::directory::{DirectoryError, RunDirectory};
use crate::faulting::network;
use crate::vm::{Limit, Vm, VmError};

/// What can go wrong while the datacentre is built or changed.
#[derive(Debug, thiserror::Error)]
pub enum DatacentreError {
    /// The network.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// A host or client place could not be attached.
    #[error("{place}: {source}")]
    Attachment {
        /// Its path.
        place: String,
        /// Why.
        source: AttachmentError,
    },
    /// A descriptor could not be copied.
    #[error("{place}: interface: {source}")]
    Descriptor {
        /// Its path.
        place: String,
        /// Why.
        source: std::io::Error,
    },
    /// A VM.
    #[error(transparent)]
    Vm(#[from] VmError),
    /// The run directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// More places of a kind than there are addresses.
    #[error("more than {0} places of a kind")]
    TooMany(usize),
}

/// Places of one kind at most: the last two bytes of their address.
const PLACES_MAX: usize = 60_000;

/// A physical machine.
#[derive(Debug)]
pub struct Host {
    /// Names from the region down.
    pub path: Vec<String>,
    /// Its address.
    pub address: Ipv4Addr,
    attachment: Attachment,
    port: Mutex<Option<PortId>>,
}

impl Host {
    /// Whether it has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).is_some()
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
}

impl ClientPlace {
    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &OwnedFd {
        &self.attachment.namespace
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.attachment.address
    }
}

/// The datacentre.
#[derive(Debug)]
pub struct Datacentre {
    // Order matters: fields are dropped from the top, and VMs must go before the network they leave.
    /// The VMs: `n1`, `n2` ...
    pub vms: Vec<Arc<Vm>>,
    /// The hosts, in the scenario's order.
    pub hosts: Vec<Host>,
    /// Where loads stand, by the path of the place.
    pub client_places: BTreeMap<String, ClientPlace>,
    /// The network.
    pub fabric: Arc<Fabric>,
}

/// What a datacentre is built from beside the scenario.
#[derive(Debug)]
pub struct Ground<'a> {
    /// The run directory.
    pub directory: &'a RunDirectory,
    /// Whether user numbers above 0 are mapped.
    pub users_mapped: bool,
    /// A folder with the database's programs that nodes must be shown.
    pub programs: Option<PathBuf>,
    /// Control groups for CPU limits.
    pub limits: Option<Arc<CpuLimits>>,
}

impl Datacentre {
    /// Builds it: network up, hosts on, VMs made but without power.
    ///
    /// # Errors
    /// When the kernel refuses a part; what was made is removed.
    pub fn build(scenario: &scenario::Scenario, ground: &Ground<'_>) -> Result<Datacentre, DatacentreError> {
        let fabric = Arc::new(Fabric::start()?);
        fabric.set_policy(policy(&scenario.site, false))?;
        let mut hosts = Vec::new();
        for (index, host) in scenario.site.hosts.iter().enumerate() {
            let path = host.path();
            let attachment = attach(&fabric, &path, address(1, index)?)?;
            let (attachment, port) = attachment;
            hosts.push(Host { path, address: attachment.address, attachment, port: Mutex::new(Some(port)) });
        }
        let mut client_places = BTreeMap::new();
        for load in &scenario.loads {
            let path = load.from.to_string();
            if !client_places.contains_key(&path) {
                let mut place = load.from.path.clone();
                place.push("clients".to_owned());
                let (attachment, _) = attach(&fabric, &place, address(3, client_places.len())?)?;
                client_places.insert(path, ClientPlace { attachment });
            }
        }
        let mut datacentre = Datacentre { vms: Vec::new(), hosts, client_places, fabric };
        datacentre.make_vms(scenario, ground)?;
        Ok(datacentre)
    }

    fn make_vms(
        &mut self,
        scenario: &scenario::Scenario,
        ground: &Ground<'_>,
    ) -> Result<(), DatacentreError> {
        let count = scenario.database.nodes.len();
        let mut names = BTreeMap::new();
        for index in 0..count {
            names.insert(node_name(index), address(2, index)?.to_string());
        }
        for index in 0..count {
            let name = node_name(index);
            let set_up = NodeSetUp {
                volume: ground.directory.volume(&name)?,
                sockets: PathBuf::from(supervisor::LAB_FOLDER).join("nodes").join(&name),
                logs: ground.directory.logs(&name)?,
                programs: ground.programs.clone(),
                names: names.clone(),
                users_mapped: ground.users_mapped,
                name,
            };
            let limit = match (&ground.limits, scenario.database.cpus) {
                (Some(groups), Some(cpus)) => Some(Limit { groups: groups.clone(), cpus }),
                _ => None,
            };
            let vm = Vm::make(address(2, index)?, set_up, self.fabric.clone(), limit)?;
            self.vms.push(Arc::new(vm));
        }
        Ok(())
    }

    /// Boots a VM on a host.
    ///
    /// # Errors
    /// When the lab cannot.
    pub fn power_on_vm(&self, vm: usize, host: usize) -> Result<(), DatacentreError> {
        Ok(self.vms[vm].power_on(host, &self.hosts[host].path)?)
    }

    /// Cuts the power of hosts and of every VM on them; the network first, all at once as far as one thread can.
    /// Returns the VMs that died.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn power_off_hosts(&self, hosts: &[usize]) -> Result<Vec<usize>, DatacentreError> {
        for host in hosts {
            if let Some(port) = self.hosts[*host].port.lock().unwrap_or_else(PoisonError::into_inner).take() {
                self.fabric.detach(port)?;
            }
        }
        let died: Vec<usize> =
            self.vms_on().into_iter().filter(|vm| hosts.contains(&self.vms[*vm].host())).collect();
        for vm in &died {
            self.vms[*vm].cut_off()?;
        }
        for vm in &died {
            self.vms[*vm].power_off()?;
        }
        Ok(died)
    }

    /// Gives a host its power back. The VMs that were on it stay off until the platform starts them.
    ///
    /// # Errors
    /// When it cannot be joined to the network again.
    pub fn power_on_host(&self, host: usize) -> Result<(), DatacentreError> {
        let host = &self.hosts[host];
        let mut port = host.port.lock().unwrap_or_else(PoisonError::into_inner);
        if port.is_none() {
            let tun = copy(&host.attachment.tun, &host.path)?;
            *port = Some(self.fabric.attach(host.path.clone(), vec![host.address.into()], tun)?);
        }
        Ok(())
    }

    /// From here on links carry no more than their rate.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn hold_to_rates(&self, site: &scenario::Site) -> Result<(), DatacentreError> {
        Ok(self.fabric.set_policy(policy(site, true))?)
    }

    /// VMs that have power.
    #[must_use]
    pub fn vms_on(&self) -> Vec<usize> {
        (0..self.vms.len()).filter(|index| self.vms[*index].is_on()).collect()
    }

    /// The host on which the platform restarts a VM: one with power, with as few VMs as possible, as near as possible
    /// to where the VM was, and not that host itself.
    #[must_use]
    pub fn host_for_restart(&self, vm: usize) -> Option<usize> {
        let lost = self.vms[vm].host();
        let shared_path = |host: usize| {
            let pair = self.hosts[host].path.iter().zip(&self.hosts[lost].path);
            pair.take_while(|(here, there)| here == there).count()
        };
        let vms_on = |host: usize| self.vms.iter().filter(|vm| vm.is_on() && vm.host() == host).count();
        (0..self.hosts.len())
            .filter(|host| *host != lost && self.hosts[*host].is_on())
            .min_by_key(|host| (vms_on(*host), std::cmp::Reverse(shared_path(*host)), *host))
    }

    /// CPU time of all VMs so far.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn cpu_of_vms(&self) -> std::io::Result<Duration> {
        let by_namespace = lab::accounting::cpu_time_by_pid_namespace()?;
        Ok(self
            .vms
            .iter()
            .map(|vm| {
                let live = vm.pid_namespace().and_then(|namespace| by_namespace.get(&namespace)).copied();
                vm.cpu_of_past_boots() + live.unwrap_or_default()
            })
            .sum())
    }

    /// The site as built, for the report.
    #[must_use]
    pub fn facts(&self, scenario: &scenario::Scenario) -> SiteFacts {
        let hosts = self.hosts.iter().zip(&scenario.site.hosts).map(|(built, drawn)| HostFacts {
            path: built.name(),
            region: drawn.region.clone(),
            zone: drawn.zone.clone(),
            rack: drawn.rack.clone(),
            name: drawn.name.clone(),
            address: built.address.to_string(),
        });
        let nodes = scenario.database.nodes.iter().enumerate().map(|(index, host)| NodeFacts {
            name: node_name(index),
            host: self.hosts[*host].name(),
            address: self.vms[index].ipv4().to_string(),
            role: if index == 0 { "leader" } else { "follower" }.to_owned(),
        });
        let links = scenario.site.links.iter().map(|link| LinkFacts {
            from: link.from.to_string(),
            to: link.to.to_string(),
            delay_us: u64::try_from(link.conditions.delay.unwrap_or_default().as_micros())
                .unwrap_or(u64::MAX),
            rate_bits_per_s: link.conditions.rate_bits_per_s,
        });
        SiteFacts { hosts: hosts.collect(), nodes: nodes.collect(), links: links.collect() }
    }
}

/// A node's name by its number, from 0.
#[must_use]
pub fn node_name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// The site's links as rules. Rates are left out while the database is set up: copying it to its standbys over a thin
/// link would take minutes and show nothing.
#[must_use]
pub fn policy(site: &scenario::Site, with_rates: bool) -> Policy {
    let rule = |link: &scenario::Link| {
        let mut rule = network::conditions_rule(&link.from.path, &link.to.path, &link.conditions);
        rule.name = Some(format!("{} -> {}", link.from, link.to));
        rule.rate_bits_per_s = rule.rate_bits_per_s.filter(|_| with_rates);
        rule
    };
    Policy { rules: site.links.iter().map(rule).collect(), ..Policy::default() }
}

/// The address of the place with this number among its kind: 1 hosts, 2 nodes, 3 client places.
fn address(kind: u8, index: usize) -> Result<Ipv4Addr, DatacentreError> {
    if index >= PLACES_MAX {
        return Err(DatacentreError::TooMany(PLACES_MAX));
    }
    let number = index + 1;
    Ok(Ipv4Addr::new(10, kind, (number >> 8) as u8, (number & 0xff) as u8))
}

fn copy(tun: &OwnedFd, path: &[String]) -> Result<OwnedFd, DatacentreError> {
    tun.try_clone().map_err(|source| DatacentreError::Descriptor { place: path.join("/"), source })
}

fn attach(
    fabric: &Fabric,
    path: &[String],
    address: Ipv4Addr,
) -> Result<(Attachment, PortId), DatacentreError> {
    let attachment = Attachment::make(address)
        .map_err(|source| DatacentreError::Attachment { place: path.join("/"), source })?;
    let tun = copy(&attachment.tun, path)?;
    let port = fabric.attach(path.to_vec(), vec![address.into()], tun)?;
    Ok((attachment, port))
}
