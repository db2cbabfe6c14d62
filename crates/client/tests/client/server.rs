//! A real PostgreSQL for tests: made in a temporary directory, on loopback, gone with its owner.
//!
//! Shared by the tests of `client` and `load`. Where no server is installed the test says so and is skipped.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use client::Endpoint;
use client::postgres::{PostgresClient, Settings};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// PostgreSQL refuses to run as root; nobody will do.
const NOBODY: u32 = 65_534;

/// Where PostgreSQL's programs are; `None`, with a word on the test's output, where they are not.
pub fn programs() -> Option<PathBuf> {
    let from_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&from_path).collect();
    let distribution = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(distribution.map(|version| version.path().join("bin")));
    let found = folders.into_iter().find(|folder| {
        ["initdb", "postgres", "pg_basebackup"].iter().all(|program| folder.join(program).exists())
    });
    if found.is_none() {
        eprintln!("SKIPPED: no PostgreSQL server found in PATH or /usr/lib/postgresql/*/bin");
    }
    found
}

pub struct Server {
    programs: PathBuf,
    directory: TempDir,
    settings: Vec<String>,
    port: u16,
    postmaster: Option<Child>,
}

impl Server {
    /// Makes a cluster and starts it; `settings` as `name=value`.
    pub async fn start(programs: &Path, settings: &[&str]) -> Self {
        let mut server = Self::empty(programs, settings);
        let data = server.data();
        server.run(
            "initdb",
            &["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C", "-D", &data],
        );
        server.restart().await;
        server
    }

    /// Makes a standby of `leader` and starts it.
    pub async fn standby_of(leader: &Server) -> Self {
        let mut server = Self::empty(&leader.programs, &[]);
        let (port, data) = (leader.port.to_string(), server.data());
        let whom = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres"];
        let how = ["-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", &data];
        server.run("pg_basebackup", &[&whom[..], &how].concat());
        server.restart().await;
        server
    }

    fn empty(programs: &Path, settings: &[&str]) -> Self {
        let directory = TempDir::new().expect("temporary directory");
        if nix::unistd::geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("directory handed over");
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).expect("directory closed");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("free port").port();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Self { programs: programs.to_owned(), directory, settings, port, postmaster: None }
    }

    /// Starts the server (again) and waits until it answers.
    pub async fn restart(&mut self) {
        loop {
            let mut postmaster = self.spawn_postmaster();
            // After a SIGKILL the old server's children may still hold its memory; then this one ends by itself.
            while postmaster.try_wait().expect("postmaster").is_none() {
                let client =
                    PostgresClient::connect_tcp(self.address(), &settings(Duration::from_secs(5))).await;
                if client.is_ok() {
                    self.postmaster = Some(postmaster);
                    return;
                }
                client::reactor::sleep(Duration::from_millis(50)).await;
            }
            client::reactor::sleep(Duration::from_millis(100)).await;
        }
    }

    fn spawn_postmaster(&self) -> Child {
        let (data, port) = (self.data(), self.port.to_string());
        let sockets = self.directory.path().to_string_lossy().into_owned();
        let mut command = self.command("postgres");
        command.args([
            "-D",
            &data,
            "-p",
            &port,
            "-k",
            &sockets,
            "-c",
            "fsync=off",
            "-c",
            "max_connections=200",
            // A server that is killed would leave its segments in the machine's memory.
            "-c",
            "dynamic_shared_memory_type=mmap",
        ]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.path().join("log"))
            .expect("log");
        command.stdout(Stdio::null()).stderr(log);
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when the test dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGQUIT)?)) };
        command.spawn().expect("postgres starts")
    }

    /// SIGKILL to the postmaster and its children, as a power-off looks to the clients. A child that is left alone may answer
    /// once more before it notices that its postmaster is gone.
    pub fn kill_postmaster(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            let pid = postmaster.id();
            let children =
                std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
            postmaster.kill().expect("kill");
            // Some may have ended meanwhile.
            let _ = Command::new("kill").arg("-9").args(children.split_whitespace()).output();
            postmaster.wait().expect("wait");
        }
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The postmaster's number.
    pub fn pid(&self) -> u32 {
        self.postmaster.as_ref().expect("it runs").id()
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join(format!(".s.PGSQL.{}", self.port))
    }

    pub fn endpoint(&self, node: &str) -> Endpoint {
        Endpoint { node: node.to_owned(), address: self.address().into() }
    }

    pub async fn client(&self) -> PostgresClient {
        self.impatient_client(Duration::from_secs(60)).await
    }

    pub async fn impatient_client(&self, timeout: Duration) -> PostgresClient {
        PostgresClient::connect_tcp(self.address(), &settings(timeout)).await.expect("connects")
    }

    /// Replaces `pg_hba.conf`; takes effect with the next connection after `pg_reload_conf()`.
    pub fn write_access_rules(&self, rules: &str) {
        fs::write(self.directory.path().join("data/pg_hba.conf"), rules).expect("pg_hba.conf");
    }

    /// Writes a file into the data directory that nobody but the server may read, as it wants its key.
    pub fn write_own_file(&self, name: &str, content: &str) {
        let path = self.directory.path().join("data").join(name);
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        if nix::unistd::geteuid().is_root() {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("handed over");
        }
    }

    fn data(&self) -> String {
        self.directory.path().join("data").to_string_lossy().into_owned()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let output = self.command(program).args(arguments).output().expect("program starts");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        let pid = i32::try_from(postmaster.id()).expect("process id");
        // Immediate shutdown: every child is told, nothing is left.
        let _ = kill(Pid::from_raw(pid), Signal::SIGQUIT);
        let _ = postmaster.wait();
    }
}

pub fn settings(timeout: Duration) -> Settings {
    Settings {
        database: "postgres".into(),
        user: "postgres".into(),
        password: None,
        encryption: client::postgres::Encryption::Never,
        is_compatible: false,
        timeout,
        connect_timeout: Duration::from_secs(20),
    }
}
