//! The last to leave: a small process beside the lab that tidies up what the kernel does not, should the outer
//! process be killed. It removes the run's control groups and its volumes; everything else vanishes with the lab.
//!
//! It waits at a pipe that the outer process holds open, and outlives it by moments.

use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cgroup;

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
        // SAFETY: setsid(2) is async-signal-safe. A session of its own keeps the terminal's Ctrl-C away.
        unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from)) };
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

/// Path of the lock that the lab holds while it lives.
#[must_use]
pub fn lock_path(run_directory: &Path) -> PathBuf {
    run_directory.join(".lab-lock")
}

/// Folder of the nodes' volumes within a run directory.
#[must_use]
pub fn volumes_path(run_directory: &Path) -> PathBuf {
    run_directory.join("volumes")
}

/// The whole life of a janitor: waits until the outer process is gone, then tidies up.
///
/// # Errors
/// When something cannot be removed in the time it gives itself.
pub fn main(run_name: &str, run_directory: &Path) -> io::Result<()> {
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let deadline = Instant::now() + PATIENCE;
    let groups = cgroup::remove_all(run_name, PATIENCE).map_err(io::Error::other);
    // The lab's processes may be a few milliseconds from their end and still write.
    let volumes = volumes_path(run_directory);
    loop {
        match fs::remove_dir_all(&volumes) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) if Instant::now() >= deadline => return groups.and(Err(error)),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    let _ = fs::remove_file(lock_path(run_directory));
    groups
}
