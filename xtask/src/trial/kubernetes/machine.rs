//! A node of the lab that is in the cluster: its volume, its boots, and what the cluster's parts ask of it.
//!
//! Owns the order in which a boot begins and ends: a power-off takes what its volume had not synced.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use disk::{Disk, FolderStore, Limits, Lost, Mount, OnDisk, Volume};
use engine::{Command, Finished, NodeError, ProcessId, Signal, Status};
use fabric::{Fabric, PortId, Prefix};
use kubernetes_lab::{Programs, Range};
use lab::protocol::{
    FileAction, NODE_USER, NodeSetUp, PROGRAMS, SOCKETS, ShownPrograms, VOLUME, WholeMachine,
};
use lab::{Addresses, BootPlan, Family, NodeGroups, supervisor};

use super::agents;

/// Process numbers count from 1 in each boot; a boot's number above them keeps them apart.
const BOOT_SHIFT: u32 = 40;
/// The file by which a machine's boots are told apart. Each of the node's boots has another.
const BOOT_ID: &str = "kernel/random/boot_id";

/// What a machine is made of.
pub(super) struct Plan<'a> {
    pub(super) name: String,
    pub(super) addresses: Addresses,
    /// The addresses of its pods, where it runs any.
    pub(super) pods: Option<Range>,
    pub(super) run_directory: &'a Path,
    pub(super) programs: &'a Programs,
    pub(super) names: BTreeMap<String, Vec<IpAddr>>,
    pub(super) groups: Arc<NodeGroups>,
    pub(super) fabric: Arc<Fabric>,
}

/// A machine, with power or without.
pub(super) struct Machine {
    name: String,
    addresses: Addresses,
    pods: Option<Range>,
    set_up: NodeSetUp,
    volume: Arc<Volume<OnDisk<FolderStore>>>,
    groups: Arc<NodeGroups>,
    fabric: Arc<Fabric>,
    boots: Mutex<Boots>,
}

#[derive(Default)]
struct Boots {
    number: u64,
    now: Option<Boot>,
}

struct Boot {
    node: Arc<lab::Node>,
    mount: Mount,
    port: PortId,
}

impl Machine {
    /// One without power, its volume empty.
    pub(super) fn make(plan: Plan<'_>) -> anyhow::Result<Machine> {
        let folder = |path: PathBuf, user: u32| -> anyhow::Result<PathBuf> {
            fs::create_dir_all(&path).with_context(|| format!("make {}", path.display()))?;
            chown(&path, Some(user), Some(user))?;
            Ok(path)
        };
        let volumes = lab::janitor::volumes_path(plan.run_directory);
        let volume = folder(volumes.join(&plan.name), NODE_USER)?;
        let disk = folder(volumes.join(format!("{}-disk", plan.name)), 0)?;
        let store = OnDisk::in_folder(&volume, Disk::alone(&plan.name), true);
        let whole = WholeMachine { disk, hierarchies: Vec::new(), own_settings: BTreeMap::new() };
        let set_up = NodeSetUp {
            name: plan.name.clone(),
            volume,
            making: None,
            sockets: folder(PathBuf::from(supervisor::SOCKETS_FOLDER).join(&plan.name), NODE_USER)?,
            logs: folder(plan.run_directory.join("logs").join(&plan.name), 0)?,
            programs: vec![
                ShownPrograms {
                    outside: plan.programs.root().to_owned(),
                    inside: PathBuf::from(PROGRAMS),
                    system: None,
                },
                agents::shown(plan.run_directory)?,
            ],
            clock: None,
            groups: Vec::new(),
            follows_links: true,
            names: plan.names,
            users_mapped: true,
            whole_machine: plan.pods.map(|_| whole),
        };
        let volume = Volume::new(store, Limits::default(), NODE_USER, NODE_USER, SystemTime::now());
        Ok(Machine {
            name: plan.name,
            addresses: plan.addresses,
            pods: plan.pods,
            set_up,
            volume: Arc::new(volume),
            groups: plan.groups,
            fabric: plan.fabric,
            boots: Mutex::default(),
        })
    }

    fn boots(&self) -> MutexGuard<'_, Boots> {
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has power.
    pub(super) fn has_power(&self) -> bool {
        self.boots().now.is_some()
    }

    /// Gives it power.
    pub(super) fn power_on(&self) -> anyhow::Result<()> {
        let number = {
            let mut boots = self.boots();
            boots.number += 1;
            boots.number
        };
        let mut set_up = self.set_up.clone();
        if let Some(machine) = set_up.whole_machine.as_mut() {
            machine.hierarchies = self.groups.make_for(&self.name)?;
            let settings = kubernetes_lab::node_agent::OWN_SETTINGS.iter();
            machine.own_settings =
                settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            machine.own_settings.insert(BOOT_ID.to_owned(), boot_id(self.addresses, number));
        }
        let (point, mount) = disk::prepare(self.volume.clone())?;
        let folder = set_up.volume.clone();
        let dress = move || point.mount_over(&folder).map_err(io::Error::other);
        let plan = BootPlan { name: self.name.clone(), addresses: self.addresses, set_up, clock: None };
        let (node, tun) = lab::Node::boot_with(&plan, dress).inspect_err(|_| mount.power_off())?;
        let port = self.fabric.attach(vec![self.name.clone()], self.addresses.all(Family::V4), tun)?;
        let behind = self.pods.and_then(|pods| Prefix::new(pods.network().into(), pods.bits()));
        self.fabric.route(port, behind.into_iter().collect())?;
        self.boots().now = Some(Boot { node: Arc::new(node), mount, port });
        Ok(())
    }

    /// Cuts its power; what that took from its volume. Nothing where it has none.
    pub(super) fn power_off(&self) -> anyhow::Result<Option<Lost>> {
        let Some(boot) = self.boots().now.take() else { return Ok(None) };
        let detached = self.fabric.detach(boot.port);
        boot.node.strike();
        // From here on the disk answers at once that it is dead: a process that waited for it could not be killed.
        boot.mount.power_off();
        boot.node.power_off();
        let lost = self.volume.power_off(None);
        detached?;
        lost.map(Some).map_err(|refusal| anyhow::anyhow!("the volume of {}: {refusal}", self.name))
    }

    fn boot_now(&self) -> Result<(u64, Arc<lab::Node>), NodeError> {
        let boots = self.boots();
        let node = boots.now.as_ref().map(|boot| boot.node.clone());
        Ok((boots.number, node.ok_or_else(|| NodeError::Down { node: self.name.clone() })?))
    }

    fn file(&self, path: &Path, action: FileAction) -> io::Result<String> {
        let (_, node) = self.boot_now().map_err(io::Error::other)?;
        node.file(path, action)
    }

    fn fail(&self, error: lab::NodeError, command: &Command) -> NodeError {
        match error {
            lab::NodeError::Off { node } => NodeError::Down { node },
            error => NodeError::Start {
                node: self.name.clone(),
                program: command.program.clone(),
                source: io::Error::other(error),
            },
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Nobody looks at its volume any more.
        let _ = self.power_off();
    }
}

/// In the form that the kernel has it.
fn boot_id(addresses: Addresses, boot: u64) -> String {
    let number = addresses.ipv4().to_bits();
    format!("{number:08x}-0000-4000-8000-{boot:012x}")
}

impl engine::Node for Machine {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> IpAddr {
        self.addresses.in_family(Family::V4)
    }

    fn boot(&self) -> u64 {
        self.boots().number
    }

    fn data_directory(&self) -> PathBuf {
        PathBuf::from(VOLUME)
    }

    fn socket_directory(&self) -> PathBuf {
        PathBuf::from(SOCKETS)
    }

    fn socket_directory_outside(&self) -> PathBuf {
        self.set_up.sockets.clone()
    }

    fn write_file(&self, path_in_volume: &Path, content: &str) -> io::Result<()> {
        self.file(path_in_volume, FileAction::Write { content: content.to_owned() }).map(drop)
    }

    fn read_file(&self, path_in_volume: &Path) -> io::Result<String> {
        self.file(path_in_volume, FileAction::Read)
    }

    fn remove_file(&self, path_in_volume: &Path) -> io::Result<()> {
        self.file(path_in_volume, FileAction::Remove).map(drop)
    }

    fn exists(&self, path_in_volume: &Path) -> io::Result<bool> {
        self.file(path_in_volume, FileAction::Find).map(|found| !found.is_empty())
    }

    fn connect(&self, port: u16, patience: Duration) -> io::Result<TcpStream> {
        let (_, node) = self.boot_now().map_err(io::Error::other)?;
        let address = SocketAddr::new(self.addresses.in_family(Family::V4), port);
        let connected = lab::attachment::on_own_thread(|| {
            lab::attachment::enter(node.namespace())?;
            TcpStream::connect_timeout(&address, patience)
        });
        connected.map_err(io::Error::other)?
    }

    fn run(&self, command: &Command) -> Result<Finished, NodeError> {
        let (_, node) = self.boot_now()?;
        let finished = node
            .run(&command.program, &command.arguments, &command.environment)
            .map_err(|error| self.fail(error, command))?;
        let status = match (finished.code, finished.signal) {
            (Some(code), _) => Status::Exited(code),
            (None, signal) => Status::Signalled(signal.unwrap_or(0)),
        };
        Ok(Finished { status, stdout: finished.stdout, stderr: finished.stderr })
    }

    fn spawn(&self, command: &Command, log: &str) -> Result<ProcessId, NodeError> {
        let (boot, node) = self.boot_now()?;
        let process = node
            .spawn(&command.program, &command.arguments, &command.environment, log)
            .map_err(|error| self.fail(error, command))?;
        Ok(ProcessId(boot << BOOT_SHIFT | process.0))
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> Result<(), NodeError> {
        let (boot, node) = self.boot_now()?;
        if process.0 >> BOOT_SHIFT != boot {
            return Ok(());
        }
        let process = lab::ProcessId(process.0 & ((1 << BOOT_SHIFT) - 1));
        node.signal(process, signal.number()).map_err(|_| NodeError::Down { node: self.name.clone() })
    }

    fn is_running(&self, process: ProcessId) -> bool {
        let Ok((boot, node)) = self.boot_now() else { return false };
        process.0 >> BOOT_SHIFT == boot
            && node.is_running(lab::ProcessId(process.0 & ((1 << BOOT_SHIFT) - 1)))
    }

    fn log_tail(&self, log: &str, lines: usize) -> String {
        let text = fs::read(self.set_up.logs.join(log)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}
