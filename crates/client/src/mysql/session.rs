//! The SQL session trait over a session of MySQL's protocol: prepared statements, texts of several, bulk load.
//!
//! Owns what is sent together; reading and judging answers is the parent's.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use mysql_common::io::ParseBuf;
use mysql_common::packets::StmtPacket;

use super::answer::{Columns, column, cut_off, is_refusal, refusal};
use super::packets::{CLOSE, PREPARE, QUERY, next_packet, write_execution, write_packet, write_text};
use super::statement::{Source, push_rows};
use super::{MysqlClient, Prepared, verdict};
use crate::connection::{Connection, SessionFuture};
use crate::line::Ended;
use crate::reactor::timeout;
use crate::sql::{BulkLoad, Dialect, Execution, SqlSession, SqlValue, StatementId};
use crate::statement_kind::{Flight, StatementKind, TransactionStatus};
use crate::{Rows, SessionError};

/// Bulk loads are sent in statements of about this size, each a transaction of its own: Galera certifies a transaction as
/// a whole.
const INSERT_BYTES: usize = 256 << 10;

impl Connection for MysqlClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.line.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.line.broken
    }
}

impl SqlSession for MysqlClient {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(self.prepare_all(statements))
    }

    fn ask(
        &mut self,
        statement: StatementId,
        parameters: &[SqlValue<'_>],
        now: Instant,
    ) -> Result<(), SessionError> {
        self.line.refuse_if_broken()?;
        let Some(Prepared { source, number, .. }) = self.statements.get(statement.0) else {
            return Err(self.line.not_sent(&"the statement was prepared on another session"));
        };
        let (may_commit, executed) = (source.may_commit(self.status), number.map(|_| statement.0));
        let out = &mut self.line.wire.outgoing;
        let written = match number {
            Some(number) => write_execution(*number, &source.places, parameters, out),
            None => match source.filled_in(parameters) {
                Some(sql) => write_text(QUERY, &sql, out),
                None => Err("the statement has more parameters than were given"),
            },
        };
        written.map_err(|why| self.line.not_sent(&why))?;
        self.begin(may_commit, executed, now);
        Ok(())
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        if self.asked.sent && !self.line.broken {
            return Poll::Ready(Err(self.line.not_sent(&"nothing was asked")));
        }
        self.poll_exchange(context)
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(self.query(sql))
    }

    fn pipeline<'a>(
        &'a mut self,
        executions: &'a [Execution<'a>],
        answered: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        Box::pin(self.fly(executions, answered))
    }

    fn load<'a>(
        &'a mut self,
        load: BulkLoad<'a>,
        fill: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64> {
        Box::pin(self.insert(load, fill))
    }

    fn read_table<'a>(
        &'a mut self,
        query: &'a str,
        page_rows: usize,
        page: &'a mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(self.read_pages(query, page_rows, page))
    }

    fn in_transaction(&self) -> bool {
        self.status != TransactionStatus::Idle
    }
}

impl MysqlClient {
    /// Prepares all in one flight. Preparing runs nothing, so that the server may as well go on behind one it refuses.
    async fn prepare_all(&mut self, statements: &[&str]) -> Result<Vec<StatementId>, SessionError> {
        self.line.refuse_if_broken()?;
        let sources: Vec<Source> = statements.iter().map(|sql| Source::new(sql)).collect();
        let texts: Vec<Option<String>> = sources.iter().map(Source::to_prepare).collect();
        for text in texts.iter().flatten() {
            write_text(PREPARE, text, &mut self.line.wire.outgoing)
                .map_err(|why| self.line.not_sent(&why))?;
        }
        self.begin(false, None, Instant::now());
        let mut prepared = Vec::new();
        let limit = self.line.timeout;
        let count = texts.iter().flatten().count();
        let ended = Ended::of(timeout(limit, self.read_prepared(count, &mut prepared)).await);
        if let Err(error) = self.finish(ended) {
            for (number, _) in prepared {
                // There is no answer to this.
                let _ = write_packet(0, &mut self.line.wire.outgoing, |out| {
                    out.extend_from_slice(&[CLOSE]);
                    out.extend_from_slice(&number.to_le_bytes());
                });
            }
            return Err(error);
        }
        let first = self.statements.len();
        let mut prepared = prepared.into_iter();
        for (source, text) in sources.into_iter().zip(texts) {
            let (number, columns) = text.and_then(|_| prepared.next()).unzip();
            self.statements.push(Prepared { source, number, columns: columns.unwrap_or_default() });
        }
        Ok((first..self.statements.len()).map(StatementId).collect())
    }

    /// Reads the answers to so many preparations: numbers and columns. The first that was refused stays as the answer's error.
    async fn read_prepared(&mut self, count: usize, all: &mut Vec<(u32, Columns)>) -> io::Result<()> {
        self.line.wire.send(&mut self.answer.sent_anything).await?;
        self.asked.sent = true;
        for _ in 0..count {
            let place = self.packet().await?;
            let packet = self.line.wire.at(&place);
            if is_refusal(packet) {
                let refusal = refusal(packet)?;
                self.answer.error.get_or_insert_with(|| Box::new(refusal));
                continue;
            }
            let prepared: StmtPacket = ParseBuf(packet).parse(())?;
            // Behind any definitions there is their end.
            for _ in 0..u32::from(prepared.num_params()) + u32::from(prepared.num_params() > 0) {
                self.packet().await?;
            }
            let mut columns = Columns::new();
            for _ in 0..prepared.num_columns() {
                let place = self.packet().await?;
                columns.push(column(self.line.wire.at(&place)).ok_or_else(cut_off)?);
            }
            if !columns.is_empty() {
                self.packet().await?;
            }
            all.push((prepared.statement_id(), columns));
        }
        Ok(())
    }

    async fn packet(&mut self) -> io::Result<std::ops::Range<usize>> {
        loop {
            if let Some(packet) = next_packet(&mut self.line.wire)? {
                return Ok(packet.place);
            }
            self.line.wire.fill().await?;
        }
    }

    /// Runs several statements as one text, which the server leaves at the first that it refuses. Outside a transaction
    /// block one is put around them.
    async fn fly(
        &mut self,
        executions: &[Execution<'_>],
        answered: &mut dyn FnMut(usize, &Rows),
    ) -> Result<(), SessionError> {
        self.line.refuse_if_broken()?;
        let (mut kinds, mut texts) = (Vec::new(), Vec::new());
        for execution in executions {
            let Some(Prepared { source, .. }) = self.statements.get(execution.statement.0) else {
                return Err(self.line.not_sent(&"a statement was prepared on another session"));
            };
            let Some(text) = source.filled_in(execution.parameters) else {
                return Err(self.line.not_sent(&"a statement has more parameters than were given"));
            };
            kinds.push(source.kind);
            texts.push(text);
        }
        if executions.is_empty() {
            return Ok(());
        }
        let is_wrapped =
            self.status == TransactionStatus::Idle && kinds.first() != Some(&StatementKind::Begin);
        if is_wrapped {
            kinds.insert(0, StatementKind::Begin);
            texts.insert(0, "START TRANSACTION".to_owned());
            kinds.push(StatementKind::Commit);
            texts.push("COMMIT".to_owned());
        }
        let flight = Flight::of(kinds.iter().copied(), self.status);
        let begins_again = self.status == TransactionStatus::Open && kinds.contains(&StatementKind::Begin);
        let stays_open = !flight.may_commit && !begins_again;
        let own = kinds.iter().zip(&texts).filter(|(kind, _)| **kind == StatementKind::Single);
        let stays_open = stays_open && own.clone().all(|(_, text)| verdict::is_of_rows(text));
        let only_reads_behind_the_first = own.skip(1).all(|(_, text)| verdict::is_read(text));
        let sql = texts.join("; ");
        write_text(QUERY, &sql, &mut self.line.wire.outgoing).map_err(|why| self.line.not_sent(&why))?;
        self.begin(!stays_open, None, Instant::now());
        let mut completed = 0;
        let mut each = |place: usize, rows: &mut Rows| {
            completed = place + 1;
            let place = place.checked_sub(usize::from(is_wrapped));
            if let Some(place) = place.filter(|place| *place < executions.len()) {
                answered(place, rows);
            }
            rows.clear();
        };
        let ended = poll_fn(|context| self.poll_whole(context, &mut each)).await;
        let Err(error) = self.finish(ended) else {
            if stays_open && self.status == TransactionStatus::Idle {
                return Err(verdict::lost_between(&self.line.peer, only_reads_behind_the_first));
            }
            return Ok(());
        };
        let is_over = error.code.as_deref() == Some(verdict::DEADLOCK.to_string().as_str());
        if !self.line.broken && !is_over {
            // An error tells nothing of the transaction: it stands as the statement before left it.
            if is_wrapped {
                // Whoever asked knows of no transaction. One that cannot be taken back ends with the session.
                self.line.broken = self.query("ROLLBACK").await.is_err();
            } else if kinds.contains(&StatementKind::Begin) {
                self.status = TransactionStatus::Open;
            }
        }
        let committed_before = kinds.get(..completed).unwrap_or_default().contains(&StatementKind::Commit);
        // A Galera node may have run the next one by itself, which stays.
        let may_have_left_one = (is_over || completed > 0) && !only_reads_behind_the_first;
        Err(SessionError { definite: error.definite && !committed_before && !may_have_left_one, ..error })
    }

    async fn insert(
        &mut self,
        load: BulkLoad<'_>,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, SessionError> {
        let columns = if load.columns.is_empty() { String::new() } else { format!(" ({})", load.columns) };
        let opening = format!("INSERT INTO {}{columns} VALUES ", load.table);
        let (mut lines, mut more, mut loaded) = (Vec::new(), true, 0);
        while more {
            let (mut sql, mut is_first, mut count) = (opening.clone(), true, 0);
            while more && sql.len() < INSERT_BYTES {
                lines.clear();
                more = fill(&mut lines);
                let text =
                    std::str::from_utf8(&lines).map_err(|_| self.line.not_sent(&"a line that is no text"))?;
                count += push_rows(text, &mut sql, &mut is_first);
            }
            if count > 0 {
                self.query(&sql).await?;
                loaded += count;
            }
        }
        Ok(loaded)
    }

    /// One statement is one moment, and InnoDB's tables are their primary index.
    async fn read_pages(
        &mut self,
        query: &str,
        page_rows: usize,
        page: &mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        self.line.refuse_if_broken()?;
        write_text(QUERY, query, &mut self.line.wire.outgoing).map_err(|why| self.line.not_sent(&why))?;
        self.begin(false, None, Instant::now());
        loop {
            let limit = self.line.timeout;
            let read = poll_fn(|context| self.poll_read(context, &mut |_, _| {}, page_rows));
            let is_whole = match Ended::of(timeout(limit, read).await) {
                Ended::Whole(is_whole) => is_whole,
                Ended::Broken(error) => return self.finish(Ended::Broken(error)).map(drop),
                Ended::TooLate => return self.finish(Ended::TooLate).map(drop),
            };
            if is_whole {
                let answer = self.finish(Ended::Whole(()))?;
                return page(&answer.rows);
            }
            page(&self.answer.rows_of_this_statement)?;
            self.answer.rows_of_this_statement.clear();
            // Each page has the whole allowance of an answer.
            self.line.wire.begin_answer();
        }
    }
}
