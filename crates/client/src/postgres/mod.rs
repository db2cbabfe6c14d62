//! Our own PostgreSQL client: one socket, no task of its own, one write and one answer at a time.
//!
//! Owns the session: what is sent, what is read, and what each answer means for the transaction. Extended protocol
//! with prepared statements for the load, simple protocol for everything else; values travel as text.

mod discover;
mod messages;
mod pipeline;
mod question;
mod read_engines;
mod session;
mod startup;
mod verdict;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use history::ErrorClass;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;

#[doc(hidden)]
pub use self::messages::read_any;
pub use crate::tls::{Encryption, EncryptionError, Trust};
pub use discover::PostgresConnector;
pub use read_engines::{ReadEngines, Reads};

use crate::endpoint::Address;
use crate::frames::failure;
use crate::line::{Ended, Line, connected_within};
use crate::password::Password;
use crate::statement_kind::{StatementKind, TransactionStatus};
use crate::tls::Tls;
use crate::wire::{Wire, invalid};
use crate::{Rows, SessionError};
use messages::{Frame, TERMINATE, read_server_message};
use verdict::{ServerMessage, class_of, proves_rollback};

/// Who connects, and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The database's name.
    pub database: String,
    /// The role's name.
    pub user: String,
    /// The role's password, for servers that ask for it.
    pub password: Option<Password>,
    /// Whether sessions over TCP are encrypted.
    pub encryption: Encryption,
    /// Whether it is another database that speaks this protocol: then nothing that only PostgreSQL has is asked of it.
    pub is_compatible: bool,
    /// How long one call waits for its answer.
    pub timeout: Duration,
    /// How long one connection attempt may take, up to the server's first readiness. A connector's attempts may take
    /// longer at a server that met the limit before.
    pub connect_timeout: Duration,
}

/// A session with one PostgreSQL server.
pub struct PostgresClient {
    line: Line,
    /// Whether it is another database than PostgreSQL.
    is_compatible: bool,
    status: TransactionStatus,
    process_id: i32,
    statements: Vec<Prepared>,
    /// Room in which questions are put together.
    piece: Vec<u8>,
    asked: OpenRequest,
    answer: Answer,
}

struct Prepared {
    /// The beginning of every question that runs it.
    opening: Vec<u8>,
    kind: StatementKind,
}

/// The question that is open, or was last.
struct OpenRequest {
    kind: StatementKind,
    may_commit: bool,
    moment: Instant,
    /// Whether all of it is on its way.
    sent: bool,
}

/// What has been read of an answer so far; it outlives the reading, which may time out.
#[derive(Default)]
struct Answer {
    sent_anything: bool,
    rows: Rows,
    rows_of_this_statement: Rows,
    /// Statements answered with success.
    completed: usize,
    /// Boxed, as the next: the good case should not carry their size about.
    error: Option<Box<ServerMessage>>,
    doubt: Option<Box<ServerMessage>>,
    rolled_back: bool,
    copying: bool,
}

impl Answer {
    /// Whether nothing has been read into it, nor been left over.
    fn is_blank(&self) -> bool {
        !self.sent_anything
            && self.completed == 0
            && self.is_good()
            && self.rows.is_empty()
            && self.rows_of_this_statement.is_empty()
    }

    /// Whether it is a success without any reservation, whatever was asked.
    fn is_good(&self) -> bool {
        self.error.is_none() && self.doubt.is_none() && !self.rolled_back && !self.copying
    }

    /// The rows of an answer that has been read to its end; it is blank then.
    fn take_rows(&mut self) -> Rows {
        (self.sent_anything, self.completed) = (false, 0);
        std::mem::take(&mut self.rows)
    }
}

impl PostgresClient {
    /// Connects over TCP.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses, within `settings.connect_timeout`. Always definite.
    pub async fn connect_tcp(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        Self::connect(&Address::from(address), settings).await
    }

    /// Connects to the Unix socket at `path` (the socket itself, such as `/run/n1/.s.PGSQL.5432`).
    ///
    /// # Errors
    /// As [`PostgresClient::connect_tcp`].
    pub async fn connect_unix(path: &Path, settings: &Settings) -> Result<Self, SessionError> {
        Self::connect(&Address::Unix(path.to_owned()), settings).await
    }

    /// Connects to where a server listens.
    ///
    /// # Errors
    /// As [`PostgresClient::connect_tcp`], and when no encryption can be had with these settings.
    pub async fn connect(address: &Address, settings: &Settings) -> Result<Self, SessionError> {
        let config = settings.encryption.client_config().map_err(|error| not_encrypted(address, &error))?;
        Self::connect_with(address, settings, config).await
    }

    async fn connect_with(
        address: &Address,
        settings: &Settings,
        config: Option<Arc<ClientConfig>>,
    ) -> Result<Self, SessionError> {
        connected_within(settings.connect_timeout, address, Self::open(address, settings, config)).await
    }

    /// Connects, however long it takes.
    async fn open(
        address: &Address,
        settings: &Settings,
        config: Option<Arc<ClientConfig>>,
    ) -> Result<Self, SessionError> {
        let peer = address.to_string();
        let wire = open_wire(address, settings, config).await.map_err(|e| broken_connection(&peer, &e))?;
        Self::start(wire, &peer, settings).await
    }

    /// The process id of the server's side, as `pg_stat_activity` shows it.
    #[must_use]
    pub fn process_id(&self) -> i32 {
        self.process_id
    }

    /// Runs one or several statements by the simple protocol; answers with the rows of the last that returned any.
    ///
    /// # Errors
    /// As [`crate::SqlSession::execute`].
    pub async fn simple_query(&mut self, sql: &str) -> Result<Rows, SessionError> {
        frontend::query(sql, &mut self.line.wire.outgoing).map_err(|e| self.line.not_sent(&e))?;
        self.exchange(StatementKind::of(sql)).await
    }

    /// Sends what is in the outgoing buffer and reads to the next readiness.
    async fn exchange(&mut self, kind: StatementKind) -> Result<Rows, SessionError> {
        self.begin(kind, Instant::now())?;
        poll_fn(|context| self.poll_exchange(context)).await
    }

    /// Opens the exchange of what is in the outgoing buffer, put there at `now`, for its answer.
    fn begin(&mut self, kind: StatementKind, now: Instant) -> Result<(), SessionError> {
        self.line.refuse_if_broken()?;
        let may_commit = kind.may_commit(self.status);
        self.asked = OpenRequest { kind, may_commit, moment: now, sent: false };
        self.line.wire.begin_answer();
        if !self.answer.is_blank() {
            self.answer = Answer::default();
        }
        // Whoever turns away halfway leaves a session whose next answer belongs to another question.
        self.line.broken = true;
        Ok(())
    }

    /// Carries the open exchange on.
    fn poll_exchange(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        let ended = ready!(self.poll_ready(context, &mut |_, _| {}));
        if matches!(ended, Ended::Whole(())) && self.answer.is_good() {
            self.line.broken = false;
            self.line.wire.forget_outgoing();
            return Poll::Ready(Ok(self.answer.take_rows()));
        }
        let OpenRequest { kind, may_commit, .. } = self.asked;
        let answer = std::mem::take(&mut self.answer);
        Poll::Ready(self.finish(ended, kind, may_commit, answer))
    }

    /// Sends and reads until the server is ready again or can be waited for no longer. `completed` is called for each
    /// statement answered well.
    fn poll_ready(
        &mut self,
        context: &mut Context<'_>,
        completed: &mut dyn FnMut(usize, &mut Rows),
    ) -> Poll<Ended<()>> {
        let read = self.poll_read_to_ready(context, completed);
        self.line.poll_ended(read, self.asked.moment, context)
    }

    fn poll_read_to_ready(
        &mut self,
        context: &mut Context<'_>,
        completed: &mut dyn FnMut(usize, &mut Rows),
    ) -> Poll<io::Result<()>> {
        if !self.asked.sent {
            ready!(self.line.wire.poll_send(context, &mut self.answer.sent_anything))?;
            self.asked.sent = true;
        }
        let kind = self.asked.kind;
        loop {
            while let Some(frame) = self.line.wire.next_frame()? {
                let before = self.answer.completed;
                let ready = take_frame(&self.line.wire, &mut self.status, kind, &frame, &mut self.answer)?;
                if self.answer.completed > before {
                    completed(before, &mut self.answer.rows);
                }
                if ready {
                    return Poll::Ready(Ok(()));
                }
            }
            ready!(self.line.wire.poll_fill(context))?;
        }
    }

    /// Turns what was read, and how the reading ended, into the call's result.
    fn finish(
        &mut self,
        ended: Ended<()>,
        kind: StatementKind,
        may_commit: bool,
        answer: Answer,
    ) -> Result<Rows, SessionError> {
        self.line.wire.forget_outgoing();
        let unsettled = may_commit && answer.sent_anything;
        match (answer.error, ended) {
            (Some(error), ended) => {
                // Ready again and not told to go: the session lives.
                self.line.broken = error.ends_the_session() || !matches!(ended, Ended::Whole(()));
                // A dying server session may have died after its commit, whatever the code.
                let definite =
                    !unsettled || (!error.ends_the_session() && proves_rollback(&error.code, &error.message));
                Err(self.refused(*error, definite))
            }
            (None, Ended::TooLate) => Err(self.line.too_late(!unsettled)),
            (None, Ended::Broken(error)) => Err(self.line.cut(&error, !unsettled)),
            (None, Ended::Whole(())) => {
                self.line.broken = false;
                if let Some(doubt) = answer.doubt.filter(|_| may_commit) {
                    return Err(self.refused(*doubt, false));
                }
                if kind == StatementKind::Commit && answer.rolled_back {
                    return Err(self.rolled_back(true));
                }
                Ok(answer.rows)
            }
        }
    }

    /// A commit was asked for and a rollback is what happened.
    fn rolled_back(&self, definite: bool) -> SessionError {
        failure(ErrorClass::Other, definite, format!("{}: commit answered with a rollback", self.line.peer))
    }

    /// Sends and reads up to where the server asks for a bulk load's lines, or is ready again.
    async fn send_and_read(&mut self, kind: StatementKind, answer: &mut Answer) -> io::Result<()> {
        self.line.wire.send(&mut answer.sent_anything).await?;
        self.read_until(kind, answer, |answer| answer.copying).await
    }

    /// Reads until the server is ready for the next question, or `stop` says so.
    async fn read_until(
        &mut self,
        kind: StatementKind,
        answer: &mut Answer,
        stop: impl Fn(&Answer) -> bool,
    ) -> io::Result<()> {
        loop {
            while let Some(frame) = self.line.wire.next_frame()? {
                if take_frame(&self.line.wire, &mut self.status, kind, &frame, answer)? || stop(answer) {
                    return Ok(());
                }
            }
            self.line.wire.fill().await?;
        }
    }

    fn refused(&self, said: ServerMessage, definite: bool) -> SessionError {
        let detail = if said.detail.is_empty() { String::new() } else { format!(" ({})", said.detail) };
        SessionError {
            class: class_of(&said.code),
            definite,
            message: format!("{}: {} {}{detail}", self.line.peer, said.code, said.message),
            code: Some(said.code),
        }
    }
}

impl Drop for PostgresClient {
    fn drop(&mut self) {
        if !self.line.broken {
            self.line.wire.say_goodbye(&TERMINATE);
        }
    }
}

/// A socket over which questions can be asked, encrypted where the settings have it so.
async fn open_wire(
    address: &Address,
    settings: &Settings,
    config: Option<Arc<ClientConfig>>,
) -> io::Result<Wire> {
    let (address, name) = match address {
        Address::Unix(path) => return Wire::connect_unix(path).await,
        Address::Tcp { address, host } => {
            (*address, host.clone().unwrap_or_else(|| address.ip().to_string()))
        }
    };
    let mut wire = Wire::connect_tcp(address, settings.timeout).await?;
    let Some(config) = config else { return Ok(wire) };
    let is_required = settings.encryption != Encryption::Preferred;
    if !wire.asks_for_encryption().await? {
        let none = "the server does not encrypt, and an encrypted session was asked for";
        return if is_required { Err(invalid(none)) } else { Ok(wire) };
    }
    match wire.encrypt(Tls::new(config, &name)?).await {
        Ok(()) => Ok(wire),
        Err(error) if is_required => Err(error),
        // As libpq: better a session without than none.
        Err(_) => Wire::connect_tcp(address, settings.timeout).await,
    }
}

fn not_encrypted(address: &Address, error: &EncryptionError) -> SessionError {
    failure(ErrorClass::Other, true, format!("{address}: {error}"))
}

fn broken_connection(peer: &str, error: &io::Error) -> SessionError {
    failure(ErrorClass::Connection, true, format!("{peer}: {error}"))
}

/// Takes in one message; true when the server is ready again.
fn take_frame(
    wire: &Wire,
    status: &mut TransactionStatus,
    kind: StatementKind,
    frame: &Frame,
    answer: &mut Answer,
) -> io::Result<bool> {
    let body = wire.body(frame);
    match frame.tag {
        b'Z' => {
            *status = match body {
                b"I" => TransactionStatus::Idle,
                b"T" => TransactionStatus::Open,
                b"E" => TransactionStatus::Failed,
                _ => return Err(invalid("unknown transaction status")),
            };
            return Ok(true);
        }
        b'D' => answer.rows_of_this_statement.push_row(body)?,
        b'C' => {
            let Some((0, tag)) = body.split_last() else { return Err(invalid("tag without an end")) };
            answer.completed += 1;
            answer.rolled_back |= tag == b"ROLLBACK";
            answer.rows_of_this_statement.set_affected(affected_rows(tag));
            if !answer.rows_of_this_statement.is_empty() || answer.rows.is_empty() {
                std::mem::swap(&mut answer.rows, &mut answer.rows_of_this_statement);
            }
            // The room goes from statement to statement.
            answer.rows_of_this_statement.clear();
        }
        b'E' => {
            let error = read_server_message(body)?;
            // The first error is the cause; one that ends the session outranks it.
            if answer.error.is_none() || error.ends_the_session() {
                answer.error = Some(Box::new(error));
            }
        }
        b'N' => {
            let notice = read_server_message(body)?;
            if notice.casts_doubt_on_a_commit(kind) {
                answer.doubt = Some(Box::new(notice));
            }
        }
        b'I' => answer.completed += 1,
        b'G' => answer.copying = true,
        b'H' | b'W' => return Err(invalid("copy out is not supported")),
        // Parse, bind and close complete, no data, parameter and row description, notification,
        // parameter status, portal suspended.
        b'1' | b'2' | b'3' | b'n' | b't' | b'T' | b'A' | b'S' | b's' => {}
        tag => return Err(invalid(&format!("unknown message tag {tag:#04x}"))),
    }
    Ok(false)
}

/// The number at the end of a command tag: `UPDATE 1`, `INSERT 0 1`; 0 where it has none.
fn affected_rows(tag: &[u8]) -> u64 {
    let (mut number, mut digits, mut place) = (0_u64, false, 1_u64);
    for byte in tag.iter().rev() {
        match byte {
            b'0'..=b'9' => number = number.saturating_add(place.saturating_mul(u64::from(byte - b'0'))),
            b' ' if digits => return number,
            _ => return 0,
        }
        (digits, place) = (true, place.saturating_mul(10));
    }
    0
}
