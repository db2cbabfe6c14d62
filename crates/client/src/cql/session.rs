//! The SQL session trait over a session of CQL: prepared statements, bulk load, paged reads of a table.
//!
//! Owns what is sent together; reading and judging answers is the parent's. CQL has no transactions of several statements:
//! what needs one is refused before anything is sent.

use std::collections::BTreeMap;
use std::io;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use history::ErrorClass;
use scylla_cql_core::frame::response::error::{DbError, Error as Refusal};

use super::answer::Said;
use super::frames::{Bound, Terms, write_execute, write_prepare, write_query};
use super::statement::{Effect, Source, cell};
use super::verdict::UNAVAILABLE;
use super::{CqlClient, Prepared, of_another};
use crate::connection::{Connection, SessionFuture};
use crate::frames::failure;
use crate::line::Ended;
use crate::reactor::{sleep, timeout};
use crate::sql::{BulkLoad, Dialect, Execution, SqlSession, SqlValue, StatementId};
use crate::{Rows, SessionError};

/// Rows of a bulk load on their way at once.
const ROWS_IN_FLIGHT: usize = 128;
/// How often rows of a bulk load that a busy node did not take are sent again. They are the same rows with the same time.
const BULK_TRIES: u32 = 8;
const BULK_PAUSE: Duration = Duration::from_millis(500);
/// Rows of a table that the server sends at a time.
const PAGE_ROWS: usize = 2_000;

impl Connection for CqlClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.line.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.line.broken
    }
}

impl SqlSession for CqlClient {
    fn dialect(&self) -> Dialect {
        Dialect::Cql
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
        let Some(Prepared { source, answer }) = self.statements.get(statement.0) else {
            return Err(self.line.not_sent(&"the statement was prepared on another session"));
        };
        let effect = source.effect;
        let terms = Terms { without_metadata: !answer.columns.is_empty(), ..self.terms(effect) };
        let bound = Bound { kinds: &answer.parameters, places: &source.places, parameters };
        let written = write_execute(0, &answer.id, terms, bound, &mut self.line.wire.outgoing);
        written.map_err(|why| self.line.not_sent(&why))?;
        self.begin(effect, Some(statement.0), now);
        Ok(())
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        if self.asked.sent && !self.line.broken {
            return Poll::Ready(Err(self.line.not_sent(&"nothing was asked")));
        }
        let ended = ready!(self.poll_whole(context));
        Poll::Ready(self.finish(ended).map(|_| std::mem::take(&mut self.rows)))
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(async move {
            let said = self.query(sql).await?;
            let rows = std::mem::take(&mut self.rows);
            if let Said::SchemaChange = said {
                self.wait_for_schema().await?;
            }
            Ok(rows)
        })
    }

    fn pipeline<'a>(
        &'a mut self,
        _executions: &'a [Execution<'a>],
        _answered: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        let error = self.line.not_sent(&"CQL has no transactions of several statements");
        Box::pin(async move { Err(error) })
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
        false
    }
}

impl CqlClient {
    /// Prepares all in one flight. Preparing runs nothing, so that the server may as well go on behind one it refuses.
    async fn prepare_all(&mut self, statements: &[&str]) -> Result<Vec<StatementId>, SessionError> {
        self.line.refuse_if_broken()?;
        let sources: Vec<Source> = statements.iter().map(|cql| Source::new(cql)).collect();
        for (stream, source) in (0..=i16::MAX).zip(&sources) {
            write_prepare(stream, &source.text, &mut self.line.wire.outgoing);
        }
        self.begin(Effect::Read, None, Instant::now());
        let answers = self.flight(sources.len()).await?;
        let mut refused = None;
        let mut prepared = Vec::new();
        for (source, said) in sources.into_iter().zip(answers.into_values()) {
            match said {
                Said::Prepared(answer) if answer.parameters.len() == source.places.len() => {
                    prepared.push(Prepared { source, answer });
                }
                Said::Refused(refusal) => refused = refused.or(Some(refusal)),
                other => return Err(self.senseless(&other)),
            }
        }
        if let Some(refusal) = refused {
            return Err(self.refused(&refusal));
        }
        let first = self.statements.len();
        self.statements.append(&mut prepared);
        Ok((first..self.statements.len()).map(StatementId).collect())
    }

    /// Sends what was written for so many streams and reads all answers, by stream.
    async fn flight(&mut self, streams: usize) -> Result<BTreeMap<i16, Said>, SessionError> {
        let mut answers = BTreeMap::new();
        let limit = self.line.timeout;
        let read = timeout(limit, self.read_flight(streams, &mut answers)).await;
        let ended = Ended::of(read.map(|read| read.map(|()| Said::Void)));
        self.finish(ended)?;
        Ok(answers)
    }

    async fn read_flight(&mut self, streams: usize, answers: &mut BTreeMap<i16, Said>) -> io::Result<()> {
        self.line.wire.send(&mut self.asked.sent_anything).await?;
        self.asked.sent = true;
        while answers.len() < streams {
            let Some((stream, said)) = self.next_said()? else {
                self.line.wire.fill().await?;
                continue;
            };
            let is_asked = usize::try_from(stream).is_ok_and(|stream| stream < streams);
            if !is_asked || answers.insert(stream, said).is_some() {
                return Err(of_another());
            }
        }
        Ok(())
    }

    /// Waits until the nodes agree on the tables there are, as drivers do: a node that has not heard of a new table refuses
    /// it (`INCOMPATIBLE_SCHEMA`). Six nodes on a busy machine have needed more than 10 s. Nodes that are away are waited for
    /// as long as those.
    async fn wait_for_schema(&mut self) -> Result<(), SessionError> {
        const PATIENCE: Duration = Duration::from_secs(60);
        const PAUSE: Duration = Duration::from_millis(100);
        let begun = Instant::now();
        loop {
            let mut versions = std::collections::BTreeSet::new();
            for table in ["system.local", "system.peers"] {
                self.ask_about_itself(&format!("SELECT schema_version FROM {table}")).await?;
                let rows = std::mem::take(&mut self.rows);
                versions.extend((0..rows.len()).map(|row| rows.text(row, 0).map(ToOwned::to_owned)));
            }
            if versions.len() <= 1 || begun.elapsed() > PATIENCE {
                return Ok(());
            }
            sleep(PAUSE).await;
        }
    }

    async fn insert(
        &mut self,
        load: BulkLoad<'_>,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, SessionError> {
        let columns = load.columns.split(',').count();
        let marks: Vec<String> = (1..=columns).map(|place| format!("${place}")).collect();
        let insert = format!("INSERT INTO {} ({}) VALUES ({})", load.table, load.columns, marks.join(", "));
        let statements = self.prepare_all(&[&insert]).await?;
        let statement = statements.first().copied().unwrap_or(StatementId(usize::MAX));
        let (mut lines, mut more, mut loaded) = (Vec::new(), true, 0);
        let mut rows: Vec<Vec<Option<String>>> = Vec::new();
        while more {
            lines.clear();
            more = fill(&mut lines);
            let text =
                std::str::from_utf8(&lines).map_err(|_| self.line.not_sent(&"a line that is no text"))?;
            rows.extend(text.lines().map(|line| line.split('\t').map(cell).collect()));
            if rows.len() >= ROWS_IN_FLIGHT || !more {
                for flight in rows.chunks(ROWS_IN_FLIGHT) {
                    self.insert_flight(statement, flight).await?;
                    loaded += flight.len() as u64;
                }
                rows.clear();
            }
        }
        Ok(loaded)
    }

    /// Writes a few rows; those that a busy node did not take in time again.
    async fn insert_flight(
        &mut self,
        statement: StatementId,
        rows: &[Vec<Option<String>>],
    ) -> Result<(), SessionError> {
        let terms = self.terms(Effect::Write);
        let mut left: Vec<&Vec<Option<String>>> = rows.iter().collect();
        for attempt in 1.. {
            let Some(Prepared { source, answer }) = self.statements.get(statement.0) else {
                return Err(self.line.not_sent(&"the statement was not prepared"));
            };
            for (stream, row) in (0..=i16::MAX).zip(&left) {
                let values = row.iter().map(|cell| cell.as_deref().map_or(SqlValue::Null, SqlValue::Text));
                let parameters: Vec<SqlValue<'_>> = values.collect();
                let bound =
                    Bound { kinds: &answer.parameters, places: &source.places, parameters: &parameters };
                let written = write_execute(stream, &answer.id, terms, bound, &mut self.line.wire.outgoing);
                if let Err(why) = written {
                    return Err(self.line.not_sent(&why));
                }
            }
            self.begin(Effect::Write, None, Instant::now());
            let answers = self.flight(left.len()).await?;
            let mut refused = None;
            let mut again = Vec::new();
            for (row, said) in left.into_iter().zip(answers.into_values()) {
                match said {
                    Said::Void => {}
                    Said::Refused(refusal) => {
                        again.push(row);
                        refused = Some(refusal);
                    }
                    other => return Err(self.senseless(&other)),
                }
            }
            match refused {
                None => return Ok(()),
                Some(refusal) if attempt >= BULK_TRIES || !may_pass(&refusal) => {
                    return Err(self.refused(&refusal));
                }
                Some(_) => {}
            }
            sleep(BULK_PAUSE).await;
            left = again;
        }
        Ok(())
    }

    /// The server goes over all ranges of tokens, page by page.
    async fn read_pages(
        &mut self,
        query: &str,
        page_rows: usize,
        page: &mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let mut consistency = self.reads.number();
        let mut otherwise = self.reads_otherwise;
        let mut next: Option<Vec<u8>> = None;
        let mut kept = Rows::default();
        loop {
            self.line.refuse_if_broken()?;
            let wanted = page_rows.saturating_sub(kept.len()).clamp(1, PAGE_ROWS);
            let terms = Terms {
                consistency,
                page_rows: i32::try_from(wanted).ok(),
                paging_state: next.as_deref(),
                ..Terms::default()
            };
            write_query(query, terms, &mut self.line.wire.outgoing);
            match self.exchange(Effect::Read).await {
                Ok(Said::Rows(state)) => next = state,
                Ok(other) => return Err(self.senseless(&other)),
                Err(error) if error.code.as_deref() == Some(UNAVAILABLE) && otherwise.is_some() => {
                    consistency = otherwise.take().unwrap_or(self.reads).number();
                    continue;
                }
                Err(error) => return Err(error),
            }
            kept.append(std::mem::take(&mut self.rows));
            let is_last = next.is_none();
            if kept.len() > page_rows {
                let message = format!("{}: a page of more rows than were asked for", self.line.peer);
                return Err(failure(ErrorClass::Other, true, message));
            }
            if is_last || kept.len() == page_rows {
                page(&kept)?;
                let was_whole = kept.len() == page_rows;
                kept.clear();
                if is_last {
                    // Only a page that is not full says that it is the last.
                    return if was_whole { page(&kept) } else { Ok(()) };
                }
            }
        }
    }
}

/// Whether the same row may be taken a moment later.
fn may_pass(refusal: &Refusal) -> bool {
    matches!(refusal.error, DbError::WriteTimeout { .. } | DbError::Overloaded | DbError::Unavailable { .. })
}
