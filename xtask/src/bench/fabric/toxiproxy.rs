//! The peer: toxiproxy, built from its Go module into the target folder, started inside a place and told over its HTTP
//! interface what to do. Source: its README, "HTTP API".

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde_json::json;

/// Name and version of what is built.
const MODULE: &str = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0";
/// What it is called in the result.
pub const NAME: &str = "toxiproxy 2.12.0";

/// Where its control interface listens.
const CONTROL: &str = "127.0.0.1:8474";
/// Where the proxy listens for the client.
const LISTEN: &str = "127.0.0.1:20000";
/// Long enough for it to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Builds the program, unless it is there already.
///
/// # Errors
/// When there is no `go`, or the module cannot be had or built.
pub fn build() -> anyhow::Result<PathBuf> {
    let folder = crate::target_directory().join("bench/toxiproxy");
    let program = folder.join("bin/server");
    if program.exists() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let output = Command::new("go")
        .args(["install", MODULE])
        .env("GOBIN", folder.join("bin"))
        .env("GOPATH", folder.join("go"))
        .env("GOCACHE", folder.join("cache"))
        .env("GOFLAGS", "-modcacherw")
        .output()
        .context("start go")?;
    ensure!(output.status.success(), "go install {MODULE}: {}", String::from_utf8_lossy(&output.stderr));
    ensure!(program.exists(), "go install {MODULE} left no {}", program.display());
    Ok(program)
}

/// A running proxy. Ends when dropped.
#[derive(Debug)]
pub struct Toxiproxy {
    child: Child,
}

impl Toxiproxy {
    /// Starts the program in the calling thread's network namespace.
    ///
    /// # Errors
    /// When it does not start to listen.
    pub fn start(program: &Path) -> anyhow::Result<Toxiproxy> {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env("LOG_LEVEL", "error");
        let proxy =
            Toxiproxy { child: command.spawn().with_context(|| format!("start {}", program.display()))? };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(CONTROL).is_err() {
            ensure!(Instant::now() < deadline, "toxiproxy does not listen at {CONTROL}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(proxy)
    }

    /// CPU time it has used so far.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let clock = clock_getcpuclockid(Pid::from_raw(self.child.id().cast_signed()))?;
        Ok(clock_gettime(clock)?.into())
    }
}

impl Drop for Toxiproxy {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the proxy does to a connection on its way from the client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Toxic {
    /// Passes it on.
    None,
    /// Delays it.
    Delay(Duration),
    /// Holds it to a rate of payload.
    Rate {
        /// Bits a second.
        bits_per_s: u64,
    },
}

/// Puts the proxy in front of `upstream`, from the calling thread's network namespace: where to connect instead.
///
/// # Errors
/// When it refuses.
pub fn put_before(upstream: SocketAddr, toxic: Toxic) -> anyhow::Result<SocketAddr> {
    request("POST", "/reset", "")?;
    let _ = request("DELETE", "/proxies/peer", "");
    let proxy =
        json!({ "name": "peer", "listen": LISTEN, "upstream": upstream.to_string(), "enabled": true });
    request("POST", "/proxies", &proxy.to_string())?;
    let toxic = match toxic {
        Toxic::None => None,
        Toxic::Delay(delay) => Some(("latency", json!({ "latency": delay.as_millis() as u64 }))),
        // Its rates count thousands of bytes a second.
        Toxic::Rate { bits_per_s } => Some(("bandwidth", json!({ "rate": bits_per_s / 8000 }))),
    };
    if let Some((kind, attributes)) = toxic {
        let toxic = json!({ "type": kind, "stream": "upstream", "toxicity": 1.0, "attributes": attributes });
        request("POST", "/proxies/peer/toxics", &toxic.to_string())?;
    }
    Ok(LISTEN.parse()?)
}

fn request(method: &str, path: &str, body: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(CONTROL).context("connect to toxiproxy")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: xtask\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.split_ascii_whitespace().nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!("toxiproxy: {method} {path}: {}", answer.lines().next().unwrap_or("no answer"));
    }
    Ok(answer)
}
