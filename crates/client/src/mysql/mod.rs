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

use self::answer::{Answer, Refusal};
pub use self::discover::MysqlConnector;
use self::login::LoginError;
use self::packets::{QUERY, QUIT, next_packet, write_text};
use self::statement::{Source, kind_of};
use crate::password::Password;
use crate::patience::Patience;
use crate::reactor::timeout;
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
    wire: Wire,
    /// Where it is connected to, for messages.
    peer: String,
    timeout: Duration,
    status: TransactionStatus,
    broken: bool,
    statements: Vec<Prepared>,
    asked: Asked,
    answer: Answer,
    patience: Patience,
}

struct Prepared {
    source: Source,
    /// What the server calls it; nothing for what is asked as text.
    number: Option<u32>,
}

/// The question that is open, or was last.
struct Asked {
    may_commit: bool,
    moment: Instant,
    /// Whether all of it is on its way.
    sent: bool,
}

/// How the reading of an answer ended.
enum Ended {
    Whole,
    Broken(io::Error),
    TooLate,
}

impl MysqlClient {
    /// Connects, and logs in.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses, within `settings.connect_timeout`. Always definite.
    pub async fn connect(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        let limit = settings.connect_timeout;
        timeout(limit, Self::open(address, settings)).await.unwrap_or_else(|_| {
            let message = format!("{address}: no connection within {} ms", limit.as_millis());
            Err(error(ErrorClass::Connection, true, message))
        })
    }

    /// Connects, however long it takes.
    async fn open(address: SocketAddr, settings: &Settings) -> Result<Self, SessionError> {
        let peer = address.to_string();
        let broken = |failed: io::Error| error(ErrorClass::Connection, true, format!("{address}: {failed}"));
        let mut wire = Wire::connect_tcp(address, settings.timeout).await.map_err(broken)?;
        login::log_in(&mut wire, &peer, settings).await.map_err(|failed| match failed {
            LoginError::Line(failed) => broken(failed),
            LoginError::Refused(refusal) => refused(&peer, refusal, true),
            LoginError::CannotAuthenticate(why) => error(ErrorClass::Other, true, format!("{peer}: {why}")),
        })?;
        Ok(Self {
            wire,
            peer,
            timeout: settings.timeout,
            status: TransactionStatus::Idle,
            broken: false,
            statements: Vec::new(),
            asked: Asked { may_commit: false, moment: Instant::now(), sent: true },
            answer: Answer::default(),
            patience: Patience::default(),
        })
    }

    /// Runs one or several statements as text.
    async fn query(&mut self, sql: &str) -> Result<Rows, SessionError> {
        self.refuse_if_broken()?;
        write_text(QUERY, sql, &mut self.wire.outgoing).map_err(|why| self.not_sent(&why))?;
        self.begin(kind_of(sql).may_commit(self.status), false, Instant::now());
        poll_fn(|context| self.poll_exchange(context)).await
    }

    /// Opens the exchange of what is in the outgoing buffer, put there at `now`, for its answer.
    fn begin(&mut self, may_commit: bool, is_binary: bool, now: Instant) {
        self.asked = Asked { may_commit, moment: now, sent: false };
        self.wire.begin_answer();
        self.answer = Answer::new(is_binary);
        // Whoever turns away halfway leaves a session whose next answer belongs to another question.
        self.broken = true;
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
    ) -> Poll<Ended> {
        match self.poll_read(context, completed, usize::MAX) {
            Poll::Ready(Ok(_)) => Poll::Ready(Ended::Whole),
            Poll::Ready(Err(failed)) => Poll::Ready(Ended::Broken(failed)),
            Poll::Pending => {
                self.patience.poll_over(self.asked.moment, self.timeout, context).map(|()| Ended::TooLate)
            }
        }
    }

    /// Sends and reads until the answer is whole (true), or a statement's result has so many rows (false).
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        completed: &mut dyn FnMut(usize, &mut Rows),
        most_rows: usize,
    ) -> Poll<io::Result<bool>> {
        if !self.asked.sent {
            ready!(self.wire.poll_send(context, &mut self.answer.sent_anything))?;
            self.asked.sent = true;
        }
        loop {
            while let Some(packet) = next_packet(&mut self.wire)? {
                let before = self.answer.completed;
                let is_whole = self.answer.take(self.wire.at(&packet.place), &mut self.status)?;
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
            ready!(self.wire.poll_fill(context))?;
        }
    }

    /// Turns what was read, and how the reading ended, into the call's result.
    fn finish(&mut self, ended: Ended) -> Result<Answer, SessionError> {
        self.wire.forget_outgoing();
        let mut answer = std::mem::take(&mut self.answer);
        let unsettled = self.asked.may_commit && answer.sent_anything;
        match (ended, answer.error.take()) {
            (Ended::Whole, None) => {
                self.broken = false;
                Ok(answer)
            }
            (Ended::Whole, Some(refusal)) => {
                let class = verdict::class_of(refusal.code);
                // The server closes what it counts as a connection's trouble.
                self.broken = class == ErrorClass::Connection;
                if refusal.code == verdict::DEADLOCK {
                    self.status = TransactionStatus::Idle;
                }
                let definite = !unsettled || verdict::proves_rollback(refusal.code, &refusal.sql_state);
                Err(refused(&self.peer, *refusal, definite))
            }
            (Ended::TooLate, _) => {
                let message = format!("{}: no answer within {} ms", self.peer, self.timeout.as_millis());
                Err(error(ErrorClass::Timeout, !unsettled, message))
            }
            (Ended::Broken(failed), _) => {
                Err(error(ErrorClass::Connection, !unsettled, format!("{}: {failed}", self.peer)))
            }
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

    /// A call that failed before a byte left.
    fn not_sent(&mut self, why: &dyn std::fmt::Display) -> SessionError {
        self.wire.forget_outgoing();
        error(ErrorClass::Other, true, format!("{}: not sent: {why}", self.peer))
    }
}

impl Drop for MysqlClient {
    fn drop(&mut self) {
        if !self.broken {
            self.wire.say_goodbye(&QUIT);
        }
    }
}

fn error(class: ErrorClass, definite: bool, message: String) -> SessionError {
    SessionError { class, definite, message, code: None }
}

fn refused(peer: &str, refusal: Refusal, definite: bool) -> SessionError {
    let Refusal { code, sql_state, text } = refusal;
    let class = verdict::class_of(code);
    let message = format!("{peer}: {code} ({sql_state}) {text}");
    SessionError { class, definite, message, code: Some(code.to_string()) }
}
