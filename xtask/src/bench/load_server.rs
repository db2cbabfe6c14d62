//! A PostgreSQL on loopback for the benches of the load generator: made for one bench, gone with it.
//!
//! Owns the server and how pgbench is started against it; what it does is each bench's.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::load_ours::Served;

/// PostgreSQL refuses to run as root; nobody will do.
const NOBODY: u32 = 65_534;
/// Sessions enough for all that do not ask for many.
pub(super) const SESSIONS: u32 = 200;

/// A PostgreSQL of our own.
pub(super) struct Server {
    bin: PathBuf,
    pub(super) folder: tempfile::TempDir,
    port: u16,
    postmaster: Child,
}

impl Server {
    /// Starts one that takes so many sessions.
    pub(super) fn start(bin: &Path, sessions: u32) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
        if nix::unistd::geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY))?;
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let data = folder.path().join("data");
        let mut initdb = as_nobody(&bin.join("initdb"), folder.path());
        initdb
            .args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data);
        let made = initdb.output().context("initdb")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut postgres = as_nobody(&bin.join("postgres"), folder.path());
        postgres.arg("-D").arg(&data).args(["-p", &port.to_string(), "-k"]).arg(folder.path());
        postgres.args(["-c", "fsync=off", "-c", "shared_buffers=256MB"]);
        postgres.args(["-c", &format!("max_connections={sessions}")]);
        postgres.stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when this process dies.
        unsafe { postgres.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGQUIT)?)) };
        let postmaster = postgres.spawn().context("start postgres")?;
        let server = Server { bin: bin.to_owned(), folder, port, postmaster };
        // It listens before it takes sessions.
        for _ in 0..600 {
            let mut asked = Command::new(server.bin.join("pg_isready"));
            asked.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
            if asked.status().context("start pg_isready")?.success() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("postgres takes no sessions on port {port}")
    }

    /// Where it listens, on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Runs pgbench and returns what it says.
    pub(super) fn pgbench(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = Command::new(self.bin.join("pgbench"));
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        said(command.args(arguments).arg("postgres"))
    }
}

impl Served for Server {
    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    fn runs(&self) -> PathBuf {
        self.folder.path().join("runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Immediate shutdown: every child is told, nothing is left.
        let _ = kill(Pid::from_raw(self.postmaster.id().cast_signed()), Signal::SIGQUIT);
        let _ = self.postmaster.wait();
    }
}

fn as_nobody(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs a program to its good end; what it said.
pub(super) fn said(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("start {program}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}: {}", output.status, complaint.trim_end());
    Ok(String::from_utf8(output.stdout)?)
}
