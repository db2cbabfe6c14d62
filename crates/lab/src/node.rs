//! One boot of a node: from the birth of its init to its power-off.
//!
//! A node that starts again is a new [`Node`] with the old address; only its volume carries over. Dropping one
//! powers it off.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};

use crate::addresses::Addresses;
use crate::attachment::{Attachment, AttachmentError, on_own_thread};
use crate::node_clock::NodeClock;
use crate::protocol::{Answer, FileAction, NodeSetUp, Request, StoppedProcess, Strike};
use crate::unasked_end::{UnaskedEnd, unasked};

/// Hidden subcommand of the program that makes it a node's init.
pub const INIT_SUBCOMMAND: &str = "node-init";

/// How long an init may take that is asked for something by whoever strikes and heals. It does one thing after the other,
/// and a file of its volume may keep it for as long as a fault of the disk stands.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// What can go wrong with a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// It could not be attached to the network.
    #[error("node {node}: {source}")]
    Attachment {
        node: String,
        /// The step of joining the network that failed.
        source: AttachmentError,
    },
    /// Its init could not be started or spoken to.
    #[error("node {node}: {step}: {source}")]
    Init {
        node: String,
        /// What was being done.
        step: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Its init could not set it up.
    #[error("node {node}: set-up: {why}")]
    SetUp {
        node: String,
        /// The init's own words: the step that failed, and the system's error.
        why: String,
    },
    /// A process could not be started.
    #[error("node {node}: {why}")]
    Spawn {
        node: String,
        /// The init's own words: the step that failed, and the system's error.
        why: String,
    },
    /// The node has no power.
    #[error("node {node} is off")]
    Off { node: String },
    /// Its init is at something else: a file of a volume whose disk does not answer.
    #[error("node {node} has not answered within {} s", ANSWERED_WITHIN.as_secs())]
    Busy { node: String },
}

/// A process of a node, for as long as this boot lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u64);

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Exit code, when it ended by itself.
    pub code: Option<i32>,
    /// Signal, when one ended it.
    pub signal: Option<i32>,
    /// Its standard output, where that was not logged.
    pub stdout: String,
    /// Its standard error, where that was not logged.
    pub stderr: String,
}

/// An init's sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Processes of the node that a signal has stopped.
    pub stopped: Vec<StoppedProcess>,
    /// Whether the init waited for its volume meanwhile, so that a late beat tells nothing about the lab.
    pub waited_for_volume: bool,
}

/// What a node is made of.
#[derive(Debug, Clone)]
pub struct BootPlan {
    pub name: String,
    pub addresses: Addresses,
    /// Folders and names its init sets up.
    pub set_up: NodeSetUp,
    /// Its clock, whose folder is in `set_up`, where it has one of its own.
    pub clock: Option<Arc<NodeClock>>,
}

#[derive(Debug, Default)]
struct Known {
    /// The init's number of its listener of execs, where it has one.
    ready: Option<Result<Option<i32>, String>>,
    spawned: BTreeMap<u64, Result<(), String>>,
    finished: BTreeMap<u64, Finished>,
    files: BTreeMap<u64, io::Result<String>>,
    /// File requests under way: the init waits for the volume in them, and answers nothing else meanwhile.
    files_asked: BTreeSet<u64>,
    beats: BTreeMap<u64, Vec<StoppedProcess>>,
    struck: BTreeMap<u64, Vec<i32>>,
    /// Programs by the number of their process, and whether it is to go on until it is told to end.
    running: BTreeMap<u64, (String, bool)>,
    /// Processes that the lab has sent a signal.
    signalled: BTreeSet<u64>,
    unasked_ends: Vec<UnaskedEnd>,
    next: u64,
    off: bool,
}

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Known>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node with power.
#[derive(Debug)]
pub struct Node {
    name: String,
    init: Mutex<Option<Child>>,
    init_pid: u32,
    pid_namespace: u64,
    socket: Mutex<UnixStream>,
    shared: Arc<Shared>,
    namespace: OwnedFd,
    cpu_after_death: Mutex<Duration>,
}

impl Node {
    /// Boots a node and waits until its init has set it up. Its interface's other end is returned beside it, for
    /// the fabric.
    ///
    /// # Errors
    /// When the kernel refuses a namespace, or the init cannot set the node up.
    pub fn boot(plan: &BootPlan) -> Result<(Node, OwnedFd), NodeError> {
        Node::boot_with(plan, || Ok(()))
    }

    /// Boots a node as [`Node::boot`] does. `dress` runs in its mount namespace before its init is born, and may mount
    /// over the folders that it will be shown.
    ///
    /// # Errors
    /// As [`Node::boot`], and what `dress` says.
    pub fn boot_with(
        plan: &BootPlan,
        dress: impl FnOnce() -> io::Result<()> + Send,
    ) -> Result<(Node, OwnedFd), NodeError> {
        let fail = |step| {
            let node = plan.name.clone();
            move |source| NodeError::Init { node, step, source }
        };
        let (ours, theirs) = UnixStream::pair().map_err(fail("socket pair"))?;
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(plan.set_up.logs.join("init.log"))
            .map_err(fail("open init.log"))?;
        let (attachment, child) = on_own_thread(|| born(plan.addresses, theirs, log, dress))
            .and_then(|made| made)
            .map_err(|source| NodeError::Attachment { node: plan.name.clone(), source })?;
        let pid_namespace = pid_namespace_of(child.id()).map_err(fail("read PID namespace"))?;
        let reader = ours.try_clone().map_err(fail("clone socket"))?;
        let node = Node {
            name: plan.name.clone(),
            init_pid: child.id(),
            init: Mutex::new(Some(child)),
            pid_namespace,
            socket: Mutex::new(ours),
            shared: Arc::default(),
            namespace: attachment.namespace,
            cpu_after_death: Mutex::default(),
        };
        let shared = node.shared.clone();
        std::thread::Builder::new()
            .name(format!("init {}", plan.name))
            .spawn(move || listen(&shared, reader))
            .map_err(fail("start listener"))?;
        node.send(&plan.set_up).map_err(fail("send set-up"))?;
        let ready = node.wait_for(|known| known.ready.clone())?;
        let fail_set_up = |why| NodeError::SetUp { node: plan.name.clone(), why };
        if let (Some(listener), Some(clock)) = (ready.map_err(fail_set_up)?, &plan.clock) {
            clock.keep(node.init_pid, listener).map_err(|error| fail_set_up(error.to_string()))?;
        }
        Ok((node, attachment.tun))
    }

    /// As it was made: `n1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its init's process number, as the lab sees it.
    #[must_use]
    pub fn init_pid(&self) -> u32 {
        self.init_pid
    }

    /// The inode of its PID namespace: every process of this boot is in it, and no other.
    #[must_use]
    pub fn pid_namespace(&self) -> u64 {
        self.pid_namespace
    }

    /// Its network namespace.
    #[must_use]
    pub fn namespace(&self) -> &OwnedFd {
        &self.namespace
    }

    /// Starts a process whose output is appended to the node's log file `log`.
    ///
    /// # Errors
    /// When the program cannot be started or the node is off.
    pub fn spawn(
        &self,
        program: &Path,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
        log: &str,
    ) -> Result<ProcessId, NodeError> {
        self.start((program, arguments, environment), Some(log.to_owned()), None)
    }

    /// Runs a process to its end.
    ///
    /// # Errors
    /// When the program cannot be started, or the node loses power meanwhile.
    pub fn run(
        &self,
        program: &Path,
        arguments: &[String],
        environment: &BTreeMap<String, String>,
    ) -> Result<Finished, NodeError> {
        let process = self.start((program, arguments, environment), None, None)?;
        self.wait_for(|known| known.finished.remove(&process.0))
    }

    /// The same of a program that has nothing to wait for.
    ///
    /// # Errors
    /// As [`Node::run`]; and when it has not ended within 10 s.
    pub fn run_briefly(&self, program: &Path, arguments: &[String]) -> Result<Finished, NodeError> {
        let deadline = Some(Instant::now() + ANSWERED_WITHIN);
        let process = self.start((program, arguments, &BTreeMap::new()), None, deadline)?;
        self.wait_for_until(deadline, |known| known.finished.remove(&process.0))
    }

    /// Whether the process still runs.
    #[must_use]
    pub fn is_running(&self, process: ProcessId) -> bool {
        let known = self.shared.lock();
        !known.off && known.running.contains_key(&process.0)
    }

    /// Sends a process a signal; one that has ended is left alone.
    ///
    /// # Errors
    /// When the node is off.
    pub fn signal(&self, process: ProcessId, signal: i32) -> Result<(), NodeError> {
        self.shared.lock().signalled.insert(process.0);
        self.send(&Request::Signal { process: process.0, signal })
            .map_err(|_| NodeError::Off { node: self.name.clone() })
    }

    /// Sends the database's processes a signal, whoever started them; the numbers that the node knows them by.
    ///
    /// # Errors
    /// When the node is off, or loses power meanwhile; when it does not answer in time, and then the signal comes late.
    pub fn strike_processes(&self, strike: Strike) -> Result<Vec<i32>, NodeError> {
        self.ask_for_pids(|number| Request::Strike { number, strike })
    }

    /// Lets the processes go on that strikes have stopped for this one and for nobody else.
    ///
    /// # Errors
    /// As [`Node::strike_processes`].
    pub fn resume_processes(&self, holder: u64) -> Result<Vec<i32>, NodeError> {
        self.ask_for_pids(|number| Request::Resume { number, holder })
    }

    fn ask_for_pids(&self, request: impl FnOnce(u64) -> Request) -> Result<Vec<i32>, NodeError> {
        let number = {
            let mut known = self.shared.lock();
            known.next += 1;
            known.next
        };
        self.send(&request(number)).map_err(|_| NodeError::Off { node: self.name.clone() })?;
        let deadline = Instant::now() + ANSWERED_WITHIN;
        self.wait_for_until(Some(deadline), |known| known.struck.remove(&number))
    }

    /// Whether the node has power.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.shared.lock().off
    }

    /// Strikes the init dead without waiting, so that what serves the node's volume can go before its processes notice.
    /// To be followed by [`Node::power_off`].
    pub fn strike(&self) {
        if let Some(init) = self.init.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            // An init that has ended by itself needs no signal.
            let _ = init.kill();
        }
    }

    /// Does something with a file of the volume, from inside. Returns what was read.
    ///
    /// # Errors
    /// What the volume says; `NotConnected` when the node is off.
    pub fn file(&self, path: &Path, action: FileAction) -> io::Result<String> {
        let off = || io::Error::new(io::ErrorKind::NotConnected, format!("node {} is off", self.name));
        let number = {
            let mut known = self.shared.lock();
            known.next += 1;
            known.next
        };
        let request = Request::File { number, path: path.to_owned(), action };
        self.shared.lock().files_asked.insert(number);
        let answered = self
            .send(&request)
            .map_err(|_| off())
            .and_then(|()| self.wait_for(|known| known.files.remove(&number)).map_err(|_| off()));
        self.shared.lock().files_asked.remove(&number);
        answered?
    }

    /// Asks the init for a sign of life, and waits for it.
    ///
    /// # Errors
    /// When the node is off, or loses power meanwhile.
    pub fn beat(&self) -> Result<Beat, NodeError> {
        let (number, busy_before) = {
            let mut known = self.shared.lock();
            known.next += 1;
            (known.next, !known.files_asked.is_empty())
        };
        self.send(&Request::Beat { number }).map_err(|_| NodeError::Off { node: self.name.clone() })?;
        self.wait_for(|known| {
            let stopped = known.beats.remove(&number)?;
            // One that was asked for after the beat is behind it in the init's queue.
            let waited_for_volume = busy_before || known.files_asked.range(..number).next().is_some();
            Some(Beat { stopped, waited_for_volume })
        })
    }

    /// The processes that ended though the lab had not asked them to, since this was asked last.
    #[must_use]
    pub fn take_unasked_ends(&self) -> Vec<UnaskedEnd> {
        std::mem::take(&mut self.shared.lock().unasked_ends)
    }

    /// Cuts the power: SIGKILL to the init, on which the kernel kills every process of the node. Returns when they
    /// are gone. Without effect on a node that is off.
    pub fn power_off(&self) {
        let Some(mut init) = self.init.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // An init that has ended by itself needs no signal; the wait below reaps it either way.
        let _ = init.kill();
        let used = wait_with_cpu_time(init.id());
        *self.cpu_after_death.lock().unwrap_or_else(PoisonError::into_inner) = used;
        let mut known = self.shared.lock();
        known.off = true;
        self.shared.changed.notify_all();
    }

    /// CPU time of all its processes that are no longer there, known once the node is off.
    #[must_use]
    pub fn cpu_after_death(&self) -> Duration {
        *self.cpu_after_death.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(
        &self,
        (program, arguments, environment): (&Path, &[String], &BTreeMap<String, String>),
        log: Option<String>,
        deadline: Option<Instant>,
    ) -> Result<ProcessId, NodeError> {
        let process = {
            let mut known = self.shared.lock();
            known.next += 1;
            let number = known.next;
            known.running.insert(number, (program.display().to_string(), log.is_some()));
            number
        };
        let request = Request::Spawn {
            process,
            program: PathBuf::from(program),
            arguments: arguments.to_vec(),
            environment: environment.clone(),
            log,
        };
        self.send(&request).map_err(|_| NodeError::Off { node: self.name.clone() })?;
        self.wait_for_until(deadline, |known| known.spawned.remove(&process))?
            .map(|()| ProcessId(process))
            .map_err(|why| NodeError::Spawn { node: self.name.clone(), why })
    }

    fn send(&self, message: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_string(message).map_err(io::Error::other)?;
        line.push('\n');
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
    }

    fn wait_for<T>(&self, look: impl FnMut(&mut Known) -> Option<T>) -> Result<T, NodeError> {
        self.wait_for_until(None, look)
    }

    fn wait_for_until<T>(
        &self,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut Known) -> Option<T>,
    ) -> Result<T, NodeError> {
        let mut known = self.shared.lock();
        loop {
            if let Some(found) = look(&mut known) {
                return Ok(found);
            }
            if known.off {
                return Err(NodeError::Off { node: self.name.clone() });
            }
            let changed = &self.shared.changed;
            known = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => changed.wait(known).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return Err(NodeError::Busy { node: self.name.clone() }),
                Some(left) => changed.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.power_off();
    }
}

/// On the maker thread: a fresh network namespace with its interface, then an init in fresh namespaces of the
/// other kinds.
fn born(
    addresses: Addresses,
    socket: UnixStream,
    log: File,
    dress: impl FnOnce() -> io::Result<()>,
) -> Result<(Attachment, Child), AttachmentError> {
    use std::os::unix::process::CommandExt;
    let attachment = Attachment::make_here(addresses)?;
    let kinds = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    unshare(kinds).map_err(|error| AttachmentError::Namespace(error.into()))?;
    dress().map_err(AttachmentError::Dress)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(INIT_SUBCOMMAND).env_clear().stdin(OwnedFd::from(socket));
    command.stdout(Stdio::null()).stderr(log);
    // SAFETY: setsid(2) is async-signal-safe. Having anything to run here also makes the standard library fork
    // instead of sharing memory with the child, which a new PID namespace needs.
    unsafe { command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(io::Error::from)) };
    let child = command.spawn().map_err(AttachmentError::Namespace)?;
    Ok((attachment, child))
}

fn pid_namespace_of(pid: u32) -> io::Result<u64> {
    Ok(std::fs::metadata(format!("/proc/{pid}/ns/pid"))?.ino())
}

fn listen(shared: &Shared, socket: UnixStream) {
    for line in BufReader::new(socket).lines() {
        let Ok(line) = line else { break };
        let Ok(answer) = serde_json::from_str::<Answer>(&line) else { break };
        let mut known = shared.lock();
        match answer {
            Answer::Ready { listener } => known.ready = Some(Ok(listener)),
            Answer::SetUpFailed { why } => known.ready = Some(Err(why)),
            Answer::Spawned { process } => {
                known.spawned.insert(process, Ok(()));
            }
            Answer::SpawnFailed { process, why } => {
                known.running.remove(&process);
                known.spawned.insert(process, Err(why));
            }
            Answer::FileDone { number, content } => {
                known.files.insert(number, Ok(content));
            }
            Answer::FileFailed { number, error, why } => {
                let error = error.map_or_else(|| io::Error::other(why), io::Error::from_raw_os_error);
                known.files.insert(number, Err(error));
            }
            Answer::Beat { number, stopped } => {
                known.beats.insert(number, stopped);
            }
            Answer::Struck { number, pids, processes } => {
                known.signalled.extend(processes);
                known.struck.insert(number, pids);
            }
            Answer::OrphanKilled { program, signal } => {
                known.unasked_ends.push(UnaskedEnd { program, signal: Some(signal) });
            }
            Answer::Exited { process, code, signal, stdout, stderr } => {
                let (program, lasts) = known.running.remove(&process).unwrap_or_default();
                if !known.signalled.remove(&process) {
                    known.unasked_ends.extend(unasked(&program, (code, signal), lasts));
                }
                known.finished.insert(process, Finished { code, signal, stdout, stderr });
            }
        }
        shared.changed.notify_all();
    }
    shared.lock().off = true;
    shared.changed.notify_all();
}

/// Waits for the process to end and returns the CPU time of it and of all its descendants that were waited for:
/// a PID namespace's init inherits and reaps them all as it dies (wait4(2), pid_namespaces(7)).
fn wait_with_cpu_time(pid: u32) -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    loop {
        // SAFETY: both pointers are to live locals of the right type; the process is a child that nobody else waits for.
        let waited = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
        if waited >= 0 {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Duration::ZERO;
        }
    }
    // SAFETY: zeroed is a valid rusage, and wait4 has filled it.
    let usage = unsafe { usage.assume_init() };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}
