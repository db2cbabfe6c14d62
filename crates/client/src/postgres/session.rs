//! The SQL session trait over a PostgreSQL session: prepared statements, batches, bulk load.
//!
//! Owns how messages are put together; reading and judging answers is the parent's.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use postgres_protocol::message::frontend::{self, CopyData};

use super::question::{SYNC, opening, refusal, write_execution};
use super::{Answer, PostgresClient, Prepared};
use crate::connection::{Connection, SessionFuture};
use crate::line::Ended;
use crate::reactor::timeout;
use crate::sql::{BulkLoad, Dialect, Execution, SqlSession, SqlValue, StatementId};
use crate::statement_kind::{StatementKind, TransactionStatus};
use crate::{Rows, SessionError};

/// Bulk loads are sent in pieces of about this size.
const COPY_PIECE_BYTES: usize = 128 << 10;

impl Connection for PostgresClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.line.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.line.broken
    }
}

impl SqlSession for PostgresClient {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(async move {
            let first = self.statements.len();
            let mut prepared = Vec::with_capacity(statements.len());
            for (index, sql) in statements.iter().enumerate() {
                let name = format!("h{}", first + index);
                frontend::parse(&name, sql, [], &mut self.line.wire.outgoing)
                    .map_err(|e| self.line.not_sent(&e))?;
                prepared.push(Prepared { opening: opening(&name), kind: StatementKind::of(sql) });
            }
            frontend::sync(&mut self.line.wire.outgoing);
            // Preparing runs nothing, so nothing can be committed by it.
            self.exchange(StatementKind::Begin).await?;
            self.statements.extend(prepared);
            Ok((first..self.statements.len()).map(StatementId).collect())
        })
    }

    fn ask(
        &mut self,
        statement: StatementId,
        parameters: &[SqlValue<'_>],
        now: Instant,
    ) -> Result<(), SessionError> {
        let Some(prepared) = self.statements.get(statement.0) else {
            return Err(self.line.not_sent(&"the statement was prepared on another session"));
        };
        let kind = prepared.kind;
        if let Some(why) = refusal(parameters) {
            return Err(self.line.not_sent(&why));
        }
        self.begin(kind, now)?;
        if let Some(prepared) = self.statements.get(statement.0) {
            write_execution(&prepared.opening, parameters, &mut self.piece, &mut self.line.wire.outgoing);
        }
        self.line.wire.outgoing.extend_from_slice(&SYNC);
        Ok(())
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        if self.asked.sent && !self.line.broken {
            return Poll::Ready(Err(self.line.not_sent(&"nothing was asked")));
        }
        self.poll_exchange(context)
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(self.simple_query(sql))
    }

    fn pipeline<'a>(
        &'a mut self,
        executions: &'a [Execution<'a>],
        answered: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Some(why) = executions.iter().find_map(|execution| refusal(execution.parameters)) {
                return Err(self.line.not_sent(&why));
            }
            self.fly(executions, answered).await
        })
    }

    fn load<'a>(
        &'a mut self,
        load: BulkLoad<'a>,
        fill: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64> {
        let BulkLoad { table, columns, is_new } = load;
        let columns = if columns.is_empty() { String::new() } else { format!(" ({columns})") };
        let frozen = if is_new && !self.is_compatible { " WITH (FREEZE ON)" } else { "" };
        let sql = format!("COPY {table}{columns} FROM STDIN{frozen}");
        Box::pin(async move { self.copy(&sql, fill).await })
    }

    fn read_table<'a>(
        &'a mut self,
        query: &'a str,
        page_rows: usize,
        page: &'a mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> SessionFuture<'a, ()> {
        if self.is_compatible {
            return Box::pin(self.read_in_order(query, page_rows, page));
        }
        Box::pin(async move {
            let open = format!(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_indexscan = off; \
                 SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off; \
                 DECLARE all_rows NO SCROLL CURSOR FOR {query}"
            );
            self.simple_query(&open).await?;
            let fetch = format!("FETCH {page_rows} FROM all_rows");
            loop {
                let rows = self.simple_query(&fetch).await?;
                page(&rows)?;
                if rows.len() < page_rows {
                    break;
                }
            }
            self.simple_query("COMMIT").await.map(drop)
        })
    }

    fn keeps_dead_rows(&self) -> bool {
        !self.is_compatible
    }

    fn in_transaction(&self) -> bool {
        self.status != TransactionStatus::Idle
    }
}

impl PostgresClient {
    /// Reads the pages of a query one after the other, in one transaction, without a cursor.
    async fn read_in_order(
        &mut self,
        query: &str,
        page_rows: usize,
        page: &mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        self.simple_query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let mut read = 0;
        loop {
            let rows =
                self.simple_query(&format!("{query} ORDER BY 1 LIMIT {page_rows} OFFSET {read}")).await?;
            page(&rows)?;
            read += rows.len();
            if rows.len() < page_rows {
                break;
            }
        }
        self.simple_query("COMMIT").await.map(drop)
    }

    async fn copy(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, SessionError> {
        self.line.refuse_if_broken()?;
        let kind = StatementKind::Single;
        let may_commit = kind.may_commit(self.status);
        frontend::query(sql, &mut self.line.wire.outgoing).map_err(|e| self.line.not_sent(&e))?;
        self.line.broken = true;
        self.line.wire.begin_answer();
        let mut answer = Answer::default();
        let limit = self.line.timeout;
        let mut ended = Ended::of(timeout(limit, self.send_and_read(kind, &mut answer)).await);
        if !answer.copying || answer.error.is_some() {
            return self.finish(ended, kind, may_commit, answer).map(|rows| rows.affected());
        }
        // Each piece has the whole time limit: a long load is not a dead server.
        let mut piece = Vec::with_capacity(COPY_PIECE_BYTES * 2);
        let mut more = true;
        while more && matches!(ended, Ended::Whole(())) {
            piece.clear();
            while more && piece.len() < COPY_PIECE_BYTES {
                more = fill(&mut piece);
            }
            if !piece.is_empty() {
                let data = CopyData::new(piece.as_slice()).map_err(|error| self.line.not_sent(&error))?;
                data.write(&mut self.line.wire.outgoing);
            }
            if !more {
                frontend::copy_done(&mut self.line.wire.outgoing);
            }
            ended = Ended::of(timeout(limit, self.line.wire.send(&mut answer.sent_anything)).await);
        }
        if matches!(ended, Ended::Whole(())) {
            ended = Ended::of(timeout(limit, self.read_until(kind, &mut answer, |_| false)).await);
        }
        self.finish(ended, kind, may_commit, answer).map(|rows| rows.affected())
    }
}
