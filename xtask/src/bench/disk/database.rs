//! A PostgreSQL on a place, and pgbench's TPC-B on it, every commit synced.
//!
//! Owns the server's start and end. Nothing in its configuration differs from place to place.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use engine::Installation;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::place::Place;
use crate::bench::packages;

/// Whom root becomes: PostgreSQL refuses root.
const NOBODY: (u32, u32) = (65_534, 65_534);
/// pgbench's scale: 75 MB, which the server's own buffers hold, so that commits are what reaches the disk.
const SCALE: &str = "5";
/// Connections of pgbench.
const CLIENTS: &str = "4";
/// Seconds of one measurement.
const SECONDS: &str = "3";
/// How long a server may take to start and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who owns the data: this user, or for root somebody else.
#[must_use]
pub fn owner() -> (u32, u32) {
    let user = nix::unistd::geteuid();
    if user.is_root() { NOBODY } else { (user.as_raw(), nix::unistd::getegid().as_raw()) }
}

/// A running server with pgbench's tables, until this is dropped.
#[derive(Debug)]
pub struct Database {
    installation: Installation,
    server: Child,
    // Order matters: the server is ended before what it lies on.
    place: Place,
    sockets: TempDir,
}

impl Database {
    /// Makes one.
    ///
    /// # Errors
    /// When a step fails.
    pub fn make(installation: &Installation, place: Place) -> anyhow::Result<Database> {
        let sockets = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
        let (user, group) = owner();
        if nix::unistd::geteuid().is_root() {
            std::os::unix::fs::chown(sockets.path(), Some(user), Some(group))?;
        }
        let data = place.path.join("data");
        let mut initdb = program(installation, "initdb");
        initdb.arg("-D").arg(&data).args(["-k", "-A", "trust", "-U", "holdfast"]);
        packages::run(initdb.args(["--locale=C", "--encoding=UTF8"]))?;
        let mut command = program(installation, "postgres");
        command.arg("-D").arg(&data).args(["-c", "listen_addresses="]);
        command.arg("-c").arg(format!("unix_socket_directories={}", sockets.path().display()));
        // No checkpoint but those asked for before each measurement, and no vacuum at a moment of its own.
        command.args(["-c", "max_wal_size=8GB", "-c", "checkpoint_timeout=1h", "-c", "autovacuum=off"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = command.spawn().context("start postgres")?;
        let database = Database { installation: installation.clone(), server, place, sockets };
        database.await_ready()?;
        packages::run(database.client("pgbench").args(["-i", "-q", "-s", SCALE, "postgres"]))?;
        Ok(database)
    }

    fn client(&self, name: &str) -> Command {
        let mut command = program(&self.installation, name);
        command.arg("-h").arg(self.sockets.path()).args(["-U", "holdfast"]);
        command
    }

    fn ask(&self, sql: &str) -> anyhow::Result<String> {
        packages::run(self.client("psql").args(["-Atqc", sql, "postgres"]))
    }

    fn await_ready(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.ask("SELECT 1") {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context("the server does not start"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// How many transactions, and how many a second, over one measurement. It begins with a checkpoint, so that none falls
    /// into it.
    ///
    /// # Errors
    /// When pgbench fails, or the server does not sync.
    pub fn transactions(&self) -> anyhow::Result<(f64, f64)> {
        let fsync = self.ask("SHOW fsync")?;
        if fsync.trim() != "on" {
            bail!("the server does not sync: fsync is {fsync}");
        }
        self.ask("CHECKPOINT")?;
        let measured = ["-n", "-M", "prepared", "-c", CLIENTS, "-j", "1", "-T", SECONDS, "postgres"];
        let said = packages::run(self.client("pgbench").args(measured))?;
        let told = |words: &str| -> anyhow::Result<f64> {
            let rest = said.lines().find_map(|line| line.strip_prefix(words));
            let number = rest.and_then(|rest| rest.split([' ', '/']).next());
            Ok(number.with_context(|| format!("pgbench does not say `{words}`"))?.parse()?)
        };
        Ok((told("number of transactions actually processed: ")?, told("tps = ")?))
    }

    /// The place it lies on.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // At once: nobody needs the data any more. Its children follow by themselves.
        let _ = kill(Pid::from_raw(self.server.id().cast_signed()), Signal::SIGQUIT);
        let _ = self.server.wait();
    }
}

fn program(installation: &Installation, name: &str) -> Command {
    let mut command = Command::new(installation.bin.join(name));
    command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin").current_dir(Path::new("/"));
    if let Some(libraries) = &installation.library_path {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    if nix::unistd::geteuid().is_root() {
        let (user, group) = owner();
        command.uid(user).gid(group);
    }
    command
}
