//! A stand-in for the lab: nodes that are plain processes on loopback addresses of this machine, with power switches.
//!
//! Owns their processes and folders and removes both whatever happens. Isolates nothing.

#![allow(dead_code)] // The example `boot_cost` uses a part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{self, Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{Command, Finished, Installation, Node, NodeError, Origin, ProcessId, Signal, Status};

/// The ordinary user the servers run as when the tests run as root, whom PostgreSQL refuses.
const NOBODY: u32 = 65534;

pub struct LoopbackNode {
    name: String,
    address: IpAddr,
    home: PathBuf,
    boots: AtomicU64,
    next: AtomicU64,
    children: Mutex<BTreeMap<u64, Child>>,
}

fn is_root() -> bool {
    // SAFETY: asks for a number and has no other effect.
    unsafe { libc::geteuid() == 0 }
}

fn send(pid: u32, signal: i32) {
    // SAFETY: the process is ours and not yet waited for, or a child of one that is, so the number is still its own.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

fn folder(path: &Path) {
    fs::create_dir_all(path).expect("a folder");
    if is_root() {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("a folder of the database's user");
    }
}

/// Processes whose parent is `parent`.
fn children_of(parent: u32) -> Vec<u32> {
    let mut children = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may hold anything; the parent is the second field after it.
        let parent_of =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        if parent_of == Some(parent) {
            children.push(pid);
        }
    }
    children
}

/// What PostgreSQL's processes share in the machine's memory. Nobody but them removes it, and those that are killed do not.
fn segments_of(pid: u32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths.filter(|path| path.starts_with("/dev/shm/PostgreSQL.")).map(PathBuf::from).collect()
}

impl LoopbackNode {
    fn new(name: &str, last_byte: u8, machine: &Path) -> Self {
        let home = machine.join(name);
        for path in [home.clone(), home.join("volume"), home.join("run")] {
            folder(&path);
        }
        Self {
            name: name.to_owned(),
            address: IpAddr::from([127, 0, 0, last_byte]),
            home,
            boots: AtomicU64::new(1),
            next: AtomicU64::new(1),
            children: Mutex::default(),
        }
    }

    /// Every process of the node: its servers and theirs.
    pub fn processes(&self) -> Vec<u32> {
        let children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        let servers: Vec<u32> = children.values().map(Child::id).collect();
        servers.iter().copied().chain(servers.iter().flat_map(|pid| children_of(*pid))).collect()
    }

    /// Stops every process where it is, or lets them go on.
    pub fn pause(&self, paused: bool) {
        for pid in self.processes() {
            send(pid, if paused { libc::SIGSTOP } else { libc::SIGCONT });
        }
    }

    /// Everything ends at once, without a chance to tidy up; the node is then as good as booted again.
    pub fn power_off(&self) {
        self.crash();
        self.boots.fetch_add(1, Ordering::SeqCst);
    }

    /// Everything ends at once, but the machine stays up.
    pub fn crash(&self) {
        // Stopped first, so that no parent makes another process while its children are looked for.
        self.pause(true);
        let processes = self.processes();
        let segments: BTreeSet<PathBuf> = processes.iter().flat_map(|pid| segments_of(*pid)).collect();
        for pid in processes {
            send(pid, libc::SIGKILL);
        }
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        for child in children.values_mut() {
            let _ = child.wait();
        }
        children.clear();
        for segment in segments {
            let _ = fs::remove_file(segment);
        }
    }

    fn prepared(&self, command: &Command) -> process::Command {
        let mut prepared = process::Command::new(&command.program);
        prepared.args(&command.arguments).env_clear().envs(&command.environment).current_dir(&self.home);
        prepared.stdin(Stdio::null()).process_group(0);
        if is_root() {
            prepared.uid(NOBODY).gid(NOBODY);
        }
        prepared
    }

    fn start_error(&self, command: &Command, source: io::Error) -> NodeError {
        NodeError::Start { node: self.name.clone(), program: command.program.clone(), source }
    }

    pub fn volume(&self) -> PathBuf {
        self.home.join("volume")
    }

    pub fn log(&self, log: &str) -> String {
        fs::read_to_string(self.home.join(format!("{log}.log"))).unwrap_or_default()
    }
}

impl Drop for LoopbackNode {
    fn drop(&mut self) {
        self.power_off();
    }
}

impl Node for LoopbackNode {
    fn name(&self) -> &str {
        &self.name
    }
    fn address(&self) -> IpAddr {
        self.address
    }
    fn boot(&self) -> u64 {
        self.boots.load(Ordering::SeqCst)
    }
    fn data_directory(&self) -> PathBuf {
        self.volume()
    }
    fn socket_directory(&self) -> PathBuf {
        self.home.join("run")
    }
    fn socket_directory_outside(&self) -> PathBuf {
        self.home.join("run")
    }
    fn write_file(&self, path: &Path, content: &str) -> io::Result<()> {
        let target = self.volume().join(path);
        let mut fresh = target.clone().into_os_string();
        fresh.push(".fresh");
        fs::write(&fresh, content)?;
        if is_root() {
            chown(&fresh, Some(NOBODY), Some(NOBODY))?;
        }
        fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
        fs::rename(&fresh, target)
    }
    fn read_file(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.volume().join(path))
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.volume().join(path))
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.volume().join(path).try_exists()
    }
    fn connect(&self, port: u16, patience: Duration) -> io::Result<TcpStream> {
        TcpStream::connect_timeout(&SocketAddr::new(self.address, port), patience)
    }
    fn run(&self, command: &Command) -> Result<Finished, NodeError> {
        let output = self.prepared(command).output().map_err(|source| self.start_error(command, source))?;
        let status = match output.status.code() {
            Some(code) => Status::Exited(code),
            None => Status::Signalled(output.status.signal().unwrap_or_default()),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Finished { status, stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }
    fn spawn(&self, command: &Command, log: &str) -> Result<ProcessId, NodeError> {
        let log = File::options().create(true).append(true).open(self.home.join(format!("{log}.log")));
        let fail = |source| self.start_error(command, source);
        let log = log.map_err(fail)?;
        let second = log.try_clone().map_err(fail)?;
        let child = self.prepared(command).stdout(log).stderr(second).spawn().map_err(fail)?;
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        self.children.lock().unwrap_or_else(PoisonError::into_inner).insert(number, child);
        Ok(ProcessId(number))
    }
    fn signal(&self, process: ProcessId, signal: Signal) -> Result<(), NodeError> {
        let children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = children.get(&process.0) {
            send(child.id(), signal.number());
        }
        Ok(())
    }
    fn is_running(&self, process: ProcessId) -> bool {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        match children.get_mut(&process.0).map(Child::try_wait) {
            None => false,
            Some(Ok(None)) => true,
            Some(_) => {
                children.remove(&process.0);
                false
            }
        }
    }
    fn log_tail(&self, log: &str, lines: usize) -> String {
        let text = self.log(log);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// Nodes `n1`, `n2` ... with their folders. Nodes come first, so that they end before their folders go.
pub struct Machines {
    pub nodes: Vec<Arc<LoopbackNode>>,
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Machines {
    pub fn new(count: u8) -> Self {
        let folder = tempfile::Builder::new().prefix("holdfast-engine-").tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let nodes = (1..=count)
            .map(|number| Arc::new(LoopbackNode::new(&format!("n{number}"), number + 1, folder.path())))
            .collect();
        // A port that is free now on one address; others of the machine hardly ever use these addresses.
        let port = TcpListener::bind("127.0.0.2:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        Self { nodes, port, folder }
    }

    /// The installation as the servers' user can reach it. A cache lies in a home, which nobody but its owner may be able to
    /// enter; where root runs the tests, and the servers another user, that user gets a copy, and may enter it.
    pub fn reachable(&self, installation: Installation) -> Installation {
        if !is_root() || !matches!(installation.origin, Origin::Cache | Origin::Installed) {
            return installation;
        }
        let copy = self.folder.path().join("programs");
        let copied = process::Command::new("cp").arg("-a").arg(&installation.root).arg(&copy).status();
        assert!(copied.expect("cp").success(), "a copy of {}", installation.root.display());
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("permissions");
        let there = |path: &Path| copy.join(path.strip_prefix(&installation.root).expect("within its root"));
        Installation {
            bin: there(&installation.bin),
            library_path: installation.library_path.as_deref().map(there),
            root: copy.clone(),
            // Those that lie elsewhere are the machine's, which everybody can reach.
            programs: installation
                .programs
                .iter()
                .map(|(name, path)| match path.strip_prefix(&installation.root) {
                    Ok(_) => (name.clone(), there(path)),
                    Err(_) => (name.clone(), path.clone()),
                })
                .collect(),
            ..installation.clone()
        }
    }

    /// Some of the nodes by their numbers from 1.
    pub fn some(&self, numbers: &[usize]) -> Vec<Arc<dyn Node>> {
        numbers.iter().map(|number| Arc::clone(&self.nodes[number - 1]) as Arc<dyn Node>).collect()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.power_off();
        }
    }
}

/// The server to test with, or a loud word on standard error that nothing was tested.
pub fn server() -> Option<Installation> {
    let explicit = std::env::var_os("HOLDFAST_TEST_POSTGRES").map(PathBuf::from);
    match engine::postgres::find(explicit.as_deref()) {
        Ok(installation) => Some(installation),
        Err(error) => {
            // Written past the test harness, which would keep it to itself.
            let _ = writeln!(io::stderr(), "SKIPPED, NOTHING WAS TESTED: {error}");
            None
        }
    }
}

#[test]
fn a_cache_that_only_its_owner_may_enter_is_reached_by_the_servers_user() {
    if !is_root() {
        let test = "a_cache_that_only_its_owner_may_enter_is_reached_by_the_servers_user";
        return eprintln!("skipped: {test}: only root runs servers as another user");
    }
    let home = tempfile::tempdir().expect("a folder");
    let root = home.path().join("stand-in-1.0");
    let program = root.join("bin/server");
    fs::create_dir_all(root.join("bin")).expect("a folder");
    fs::write(&program, "#!/bin/sh\necho reached\n").expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
    for private in [home.path(), root.as_path()] {
        fs::set_permissions(private, fs::Permissions::from_mode(0o700)).expect("permissions");
    }
    let installation = Installation {
        bin: root.join("bin"),
        version: "1.0".to_owned(),
        origin: Origin::Cache,
        library_path: None,
        root: root.clone(),
        programs: BTreeMap::from([("server".to_owned(), program)]),
        system: None,
    };
    let machines = Machines::new(1);
    let run = |installation: &Installation| {
        let program = installation.programs["server"].clone();
        machines.nodes[0].run(&Command { program, arguments: Vec::new(), environment: BTreeMap::new() })
    };
    assert!(run(&installation).is_err(), "nobody but its owner can enter it where it is");
    let finished = run(&machines.reachable(installation)).expect("it is run");
    assert_eq!((finished.status, finished.stdout.as_str()), (Status::Exited(0), "reached\n"));
}
