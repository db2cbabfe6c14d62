//! Our own PostgreSQL client: one socket, no task of its own, one write and one answer at a time.
//!
//! Owns the session: what is sent, what is read, and what each answer means for the transaction. Extended protocol
//! with prepared statements for the load, simple protocol for everything else; values travel as text.

mod discover;
mod session;
mod startup;
mod verdict;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use history::ErrorClass;
use postgres_protocol::message::frontend;
use tokio::time::timeout;

pub use discover::{Endpoint, PostgresConnector};

use crate::{Rows, SessionError};
use verdict::{ServerMessage, StatementKind, TransactionStatus, class_of, proves_rollback};
use wire::{Frame, Wire, invalid, read_server_message, take_bytes, take_i32, take_string};

/// Who connects, and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The database's name.
    pub database: String,
    /// The role's name.
    pub user: String,
    /// The role's password, for servers that ask for SCRAM-SHA-256.
    pub password: Option<String>,
    /// How long one call waits for its answer.
    pub timeout: Duration,
    /// How long one connection attempt may take, up to the server's first readiness.
    pub connect_timeout: Duration,
}

/// A session with one PostgreSQL server.
pub struct PostgresClient {
    wire: Wire,
    /// Where it is connected to, for messages.
    peer: String,
    timeout: Duration,
    status: TransactionStatus,
    broken: bool,
    process_id: i32,
    statements: Vec<Prepared>,
}

struct Prepared {
    name: String,
    kind: StatementKind,
}

/// What has been read of an answer so far; it outlives the reading, which may time out.
#[derive(Default)]
struct Answer {
    sent_anything: bool,
    rows: Rows,
    rows_of_this_statement: Rows,
    error: Option<ServerMessage>,
    doubt: Option<ServerMessage>,
    rolled_back: bool,
    copying: bool,
}

impl PostgresClient {
    /// Connects over TCP.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses, within `settings.connect_timeout`. Always definite.
    pub async fn connect_tcp(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        let peer = address.to_string();
        let whole = async {
            let wire = Wire::connect_tcp(address, settings.timeout)
                .await
                .map_err(|e| broken_connection(&peer, &e))?;
            Self::start(wire, &peer, settings).await
        };
        timeout(settings.connect_timeout, whole)
            .await
            .unwrap_or_else(|_| Err(connect_timeout(&peer, settings)))
    }

    /// Connects to the Unix socket at `path` (the socket itself, such as `/run/n1/.s.PGSQL.5432`).
    ///
    /// # Errors
    /// As [`PostgresClient::connect_tcp`].
    pub async fn connect_unix(path: &Path, settings: &Settings) -> Result<Self, SessionError> {
        let peer = path.display().to_string();
        let whole = async {
            let wire = Wire::connect_unix(path).await.map_err(|e| broken_connection(&peer, &e))?;
            Self::start(wire, &peer, settings).await
        };
        timeout(settings.connect_timeout, whole)
            .await
            .unwrap_or_else(|_| Err(connect_timeout(&peer, settings)))
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
        frontend::query(sql, &mut self.wire.outgoing).map_err(|e| self.not_sent(&e))?;
        self.exchange(StatementKind::of(sql)).await
    }

    /// Sends what is in the outgoing buffer and reads to the next readiness.
    async fn exchange(&mut self, kind: StatementKind) -> Result<Rows, SessionError> {
        self.refuse_if_broken()?;
        let may_commit = kind.may_commit(self.status);
        let mut answer = Answer::default();
        // Whoever drops this future halfway leaves a session whose next answer belongs to another question.
        self.broken = true;
        let limit = self.timeout;
        let ended = timeout(limit, self.send_and_read(kind, &mut answer)).await;
        self.finish(ended, kind, may_commit, answer)
    }

    /// Turns what was read, and how the reading ended, into the call's result.
    fn finish(
        &mut self,
        ended: Result<io::Result<()>, tokio::time::error::Elapsed>,
        kind: StatementKind,
        may_commit: bool,
        answer: Answer,
    ) -> Result<Rows, SessionError> {
        self.wire.outgoing.clear();
        let unsettled = may_commit && answer.sent_anything;
        match (answer.error, ended) {
            (Some(error), ended) => {
                // Ready again and not told to go: the session lives.
                self.broken = error.ends_the_session() || !matches!(ended, Ok(Ok(())));
                // A dying server session may have died after its commit, whatever the code.
                let definite = !unsettled || (!error.ends_the_session() && proves_rollback(&error.code));
                Err(self.refused(error, definite))
            }
            (None, Err(_)) => Err(SessionError {
                class: ErrorClass::Timeout,
                definite: !unsettled,
                message: format!("{}: no answer within {} ms", self.peer, self.timeout.as_millis()),
                code: None,
            }),
            (None, Ok(Err(error))) => {
                Err(SessionError { definite: !unsettled, ..broken_connection(&self.peer, &error) })
            }
            (None, Ok(Ok(()))) => {
                self.broken = false;
                if let Some(doubt) = answer.doubt.filter(|_| may_commit) {
                    return Err(self.refused(doubt, false));
                }
                if kind == StatementKind::Commit && answer.rolled_back {
                    return Err(SessionError {
                        class: ErrorClass::Other,
                        definite: true,
                        message: format!("{}: commit answered with a rollback", self.peer),
                        code: None,
                    });
                }
                Ok(answer.rows)
            }
        }
    }

    async fn send_and_read(&mut self, kind: StatementKind, answer: &mut Answer) -> io::Result<()> {
        self.wire.send(&mut answer.sent_anything).await?;
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
            while let Some(frame) = self.wire.next_frame()? {
                if self.read_frame(kind, &frame, answer)? || stop(answer) {
                    return Ok(());
                }
            }
            self.wire.fill().await?;
        }
    }

    /// Takes in one message; true when the server is ready again.
    fn read_frame(&mut self, kind: StatementKind, frame: &Frame, answer: &mut Answer) -> io::Result<bool> {
        let mut body = self.wire.body(frame);
        match frame.tag {
            b'Z' => {
                self.status = match body {
                    b"I" => TransactionStatus::Idle,
                    b"T" => TransactionStatus::Open,
                    b"E" => TransactionStatus::Failed,
                    _ => return Err(invalid("unknown transaction status")),
                };
                return Ok(true);
            }
            b'D' => read_row(body, &mut answer.rows_of_this_statement)?,
            b'C' => {
                let tag = take_string(&mut body)?;
                answer.rolled_back |= tag == b"ROLLBACK";
                let mut rows = std::mem::take(&mut answer.rows_of_this_statement);
                rows.set_affected(affected_rows(tag));
                if !rows.is_empty() || answer.rows.is_empty() {
                    answer.rows = rows;
                }
            }
            b'E' => {
                let error = read_server_message(body)?;
                // The first error is the cause; one that ends the session outranks it.
                if answer.error.is_none() || error.ends_the_session() {
                    answer.error = Some(error);
                }
            }
            b'N' => {
                let notice = read_server_message(body)?;
                if notice.casts_doubt_on_a_commit(kind) {
                    answer.doubt = Some(notice);
                }
            }
            b'G' => answer.copying = true,
            b'H' | b'W' => return Err(invalid("copy out is not supported")),
            // Parse, bind and close complete, no data, parameter and row description, empty query, notification,
            // parameter status, portal suspended.
            b'1' | b'2' | b'3' | b'n' | b't' | b'T' | b'I' | b'A' | b'S' | b's' => {}
            tag => return Err(invalid(&format!("unknown message tag {tag:#04x}"))),
        }
        Ok(false)
    }

    fn refused(&self, said: ServerMessage, definite: bool) -> SessionError {
        let detail = if said.detail.is_empty() { String::new() } else { format!(" ({})", said.detail) };
        SessionError {
            class: class_of(&said.code),
            definite,
            message: format!("{}: {} {}{detail}", self.peer, said.code, said.message),
            code: Some(said.code),
        }
    }

    /// Nothing may be asked of a session that may still be answering an older question.
    fn refuse_if_broken(&mut self) -> Result<(), SessionError> {
        if !self.broken {
            return Ok(());
        }
        let error = self.not_sent(&"the session is broken");
        Err(SessionError { class: ErrorClass::Connection, ..error })
    }

    /// A call that failed before a byte left: the message itself could not be built.
    fn not_sent(&mut self, error: &dyn std::fmt::Display) -> SessionError {
        self.wire.outgoing.clear();
        SessionError {
            class: ErrorClass::Other,
            definite: true,
            message: format!("{}: not sent: {error}", self.peer),
            code: None,
        }
    }
}

impl Drop for PostgresClient {
    fn drop(&mut self) {
        if !self.broken {
            self.wire.say_goodbye();
        }
    }
}

fn broken_connection(peer: &str, error: &io::Error) -> SessionError {
    SessionError {
        class: ErrorClass::Connection,
        definite: true,
        message: format!("{peer}: {error}"),
        code: None,
    }
}

fn connect_timeout(peer: &str, settings: &Settings) -> SessionError {
    SessionError {
        class: ErrorClass::Connection,
        definite: true,
        message: format!("{peer}: no connection within {} ms", settings.connect_timeout.as_millis()),
        code: None,
    }
}

fn read_row(mut body: &[u8], rows: &mut Rows) -> io::Result<()> {
    let count = take_bytes(&mut body, 2)?;
    for _ in 0..u16::from_be_bytes([count[0], count[1]]) {
        match usize::try_from(take_i32(&mut body)?) {
            Ok(length) => rows.push_cell(Some(take_bytes(&mut body, length)?)),
            Err(_) => rows.push_cell(None),
        }
    }
    rows.end_row();
    Ok(())
}

/// The number at the end of a command tag: `UPDATE 1`, `INSERT 0 1`; 0 where it has none.
fn affected_rows(tag: &[u8]) -> u64 {
    let last = tag.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(last).ok().and_then(|number| number.parse().ok()).unwrap_or(0)
}
