//! The trait that SQL workloads are written against, and the dialects they have to know.
//!
//! Owns no protocol: each protocol's folder implements it.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Instant;

use crate::Rows;
use crate::connection::{Connection, SessionError, SessionFuture};

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
    Text(&'a str),
}

/// One execution of a prepared statement among several that are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution<'a> {
    pub statement: StatementId,
    /// Its parameters, in order.
    pub parameters: &'a [SqlValue<'a>],
}

/// Whose SQL a session takes. Parameters are `$1`, `$2` in all of them: a session puts them as its server has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL's.
    Postgres,
    /// MySQL's, as MariaDB has it as well.
    Mysql,
    /// The standard's, ISO/IEC 9075, without what databases add to it. Transactions are begun by the driver, as its call level
    /// interface has it; every table has a primary key.
    Standard,
    /// Cassandra's CQL, which is like SQL in words: rows by key, and neither transactions of several statements nor joins.
    Cql,
}

/// Where a bulk load goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BulkLoad<'a> {
    pub table: &'a str,
    /// Its columns in the order of the lines' cells, `a, b`; all as the table has them where empty.
    pub columns: &'a str,
    /// Whether the table was made or emptied in the transaction that is open, which some servers load faster.
    pub is_new: bool,
}

/// One connection to a SQL database.
pub trait SqlSession: Connection {
    /// Whose SQL it takes.
    fn dialect(&self) -> Dialect;

    /// Whether rows that were overwritten stay until VACUUM takes them away.
    fn keeps_dead_rows(&self) -> bool {
        false
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

    /// Runs several prepared statements in one flight: all are sent before the first is answered. `answered` is called for
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

    /// Loads rows in bulk. `fill` is called again and again with an empty buffer and appends whole lines with their line
    /// ends; it answers whether there is more to come. Cells have a tab between them, `\N` stands for NULL, and a backslash
    /// before a tab, a line end or a backslash of a cell's own. Answers with the number of rows loaded. Whether it is one
    /// transaction is the protocol's.
    ///
    /// # Errors
    /// As [`SqlSession::execute`].
    fn load<'a>(
        &'a mut self,
        load: BulkLoad<'a>,
        fill: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64>;

    /// Reads all rows of a query over one table at one moment, so many at a time; the last page, which may be empty, has
    /// fewer. The table itself is read, not its indexes: a row that only one of them knows must not stay hidden.
    ///
    /// # Errors
    /// As [`SqlSession::execute`], and those of `page`.
    fn read_table<'a>(
        &'a mut self,
        query: &'a str,
        page_rows: usize,
        page: &'a mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> SessionFuture<'a, ()>;

    /// Whether a transaction is open (or has failed and waits for its rollback).
    fn in_transaction(&self) -> bool;
}
