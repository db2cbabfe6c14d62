//! The last to leave: a small process beside the lab that tidies up what the kernel does not, should the outer
//! process be killed. It removes the run's control groups and its volumes; everything else vanishes with the lab.
//!
//! It removes by way of a descriptor of the run directory, opened before the lab is there, and follows no link. What a
//! janitor that was killed as well leaves is for the next run, see `leftovers`.
//!
//! It waits at a pipe that the outer process holds open, and then for the lab's lock: only when the last process that
//! could still make a file is gone can everything be removed.

use std::fs::{self, TryLockError};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroup;
use crate::open_directory::OpenDirectory;
use crate::removal::remove_tree;

/// Hidden subcommand of the program that makes it the janitor.
pub const JANITOR_SUBCOMMAND: &str = "lab-janitor";

/// How long the janitor tries before it gives up, so that it cannot be what is left behind.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running janitor. Dropping it sends it to work and waits for it.
#[derive(Debug)]
pub struct Janitor {
    process: Child,
    hold: Option<OwnedFd>,
}

impl Janitor {
    /// Starts a janitor for the run in `run_directory`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(run_name: &str, run_directory: &Path) -> io::Result<Janitor> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("/proc/self/exe");
        command.arg(JANITOR_SUBCOMMAND).arg(run_name).arg(run_directory);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: both are async-signal-safe. A session of its own keeps the terminal's Ctrl-C away.
        unsafe {
            command.pre_exec(|| {
                crate::supervisor::keep_standard_descriptors_only();
                nix::unistd::setsid().map(drop).map_err(io::Error::from)
            });
        }
        let mut process = command.spawn()?;
        let hold = process.stdin.take().map(OwnedFd::from);
        Ok(Janitor { process, hold })
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.hold.take());
        // Its exit code says nothing that a look at the folders does not.
        let _ = self.process.wait();
    }
}

/// The lab's own log. It is locked for as long as the lab lives, see [`crate::supervisor::launch`].
#[must_use]
pub fn log_path(run_directory: &Path) -> PathBuf {
    run_directory.join("logs/lab/lab.log")
}

/// Folder of the nodes' volumes within a run directory.
#[must_use]
pub fn volumes_path(run_directory: &Path) -> PathBuf {
    run_directory.join("volumes")
}

/// The whole life of a janitor: waits until the outer process is gone and the lab with it, then tidies up.
///
/// # Errors
/// When something cannot be removed in the time it gives itself.
pub fn main(run_name: &str, run_directory: &Path) -> io::Result<()> {
    let run_directory = OpenDirectory::open(run_directory)?;
    let run_directory = run_directory.path();
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let deadline = Instant::now() + PATIENCE;
    if let Ok(log) = fs::File::open(log_path(&run_directory)) {
        wait_for_the_lab(&log, deadline);
    }
    // Where it stays, it leads nowhere: its process is gone.
    let _ = crate::entrance::withdraw(&run_directory);
    let groups = cgroup::remove_all(run_name, PATIENCE).map_err(io::Error::other);
    remove_volumes(&volumes_path(&run_directory), deadline)?;
    groups
}

/// Returns when nobody holds the lab's lock, or time is up. Whatever else goes wrong with the lock, removing goes on:
/// it is better to try too early than never.
pub(crate) fn wait_for_the_lab(log: &fs::File, deadline: Instant) {
    while matches!(log.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Each node's volume on a thread of its own: a database has a thousand files, and some file systems take milliseconds
/// to remove each.
pub(crate) fn remove_volumes(volumes: &Path, deadline: Instant) -> io::Result<()> {
    let entries = match fs::read_dir(volumes) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    thread::scope(|scope| {
        for entry in entries.flatten() {
            // Without a thread, or with one that fails, the volume is left to the removal of the whole below.
            let _ = thread::Builder::new().spawn_scoped(scope, move || remove_tree(&entry.path(), deadline));
        }
    });
    loop {
        match remove_tree(volumes, deadline) {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= deadline => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}
