//! Our own client for MySQL, MariaDB and Galera: one socket, no task of its own, one write and one answer at a time.
//!
//! Owns the session: what is sent, what is read, and what each answer means for the transaction. Prepared statements for
//! the load, text for everything else; answers are handed on as text. The encodings are `mysql_common`'s where they are
//! not trivial. Sessions are not encrypted.

mod answer;
mod discover;
mod login;
mod packets;
mod session;
mod statement;
mod verdict;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use history::ErrorClass;

#[doc(hidden)]
pub use self::answer::read_any;
use self::answer::{Answer, Columns, Refusal};
pub use self::discover::MysqlConnector;
use self::login::{LoggedIn, LoginError};
use self::packets::{QUERY, QUIT, next_packet, write_text};
use self::statement::{Source, kind_of, may_commit};
use crate::frames::failure;
use crate::line::{Ended, Line, connected_within};
use crate::password::Password;
use crate::statement_kind::TransactionStatus;
use crate::wire::Wire;
use crate::{Rows, SessionError};

/// Who connects, and how patient it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The database's name; none is chosen where it is empty.
    pub database: String,
    /// The user's name.
    pub user: String,
    /// The user's password, for servers that ask for it.
    pub password: Option<Password>,
    /// How long one call waits for its answer.
    pub timeout: Duration,
    /// How long one connection attempt may take.
    pub connect_timeout: Duration,
}

/// A session with one server.
pub struct MysqlClient {
    line: Line,
    status: TransactionStatus,
    statements: Vec<Prepared>,
    /// Whether the server leaves out columns that this side has.
    omits_columns: bool,
    asked: OpenRequest,
    answer: Answer,
}

struct Prepared {
    source: Source,
    /// What the server calls it; nothing for what is asked as text.
    number: Option<u32>,
    /// Those of its last result. The answer has them while it is read.
    columns: Columns,
}

/// The question that is open, or was last.
struct OpenRequest {
    /// The prepared statement that is executed, if one is.
    executed: Option<usize>,
    may_commit: bool,
    moment: Instant,
    /// Whether all of it is on its way.
    sent: bool,
}

impl MysqlClient {
    /// Connects, and logs in.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses, within `settings.connect_timeout`. Always definite.
    pub async fn connect(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        connected_within(settings.connect_timeout, &address, Self::open(address, settings)).await
    }

    /// Connects, however long it takes. Turns `autocommit` on where the server has it off.
    async fn open(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        let peer = address.to_string();
        let broken =
            |failed: io::Error| failure(ErrorClass::Connection, true, format!("{address}: {failed}"));
        let mut wire = Wire::connect_tcp(address, settings.timeout).await.map_err(broken)?;
        let LoggedIn { omits_columns, commits_each } =
            login::log_in(&mut wire, &peer, settings).await.map_err(|failed| match failed {
                LoginError::Line(failed) => broken(failed),
                LoginError::Refused(refusal) => refused(&peer, refusal, true),
                LoginError::CannotAuthenticate(why) => {
                    failure(ErrorClass::Other, true, format!("{peer}: {why}"))
                }
            })?;
        let mut client = Self {
            line: Line::new(wire, peer, settings.timeout),
            status: TransactionStatus::Idle,
            statements: Vec::new(),
            omits_columns,
            asked: OpenRequest { executed: None, may_commit: false, moment: Instant::now(), sent: true },
            answer: Answer::default(),
        };
        if !commits_each {
            client.query("SET autocommit = 1").await?;
        }
        Ok(client)
    }

    /// Runs one or several statements as text.
    async fn query(&mut self, sql: &str) -> Result<Rows, SessionError> {
        self.line.refuse_if_broken()?;
        write_text(QUERY, sql, &mut self.line.wire.outgoing).map_err(|why| self.line.not_sent(&why))?;
        self.begin(may_commit(sql, kind_of(sql), self.status), None, Instant::now());
        poll_fn(|context| self.poll_exchange(context)).await
    }

    /// Opens the exchange of what is in the outgoing buffer, put there at `now`, for its answer.
    fn begin(&mut self, may_commit: bool, executed: Option<usize>, now: Instant) {
        self.asked = OpenRequest { executed, may_commit, moment: now, sent: false };
        self.line.wire.begin_answer();
        let known = executed.and_then(|place| self.statements.get_mut(place));
        let columns = known.map(|prepared| std::mem::take(&mut prepared.columns)).unwrap_or_default();
        self.answer = Answer::new(executed.is_some());
        self.answer.may_omit_columns = self.omits_columns;
        self.answer.columns = columns;
        // Whoever turns away halfway leaves a session whose next answer belongs to another question.
        self.line.broken = true;
    }

    /// Carries the open exchange on to its end.
    fn poll_exchange(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        let ended = ready!(self.poll_whole(context, &mut |_, _| {}));
        Poll::Ready(self.finish(ended).map(|answer| answer.rows))
    }

    /// Sends and reads until the answer is whole or can be waited for no longer. `completed` is called for each statement
    /// answered well.
    fn poll_whole(
        &mut self,
        context: &mut Context<'_>,
        completed: &mut dyn FnMut(usize, &mut Rows),
    ) -> Poll<Ended<()>> {
        let read = self.poll_read(context, completed, usize::MAX).map_ok(drop);
        self.line.poll_ended(read, self.asked.moment, context)
    }

    /// Sends and reads until the answer is whole (true), or a statement's result has so many rows (false).
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        completed: &mut dyn FnMut(usize, &mut Rows),
        most_rows: usize,
    ) -> Poll<io::Result<bool>> {
        if !self.asked.sent {
            ready!(self.line.wire.poll_send(context, &mut self.answer.sent_anything))?;
            self.asked.sent = true;
        }
        loop {
            while let Some(packet) = next_packet(&mut self.line.wire)? {
                let before = self.answer.completed;
                let is_whole = self.answer.take(self.line.wire.at(&packet.place), &mut self.status)?;
                if self.answer.completed > before {
                    completed(before, &mut self.answer.rows);
                }
                if is_whole {
                    return Poll::Ready(Ok(true));
                }
                if self.answer.rows_of_this_statement.len() >= most_rows {
                    return Poll::Ready(Ok(false));
                }
            }
            ready!(self.line.wire.poll_fill(context))?;
        }
    }

    /// Turns what was read, and how the reading ended, into the call's result.
    fn finish(&mut self, ended: Ended<()>) -> Result<Answer, SessionError> {
        self.line.wire.forget_outgoing();
        let mut answer = std::mem::take(&mut self.answer);
        if let Some(prepared) = self.asked.executed.and_then(|place| self.statements.get_mut(place)) {
            prepared.columns = std::mem::take(&mut answer.columns);
        }
        let unsettled = self.asked.may_commit && answer.sent_anything;
        match (ended, answer.error.take()) {
            (Ended::Whole(()), None) => {
                self.line.broken = false;
                Ok(answer)
            }
            (Ended::Whole(()), Some(refusal)) => {
                let class = verdict::class_of(refusal.code);
                // The server closes what it counts as a connection's trouble.
                self.line.broken = class == ErrorClass::Connection;
                if refusal.code == verdict::DEADLOCK {
                    self.status = TransactionStatus::Idle;
                }
                // Of a text of several statements those before it are committed.
                let proves =
                    answer.completed == 0 && verdict::proves_rollback(refusal.code, &refusal.sql_state);
                let definite = !unsettled || proves;
                Err(refused(&self.line.peer, *refusal, definite))
            }
            (Ended::TooLate, _) => Err(self.line.too_late(!unsettled)),
            (Ended::Broken(error), _) => Err(self.line.cut(&error, !unsettled)),
        }
    }
}

impl Drop for MysqlClient {
    fn drop(&mut self) {
        if !self.line.broken {
            self.line.wire.say_goodbye(&QUIT);
        }
    }
}

fn refused(peer: &str, refusal: Refusal, definite: bool) -> SessionError {
    let Refusal { code, sql_state, text } = refusal;
    let class = verdict::class_of(code);
    let message = format!("{peer}: {code} ({sql_state}) {text}");
    SessionError { class, definite, message, code: Some(code.to_string()) }
}
