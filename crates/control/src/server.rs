//! A node's process: sockets, the journal's file, the clocks, and one thread that feeds the replica.
//!
//! Owns all the I/O of the control database, and nothing else of it. Every batch of events is journalled with one sync
//! before anything that follows from it leaves the node.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Flaw;
use crate::chance::Chance;
use crate::journal::{self, JournalError};
use crate::message::Message;
use crate::replica::{Acknowledgements, Event, Kept, Output, Record, Replica, RequestId, Settings, Status};
use crate::transaction::{Answer, Operation};
use crate::wire::{self, Ask, Tell, WireError};

/// The hidden door of the program that runs a node; its one argument is a [`Node`] in JSON.
pub const SUBCOMMAND: &str = "control-node";
/// The name of a node's own socket, for those on its machine.
pub const SOCKET: &str = "control.socket";
/// The journal's name on the volume.
const JOURNAL: &str = "control.journal";
/// The most events that one sync of the journal serves.
const BATCH_MAX: usize = 1_024;
/// Messages waiting for a node that does not take them; more are lost, as messages may be.
const MESSAGES_MAX: usize = 256;
/// How long a connection to another node may take.
const CONNECT_PATIENCE: Duration = Duration::from_millis(500);
/// How long another node may leave what it is sent unacknowledged before the connection is made anew. A connection that
/// outlives a partition would be silent for as long again, by TCP's own waiting.
const UNACKNOWLEDGED_PATIENCE_MS: u32 = 1_000;
/// Between two attempts to reach another node.
const RECONNECT: Duration = Duration::from_millis(50);
/// Between two syncs of the journal where they are acknowledged before.
const LAZY_SYNC: Duration = Duration::from_millis(500);
/// How far apart the nodes' clocks are where the clock decides between writes.
const CLOCKS_APART_US: u64 = 3_000_000;

/// How one node is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// The other nodes, and where they listen.
    pub peers: BTreeMap<String, SocketAddr>,
    pub volume: PathBuf,
    /// The folder for the socket of those on its machine, [`SOCKET`].
    pub socket_directory: PathBuf,
    /// Who must have a transaction before it is acknowledged.
    pub acknowledgements: Acknowledgements,
    /// The flaw that is switched on.
    pub flaw: Option<Flaw>,
    /// Seed of its elections' chance.
    pub seed: u64,
}

/// Why a node cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Nobody can reach it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The journal's file fails; what it holds beyond the last sync is not known.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Another process of this node is still there.
    #[error("{} is in use by another process", path.display())]
    InUse {
        /// The journal's file.
        path: PathBuf,
    },
    /// The journal is not one of ours.
    #[error("{}: {source}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// The record from which on it is not a journal.
        source: JournalError,
    },
    /// The machine gives no more threads.
    #[error("cannot start the thread {name}: {source}")]
    Thread {
        /// Which.
        name: String,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// What reaches the one thread that feeds the replica.
enum Input {
    Peer { from: String, message: Message },
    Transaction { operations: Vec<Operation>, answer: Sender<Tell> },
    Status { answer: Sender<Tell> },
    Campaign { answer: Sender<Tell> },
}

/// Runs a node until it fails.
///
/// # Errors
/// Always: it returns only because of one. An error of the journal ends the node at once, because what a failed sync left
/// on the volume cannot be known.
pub fn serve(node: &Node) -> Result<std::convert::Infallible, ServerError> {
    let (journal, kept) = Journal::open(&node.volume, node.flaw)?;
    let listener = TcpListener::bind(node.listen)
        .map_err(|source| ServerError::Listen { address: node.listen, source })?;
    let (inputs, events) = mpsc::channel();
    let mut peers = BTreeMap::new();
    for (name, address) in &node.peers {
        let (messages, waiting) = mpsc::sync_channel(MESSAGES_MAX);
        let (own_name, address) = (node.name.clone(), *address);
        spawn(&format!("to {name}"), move || carry_messages(&own_name, address, &waiting))?;
        peers.insert(name.clone(), messages);
    }
    let local = listen_locally(&node.socket_directory.join(SOCKET))?;
    let local_inputs = inputs.clone();
    spawn("listener", move || accept(listener.incoming(), &inputs))?;
    spawn("local listener", move || accept(local.incoming(), &local_inputs))?;
    let settings = Settings {
        node: node.name.clone(),
        peers: node.peers.keys().cloned().collect(),
        acknowledgements: node.acknowledgements,
        flaw: node.flaw,
    };
    let replica = Replica::new(settings, kept, Chance::new(node.seed), 0);
    let core = Core {
        replica,
        journal,
        peers,
        zero: Instant::now(),
        clock_ahead_us: clock_ahead_us(node),
        asked: BTreeMap::new(),
        next_request: 0,
    };
    core.run(&events)
}

fn listen_locally(path: &Path) -> Result<UnixListener, ServerError> {
    let failed = |source| ServerError::File { path: path.to_owned(), source };
    match std::fs::remove_file(path) {
        // The journal's lock says that whoever left it is gone.
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Whoever may enter the folder may ask.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).map_err(failed)?;
    Ok(listener)
}

fn spawn(name: &str, job: impl FnOnce() + Send + 'static) -> Result<(), ServerError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(job);
    thread.map(drop).map_err(|source| ServerError::Thread { name: name.to_owned(), source })
}

/// How far this node pretends its clock to be ahead of the machine's: the first node's is furthest.
fn clock_ahead_us(node: &Node) -> u64 {
    if node.flaw != Some(Flaw::ClockLastWriteWins) {
        return 0;
    }
    let behind_us = node.peers.keys().filter(|peer| **peer > node.name).count() as u64;
    behind_us * CLOCKS_APART_US
}

/// The thread that feeds the replica.
struct Core {
    replica: Replica,
    journal: Journal,
    peers: BTreeMap<String, SyncSender<Message>>,
    zero: Instant,
    clock_ahead_us: u64,
    asked: BTreeMap<RequestId, Sender<Tell>>,
    next_request: RequestId,
}

impl Core {
    fn run(mut self, events: &Receiver<Input>) -> Result<std::convert::Infallible, ServerError> {
        loop {
            let now_us = self.now_us();
            let due = Duration::from_micros(self.replica.next_due_us().saturating_sub(now_us));
            match events.recv_timeout(due.min(LAZY_SYNC)) {
                Ok(input) => self.take(input),
                // The listener does not end before the process; should it, time alone goes on.
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(due.min(LAZY_SYNC)),
            }
            for input in events.try_iter().take(BATCH_MAX) {
                self.take(input);
            }
            let now_us = self.now_us();
            self.replica.tick(now_us);
            let output = self.replica.take_output();
            self.journal.keep(&output.records)?;
            self.release(output);
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn take(&mut self, input: Input) {
        let now_us = self.now_us();
        match input {
            Input::Peer { from, message } => self.replica.step(now_us, Event::Message { from, message }),
            Input::Transaction { operations, answer } => {
                self.next_request += 1;
                self.asked.insert(self.next_request, answer);
                let stamp_us = wall_us().saturating_add(self.clock_ahead_us);
                let event = Event::Request { request: self.next_request, operations, stamp_us };
                self.replica.step(now_us, event);
            }
            Input::Status { answer } => self.tell_status(&answer),
            Input::Campaign { answer } => {
                self.replica.step(now_us, Event::Campaign);
                self.tell_status(&answer);
            }
        }
    }

    fn tell_status(&self, answer: &Sender<Tell>) {
        // Whoever asked may be gone; then nobody waits.
        let _ = answer.send(Tell::Status { status: self.replica.status() });
    }

    fn release(&mut self, output: Output) {
        for (peer, message) in output.messages {
            if let Some(messages) = self.peers.get(&peer) {
                match messages.try_send(message) {
                    // Lost, as messages may be: whoever needs it asks again.
                    Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
                }
            }
        }
        for (request, answer) in output.answers {
            if let Some(asker) = self.asked.remove(&request) {
                let _ = asker.send(Tell::Answer { answer });
            }
        }
    }
}

/// The wall clock, microseconds since 1970; 0 before.
fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The journal's file.
struct Journal {
    path: PathBuf,
    file: File,
    /// Written down and not in the file yet.
    waiting: Vec<u8>,
    lazy: bool,
    synced: Instant,
}

impl Journal {
    fn open(volume: &Path, flaw: Option<Flaw>) -> Result<(Journal, Kept), ServerError> {
        let path = volume.join(JOURNAL);
        let failed = |source| ServerError::File { path: path.clone(), source };
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ServerError::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (kept, length) = match journal::decode(&bytes) {
            _ if flaw == Some(Flaw::ForgetOnRestart) => (Kept::default(), 0),
            decoded => decoded.map_err(|source| ServerError::Journal { path: path.clone(), source })?,
        };
        let cut = file.set_len(length as u64).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.and_then(|_| file.sync_all()).map_err(failed)?;
        // A new file is there after a power-off only once its folder says so.
        File::open(volume).and_then(|folder| folder.sync_all()).map_err(failed)?;
        let lazy = flaw == Some(Flaw::AckBeforeFsync);
        Ok((Journal { path, file, waiting: Vec::new(), lazy, synced: Instant::now() }, kept))
    }

    /// Keeps records: when it returns they outlive a power-off, unless the flaw says otherwise.
    fn keep(&mut self, records: &[Record]) -> Result<(), ServerError> {
        for record in records {
            journal::encode(record, &mut self.waiting)
                .map_err(|source| ServerError::Journal { path: self.path.clone(), source })?;
        }
        if self.waiting.is_empty() || (self.lazy && self.synced.elapsed() < LAZY_SYNC) {
            return Ok(());
        }
        let written = self.file.write_all(&self.waiting).and_then(|()| self.file.sync_data());
        written.map_err(|source| ServerError::File { path: self.path.clone(), source })?;
        self.waiting.clear();
        self.synced = Instant::now();
        Ok(())
    }
}

/// A connection, over the network or on the machine.
trait Connection: Read + Write + Send + Sized + 'static {
    /// The same connection, to be read from while it is written to.
    fn reader(&self) -> io::Result<Self>;
}

impl Connection for TcpStream {
    fn reader(&self) -> io::Result<Self> {
        self.set_nodelay(true)?;
        self.try_clone()
    }
}

impl Connection for UnixStream {
    fn reader(&self) -> io::Result<Self> {
        self.try_clone()
    }
}

fn accept<C: Connection>(connections: impl Iterator<Item = io::Result<C>>, inputs: &Sender<Input>) {
    for connection in connections {
        let Ok(connection) = connection else {
            // Out of descriptors, most likely: others may close theirs.
            std::thread::sleep(RECONNECT);
            continue;
        };
        let inputs = inputs.clone();
        // No thread to be had: the connection is closed, and whoever made it tries again.
        drop(spawn("connection", move || drop(converse(connection, &inputs))));
    }
}

/// One connection, of a client or another node, to its end.
fn converse<C: Connection>(mut connection: C, inputs: &Sender<Input>) -> Result<(), WireError> {
    let mut reader = io::BufReader::new(connection.reader()?);
    let (answer, answers) = mpsc::channel();
    while let Some(ask) = wire::read::<Ask>(&mut reader)? {
        let input = match ask {
            Ask::Peer { from, message } => {
                if inputs.send(Input::Peer { from, message }).is_err() {
                    break;
                }
                continue;
            }
            Ask::Transaction { operations } => Input::Transaction { operations, answer: answer.clone() },
            Ask::Status => Input::Status { answer: answer.clone() },
            Ask::Campaign => Input::Campaign { answer: answer.clone() },
        };
        if inputs.send(input).is_err() {
            break;
        }
        let Ok(tell) = answers.recv() else { break };
        let sent = wire::write(&mut connection, &tell);
        if let Err(WireError::TooLong { .. }) = sent {
            // It happened all the same, and nothing can be said of it.
            wire::write(&mut connection, &Tell::Answer { answer: Answer::Unknown })?;
        } else {
            sent?;
        }
    }
    Ok(())
}

/// Carries messages to another node for as long as the process lives, over one connection after another.
fn carry_messages(own_name: &str, address: SocketAddr, waiting: &Receiver<Message>) {
    loop {
        // What waited for a connection is out of date by now.
        while waiting.try_recv().is_ok() {}
        let Ok(first) = waiting.recv() else { return };
        if let Ok(mut stream) = connect(address) {
            let mut next = Some(first);
            while let Some(message) = next {
                let ask = Ask::Peer { from: own_name.to_owned(), message };
                if wire::write(&mut stream, &ask).is_err() {
                    break;
                }
                next = waiting.recv().ok();
            }
        }
        std::thread::sleep(RECONNECT);
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_PATIENCE)?;
    stream.set_nodelay(true)?;
    nix::sys::socket::setsockopt(
        &stream,
        nix::sys::socket::sockopt::TcpUserTimeout,
        &UNACKNOWLEDGED_PATIENCE_MS,
    )?;
    stream.set_write_timeout(Some(Duration::from_millis(u64::from(UNACKNOWLEDGED_PATIENCE_MS))))?;
    Ok(stream)
}

/// How the node behind this socket on the same machine sees itself; asks it to stand for election first when `campaign`.
/// Each of question and answer may take `patience`.
///
/// # Errors
/// When it cannot be reached, does not answer in time, or answers with what is no answer.
pub fn status(socket: &Path, campaign: bool, patience: Duration) -> Result<Status, WireError> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_read_timeout(Some(patience))?;
    wire::write(&mut stream, if campaign { &Ask::Campaign } else { &Ask::Status })?;
    match wire::read(&mut stream)? {
        Some(Tell::Status { status }) => Ok(status),
        Some(Tell::Answer { .. }) => Err(io::Error::other("an answer to something else").into()),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}
