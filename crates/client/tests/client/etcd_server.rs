//! A real etcd for tests, one member: in a temporary directory, on loopback, gone with its owner.
//!
//! Shared by the tests of `client` and `load`. Where no server is installed the test says so and is skipped.

// Each test binary uses its own part of this.
#![allow(dead_code)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::Endpoint;
use nix::sys::signal::Signal;
use tempfile::TempDir;

pub struct Server {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Server {
    /// Starts one where it is installed, and waits until it leads; none, and said so, where it is not.
    pub fn here(test: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join("etcd").exists()) {
            eprintln!("skipped: {test}: no etcd in PATH");
            return None;
        }
        let directory = TempDir::new().expect("a folder");
        let free = || TcpListener::bind("127.0.0.1:0").expect("a free port");
        // Both are held until both are known.
        let listeners = (free(), free());
        let address = listeners.0.local_addr().expect("its address");
        let peer = format!("http://{}", listeners.1.local_addr().expect("its address"));
        drop(listeners);
        let url = format!("http://{address}");
        let mut command = Command::new("etcd");
        command.args(["--name", "n1", "--data-dir"]).arg(directory.path().join("data"));
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("n1={peer}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: prctl is safe to call between fork and exec. It ends the server when the test dies.
        unsafe { command.pre_exec(|| Ok(nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?)) };
        let child = command.spawn().expect("etcd starts");
        let mut server = Self { child, address, _directory: directory };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.leads() {
            let ended = server.child.try_wait().expect("a child");
            assert!(ended.is_none() && Instant::now() < deadline, "it does not lead: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn leads(&self) -> bool {
        self.ask("/v3/maintenance/status", "{}").is_ok_and(|answer| answer.contains("\"leader\""))
    }

    /// Its answer to a request over a connection of its own.
    pub fn ask(&self, path: &str, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    pub fn endpoint(&self, node: &str) -> Endpoint {
        Endpoint { node: node.to_owned(), address: self.address.into() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
