//! What an engine needs of a machine: files on its volume, processes, an address.
//!
//! Owns the trait; `platform` implements it over the lab, the tests over plain processes.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::NodeError;

/// A process of a node. Means something to the [`Node`] that returned it only; never the same for two processes
/// of a node, whichever of its boots they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u64);

/// A program to run on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, an absolute path as the node sees it.
    pub program: PathBuf,
    /// Its arguments, its own name not among them.
    pub arguments: Vec<String>,
    /// Its whole environment; nothing is inherited.
    pub environment: BTreeMap<String, String>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

impl Status {
    /// Whether it exited with 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Status::Exited(0)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Exited(code) => write!(f, "exit code {code}"),
            Status::Signalled(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A process that has ended, with all it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub status: Status,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// The signals engines use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
    /// SIGHUP.
    HangUp,
}

impl Signal {
    /// Its number on Linux.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Signal::HangUp => 1,
            Signal::Interrupt => 2,
            Signal::Kill => 9,
            Signal::Terminate => 15,
        }
    }
}

/// A node: a machine that runs one database. Programs run as the database's ordinary user.
pub trait Node: Send + Sync {
    /// Its name, unique in the cluster: `n1`.
    fn name(&self) -> &str;

    /// Its address, which it keeps wherever it runs: what the cluster and its clients connect to.
    fn address(&self) -> IpAddr;

    /// All its addresses, which the database listens on: that of [`Node::address`] and, where it has one, that of the
    /// other version of IP.
    fn addresses(&self) -> Vec<IpAddr> {
        vec![self.address()]
    }

    /// How often the node has been booted. Every process of an earlier boot is gone.
    fn boot(&self) -> u64;

    /// Where the node's volume is mounted, as its processes see it. Exists, is empty at first, belongs to the
    /// database's user.
    fn data_directory(&self) -> PathBuf;

    /// Where to make what the volume begins with, as the node's processes see it: empty at first, theirs to write. It is
    /// the volume itself, or a folder in which making many files costs less; then it is all on the volume, under the same
    /// names, once [`Node::take_what_was_made`] has returned.
    fn making_directory(&self) -> PathBuf {
        self.data_directory()
    }

    /// Brings what was made in [`Node::making_directory`] onto the volume, durable from the start. Nobody has it open.
    ///
    /// # Errors
    /// Whatever the file system answers.
    fn take_what_was_made(&self) -> io::Result<()> {
        Ok(())
    }

    /// A directory for sockets that is not on the volume, as the node's processes see it; theirs to write.
    fn socket_directory(&self) -> PathBuf;

    /// The same directory as this process sees it.
    fn socket_directory_outside(&self) -> PathBuf;

    /// Writes a whole file as the database's user, replacing it in one step. Paths are relative to the volume's
    /// root, which is [`Node::data_directory`].
    ///
    /// # Errors
    /// Whatever the file system answers.
    fn write_file(&self, path_in_volume: &Path, content: &str) -> io::Result<()>;

    /// Reads a whole file. Called every few milliseconds while a start is awaited, so it ought to be cheap.
    ///
    /// # Errors
    /// Whatever the file system answers.
    fn read_file(&self, path_in_volume: &Path) -> io::Result<String>;

    /// Removes a file.
    ///
    /// # Errors
    /// Whatever the file system answers, `NotFound` included.
    fn remove_file(&self, path_in_volume: &Path) -> io::Result<()>;

    /// Whether something of that name is there.
    ///
    /// # Errors
    /// When it cannot be told.
    fn exists(&self, path_in_volume: &Path) -> io::Result<bool>;

    /// A connection to a port of the node's own, made within the node: whatever befalls the network, it is not in its way.
    ///
    /// # Errors
    /// When the node has no power or nobody listens there.
    fn connect(&self, port: u16, patience: Duration) -> io::Result<TcpStream>;

    /// Runs a program to its end.
    ///
    /// # Errors
    /// When it could not be started or its end could not be learned; a program that fails is not an error here.
    fn run(&self, command: &Command) -> Result<Finished, NodeError>;

    /// Starts a program that goes on; what it writes is appended to the node's log of that name.
    ///
    /// # Errors
    /// When it could not be started.
    fn spawn(&self, command: &Command, log: &str) -> Result<ProcessId, NodeError>;

    /// Sends a signal to a process; one that is gone already is no error.
    ///
    /// # Errors
    /// When the node cannot be reached.
    fn signal(&self, process: ProcessId, signal: Signal) -> Result<(), NodeError>;

    /// Whether the process is still there. A process of an earlier boot never is.
    fn is_running(&self, process: ProcessId) -> bool;

    /// The last lines of a log, for messages; empty where they cannot be had.
    fn log_tail(&self, log: &str, lines: usize) -> String {
        let _ = (log, lines);
        String::new()
    }

    /// The lines of a log that have `part` in them, wherever in it they stand, the oldest first. By default those among its
    /// last lines.
    fn log_lines_with(&self, log: &str, part: &str) -> Vec<String> {
        let tail = self.log_tail(log, usize::MAX);
        tail.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

/// Does something on every node at the same time; the answers are in the nodes' order.
pub fn at_once<T: Send, E: Send>(
    nodes: &[Arc<dyn Node>],
    action: impl Fn(&dyn Node) -> Result<T, E> + Sync,
) -> Vec<Result<T, E>> {
    let action = &action;
    std::thread::scope(|scope| {
        let threads: Vec<_> = nodes.iter().map(|node| scope.spawn(move || action(node.as_ref()))).collect();
        let answers = threads.into_iter().map(|thread| thread.join());
        answers.map(|answer| answer.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}
