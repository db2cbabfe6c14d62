//! A real MariaDB for tests: made in a temporary directory, on loopback, gone with its owner.
//!
//! Shared by the tests of `client` and `load`. Where no server is installed the test says so and is skipped.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Endpoint;
use client::mysql::{MysqlClient, Settings};
use client::reactor::sleep;
use nix::sys::signal::Signal;
use tempfile::TempDir;

/// MariaDB refuses to run as root unless told to; nobody will do.
const NOBODY: u32 = 65_534;

pub const PASSWORD: &str = "geheim";

/// What the server runs first.
const BEGINNING: &str = "CREATE DATABASE holdfast CHARACTER SET utf8mb4;\n\
    CREATE USER holdfast IDENTIFIED VIA mysql_native_password USING PASSWORD('geheim');\n\
    GRANT ALL ON *.* TO holdfast;\n\
    CREATE USER stranger IDENTIFIED VIA unix_socket;\n";

/// Whether a server is installed. Prints why the test is skipped where none is.
pub fn is_here(test: &str) -> bool {
    let is_here = program("mariadbd").is_some() && program("mariadb-install-db").is_some();
    if !is_here {
        eprintln!("skipped: {test}: no mariadbd and mariadb-install-db in PATH or /usr/sbin");
    }
    is_here
}

fn program(name: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([std::path::PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

pub struct Server {
    directory: TempDir,
    settings: Vec<String>,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// Makes a server and starts it with these further options.
    pub async fn start(settings: &[&str]) -> Self {
        let directory = TempDir::new().expect("a folder");
        fs::write(directory.path().join("beginning.sql"), BEGINNING).expect("written");
        if nix::unistd::geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).expect("handed over");
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let mut server = Self { directory, settings, port, child: None };
        let output = server
            .command("mariadb-install-db")
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .output()
            .expect("mariadb-install-db starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server.run().await;
        server
    }

    /// The same where a server is installed; none, and said so, where not.
    pub async fn here(test: &str, settings: &[&str]) -> Option<Self> {
        if is_here(test) { Some(Self::start(settings).await) } else { None }
    }

    /// Starts it (again) and waits until it answers.
    pub async fn run(&mut self) {
        let path = |name: &str| self.directory.path().join(name).to_string_lossy().into_owned();
        let mut command = self.command("mariadbd");
        command.args([
            "--bind-address=127.0.0.1",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=64M",
        ]);
        command.arg(format!("--port={}", self.port)).arg(format!("--socket={}", path("socket")));
        command.arg(format!("--pid-file={}", path("pid")));
        if self.child.is_none() {
            command.arg(format!("--init-file={}", path("beginning.sql")));
        }
        command.args(&self.settings);
        let log = fs::File::options().create(true).append(true).open(path("log")).expect("log");
        command.stdout(Stdio::null()).stderr(log);
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when the test dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let mut child = command.spawn().expect("mariadbd starts");
        let deadline = Instant::now() + Duration::from_secs(90);
        while let Err(error) = MysqlClient::connect(self.address(), &settings(Duration::from_secs(5))).await {
            let ended = child.try_wait().expect("a child");
            let log = || fs::read_to_string(path("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < deadline, "{error}; {ended:?}: {}", log());
            sleep(Duration::from_millis(50)).await;
        }
        self.child = Some(child);
    }

    /// SIGKILL, as a power-off looks to its clients.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().expect("kill");
            child.wait().expect("wait");
        }
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn endpoint(&self, node: &str) -> Endpoint {
        Endpoint { node: node.to_owned(), address: self.address().into() }
    }

    pub async fn client(&self) -> MysqlClient {
        self.impatient_client(Duration::from_secs(60)).await
    }

    pub async fn impatient_client(&self, timeout: Duration) -> MysqlClient {
        MysqlClient::connect(self.address(), &settings(timeout)).await.expect("connects")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program(name).expect("looked for before"));
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let data = self.directory.path().join("data");
        command.arg("--no-defaults").arg(format!("--datadir={}", data.display()));
        command.arg(format!("--tmpdir={}", self.directory.path().display()));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn settings(timeout: Duration) -> Settings {
    Settings {
        database: "holdfast".into(),
        user: "holdfast".into(),
        password: Some(PASSWORD.into()),
        timeout,
        connect_timeout: Duration::from_secs(20),
    }
}
