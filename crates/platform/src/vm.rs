//! A node as the engine sees it: a VM that keeps its name, address and volume while it loses power, boots again and
//! moves between hosts.
//!
//! Owns the VM's folders and its boots. Which host it runs on, and when, the platform decides.

mod clock;
mod holds;
mod joining;
mod logs;
mod marks;
mod moving;
mod power_cut;
mod processes;
mod shares;
mod way_in;
mod whereabouts;
mod whole;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use disk::Mount;
use engine::{Command, Finished, NodeError, ProcessId, Signal, Status};
use fabric::PortId;
use history::HostId;
use lab::NodeClock;
use lab::entrance::EntranceError;
use lab::probe::NodeNamespaces;
use lab::protocol::{FileAction, MAKING, NODE_USER, NodeSetUp, SOCKETS, VOLUME};
use lab::routing::RoutingError;
use storage::{Canary, NodeVolume, OpenError};

pub use self::holds::Holder;
use self::holds::VmLimits;
pub use self::joining::Network;
pub use self::moving::Standstill;
pub use self::power_cut::PowerCut;
pub use self::shares::{CpuShare, Shares};
pub use self::whereabouts::{Arrival, Whereabouts};
pub use self::whole::Whole;

/// What can go wrong with a VM's power.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// The lab could not boot it.
    #[error(transparent)]
    Boot(#[from] lab::NodeError),
    /// It could not be joined to the network.
    #[error("node {node}: {source}")]
    Network {
        node: String,
        /// What the network refused.
        source: fabric::FabricError,
    },
    /// It could not be joined to the kernel's own path.
    #[error("node {node}: {source}")]
    KernelPath {
        node: String,
        /// The step that failed.
        source: RoutingError,
    },
    /// It has no power, or has lost it meanwhile.
    #[error("node {node} has no power")]
    Off { node: String },
    /// Its processes could not be signalled.
    #[error(transparent)]
    Signal(NodeError),
    /// A folder of its own could not be made.
    #[error("node {node}: folder {path}: {source}")]
    Folder {
        node: String,
        /// The folder.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Its volume could not be made ready to be mounted.
    #[error("node {node}: volume: {source}")]
    Volume {
        node: String,
        /// The step of opening it that failed.
        source: OpenError,
    },
    /// After a power-off its volume could not be brought back to what was durable.
    #[error("node {node}: volume: take back what was not durable: {source}")]
    Loss {
        node: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The way in for a person could not be told.
    #[error("node {node}: {source}")]
    Entrance {
        node: String,
        /// What of the way in for shells could not be made.
        source: EntranceError,
    },
    /// Its CPU limit could not be set, or it has no control groups for containers.
    #[error("node {node}: {source}")]
    Limit {
        node: String,
        /// The file of the limit that could not be written.
        source: lab::cgroup::CgroupError,
    },
}

#[derive(Debug)]
struct Boot {
    number: u64,
    node: Arc<lab::Node>,
    port: PortId,
    /// Whether its power-off has begun.
    is_cut_off: bool,
    /// Of a virtual disk.
    mount: Option<Mount>,
}

#[derive(Debug, Default)]
struct State {
    host: HostId,
    /// How often it has come to another host than the one before.
    host_changes: u64,
    boots: u64,
    boot: Option<Boot>,
    cpu_of_past_boots: Duration,
    /// In order.
    standstills: Vec<Standstill>,
    /// The environment of a person's shell, once it is known.
    shell_environment: Option<BTreeMap<String, String>>,
}

impl State {
    fn come_to(&mut self, host: HostId) {
        self.host_changes += u64::from(self.host != host);
        self.host = host;
    }
}

/// A node of the lab with its volume, its network and its power.
#[derive(Debug)]
pub struct Vm {
    name: String,
    network: Network,
    set_up: NodeSetUp,
    shares: Shares,
    held: VmLimits,
    volume: NodeVolume,
    clock: Option<Arc<NodeClock>>,
    canary: Canary,
    /// Where it runs containers.
    whole: Option<Whole>,
    /// A lie that tests plant: a process outlives its power-off.
    leaves_process: bool,
    /// Held while its power is cut: it has no power from the beginning, and may have it again only once its volume is closed.
    being_cut: Mutex<()>,
    state: Mutex<State>,
}

impl Vm {
    /// A VM without power, its folders made and owned by the node's user. Under a virtual disk the folder of the volume
    /// stays the lab's own.
    ///
    /// # Errors
    /// When a folder cannot be made or given to the user.
    pub fn make(
        network: Network,
        set_up: NodeSetUp,
        (shares, clock, whole): (Shares, Option<Arc<NodeClock>>, Option<Whole>),
        (volume, canary): (NodeVolume, Canary),
        leaves_process: bool,
    ) -> Result<Vm, VmError> {
        let volume_folder = matches!(volume, NodeVolume::Directory).then_some(&set_up.volume);
        for path in volume_folder.into_iter().chain(&set_up.making).chain([&set_up.sockets]) {
            let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
            let owned = made.and_then(|()| give_to_node_user(path, set_up.users_mapped));
            owned.map_err(|source| VmError::Folder {
                node: set_up.name.clone(),
                path: path.clone(),
                source,
            })?;
        }
        let (name, state) = (set_up.name.clone(), Mutex::default());
        let held = VmLimits::default();
        let being_cut = Mutex::default();
        Ok(Vm {
            name,
            network,
            set_up,
            shares,
            held,
            volume,
            clock,
            canary,
            whole,
            leaves_process,
            being_cut,
            state,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it power on a host, whose path is `place`; where `may_force`, from a component of its volume that may lack
    /// something, if the scenario allows that.
    ///
    /// # Errors
    /// When the lab cannot boot it or it cannot be joined to the network. It is off then, and its volume closed.
    pub fn power_on(&self, host: HostId, place: &[String], may_force: bool) -> Result<(), VmError> {
        drop(self.being_cut.lock());
        let (node, tun, mount) = self.boot_on_volume((host, may_force))?;
        let node = Arc::new(node);
        self.canary.boots(&node, self.forced_open());
        let port = match self.join(&node, tun, place) {
            Ok(port) => port,
            Err(error) => {
                self.give_up(&node, mount.as_ref());
                return Err(error);
            }
        };
        let mut state = self.state();
        state.boots += 1;
        state.come_to(host);
        state.boot = Some(Boot { number: state.boots, node, port, is_cut_off: false, mount });
        let told = self.tell_the_way_in(&state);
        drop(state);
        if told.is_err() {
            // Whoever is told that it did not boot tries elsewhere, and its volume would be open twice. Why is what is told.
            let _ = self.power_off(PowerCut::OfNode);
        }
        told
    }

    fn boot_on_volume(
        &self,
        (host, may_force): (HostId, bool),
    ) -> Result<(lab::Node, OwnedFd, Option<Mount>), VmError> {
        let mut set_up = self.set_up.clone();
        if let Some(whole) = &self.whole {
            let number = self.state().boots + 1;
            let machine = whole.of_boot(&self.name, number, self.address());
            set_up.whole_machine =
                Some(machine.map_err(|source| VmError::Limit { node: self.name.clone(), source })?);
        }
        let (name, addresses, clock) = (self.name.clone(), self.network.addresses, self.clock.clone());
        let plan = lab::BootPlan { name, addresses, set_up, clock };
        let prepared = match &self.volume {
            NodeVolume::Directory => {
                let (node, tun) = lab::Node::boot(&plan)?;
                return Ok((node, tun, None));
            }
            NodeVolume::Virtual(disk) => disk.prepare(),
            NodeVolume::Mirrored(disk) => disk.prepare(host, may_force),
        };
        let (point, mount) =
            prepared.map_err(|source| VmError::Volume { node: self.name.clone(), source })?;
        if let Some(clock) = self.clock.clone() {
            mount.stamp_by(move || clock.time_of_day());
        }
        let folder = self.set_up.volume.clone();
        let dress = move || point.mount_over(&folder).map_err(io::Error::other);
        match lab::Node::boot_with(&plan, dress) {
            Ok((node, tun)) => Ok((node, tun, Some(mount))),
            Err(error) => {
                mount.power_off();
                // Why the boot failed is what is told.
                let _ = self.take_back(Some(&mount), PowerCut::OfNode);
                Err(error.into())
            }
        }
    }

    /// Takes it off the network, all at once and for good: first half of a power-off.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn cut_off(&self) -> Result<(), VmError> {
        let port = self.state().boot.as_mut().map(|boot| {
            boot.is_cut_off = true;
            boot.port
        });
        let detached = port.map_or(Ok(()), |port| self.network.fabric.detach(port));
        detached.map_err(|source| VmError::Network { node: self.name.clone(), source })
    }

    /// Cuts its power. The network goes first: a dying kernel must not get to say goodbye to its connections.
    ///
    /// # Errors
    /// When the fabric is gone; the node is off all the same.
    pub fn power_off(&self, cut: PowerCut) -> Result<(), VmError> {
        let _being_cut = self.being_cut.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(boot) = self.state().boot.take() else { return Ok(()) };
        self.canary.ends(&self.volume.whereabouts());
        let detached = self.network.fabric.detach(boot.port);
        if self.leaves_process {
            // Without it the lie is not planted, and the test that looks for it says so.
            let _ = lab::stray::start(boot.node.init_pid());
        }
        boot.node.strike();
        // From here on the disk answers at once that it is dead: a process that waited for it could not be killed.
        if let Some(mount) = &boot.mount {
            mount.power_off();
        }
        boot.node.power_off();
        let lost = self.take_back(boot.mount.as_ref(), cut);
        let mut state = self.state();
        state.cpu_of_past_boots += boot.node.cpu_after_death();
        let told = self.tell_the_way_in(&state);
        detached.map_err(|source| VmError::Network { node: self.name.clone(), source })?;
        lost.map_err(|source| VmError::Loss { node: self.name.clone(), source })?;
        told
    }

    /// `n1` is the first.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state().boot.is_some()
    }

    /// The host it runs on, or ran on last.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.state().host
    }

    /// Its address, in the family the scenario's site speaks.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.network.addresses.in_family(self.network.family)
    }

    /// The PID namespace it runs in now.
    #[must_use]
    pub fn pid_namespace(&self) -> Option<u64> {
        self.state().boot.as_ref().map(|boot| boot.node.pid_namespace())
    }

    /// The namespaces it runs in now; nothing while it is off.
    #[must_use]
    pub fn namespaces(&self) -> Option<io::Result<NodeNamespaces>> {
        self.init_pid().map(NodeNamespaces::of)
    }

    /// A copy of its network namespace's descriptor, while it has power.
    #[must_use]
    pub fn namespace(&self) -> Option<OwnedFd> {
        self.state().boot.as_ref().and_then(|boot| boot.node.namespace().try_clone().ok())
    }

    /// Process number of its init in the lab.
    #[must_use]
    pub fn init_pid(&self) -> Option<u32> {
        self.state().boot.as_ref().map(|boot| boot.node.init_pid())
    }

    /// CPU time of all boots that have ended.
    #[must_use]
    pub fn cpu_of_past_boots(&self) -> Duration {
        self.state().cpu_of_past_boots
    }

    /// CPU time of serving its volume.
    #[must_use]
    pub fn cpu_of_disk(&self) -> Duration {
        let now = self.state().boot.as_ref().and_then(|boot| boot.mount.as_ref()).map(Mount::cpu_time);
        self.volume.cpu_of_past_mounts() + now.unwrap_or_default()
    }

    /// Where its data are, whatever host it is on.
    #[must_use]
    pub fn volume(&self) -> &NodeVolume {
        &self.volume
    }

    /// Does something with a file of the volume, through the node: what is on it is the node's doing, and nobody else's to
    /// open.
    fn file_inside(&self, path: &Path, action: FileAction) -> io::Result<String> {
        let node = self.boot_now().map_err(|down| io::Error::new(io::ErrorKind::NotConnected, down));
        node.and_then(|(_, node)| node.file(path, action))
    }

    /// Throws away what the node's kernel keeps in memory of its volume's files. Without effect on a directory.
    ///
    /// # Errors
    /// When the node is off, or a file cannot be opened.
    pub fn forget_what_was_read(&self) -> io::Result<()> {
        if matches!(self.volume, NodeVolume::Directory) {
            return Ok(());
        }
        self.file_inside(Path::new(""), FileAction::Forget).map(drop)
    }

    /// Asks its init for a sign of life; none while it has no power.
    #[must_use]
    pub fn beat(&self) -> Option<lab::Beat> {
        self.boot_now().ok()?.1.beat().ok()
    }

    /// The processes of this boot that ended though the lab had not asked them to, since this was asked last.
    #[must_use]
    pub fn take_unasked_ends(&self) -> Vec<lab::UnaskedEnd> {
        self.boot_now().map(|(_, node)| node.take_unasked_ends()).unwrap_or_default()
    }

    /// How long the lab has been at the oldest request to its volume, or at the oldest work of a component of it, without what
    /// either waited for from another host. None where that tells nothing about the lab: it has no power, its disk has a
    /// defect, or its volume is a directory.
    #[must_use]
    pub fn longest_request(&self) -> Option<Duration> {
        let state = self.state();
        let mount = state.boot.as_ref()?.mount.as_ref()?;
        match &self.volume {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(disk) => disk.is_sound().then(|| mount.longest_request()),
            NodeVolume::Mirrored(disk) => Some(mount.longest_request().max(disk.under_way().longest())),
        }
    }

    fn boot_now(&self) -> Result<(u64, Arc<lab::Node>), NodeError> {
        match &self.state().boot {
            Some(boot) => Ok((boot.number, boot.node.clone())),
            None => Err(NodeError::Down { node: self.name.clone() }),
        }
    }

    fn translate(&self, error: lab::NodeError, command: &Command) -> NodeError {
        let program = command.program.clone();
        translated(error, |source| NodeError::Start { node: self.name.clone(), program, source })
    }

    /// What went wrong when it was asked for something else than to start a program.
    fn told(&self, error: lab::NodeError, what: &str) -> NodeError {
        let what = what.to_owned();
        translated(error, |source| NodeError::Io { node: self.name.clone(), what, source })
    }
}

/// A node without power is down, whatever was asked of it.
fn translated(error: lab::NodeError, other: impl FnOnce(io::Error) -> NodeError) -> NodeError {
    match error {
        lab::NodeError::Off { node } => NodeError::Down { node },
        error => other(io::Error::other(error)),
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // A process that waits for a volume which nobody serves any more could not be killed, and its init not waited for.
        if let Some(boot) = self.state().boot.take() {
            boot.node.strike();
            if let Some(mount) = &boot.mount {
                mount.power_off();
            }
        }
    }
}

/// Process numbers count from 1 in each boot; a boot's number above them keeps them apart.
const BOOT_SHIFT: u32 = 40;

impl engine::Node for Vm {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> IpAddr {
        Vm::address(self)
    }

    fn addresses(&self) -> Vec<IpAddr> {
        self.network.addresses.all(self.network.family)
    }

    fn boot(&self) -> u64 {
        self.state().boots
    }

    fn data_directory(&self) -> PathBuf {
        PathBuf::from(VOLUME)
    }

    fn making_directory(&self) -> PathBuf {
        PathBuf::from(if self.set_up.making.is_some() { MAKING } else { VOLUME })
    }

    fn take_what_was_made(&self) -> io::Result<()> {
        match (&self.volume, &self.set_up.making) {
            (NodeVolume::Virtual(disk), Some(making)) => disk.adopt(making),
            _ => Ok(()),
        }
    }

    fn socket_directory(&self) -> PathBuf {
        PathBuf::from(SOCKETS)
    }

    fn socket_directory_outside(&self) -> PathBuf {
        self.set_up.sockets.clone()
    }

    fn write_file(&self, path_in_volume: &Path, content: &str) -> io::Result<()> {
        self.file_inside(path_in_volume, FileAction::Write { content: content.to_owned() }).map(drop)
    }

    fn read_file(&self, path_in_volume: &Path) -> io::Result<String> {
        self.file_inside(path_in_volume, FileAction::Read)
    }

    fn remove_file(&self, path_in_volume: &Path) -> io::Result<()> {
        self.file_inside(path_in_volume, FileAction::Remove).map(drop)
    }

    fn exists(&self, path_in_volume: &Path) -> io::Result<bool> {
        self.file_inside(path_in_volume, FileAction::Find).map(|found| !found.is_empty())
    }

    fn connect(&self, port: u16, patience: Duration) -> io::Result<TcpStream> {
        let namespace = self.namespace().ok_or(io::ErrorKind::NotConnected)?;
        let address = SocketAddr::new(Vm::address(self), port);
        // A socket stays in the namespace it was made in, wherever its thread goes.
        let connected = lab::attachment::on_own_thread(|| {
            lab::attachment::enter(&namespace)?;
            TcpStream::connect_timeout(&address, patience)
        });
        connected.map_err(io::Error::other)?
    }

    fn run(&self, command: &Command) -> Result<Finished, NodeError> {
        let (_, node) = self.boot_now()?;
        let finished = node
            .run(&command.program, &command.arguments, &command.environment)
            .map_err(|error| self.translate(error, command))?;
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
            .map_err(|error| self.translate(error, command))?;
        Ok(ProcessId(boot << BOOT_SHIFT | process.0))
    }

    fn signal(&self, process: ProcessId, signal: Signal) -> Result<(), NodeError> {
        let (boot, node) = self.boot_now()?;
        if process.0 >> BOOT_SHIFT != boot {
            return Ok(());
        }
        node.signal(lab::ProcessId(process.0 & ((1 << BOOT_SHIFT) - 1)), signal.number())
            .map_err(|_| NodeError::Down { node: self.name.clone() })
    }

    fn is_running(&self, process: ProcessId) -> bool {
        let Ok((boot, node)) = self.boot_now() else { return false };
        process.0 >> BOOT_SHIFT == boot
            && node.is_running(lab::ProcessId(process.0 & ((1 << BOOT_SHIFT) - 1)))
    }

    fn log_tail(&self, log: &str, lines: usize) -> String {
        let text = logs::end_of(&self.set_up.logs.join(log)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    fn log_lines_with(&self, log: &str, part: &str) -> Vec<String> {
        logs::lines_with(&self.set_up.logs.join(log), part)
    }
}

/// In a lab that root made, the node's user is another than ours. In one made by an ordinary user it is that user
/// under another number, and there is nothing to give.
fn give_to_node_user(path: &Path, users_mapped: bool) -> io::Result<()> {
    if users_mapped { chown(path, Some(NODE_USER), Some(NODE_USER)) } else { Ok(()) }
}
