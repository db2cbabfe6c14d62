//! The trait that SQL workloads are written against.
//!
//! Owns no protocol: each protocol's folder implements it.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::Rows;
use crate::session::{Connection, SessionError, SessionFuture};

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

/// One connection to a SQL database.
pub trait SqlSession: Connection {
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

    /// Whether a transaction is open (or has failed and waits for its rollback).
    fn in_transaction(&self) -> bool;
}
