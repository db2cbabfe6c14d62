//! The birth of a lab: from an ordinary process to PID 1 of fresh namespaces, as root and as an ordinary user alike.
//!
//! Two sides. Outside, [`launch`] starts the program again as a supervisor. Inside, [`enter`] takes that process
//! into its namespaces. Three things tie the lab's life to the outer process, because any one of them alone leaves
//! a moment uncovered: the parent-death signal, the supervisor's watch on its standard input, and the PID namespace
//! that takes everything else along.
//!
//! Sources: user_namespaces(7), pid_namespaces(7), prctl(2) PR_SET_PDEATHSIG.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getegid, geteuid, pipe};

use crate::furnishing::Limits;
use crate::interface;
use crate::keyring;
use crate::mounts::{Below, attribute, set_attributes};

/// Hidden subcommand of the program that makes it a lab's supervisor.
pub const SUPERVISOR_SUBCOMMAND: &str = "lab-supervisor";
/// Hidden subcommand of the program that makes it the process of a run on machines that exist.
pub const OUTSIDE_SUBCOMMAND: &str = "run-outside";

/// First outside user number that a root-made lab's ordinary users are mapped to, far from those in use.
const MAPPED_USERS_FROM: u32 = 524_288;
/// How many are mapped.
const MAPPED_USERS: u32 = 65_535;
/// User number outside that a node's processes have in a lab made by root: its map begins with 1.
pub const NODE_USER_OUTSIDE: u32 = MAPPED_USERS_FROM + crate::protocol::NODE_USER - 1;
/// Where the lab keeps what must vanish with it: a file system in memory that only it sees.
pub const LAB_FOLDER: &str = "/run/holdfast";
/// Where nodes put sockets that the lab connects to, a folder for each node. It is the nodes' to write in, so no link
/// there is followed by anybody.
pub const SOCKETS_FOLDER: &str = "/run/holdfast/sockets";
/// All sockets of a lab fit in this many times over.
const SOCKETS_OPTIONS: &str = "mode=755,size=16m";

/// What can go wrong at a lab's birth.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// A step was refused.
    #[error("{step}: {source}")]
    Step {
        step: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The kernel lets this user make no user namespace.
    #[error(
        "new user namespace: {source}; `holdfast doctor` says what this machine forbids and how to allow it"
    )]
    NoUserNamespace {
        /// What the operating system answered.
        source: io::Error,
    },
}

fn step<T, E: Into<io::Error>>(step: &'static str, result: Result<T, E>) -> Result<T, SupervisorError> {
    result.map_err(|source| SupervisorError::Step { step, source: source.into() })
}

/// Starts this program again as a supervisor. It reads its orders from standard input, whose closing ends it, and
/// reports on standard output; its standard error goes to `log`.
///
/// The log is locked from here until the last process of the supervisor is gone: all of them, and nobody else, hold this
/// opening of the file. The janitor waits for that.
///
/// # Errors
/// When the program cannot be started or another lab holds the lock.
pub fn launch(log: fs::File) -> Result<Child, SupervisorError> {
    launch_as(SUPERVISOR_SUBCOMMAND, log, || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        Ok(())
    })
}

/// The same for a run on machines that exist. It outlives this process for as long as it takes to undo what it broke.
///
/// # Errors
/// As [`launch`].
pub fn launch_outside(log: fs::File) -> Result<Child, SupervisorError> {
    launch_as(OUTSIDE_SUBCOMMAND, log, || Ok(()))
}

/// `first` is called between fork and exec: it may only make system calls.
fn launch_as(
    subcommand: &str,
    log: fs::File,
    first: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> Result<Child, SupervisorError> {
    use std::os::unix::process::CommandExt;
    step("lock the log", log.try_lock().map_err(io::Error::from))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(subcommand).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    // SAFETY: all calls are async-signal-safe. A session of its own keeps the terminal's Ctrl-C away: the outer
    // process decides what an interrupt means.
    unsafe {
        command.pre_exec(move || {
            nix::unistd::setsid()?;
            first()?;
            keep_standard_descriptors_only();
            Ok(())
        });
    }
    step("start the supervisor", command.spawn())
}

/// Lets the program that is about to be executed inherit its standard input, output and error and nothing else. What
/// whoever started us has left open, a pipe or a lock, must not live on in a lab's processes. To be called between fork
/// and exec: makes one system call.
pub(crate) fn keep_standard_descriptors_only() {
    // SAFETY: close_range(2) takes no pointers, and with this flag closes nothing before the exec. A kernel older than
    // 5.11 refuses it; then the descriptors are inherited, as they are by any other program.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// What the supervisor found out on its way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entered {
    /// Whether user numbers above 0 are mapped (a lab made by root), so that nodes need no user namespace of their own.
    pub users_mapped: bool,
}

/// Takes the calling process, which must have one thread, into fresh namespaces. Returns in the lab's PID 1; the
/// process that called stays outside, waits for it, and ends with its exit code.
///
/// # Errors
/// When the kernel refuses a step.
pub fn enter() -> Result<Entered, SupervisorError> {
    let users_mapped = enter_user_namespace()?;
    let kinds = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    step("new namespaces", unshare(kinds))?;
    // Changing credentials clears the parent-death signal, so it is asked for again.
    step("parent-death signal", nix::sys::prctl::set_pdeathsig(Signal::SIGKILL))?;
    // SAFETY: this process has one thread, so the child may go on as an ordinary process.
    match step("fork", unsafe { fork() })? {
        ForkResult::Parent { child } => std::process::exit(wait_for(child)),
        ForkResult::Child => {
            step("parent-death signal", nix::sys::prctl::set_pdeathsig(Signal::SIGKILL))?;
            step("new session keyring", keyring::leave_the_logins())?;
            furnish(users_mapped)?;
            Ok(Entered { users_mapped })
        }
    }
}

fn wait_for(child: Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Ok(WaitStatus::Signaled(_, signal, _)) => return 128 + signal as i32,
            Err(nix::Error::ECHILD) => return 255,
            Ok(_) | Err(_) => {}
        }
    }
}

/// Becomes root of a new user namespace. Made by root, the namespace maps root to itself and a range of ordinary
/// users far from the machine's own; the databases run as one of those. Made by anyone else, it maps that user alone.
fn enter_user_namespace() -> Result<bool, SupervisorError> {
    let (user, group) = (geteuid(), getegid());
    if user.is_root() {
        let mapper = Mapper::start()?;
        unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(|source| SupervisorError::NoUserNamespace { source: source.into() })?;
        mapper.map()?;
        return Ok(true);
    }
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|source| SupervisorError::NoUserNamespace { source: source.into() })?;
    step("write setgroups", fs::write("/proc/self/setgroups", "deny"))?;
    step("write uid_map", fs::write("/proc/self/uid_map", format!("0 {user} 1")))?;
    step("write gid_map", fs::write("/proc/self/gid_map", format!("0 {group} 1")))?;
    Ok(false)
}

/// A child that stays in the old user namespace, with the right to write the new one's maps.
struct Mapper {
    go: OwnedFd,
    child: Pid,
}

impl Mapper {
    fn start() -> Result<Mapper, SupervisorError> {
        let (wait, go) = step("pipe", pipe())?;
        let lab = nix::unistd::getpid();
        // SAFETY: one thread only, and the child ends without running any destructor.
        match step("fork", unsafe { fork() })? {
            ForkResult::Parent { child } => Ok(Mapper { go, child }),
            ForkResult::Child => {
                drop(go);
                let told = fs::File::from(wait).read_exact(&mut [0]).is_ok();
                let map = format!("0 0 1\n1 {MAPPED_USERS_FROM} {MAPPED_USERS}");
                let mapped = told
                    && fs::write(format!("/proc/{lab}/uid_map"), &map).is_ok()
                    && fs::write(format!("/proc/{lab}/gid_map"), &map).is_ok();
                // SAFETY: _exit only ends this process.
                unsafe { libc::_exit(if mapped { 0 } else { 1 }) }
            }
        }
    }

    fn map(self) -> Result<(), SupervisorError> {
        step("ask for user maps", fs::File::from(self.go).write_all(b"m"))?;
        match waitpid(self.child, None) {
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            _ => step("write user maps", Err(io::Error::from(io::ErrorKind::PermissionDenied))),
        }
    }
}

/// Gives the lab its own `/proc`, `/run` and loopback. Mounts made here stay here.
fn furnish(users_mapped: bool) -> Result<(), SupervisorError> {
    const NONE: Option<&str> = None;
    let quiet = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    step("keep mounts here", mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_SLAVE, NONE))?;
    step("mount /proc", mount(Some("proc"), "/proc", Some("proc"), quiet | MsFlags::MS_NOEXEC, NONE))?;
    step("mount /run", mount(Some("run"), "/run", Some("tmpfs"), quiet, Some("mode=755")))?;
    step("make the lab's folder", fs::create_dir_all(SOCKETS_FOLDER))?;
    let sockets = Path::new(SOCKETS_FOLDER);
    let no_programs = quiet | MsFlags::MS_NOEXEC;
    step(
        "mount the folder of sockets",
        mount(Some("sockets"), sockets, Some("tmpfs"), no_programs, Some(SOCKETS_OPTIONS)),
    )?;
    let no_links = set_attributes(sockets, attribute::NO_LINKS, 0, Below::Untouched);
    step("let no link among the sockets be followed (mount_setattr, Linux 5.14)", no_links)?;
    if users_mapped {
        let limits = step("open the limits of users", Limits::open(Path::new("/proc/sys/user")))?;
        step("forbid further user namespaces", limits.forbid_user_namespaces())?;
    }
    interface::bring_up_loopback()
        .map_err(|error| SupervisorError::Step { step: "bring up loopback", source: io::Error::other(error) })
}

/// Makes the folder of the nodes' volumes, which only the lab's own user enters, and lets no link below it be followed, no
/// device be opened and no program become another user there, whoever in the lab asks. To be called inside, once.
///
/// # Errors
/// When the folder cannot be made or the kernel refuses.
pub fn guard_volumes(folder: &Path) -> Result<(), SupervisorError> {
    const NONE: Option<&str> = None;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    step("make the folder of volumes", made)?;
    let bind = MsFlags::MS_BIND;
    step("mount the folder of volumes", mount(Some(folder), folder, NONE, bind, NONE))?;
    let add = attribute::NO_LINKS | attribute::NO_DEVICES | attribute::NO_SET_USER;
    step("attributes of the folder of volumes", set_attributes(folder, add, 0, Below::Untouched))
}

/// Reads orders line by line on a thread of its own and hands each to `order`. The end of the input means that the outer
/// process is gone: then `at_end` is called. A lab's supervisor ends there, and as PID 1 of its namespace takes all else along.
///
/// # Errors
/// When no thread is to be had.
pub fn watch_orders(
    mut order: impl FnMut(&str) + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> Result<(), SupervisorError> {
    let watch = move || {
        for line in io::stdin().lines() {
            match line {
                Ok(line) => order(&line),
                Err(_) => break,
            }
        }
        at_end();
    };
    step("start the watch", std::thread::Builder::new().name("orders".to_owned()).spawn(watch)).map(drop)
}
