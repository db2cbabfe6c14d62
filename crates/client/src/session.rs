//! The traits that SQL workloads are written against, and the errors they see.
//!
//! Owns no protocol: each protocol's folder implements these. Futures stay on the thread that made them.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use history::ErrorClass;

use crate::Rows;

/// A future of a session call; it need not be `Send`, all clients of a load share one thread.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionError>> + 'a>>;

/// A prepared statement of one session. Worthless on any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementId(pub(crate) usize);

/// A statement's parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlValue<'a> {
    /// SQL's NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// Text.
    Text(&'a str),
}

/// One execution of a prepared statement among several that are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution<'a> {
    /// The statement.
    pub statement: StatementId,
    /// Its parameters, in order.
    pub parameters: &'a [SqlValue<'a>],
}

/// Why a call failed, and what that says about the transaction it belonged to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    /// What it is counted under.
    pub class: ErrorClass,
    /// True: the transaction this call belonged to certainly did not happen, now or later. False: it may have.
    pub definite: bool,
    /// What went wrong, a lowercase fragment that carries the address or the server's own words.
    pub message: String,
    /// The server's code (SQLSTATE), where the server gave one.
    pub code: Option<String>,
}

/// One connection to a SQL database.
pub trait SqlSession {
    /// The same connection as one to a database of keys and values, where that is what it is. Everything of SQL fails
    /// on such a session.
    fn key_value(&mut self) -> Option<&mut dyn crate::KeyValueSession> {
        None
    }

    /// The same connection as one to the process that reads and writes a volume raw, where that is what it is. Everything
    /// of SQL fails on such a session.
    fn volume(&mut self) -> Option<&mut dyn crate::VolumeSession> {
        None
    }

    /// Prepares statements, in one round trip; the identifiers come in the same order.
    ///
    /// # Errors
    /// When the server refuses one of them or the connection fails; nothing is prepared then.
    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>>;

    /// Asks for a prepared statement to be run; [`SqlSession::poll_answer`] brings its answer. `now` is the moment from
    /// which the answer's time limit counts. The two together are [`SqlSession::execute`] without an allocation.
    ///
    /// # Errors
    /// When it cannot be asked; nothing has been sent then.
    fn ask(
        &mut self,
        statement: StatementId,
        parameters: &[SqlValue<'_>],
        now: Instant,
    ) -> Result<(), SessionError>;

    /// The whole answer to what was asked. A success means that, where the statement ended a transaction, the server
    /// acknowledged it without reservation. A session whose answer is not waited for to its end is broken.
    ///
    /// # Errors
    /// With [`SessionError::definite`] telling whether the transaction may have happened all the same.
    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>>;

    /// Runs a prepared statement and reads its whole answer.
    ///
    /// # Errors
    /// As [`SqlSession::ask`] and [`SqlSession::poll_answer`].
    fn execute<'a>(
        &'a mut self,
        statement: StatementId,
        parameters: &'a [SqlValue<'a>],
    ) -> SessionFuture<'a, Rows> {
        Box::pin(async move {
            self.ask(statement, parameters, Instant::now())?;
            poll_fn(|context| self.poll_answer(context)).await
        })
    }

    /// Runs one or several statements without parameters; answers with the rows of the last that returned any.
    ///
    /// # Errors
    /// As [`SqlSession::execute`].
    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows>;

    /// Runs several prepared statements in one flight: all are sent before the first is answered. `answered` is told of
    /// each success in order, with its place in `executions`. Outside a transaction block they are one transaction;
    /// what stands after the first refused one is not run.
    ///
    /// # Errors
    /// Of the first that was refused; as [`SqlSession::execute`].
    fn pipeline<'a>(
        &'a mut self,
        executions: &'a [Execution<'a>],
        answered: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()>;

    /// Runs a bulk load, such as `COPY t (a, b) FROM STDIN`, in the database's bulk text format. `fill` is called again
    /// and again with an empty buffer and appends whole lines with their line ends; it answers whether there is more to
    /// come. Answers with the number of rows loaded.
    ///
    /// # Errors
    /// As [`SqlSession::execute`].
    fn copy_in<'a>(
        &'a mut self,
        sql: &'a str,
        fill: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64>;

    /// How long every later call waits for its answer before it gives the session up.
    fn set_timeout(&mut self, timeout: Duration);

    /// Whether the session can be used no more and must be dropped.
    fn is_broken(&self) -> bool;

    /// The node that was asked last, where that is another than the session was opened with: a replica may answer with
    /// what is older than what the leader has acknowledged.
    fn read_at(&self) -> Option<&str> {
        None
    }

    /// Whether a transaction is open (or has failed and waits for its rollback).
    fn in_transaction(&self) -> bool;
}

/// A connection attempt at one node that came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The node's name.
    pub node: String,
    /// Why.
    pub error: SessionError,
}

/// A session with a node that takes writes.
pub struct Connected {
    /// The session.
    pub session: Box<dyn SqlSession>,
    /// The name of the node that answers it.
    pub node: String,
    /// Attempts at other nodes that failed on the way. A standby that was passed over is not among them: it did
    /// nothing wrong.
    pub failed_attempts: Vec<FailedAttempt>,
}

/// No node that takes writes was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("no node takes writes: {}", describe(.failed_attempts, .read_only_nodes))]
pub struct ConnectError {
    /// The attempts that failed.
    pub failed_attempts: Vec<FailedAttempt>,
    /// Names of the nodes that answered but take no writes.
    pub read_only_nodes: Vec<String>,
}

fn describe(failed: &[FailedAttempt], read_only: &[String]) -> String {
    let failures = failed.iter().map(|attempt| format!("{}: {}", attempt.node, attempt.error));
    let standbys = read_only.iter().map(|node| format!("{node}: read-only"));
    failures.chain(standbys).collect::<Vec<_>>().join("; ")
}

/// Finds a node that takes writes among the endpoints it knows, and opens a session there.
pub trait SqlConnector {
    /// A session with the node that takes writes, which all who share the connector look for together. `rng` spreads time
    /// limits and pauses.
    ///
    /// The future resolves to [`ConnectError`] when this client's attempts came to nothing; waiting before the next is the
    /// caller's business.
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn rand::Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>>;
}
