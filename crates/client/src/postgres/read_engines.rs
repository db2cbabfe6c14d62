//! Sessions that write at the leader and read elsewhere: at replicas, or at any node, each client at one of its own.
//!
//! Owns which statement goes where. A query outside a transaction block goes to the reader; everything else, and every
//! statement of a block, to the leader. What a replica answers may be older than what the leader has acknowledged, so
//! that a session tells which node answered.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rand::Rng;

use super::discover::PostgresConnector;
use super::{PostgresClient, Settings};
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::session::{ConnectError, Connected, Connector, FailedAttempt, Session};
use crate::{
    BulkLoad, Dialect, Execution, Rows, SessionError, SessionFuture, SqlSession, SqlValue, StatementId,
};

/// Where reads go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// Where writes go.
    #[default]
    Leader,
    /// To replicas only; without one there is no session.
    Replicas,
    /// To any node, the leader among them.
    Any,
}

/// Connects to the leader, and to a reader beside it. Readers are given out in turn, so that clients are spread evenly.
pub struct ReadEngines {
    leader: PostgresConnector,
    reads: Reads,
    given_out: Cell<usize>,
}

impl ReadEngines {
    /// Over these endpoints.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, settings: Settings, reads: Reads) -> Self {
        Self { leader: PostgresConnector::new(endpoints, settings), reads, given_out: Cell::new(0) }
    }

    async fn round(&self, rng: &mut dyn Rng) -> Result<Connected, ConnectError> {
        let (leader, node, mut failed_attempts) = self.leader.to_leader(rng).await?;
        if self.reads == Reads::Leader {
            return Ok(Connected { session: Session::of_sql(leader), node, failed_attempts });
        }
        let candidates: Vec<(usize, &Endpoint)> = self
            .leader
            .endpoints()
            .enumerate()
            .filter(|(_, endpoint)| self.reads == Reads::Any || endpoint.node != node)
            .collect();
        let turn = self.given_out.get();
        self.given_out.set(turn.wrapping_add(1));
        for place in 0..candidates.len() {
            let (index, endpoint) = candidates[(turn + place) % candidates.len()];
            if endpoint.node == node {
                return Ok(Connected { session: Session::of_sql(leader), node, failed_attempts });
            }
            match self.leader.ask_node(index, rng).await {
                // Two that take writes: whichever is the old one, it is no replica.
                Ok((_, true)) => {}
                Ok((reader, false)) => {
                    let session = Session::of_sql(Divided::new(leader, reader, endpoint.node.clone()));
                    return Ok(Connected { session, node, failed_attempts });
                }
                Err(error) => failed_attempts.push(FailedAttempt { node: endpoint.node.clone(), error }),
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes: Vec::new() })
    }
}

impl Connector for ReadEngines {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.round(rng))
    }
}

/// Who was asked last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Leader,
    Reader,
}

/// A session with the leader and one with a reader, as one.
struct Divided {
    leader: PostgresClient,
    reader: PostgresClient,
    reader_node: String,
    /// Of each prepared statement its place in either session, and whether it only reads.
    statements: Vec<(StatementId, Option<StatementId>)>,
    asked: Side,
}

impl Divided {
    fn new(leader: PostgresClient, reader: PostgresClient, reader_node: String) -> Self {
        Self { leader, reader, reader_node, statements: Vec::new(), asked: Side::Leader }
    }

    /// What a statement is called at the leader; one that was never prepared here is refused there.
    fn at_the_leader(&self, statement: StatementId) -> StatementId {
        self.statements.get(statement.0).map_or(statement, |(at_the_leader, _)| *at_the_leader)
    }
}

/// Whether a statement only reads, and locks nothing: a replica can answer it.
fn only_reads(sql: &str) -> bool {
    let sql = sql.trim_start().to_ascii_lowercase();
    let locks = ["for update", "for no key update", "for share", "for key share"];
    sql.starts_with("select") && !locks.iter().any(|lock| sql.contains(lock))
}

impl Connection for Divided {
    fn set_timeout(&mut self, timeout: Duration) {
        self.leader.set_timeout(timeout);
        self.reader.set_timeout(timeout);
    }

    fn is_broken(&self) -> bool {
        self.leader.is_broken() || self.reader.is_broken()
    }

    fn read_at(&self) -> Option<&str> {
        (self.asked == Side::Reader).then_some(self.reader_node.as_str())
    }
}

impl SqlSession for Divided {
    fn dialect(&self) -> Dialect {
        self.leader.dialect()
    }

    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(async move {
            let at_the_leader = self.leader.prepare(statements).await?;
            let reading: Vec<&str> = statements.iter().copied().filter(|sql| only_reads(sql)).collect();
            let mut at_the_reader = self.reader.prepare(&reading).await?.into_iter();
            let first = self.statements.len();
            for (sql, at_the_leader) in statements.iter().zip(at_the_leader) {
                let reading = if only_reads(sql) { at_the_reader.next() } else { None };
                self.statements.push((at_the_leader, reading));
            }
            Ok((first..self.statements.len()).map(StatementId).collect())
        })
    }

    fn ask(
        &mut self,
        statement: StatementId,
        parameters: &[SqlValue<'_>],
        now: Instant,
    ) -> Result<(), SessionError> {
        let reading = self.statements.get(statement.0).and_then(|(_, reading)| *reading);
        match reading {
            Some(reading) if !self.leader.in_transaction() => {
                self.asked = Side::Reader;
                self.reader.ask(reading, parameters, now)
            }
            _ => {
                self.asked = Side::Leader;
                let statement = self.at_the_leader(statement);
                self.leader.ask(statement, parameters, now)
            }
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        match self.asked {
            Side::Leader => self.leader.poll_answer(context),
            // A replica writes nothing, whatever became of the answer.
            Side::Reader => self
                .reader
                .poll_answer(context)
                .map(|answer| answer.map_err(|error| SessionError { definite: true, ..error })),
        }
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        self.asked = Side::Leader;
        self.leader.batch(sql)
    }

    fn pipeline<'a>(
        &'a mut self,
        executions: &'a [Execution<'a>],
        answered: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            self.asked = Side::Leader;
            let at_the_leader: Vec<Execution<'_>> = executions
                .iter()
                .map(|execution| Execution {
                    statement: self.at_the_leader(execution.statement),
                    ..*execution
                })
                .collect();
            self.leader.pipeline(&at_the_leader, answered).await
        })
    }

    fn load<'a>(
        &'a mut self,
        load: BulkLoad<'a>,
        fill: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64> {
        self.asked = Side::Leader;
        self.leader.load(load, fill)
    }

    fn keeps_dead_rows(&self) -> bool {
        self.leader.keeps_dead_rows()
    }

    fn read_table<'a>(
        &'a mut self,
        query: &'a str,
        page_rows: usize,
        page: &'a mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> SessionFuture<'a, ()> {
        self.asked = Side::Leader;
        self.leader.read_table(query, page_rows, page)
    }

    fn in_transaction(&self) -> bool {
        self.leader.in_transaction()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_locks_or_writes_is_for_the_leader() {
        let check = |sql: &str, expected: bool| assert_eq!(only_reads(sql), expected, "{sql}");
        check("SELECT v FROM kv WHERE k = $1", true);
        check("  select count(*) FROM kv", true);
        check("SELECT v FROM kv FOR UPDATE", false);
        check("SELECT v FROM kv FOR KEY SHARE", false);
        check("UPDATE kv SET v = 1", false);
        check("WITH gone AS (DELETE FROM kv RETURNING *) SELECT * FROM gone", false);
        check("", false);
    }
}
