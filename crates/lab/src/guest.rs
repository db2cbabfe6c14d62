//! A program beside the clients of a load: started in their network namespace, furnished and confined as a node's processes
//! are.
//!
//! Owns its way in. The process is the first of a PID namespace of its own, so that all that it starts ends with it, and it
//! ends with the lab.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::sched::{CloneFlags, unshare};
use serde::{Deserialize, Serialize};

use crate::attachment::on_own_thread;
use crate::furnishing::{Furnishing, FurnishingError, Shown, become_node_user, furnish};
use crate::protocol::{HOME, ShownPrograms};
use crate::supervisor::keep_standard_descriptors_only;

/// Hidden subcommand of the program that makes it a guest.
pub const GUEST_SUBCOMMAND: &str = "lab-guest";

/// What is in every guest's environment.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("HOME", HOME)];

/// What can go wrong on its way in.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// What it is to be cannot be read.
    #[error("what guest this is to be: {0}")]
    SetUp(#[from] serde_json::Error),
    /// Its place could not be furnished.
    #[error(transparent)]
    Furnishing(#[from] FurnishingError),
    /// It could not become an ordinary user.
    #[error("become an ordinary user: {0}")]
    User(#[source] io::Error),
    /// The program could not be started.
    #[error("start {program}: {source}")]
    Start {
        program: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// A guest: what it runs and what it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Its host name.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What it has in its environment beside what all have.
    pub environment: BTreeMap<String, String>,
    /// Folders that are shown to it beside the machine's programs, read-only.
    pub shown: Vec<ShownPrograms>,
    /// Names and their addresses for `/etc/hosts`.
    pub names: BTreeMap<String, Vec<IpAddr>>,
    /// Whether the user numbers above 0 are mapped.
    pub users_mapped: bool,
}

/// Starts it in the network namespace of the calling thread. The socket becomes its standard input and output, the log its
/// standard error.
///
/// # Errors
/// When the kernel refuses. What goes wrong later stands in the log.
pub fn start(guest: &Guest, socket: OwnedFd, log: File) -> io::Result<Child> {
    let words = serde_json::to_string(guest).map_err(io::Error::other)?;
    let started = on_own_thread(move || {
        let kinds = CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC;
        unshare(kinds).map_err(io::Error::from)?;
        let output = socket.try_clone()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(GUEST_SUBCOMMAND).arg(words).env_clear().stdin(socket).stdout(output).stderr(log);
        // SAFETY: setsid(2) and close_range(2) are async-signal-safe. Having anything to run here also makes the standard
        // library fork instead of sharing memory with the child, which a new PID namespace needs.
        unsafe {
            command.pre_exec(|| {
                keep_standard_descriptors_only();
                nix::unistd::setsid().map(drop).map_err(io::Error::from)
            });
        }
        command.spawn()
    });
    started.map_err(io::Error::other)?
}

/// The way in of the process itself, which has one thread: it becomes the program.
///
/// # Errors
/// When it cannot.
pub fn main(words: &OsStr) -> Result<Infallible, GuestError> {
    let guest: Guest = serde_json::from_str(&words.to_string_lossy())?;
    let shown = guest.shown.iter().map(|shown| Shown::programs(&shown.inside, &shown.outside)).collect();
    let (name, users_mapped) = (&guest.name, guest.users_mapped);
    // Client programs and their drivers are the machine's, whatever the database's system is.
    let names = &guest.names;
    let furnishing = Furnishing { name, system: None, shown, names, users_mapped, whole_machine: None };
    let limits = furnish(&furnishing)?;
    become_node_user(users_mapped, &limits).map_err(GuestError::User)?;
    // One of the limits' descriptors would tell the program nothing, and is closed by the exec.
    let mut command = Command::new(&guest.program);
    command.args(&guest.arguments).env_clear().envs(ENVIRONMENT).envs(&guest.environment).current_dir("/");
    let source = command.exec();
    Err(GuestError::Start { program: guest.program, source })
}
