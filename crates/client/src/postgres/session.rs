//! The SQL session trait over a PostgreSQL session: prepared statements in one write, batches, bulk load.
//!
//! Owns how messages are put together; reading and judging answers is the parent's.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend::{self, BindError};
use tokio::time::timeout;

use super::verdict::{StatementKind, TransactionStatus};
use super::{Answer, PostgresClient, Prepared};
use crate::session::{SessionFuture, SqlSession, SqlValue, StatementId};
use crate::{Rows, SessionError};

/// Bulk loads are sent in pieces of about this size.
const COPY_PIECE_BYTES: usize = 128 << 10;

impl SqlSession for PostgresClient {
    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(async move {
            let first = self.statements.len();
            let prepared: Vec<Prepared> = statements
                .iter()
                .enumerate()
                .map(|(index, sql)| Prepared {
                    name: format!("h{}", first + index),
                    kind: StatementKind::of(sql),
                })
                .collect();
            for (sql, statement) in statements.iter().zip(&prepared) {
                frontend::parse(&statement.name, sql, [], &mut self.wire.outgoing)
                    .map_err(|e| self.not_sent(&e))?;
            }
            frontend::sync(&mut self.wire.outgoing);
            // Preparing runs nothing, so nothing can be committed by it.
            self.exchange(StatementKind::Begin).await?;
            self.statements.extend(prepared);
            Ok((first..self.statements.len()).map(StatementId).collect())
        })
    }

    fn execute<'a>(
        &'a mut self,
        statement: StatementId,
        parameters: &'a [SqlValue<'a>],
    ) -> SessionFuture<'a, Rows> {
        Box::pin(async move {
            let Some(prepared) = self.statements.get(statement.0) else {
                return Err(self.not_sent(&"the statement was prepared on another session"));
            };
            let kind = prepared.kind;
            write_execution(&prepared.name, parameters, &mut self.wire.outgoing)
                .map_err(|e| self.not_sent(&e))?;
            self.exchange(kind).await
        })
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(self.simple_query(sql))
    }

    fn copy_in<'a>(
        &'a mut self,
        table: &'a str,
        options: &'a str,
        lines: &'a mut dyn Iterator<Item = String>,
    ) -> SessionFuture<'a, u64> {
        Box::pin(self.copy_lines(table, options, lines))
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.broken
    }

    fn in_transaction(&self) -> bool {
        self.status != TransactionStatus::Idle
    }
}

impl PostgresClient {
    async fn copy_lines(
        &mut self,
        table: &str,
        options: &str,
        lines: &mut dyn Iterator<Item = String>,
    ) -> Result<u64, SessionError> {
        self.refuse_if_broken()?;
        let kind = StatementKind::Single;
        let may_commit = kind.may_commit(self.status);
        let sql = format!("COPY {table} FROM STDIN {options}");
        frontend::query(&sql, &mut self.wire.outgoing).map_err(|e| self.not_sent(&e))?;
        self.broken = true;
        let mut answer = Answer::default();
        let limit = self.timeout;
        let mut ended = timeout(limit, self.send_and_read(kind, &mut answer)).await;
        if !answer.copying || answer.error.is_some() {
            return self.finish(ended, kind, may_commit, answer).map(|rows| rows.affected());
        }
        // Each piece has the whole time limit: a long load is not a dead server.
        let mut piece = BytesMut::with_capacity(COPY_PIECE_BYTES * 2);
        let mut last = false;
        while !last && matches!(ended, Ok(Ok(()))) {
            while piece.len() < COPY_PIECE_BYTES {
                let Some(line) = lines.next() else {
                    last = true;
                    break;
                };
                piece.extend_from_slice(line.as_bytes());
                piece.extend_from_slice(b"\n");
            }
            match frontend::CopyData::new(piece.split().freeze()) {
                Ok(data) => data.write(&mut self.wire.outgoing),
                Err(error) => return Err(self.not_sent(&error)),
            }
            if last {
                frontend::copy_done(&mut self.wire.outgoing);
            }
            ended = timeout(limit, self.wire.send(&mut answer.sent_anything)).await;
        }
        if matches!(ended, Ok(Ok(()))) {
            ended = timeout(limit, self.read_until(kind, &mut answer, |_| false)).await;
        }
        self.finish(ended, kind, may_commit, answer).map(|rows| rows.affected())
    }
}

/// Bind, execute and sync of one prepared statement, in one piece.
fn write_execution(name: &str, parameters: &[SqlValue<'_>], out: &mut BytesMut) -> Result<(), String> {
    let start = out.len();
    let bound = frontend::bind("", name, [], parameters.iter(), write_value, [], out);
    bound.map_err(|error| match error {
        BindError::Conversion(error) => error.to_string(),
        BindError::Serialization(error) => error.to_string(),
    })?;
    frontend::execute("", 0, out).map_err(|error| error.to_string())?;
    frontend::sync(out);
    debug_assert!(out.len() > start);
    Ok(())
}

fn write_value(
    value: &SqlValue<'_>,
    out: &mut BytesMut,
) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
    match value {
        SqlValue::Null => return Ok(IsNull::Yes),
        SqlValue::Integer(number) => write!(out, "{number}")?,
        SqlValue::Text(text) => out.extend_from_slice(text.as_bytes()),
    }
    Ok(IsNull::No)
}
