//! PID 1 of a node: lets it be furnished, starts its processes, reaps them, and answers the lab.
//!
//! Killing it is the power-off: the kernel ends every process of the node at once, with no chance to tidy up.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::beneath;
use crate::furnishing::{Furnishing, FurnishingError, Limits, become_node_user, furnish};
use crate::node_clock::NodeClock;
use crate::node_processes::all_processes;
use crate::orphans::Orphans;
use crate::protocol::{Answer, NodeSetUp, Request, VOLUME, WholeMachine};
use crate::stopped_processes::StoppedProcesses;
use crate::struck_processes::StruckProcesses;
use crate::supervisor::keep_standard_descriptors_only;
use crate::volume_files::VolumeFiles;

/// Output kept of a process whose output comes back in the answer.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// What can go wrong in an init.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// The lab's end of the socket is gone or speaks nonsense.
    #[error("lab connection: {0}")]
    Connection(#[from] io::Error),
    /// The node could not be set up.
    #[error(transparent)]
    SetUp(#[from] FurnishingError),
    /// The filter of execs was refused.
    #[error("filter execs (seccomp): {0}")]
    Filter(io::Error),
    /// The node is to be a whole machine and cannot.
    #[error("{step}: {source}")]
    WholeMachine {
        step: String,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// The whole life of a node's init. Standard input is the socket to the lab. Returns when the lab hangs up.
///
/// # Errors
/// When the node cannot be set up or the connection breaks.
pub fn main() -> Result<(), InitError> {
    // SAFETY: descriptor 0 is the socket that the lab gave this process; nothing else here uses standard input.
    let socket = unsafe { UnixStream::from(OwnedFd::from_raw_fd(0)) };
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let set_up: NodeSetUp = serde_json::from_str(&line).map_err(io::Error::other)?;
    let mut lab = Lab(socket);
    let logs = open_folder(&set_up.logs)?;
    // While the machine's files are to be seen.
    let open = |path: &PathBuf| OpenOptions::new().write(true).open(path);
    let groups: Vec<File> = set_up.groups.iter().map(open).collect::<io::Result<_>>()?;
    let (limits, listener) = match prepare(&set_up) {
        Ok(prepared) => prepared,
        Err(error) => {
            lab.answer(&Answer::SetUpFailed { why: error.to_string() })?;
            return Err(error);
        }
    };
    let signals = block_child_signal()?;
    lab.answer(&Answer::Ready { listener: listener.as_ref().map(AsRawFd::as_raw_fd) })?;
    let users_mapped = set_up.users_mapped;
    let is_root = set_up.whole_machine.is_some();
    let folder = folder_of_programs(&set_up);
    let files = VolumeFiles::new(open_folder(Path::new(VOLUME))?, users_mapped);
    let mut init = Init {
        lab,
        logs,
        groups: groups.into(),
        files,
        limits: Arc::new(limits),
        users_mapped,
        is_root,
        folder,
        processes: BTreeMap::new(),
        stopped: StoppedProcesses::default(),
        struck: StruckProcesses::default(),
        orphans: Orphans::default(),
        listener,
    };
    init.serve(reader, &signals)
}

/// Furnishes the node and, where it has a clock of its own, sees to it that the lab is asked about every program from now on.
fn prepare(set_up: &NodeSetUp) -> Result<(Limits, Option<OwnedFd>), InitError> {
    set_up.whole_machine.as_ref().map_or(Ok(()), |machine| enter_groups(machine, set_up.users_mapped))?;
    let limits = furnish(&Furnishing::of_node(set_up))?;
    let listener = set_up.clock.as_ref().map(|_| clock::install()).transpose().map_err(InitError::Filter)?;
    Ok((limits, listener))
}

/// Moves this process into the node's groups, which all that it starts inherits, and lets nothing of the groups above be seen.
fn enter_groups(machine: &WholeMachine, users_mapped: bool) -> Result<(), InitError> {
    let fail = |step: String| move |source: io::Error| InitError::WholeMachine { step, source };
    if !users_mapped {
        let why = "only in a lab made by root may a node's processes be root".to_owned();
        return Err(fail(why)(io::ErrorKind::PermissionDenied.into()));
    }
    for hierarchy in &machine.hierarchies {
        let processes = hierarchy.group.join("cgroup.procs");
        std::fs::write(&processes, "0").map_err(fail(format!("enter {}", processes.display())))?;
    }
    let apart = unshare(CloneFlags::CLONE_NEWCGROUP).map_err(io::Error::from);
    apart.map_err(fail("new control group namespace".to_owned()))
}

/// The folder that programs start in: the root, but for a system that says otherwise and in which it is to be seen.
fn folder_of_programs(set_up: &NodeSetUp) -> PathBuf {
    let system = set_up.programs.iter().find_map(|programs| programs.system.as_ref());
    let folder = system.map(|system| system.folder.clone()).filter(|folder| folder.is_dir());
    folder.unwrap_or_else(|| PathBuf::from("/"))
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
}

fn block_child_signal() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

struct Process {
    number: u64,
    stdout: Option<File>,
    stderr: Option<File>,
}

/// The lab at the other end.
struct Lab(UnixStream);

impl Lab {
    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let mut line = serde_json::to_string(answer).map_err(io::Error::other)?;
        line.push('\n');
        self.0.write_all(line.as_bytes())
    }
}

struct Init {
    lab: Lab,
    /// Where logs are: the lab's folder, which no process of the node sees.
    logs: OwnedFd,
    /// The ways into the control groups of what is started and left running.
    groups: Arc<[File]>,
    files: VolumeFiles,
    limits: Arc<Limits>,
    users_mapped: bool,
    /// Whether what is started is root of the lab.
    is_root: bool,
    /// The folder that programs start in.
    folder: PathBuf,
    processes: BTreeMap<i32, Process>,
    stopped: StoppedProcesses,
    struck: StruckProcesses,
    orphans: Orphans,
    /// Where the node has a clock of its own. Without it no program could be started; the lab has another of the same.
    listener: Option<OwnedFd>,
}

impl Init {
    fn serve(&mut self, mut reader: BufReader<UnixStream>, signals: &SignalFd) -> Result<(), InitError> {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        loop {
            if reader.buffer().is_empty() {
                let socket = self.lab.0.try_clone()?;
                let mut waiting = [
                    PollFd::new(socket.as_fd(), PollFlags::POLLIN),
                    PollFd::new(signals.as_fd(), PollFlags::POLLIN),
                ];
                match poll(&mut waiting, PollTimeout::NONE) {
                    Ok(_) | Err(nix::Error::EINTR) => {}
                    Err(error) => return Err(io::Error::from(error).into()),
                }
                let readable =
                    |waiting: &PollFd<'_>| waiting.revents().is_some_and(|events| !events.is_empty());
                if readable(&waiting[1]) {
                    while matches!(signals.read_signal(), Ok(Some(_))) {}
                    self.reap()?;
                }
                if !readable(&waiting[0]) {
                    continue;
                }
            }
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let request = serde_json::from_str(&line).map_err(io::Error::other)?;
            self.obey(request)?;
        }
    }

    fn obey(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Spawn { process, program, arguments, environment, log } => {
                let answer = match self.spawn(process, &program, &arguments, &environment, log.as_deref()) {
                    Ok(()) => Answer::Spawned { process },
                    Err(error) => {
                        Answer::SpawnFailed { process, why: format!("start {}: {error}", program.display()) }
                    }
                };
                self.lab.answer(&answer)
            }
            Request::File { number, path, action } => {
                let answer = self.files.answer(number, &path, &action);
                self.lab.answer(&answer)
            }
            Request::Beat { number } => {
                let stopped = self.stopped.look(|all, now| self.orphans.look(all, now));
                let stopped = self.struck.others(stopped);
                self.lab.answer(&Answer::Beat { number, stopped })
            }
            Request::Strike { number, strike } => {
                let pids = self.struck.strike(&strike);
                if strike.signal == libc::SIGKILL {
                    self.orphans.excuse(&pids);
                }
                let started = pids.iter().filter_map(|pid| self.processes.get(pid));
                let processes = started.map(|process| process.number).collect();
                self.lab.answer(&Answer::Struck { number, pids, processes })
            }
            Request::Resume { number, holder } => {
                let pids = self.struck.resume(holder);
                // What was seen standing still is seen so no more.
                self.stopped = StoppedProcesses::default();
                self.lab.answer(&Answer::Struck { number, pids, processes: Vec::new() })
            }
            Request::Signal { process, signal } => {
                let found = self.processes.iter().find(|(_, known)| known.number == process);
                if let Some((pid, _)) = found {
                    self.orphans.excuse_family(*pid, &all_processes());
                    // SAFETY: kill(2) takes no pointers. A process that has just ended is still ours to reap, so
                    // its number cannot belong to another.
                    unsafe { libc::kill(*pid, signal) };
                }
                Ok(())
            }
        }
    }

    fn spawn(
        &mut self,
        number: u64,
        program: &Path,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
        log: Option<&str>,
    ) -> io::Result<()> {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(environment).current_dir(&self.folder).stdin(Stdio::null());
        if self.listener.is_some() {
            let (name, value) = NodeClock::waits_in(environment);
            command.env(name, value);
        }
        let mut process = Process { number, stdout: None, stderr: None };
        if let Some(name) = log {
            let file = beneath::append_to_file(&self.logs, Path::new(name))?;
            command.stdout(file.try_clone()?).stderr(file);
        } else {
            let stdout = File::from(memfd_create("stdout", MFdFlags::MFD_CLOEXEC)?);
            let stderr = File::from(memfd_create("stderr", MFdFlags::MFD_CLOEXEC)?);
            command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
            process.stdout = Some(stdout);
            process.stderr = Some(stderr);
        }
        let (users_mapped, is_root, limits) = (self.users_mapped, self.is_root, self.limits.clone());
        // What ends soon and is waited for does its work for the lab, which is not to wait among a busy database's threads.
        let groups = log.is_some().then(|| self.groups.clone());
        // SAFETY: between fork and exec the child makes only system calls, and plain file writes without locks
        // that another thread could hold: an init has one thread.
        unsafe {
            command.pre_exec(move || {
                // A process that cannot move stays: nothing but the lab's own ease depends on it.
                for mut group in groups.as_deref().into_iter().flatten() {
                    let _ = group.write_all(b"0");
                }
                become_apart()?;
                if is_root { Ok(()) } else { become_node_user(users_mapped, &limits) }
            })
        };
        let child = command.spawn()?;
        // Every child is reaped in one place, by number; dropping `Child` neither waits nor kills.
        self.processes.insert(child.id() as i32, process);
        Ok(())
    }

    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, code, signal) = match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Some(code), None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, Some(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(nix::Error::ECHILD) => return Ok(()),
                Ok(_) | Err(nix::Error::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let killed_orphan = self.orphans.ended(pid.as_raw(), signal, Instant::now());
            // Anything else was an orphan that came to us as PID 1.
            if let Some(process) = self.processes.remove(&pid.as_raw()) {
                let stdout = read_back(process.stdout)?;
                let stderr = read_back(process.stderr)?;
                self.lab.answer(&Answer::Exited { process: process.number, code, signal, stdout, stderr })?;
            } else if let (Some(program), Some(signal)) = (killed_orphan, signal) {
                self.lab.answer(&Answer::OrphanKilled { program, signal })?;
            }
        }
    }
}

fn read_back(file: Option<File>) -> io::Result<String> {
    let Some(mut file) = file else { return Ok(String::new()) };
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Runs in the child between fork and exec.
fn become_apart() -> io::Result<()> {
    nix::unistd::setsid()?;
    SigSet::all().thread_unblock()?;
    keep_standard_descriptors_only();
    Ok(())
}
