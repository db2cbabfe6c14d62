//! Questions to a node's PostgreSQL over its Unix socket, and to what else speaks its protocol over TCP: start-up, trust, simple
//! queries.
//!
//! Owns these few connections of ours, of the sockets one kept per node. Clients under load have their own protocol code.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator as _;
use postgres_protocol::message::backend::{DataRowBody, ErrorFields, Message};
use postgres_protocol::message::frontend;

use super::configuration::{DATABASE, USER};
use crate::{EngineError, Node};

/// Rows of columns in text form; `None` is NULL.
pub type Rows = Vec<Vec<Option<String>>>;

/// The longest an answer is waited for where nothing else is asked.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A way to ask a node's database something.
pub trait AdminQuery: Send + Sync {
    /// Runs statements and returns the rows of all of them.
    ///
    /// # Errors
    /// [`EngineError::Silent`] when no answer came within `patience`, [`EngineError::Refused`] when the answer was
    /// an error.
    fn query_within(&self, node: &dyn Node, sql: &str, patience: Duration) -> Result<Rows, EngineError>;

    /// The same with a patience of ten seconds.
    ///
    /// # Errors
    /// As [`AdminQuery::query_within`].
    fn query(&self, node: &dyn Node, sql: &str) -> Result<Rows, EngineError> {
        self.query_within(node, sql, PATIENCE)
    }
}

/// Questions over the nodes' Unix sockets.
#[derive(Debug)]
pub struct SocketAdmin {
    port: u16,
    connections: Mutex<BTreeMap<String, Slot>>,
}

/// A node's connection with the boot it belongs to, locked while a question is under way.
type Slot = Arc<Mutex<Option<(u64, Connection<UnixStream>)>>>;

impl SocketAdmin {
    /// For databases whose socket is named after `port`.
    #[must_use]
    pub fn new(port: u16) -> Self {
        Self { port, connections: Mutex::new(BTreeMap::new()) }
    }
}

impl AdminQuery for SocketAdmin {
    fn query_within(&self, node: &dyn Node, sql: &str, patience: Duration) -> Result<Rows, EngineError> {
        let deadline = Instant::now() + patience;
        let slot = Arc::clone(locked(&self.connections).entry(node.name().to_owned()).or_default());
        // Somebody else's question may take minutes; this one has a patience of its own.
        let mut slot = match slot.try_lock() {
            Ok(free) => free,
            Err(TryLockError::Poisoned(free)) => free.into_inner(),
            Err(TryLockError::WouldBlock) => return self.ask_anew(node, sql, deadline).0,
        };
        // A connection to a process that has gone shows it by its end only; then, and only when nothing of an
        // answer came, the question goes to a new one.
        if let Some((boot, mut kept)) = slot.take().filter(|(boot, _)| *boot == node.boot()) {
            match kept.ask(sql, deadline) {
                Err(Failure::Io(error)) if is_gone(&error) => {}
                answer => {
                    if is_usable_after(&answer) {
                        *slot = Some((boot, kept));
                    }
                    return answer.map_err(|failure| failure.on(node, sql));
                }
            }
        }
        let boot = node.boot();
        let (answer, connection) = self.ask_anew(node, sql, deadline);
        *slot = connection.map(|connection| (boot, connection));
        answer
    }
}

impl SocketAdmin {
    /// Asks over a new connection, and returns it where it can be asked again.
    fn ask_anew(
        &self,
        node: &dyn Node,
        sql: &str,
        deadline: Instant,
    ) -> (Result<Rows, EngineError>, Option<Connection<UnixStream>>) {
        let path = node.socket_directory_outside().join(format!(".s.PGSQL.{}", self.port));
        let opened = connect(&path).map_err(Failure::Io);
        let opened = opened.and_then(|stream| Connection::open(stream, USER, DATABASE, deadline));
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(failure) => return (Err(failure.on(node, "")), None),
        };
        let answer = connection.ask(sql, deadline);
        let usable = is_usable_after(&answer);
        (answer.map_err(|failure| failure.on(node, sql)), usable.then_some(connection))
    }
}

/// Whether a connection is at rest after this: answered, or refused without being closed.
fn is_usable_after(answer: &Result<Rows, Failure>) -> bool {
    matches!(answer, Ok(_) | Err(Failure::Server { fatal: false, .. }))
}

/// A lock whose holder panicked guards data that are still whole: each change of them is one assignment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected | UnexpectedEof)
}

#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Server { code: String, message: String, fatal: bool },
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

impl Failure {
    fn on(self, node: &dyn Node, sql: &str) -> EngineError {
        let node = node.name().to_owned();
        match self {
            Failure::Io(source) => EngineError::Silent { node, source },
            Failure::Server { code, message, .. } => {
                EngineError::Refused { node, statement: sql.to_owned(), code, message }
            }
        }
    }
}

/// A socket whose calls have time limits.
trait Timed: io::Read + io::Write {
    /// The limit of each call that reads.
    fn limit_reads(&self, limit: Duration) -> io::Result<()>;
    /// The limit of each call that writes.
    fn limit_writes(&self, limit: Duration) -> io::Result<()>;
}

impl Timed for UnixStream {
    fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }

    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}

impl Timed for TcpStream {
    fn limit_reads(&self, limit: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(limit))
    }

    fn limit_writes(&self, limit: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(limit))
    }
}

/// The rows with which a server answers a statement, on a connection of its own.
pub(crate) fn ask_once(
    stream: TcpStream,
    user: &str,
    database: &str,
    sql: &str,
    patience: Duration,
) -> io::Result<Rows> {
    let deadline = Instant::now() + patience;
    let asked = Connection::open(stream, user, database, deadline)
        .and_then(|mut connection| connection.ask(sql, deadline));
    asked.map_err(|failure| match failure {
        Failure::Io(error) => error,
        Failure::Server { code, message, .. } => io::Error::other(format!("{code}: {message}")),
    })
}

#[derive(Debug)]
struct Connection<S> {
    stream: S,
    received: BytesMut,
}

impl<S: Timed> Connection<S> {
    fn open(stream: S, user: &str, database: &str, deadline: Instant) -> Result<Self, Failure> {
        let mut connection = Self { stream, received: BytesMut::with_capacity(4096) };
        let mut request = BytesMut::new();
        let parameters = [("user", user), ("database", database), ("application_name", "holdfast-admin")];
        frontend::startup_message(parameters, &mut request)?;
        connection.send(&request, deadline)?;
        loop {
            match connection.receive(deadline)? {
                Message::ReadyForQuery(_) => return Ok(connection),
                Message::ErrorResponse(body) => return Err(server_failure(body.fields())),
                Message::AuthenticationOk
                | Message::BackendKeyData(_)
                | Message::ParameterStatus(_)
                | Message::NoticeResponse(_) => {}
                _ => {
                    return Err(
                        invalid("the server requires an authentication method other than trust").into()
                    );
                }
            }
        }
    }

    fn ask(&mut self, sql: &str, deadline: Instant) -> Result<Rows, Failure> {
        let mut request = BytesMut::new();
        frontend::query(sql, &mut request)?;
        self.send(&request, deadline)?;
        let mut rows = Rows::new();
        let mut failure = None;
        loop {
            match self.receive(deadline) {
                Ok(Message::DataRow(body)) => rows.push(columns(&body)?),
                Ok(Message::ErrorResponse(body)) => failure = Some(server_failure(body.fields())),
                Ok(Message::ReadyForQuery(_)) => return failure.map_or(Ok(rows), Err),
                Ok(_) => {}
                // A server that says why it hangs up says it before the end of the stream.
                Err(error) => return Err(failure.unwrap_or(Failure::Io(error))),
            }
        }
    }

    fn send(&mut self, request: &[u8], deadline: Instant) -> io::Result<()> {
        self.stream.limit_writes(left(deadline)?)?;
        self.stream.write_all(request).map_err(timed_out)
    }

    fn receive(&mut self, deadline: Instant) -> io::Result<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.received)? {
                return Ok(message);
            }
            self.stream.limit_reads(left(deadline)?)?;
            let mut piece = [0_u8; 4096];
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
                }
                Ok(count) => self.received.extend_from_slice(piece.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(timed_out(error)),
            }
        }
    }
}

/// A socket's path may be 107 bytes long; a longer one is reached through its directory's descriptor.
fn connect(path: &Path) -> io::Result<UnixStream> {
    const LONGEST: usize = 107;
    if path.as_os_str().len() <= LONGEST {
        return UnixStream::connect(path);
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(invalid("not a socket's path"));
    };
    let directory = File::open(directory)?;
    UnixStream::connect(PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name))
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time")) } else { Ok(left) }
}

fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
        _ => error,
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn columns(row: &DataRowBody) -> io::Result<Vec<Option<String>>> {
    let bytes = row.buffer();
    row.ranges()
        .map(|range| match range {
            None => Ok(None),
            Some(range) => {
                let value = bytes.get(range).ok_or_else(|| invalid("a column ends outside its row"))?;
                Ok(Some(String::from_utf8_lossy(value).into_owned()))
            }
        })
        .collect()
}

fn server_failure(mut fields: ErrorFields<'_>) -> Failure {
    let (mut code, mut message, mut fatal) = (String::new(), String::new(), false);
    while let Ok(Some(field)) = fields.next() {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => code = value,
            b'M' => message = value,
            b'V' => fatal = value == "FATAL" || value == "PANIC",
            _ => {}
        }
    }
    Failure::Server { code, message, fatal }
}
