//! What the lab and a node's init say to each other: JSON, one message a line, over a socket pair.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Everything an init needs to set up its node, sent as its first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSetUp {
    /// The node's host name.
    pub name: String,
    /// Folder outside that becomes [`VOLUME`] inside.
    pub volume: PathBuf,
    /// Folder outside that becomes [`MAKING`] inside, where what the volume begins with is not made on the volume itself.
    pub making: Option<PathBuf>,
    /// Folder outside that becomes [`SOCKETS`] inside.
    pub sockets: PathBuf,
    /// Folder outside for what its processes write to their standard output and error. The node does not see it.
    pub logs: PathBuf,
    /// The database's programs, where they do not lie among the machine's: those it begins with, and those it may be upgraded to.
    pub programs: Vec<ShownPrograms>,
    /// Folder outside that becomes [`CLOCK`] inside, where the node has a clock of its own.
    pub clock: Option<PathBuf>,
    /// Files of control groups: a process that writes `0` to one is in that group. What the init starts and leaves running does
    /// so first, with each; the init stays outside.
    pub groups: Vec<PathBuf>,
    /// Whether symbolic links on the volume are followed.
    pub follows_links: bool,
    /// Names and their addresses for `/etc/hosts`.
    pub names: BTreeMap<String, Vec<IpAddr>>,
    /// Whether the user numbers above 0 are mapped, so that processes may take one; else they get a user namespace
    /// of their own in which they have one.
    pub users_mapped: bool,
    /// What the node has beside that where its processes are root of the lab, as what starts containers must be. Only a lab made
    /// by root has such nodes.
    pub whole_machine: Option<WholeMachine>,
}

/// What makes a node of a place that starts containers: a disk of its own, control groups, settings of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeMachine {
    /// Folder outside that becomes [`DISK`] inside. What is in it outlives a boot.
    pub disk: PathBuf,
    /// The hierarchies of control groups, in each of which the node's processes are in the node's own group and see nothing above.
    pub hierarchies: Vec<GroupHierarchy>,
    /// Settings of the whole machine, relative to `/proc/sys`, that the node has private files for, with what stands in each. Of
    /// the others it may change those of its network.
    pub own_settings: BTreeMap<String, String>,
}

/// A hierarchy of control groups, and a node's group in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupHierarchy {
    pub version: GroupVersion,
    /// The folder's name below `/sys/fs/cgroup`: `cpu,cpuacct`. Empty for version 2, which is mounted there itself.
    pub name: String,
    /// Options of the mount, which say which hierarchy of version 1 it is.
    pub options: String,
    /// Folder outside of the node's group.
    pub group: PathBuf,
}

/// A version of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupVersion {
    /// A hierarchy for each controller, or for a few.
    One,
    /// One hierarchy with all of them.
    Two,
}

/// A folder of programs, or one program, that nodes are shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownPrograms {
    /// Where it lies.
    pub outside: PathBuf,
    /// Where nodes find it.
    pub inside: PathBuf,
    /// Where it is a whole system, which nodes see in place of the machine's files, what it says of them.
    pub system: Option<WholeSystem>,
}

/// A system of its own, with all that its programs need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeSystem {
    /// The folder that its programs start in.
    pub folder: PathBuf,
}

impl ShownPrograms {
    /// The folder outside that holds a whole system, where it is one.
    #[must_use]
    pub fn whole_system(&self) -> Option<&Path> {
        self.system.as_ref().map(|_| self.outside.as_path())
    }
}

/// Where a node finds its volume.
pub const VOLUME: &str = "/run/node/volume";
/// Where a node makes what its volume begins with, if not on the volume.
pub const MAKING: &str = "/run/node/making";
/// Where a node puts sockets that the lab connects to.
pub const SOCKETS: &str = "/run/node/sockets";
/// Where a node finds the files of its clock.
pub const CLOCK: &str = "/run/node/clock";
/// Where a node finds programs that lie in a place which its user could not reach.
pub const PROGRAMS: &str = "/run/node/programs";
/// Where it finds those that its database may be upgraded to.
pub const UPGRADE: &str = "/run/node/upgrade";
/// Where it finds those of the cluster that runs containers on it.
pub const CLUSTER: &str = "/run/node/cluster";
/// Where a node whose processes are root finds its own disk: what programs keep on any machine.
pub const DISK: &str = "/var/lib";
/// Where a program beside clients finds its driver, if that was installed.
pub const DRIVER: &str = "/run/node/driver";
/// The home directory of a node's user, for what a person's shell writes; in memory, and gone with the boot.
pub const HOME: &str = "/run/node/home";
/// The ordinary user that a node's processes run as: databases refuse to be root.
pub const NODE_USER: u32 = 1000;

/// What the lab asks of an init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    /// Start a process as the node's ordinary user; as root of the lab on a node that is a whole machine.
    Spawn {
        /// Number of this request; its process is known by it from here on.
        process: u64,
        /// Program, absolute path.
        program: PathBuf,
        arguments: Vec<String>,
        /// Its environment, the whole of it.
        environment: BTreeMap<String, String>,
        /// Name of the log file that its output is appended to; when absent the output comes back in `Exited`.
        log: Option<String>,
    },
    /// Do something with a file of the volume.
    File {
        /// Number of this request.
        number: u64,
        /// The file, relative to [`VOLUME`].
        path: PathBuf,
        /// What to do.
        action: FileAction,
    },
    /// Show that the node is alive, and which of its processes stand still.
    Beat {
        /// Number of this request.
        number: u64,
    },
    /// Send the database's processes a signal.
    Strike {
        /// Number of this request.
        number: u64,
        /// Which, and what.
        strike: Strike,
    },
    /// Let those that were stopped for one alone go on.
    Resume {
        /// Number of this request.
        number: u64,
        /// Whom they were stopped for.
        holder: u64,
    },
    /// Send a process a signal.
    Signal {
        process: u64,
        /// The signal's number.
        signal: i32,
    },
}

/// A signal to the processes of a node's database, however many they are and whoever started them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    /// The signal's number.
    pub signal: i32,
    /// The file name of the one program that is meant, with what it started; all of the node where absent.
    pub only: Option<String>,
    /// No more than so many, parents first; all where absent. For a lie that tests plant.
    pub at_most: Option<usize>,
    /// Whom they are stopped for, where they are: they go on when nobody wants them stopped any more.
    pub holder: u64,
}

/// What is to be done with a file of a node's volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum FileAction {
    /// Replace it in one step, as the node's user's own, durably.
    Write {
        /// The whole of it.
        content: String,
    },
    /// Tell what is in it.
    Read,
    /// Remove it, durably.
    Remove,
    /// Tell whether it is there.
    Find,
    /// Do something with the marks that show what a power-off took; the path is of no meaning.
    Canary {
        /// What.
        order: crate::canary::Order,
    },
    /// Throw away what the kernel keeps in memory of it, and of everything in it where it is a folder.
    Forget,
}

/// A process of a node that a signal has stopped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StoppedProcess {
    /// Its number, as the node sees it.
    pub pid: i32,
    /// Its program's name, 15 bytes at most.
    pub program: String,
}

/// What an init answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The node is set up.
    Ready {
        /// The init's number of the listener at which it must be answered before it can start a program, where the node has a
        /// clock of its own.
        listener: Option<i32>,
    },
    /// It could not be set up; the init ends.
    SetUpFailed {
        /// The step that failed, and the system's error.
        why: String,
    },
    /// The process runs.
    Spawned {
        /// The request's number.
        process: u64,
    },
    /// The process could not be started.
    SpawnFailed {
        /// The request's number.
        process: u64,
        /// `start PROGRAM: ` and the system's error.
        why: String,
    },
    /// It was done with a file what was asked.
    FileDone {
        /// The request's number.
        number: u64,
        /// What was read; whether it is there, as `yes` or nothing; else empty.
        content: String,
    },
    /// It could not be done.
    FileFailed {
        /// The request's number.
        number: u64,
        /// The system's number for the error, where it has one.
        error: Option<i32>,
        /// The error in words.
        why: String,
    },
    /// The node is alive.
    Beat {
        /// The request's number.
        number: u64,
        /// Processes that a signal has stopped (state `T` in proc_pid_stat(5)).
        stopped: Vec<StoppedProcess>,
    },
    /// The signal was sent.
    Struck {
        /// The request's number.
        number: u64,
        /// The processes that it was sent to, as the node numbers them.
        pids: Vec<i32>,
        /// Those of them that the lab had started, by the number of their request.
        processes: Vec<u64>,
    },
    /// The process has ended.
    Exited {
        /// The request's number.
        process: u64,
        /// Exit code, when it ended by itself.
        code: Option<i32>,
        /// Signal, when one ended it.
        signal: Option<i32>,
        /// What it wrote to its standard output, where that was not logged.
        stdout: String,
        /// What it wrote to its standard error, where that was not logged.
        stderr: String,
    },
    /// A stranger has killed a process that others had started and left behind.
    OrphanKilled {
        /// Its program's name, 15 bytes at most.
        program: String,
        /// The signal's number.
        signal: i32,
    },
}
