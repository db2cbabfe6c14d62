//! A real Redis for tests: in a temporary directory, on loopback, gone with its owner.
//!
//! Shared by the tests of `client` and `load`. Where no server is installed the test says so and is skipped.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Endpoint;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Whether a server is installed. Prints why the test is skipped where none is.
pub fn is_here(test: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = std::env::split_paths(&path).any(|folder| folder.join("redis-server").exists());
    if !is_here {
        eprintln!("skipped: {test}: no redis-server in PATH");
    }
    is_here
}

pub struct Server {
    child: Child,
    port: u16,
    _directory: TempDir,
}

impl Server {
    /// Starts one with these words of its configuration, such as `--requirepass x`, and waits until it listens.
    pub fn start(settings: &[&str]) -> Self {
        let directory = TempDir::new().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a free port").port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"]);
        command.args(["--port", &port.to_string()]).args(settings);
        command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when the test dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let mut server =
            Self { child: command.spawn().expect("redis-server starts"), port, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(server.address()).is_err() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "it does not listen: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The same where a server is installed; none, and said so, where not.
    pub fn here(test: &str, settings: &[&str]) -> Option<Self> {
        is_here(test).then(|| Self::start(settings))
    }

    /// Starts a replica of `primary`.
    pub fn replica_of(primary: &Server, settings: &[&str]) -> Self {
        let port = primary.port.to_string();
        Self::start(&[&["--replicaof", "127.0.0.1", &port], settings].concat())
    }

    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub fn endpoint(&self, node: &str) -> Endpoint {
        Endpoint { node: node.to_owned(), address: self.address().into() }
    }

    /// Asks it one thing by its own client, and answers with what that prints.
    pub fn cli(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(words).output();
        String::from_utf8_lossy(&output.expect("redis-cli").stdout).trim().to_owned()
    }

    /// Waits until one of its lines of `INFO` is as given.
    pub fn wait_for_info(&self, section: &str, line: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.cli(&["INFO", section]).lines().any(|told| told.trim() == line) {
            assert!(Instant::now() < deadline, "never {line}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops it where it stands, or lets it go on.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).expect("a process id")), signal).expect("a signal");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
