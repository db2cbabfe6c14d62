//! A session of SQL that a program holds for a client: the SQL session trait over questions to the program.
//!
//! Owns what a session's answers mean for its transaction. How it asks is `conversation`'s, the line `program`'s.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use super::conversation::{Conversation, Reply};
use super::statement::{Source, push_rows};
use super::words::{self, Outcome, Step, What};
use crate::Rows;
use crate::connection::{Connection, SessionError, SessionFuture};
use crate::sql::{BulkLoad, Dialect, Execution, SqlSession, SqlValue, StatementId};
use crate::statement_kind::{Flight, StatementKind, TransactionStatus};

/// Rows of a bulk load are sent in statements of about this size.
const INSERT_BYTES: usize = 256 << 10;
/// The same where it is not known how large a statement the database takes: some plan each one anew.
const INSERT_BYTES_OF_ANY: usize = 8 << 10;

/// A session with one node.
pub struct ProcessClient {
    conversation: Conversation,
    dialect: Dialect,
    status: TransactionStatus,
    /// How the transaction stands when what was asked last has gone well.
    then: TransactionStatus,
    statements: Vec<Source>,
}

/// What came of a question.
enum Part {
    Page(Vec<Vec<words::Cell>>),
    Whole(Vec<Outcome>),
}

impl ProcessClient {
    /// A session that is open.
    pub(super) fn new(conversation: Conversation, dialect: Dialect) -> Self {
        let status = TransactionStatus::Idle;
        Self { conversation, dialect, status, then: status, statements: Vec::new() }
    }

    /// Asks for steps of these kinds.
    fn run(
        &mut self,
        steps: &[Step<'_>],
        kinds: &[StatementKind],
        page_rows: Option<usize>,
        now: Instant,
    ) -> Result<(), SessionError> {
        self.refuse_if_broken()?;
        if self.status == TransactionStatus::Failed && kinds.contains(&StatementKind::Commit) {
            // Some databases answer that with success, and roll back.
            return Err(self.not_sent("the transaction has failed and can only be rolled back"));
        }
        let may_commit = match kinds {
            [one] => one.may_commit(self.status),
            several => Flight::of(several.iter().copied(), self.status).may_commit,
        };
        self.then = kinds.iter().fold(self.status, |status, kind| match kind {
            StatementKind::Begin => TransactionStatus::Open,
            StatementKind::Commit | StatementKind::Rollback => TransactionStatus::Idle,
            StatementKind::Single | StatementKind::Several => status,
        });
        let timeout_ms = self.conversation.timeout_ms();
        self.conversation.ask(What::Run { steps, page_rows, timeout_ms }, may_commit, now);
        Ok(())
    }

    /// The next part of what was asked.
    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Result<Part, SessionError>> {
        let part = match ready!(self.conversation.poll_reply(context)) {
            Ok(Reply::Page(cells)) => Ok(Part::Page(cells)),
            Ok(Reply::Whole(ok)) => {
                self.status = self.then;
                Ok(Part::Whole(ok.results))
            }
            Ok(Reply::Refused(_)) => {
                Err(self.conversation.senseless("a condition that statements do not have"))
            }
            Err(error) => Err(error),
        };
        if part.is_err() && self.status != TransactionStatus::Idle {
            self.status = TransactionStatus::Failed;
        }
        Poll::Ready(part)
    }

    /// All that was asked, once it is there.
    fn poll_whole(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<Outcome>, SessionError>> {
        match ready!(self.poll_part(context))? {
            Part::Whole(results) => Poll::Ready(Ok(results)),
            Part::Page(_) => Poll::Ready(Err(self.conversation.senseless("pages nobody asked for"))),
        }
    }

    async fn whole(&mut self) -> Result<Vec<Outcome>, SessionError> {
        poll_fn(|context| self.poll_whole(context)).await
    }

    /// Carries statements out in order, each asked by itself; the rows of the last that returned any.
    async fn all(&mut self, sources: &[Source]) -> Result<Rows, SessionError> {
        let mut rows = Rows::default();
        for source in sources {
            let step = self.step(source, &[])?;
            self.run(&[step], &[source.kind], None, Instant::now())?;
            let answer = rows_of(self.whole().await?);
            if !answer.is_empty() || rows.is_empty() {
                rows = answer;
            }
        }
        Ok(rows)
    }

    fn step<'a>(&self, source: &'a Source, parameters: &[SqlValue<'a>]) -> Result<Step<'a>, SessionError> {
        let few = || self.not_sent("the statement has more parameters than were given");
        source.step(parameters).ok_or_else(few)
    }

    async fn fly(
        &mut self,
        executions: &[Execution<'_>],
        answered: &mut dyn FnMut(usize, &Rows),
    ) -> Result<(), SessionError> {
        self.refuse_if_broken()?;
        let Some(first) = executions.first() else { return Ok(()) };
        // Taken out, so that steps can stand beside what is changed.
        let statements = std::mem::take(&mut self.statements);
        let planned = self.plan(&statements, executions);
        let begins = statements.get(first.statement.0).is_some_and(|one| one.kind == StatementKind::Begin);
        let is_wrapped = self.status == TransactionStatus::Idle && !begins;
        let commits = |execution: &Execution<'_>| {
            statements.get(execution.statement.0).is_some_and(|one| one.kind == StatementKind::Commit)
        };
        let before_last = &executions[..executions.len() - usize::from(!is_wrapped)];
        let commits_on_the_way = before_last.iter().any(commits);
        let asked = planned.and_then(|(mut steps, mut kinds)| {
            if is_wrapped {
                let sql = self.beginning().map(ToOwned::to_owned).into_iter().collect();
                let begin = Step::Begin { isolation: None, read_only: false, sql };
                steps.insert(0, begin);
                kinds.insert(0, StatementKind::Begin);
                steps.push(Step::Commit {});
                kinds.push(StatementKind::Commit);
            }
            self.run(&steps, &kinds, None, Instant::now())
        });
        self.statements = statements;
        asked?;
        let ended = self.whole().await;
        if let Err(error) = ended {
            if !self.conversation.broken && (is_wrapped || begins) {
                // The beginning was within the flight: whether it was carried out is the program's to know.
                self.status = TransactionStatus::Failed;
                if is_wrapped {
                    let rollback = Source::new("ROLLBACK", self.dialect);
                    if self.all(&[rollback]).await.is_err() {
                        // One that cannot be taken back ends with the session.
                        self.conversation.broken = true;
                    }
                }
            }
            return Err(SessionError { definite: error.definite && !commits_on_the_way, ..error });
        }
        let skipped = usize::from(is_wrapped);
        for (place, outcome) in ended?.into_iter().skip(skipped).take(executions.len()).enumerate() {
            answered(place, &rows_of(vec![outcome]));
        }
        Ok(())
    }

    fn plan<'a>(
        &self,
        statements: &'a [Source],
        executions: &'a [Execution<'_>],
    ) -> Result<(Vec<Step<'a>>, Vec<StatementKind>), SessionError> {
        let (mut steps, mut kinds) = (Vec::new(), Vec::new());
        for execution in executions {
            let unknown = || self.not_sent("a statement was prepared on another session");
            let source = statements.get(execution.statement.0).ok_or_else(unknown)?;
            steps.push(self.step(source, execution.parameters)?);
            kinds.push(source.kind);
        }
        Ok((steps, kinds))
    }

    /// The statement that begins a transaction; nothing where that is the driver's to do.
    fn beginning(&self) -> Option<&'static str> {
        match self.dialect {
            Dialect::Mysql => Some("START TRANSACTION"),
            Dialect::Postgres | Dialect::Cql => Some("BEGIN"),
            Dialect::Standard => None,
        }
    }

    async fn insert(
        &mut self,
        load: BulkLoad<'_>,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, SessionError> {
        let columns = if load.columns.is_empty() { String::new() } else { format!(" ({})", load.columns) };
        let opening = format!("INSERT INTO {}{columns} VALUES ", load.table);
        let most = if self.dialect == Dialect::Standard { INSERT_BYTES_OF_ANY } else { INSERT_BYTES };
        let (mut lines, mut more, mut loaded) = (Vec::new(), true, 0);
        while more {
            let (mut sql, mut is_first, mut count) = (opening.clone(), true, 0);
            while more && sql.len() < most {
                lines.clear();
                more = fill(&mut lines);
                let text =
                    std::str::from_utf8(&lines).map_err(|_| self.not_sent("a line that is no text"))?;
                count += push_rows(text, self.dialect, &mut sql, &mut is_first);
            }
            if count > 0 {
                self.all(&[Source::plain(sql)]).await?;
                loaded += count;
            }
        }
        Ok(loaded)
    }

    async fn read_pages(
        &mut self,
        query: &str,
        page_rows: usize,
        page: &mut dyn FnMut(&Rows) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        self.all(&Source::all(before_read(self.dialect), self.dialect)).await?;
        let source = Source::plain(query.to_owned());
        let step = self.step(&source, &[])?;
        self.run(&[step], &[StatementKind::Single], Some(page_rows), Instant::now())?;
        loop {
            match poll_fn(|context| self.poll_part(context)).await? {
                Part::Page(cells) => {
                    let mut rows = Rows::default();
                    words::push_rows(&mut rows, cells);
                    page(&rows)?;
                    self.conversation.wait_anew();
                }
                Part::Whole(results) => {
                    page(&rows_of(results))?;
                    let commit = Source::new("COMMIT", self.dialect);
                    return self.all(&[commit]).await.map(drop);
                }
            }
        }
    }

    fn refuse_if_broken(&self) -> Result<(), SessionError> {
        self.conversation.refuse_if_broken()
    }

    fn not_sent(&self, why: &str) -> SessionError {
        self.conversation.not_sent(why)
    }
}

/// How a read of a whole table begins: at one moment, and not by an index, which may know rows that the table does not.
fn before_read(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => {
            "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; START TRANSACTION WITH CONSISTENT SNAPSHOT"
        }
        Dialect::Standard => "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        Dialect::Postgres | Dialect::Cql => {
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL enable_indexscan = off; \
             SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off"
        }
    }
}

/// The rows of the last step that returned any, and what the last one touched.
fn rows_of(results: Vec<Outcome>) -> Rows {
    let mut rows = Rows::default();
    for outcome in results {
        if !outcome.rows.is_empty() {
            rows.clear();
        }
        let returned = outcome.rows.len() as u64;
        words::push_rows(&mut rows, outcome.rows);
        rows.set_affected(outcome.affected.unwrap_or(returned));
    }
    rows
}

impl Connection for ProcessClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.conversation.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.conversation.broken
    }
}

impl SqlSession for ProcessClient {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn keeps_dead_rows(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Nothing is asked: the program prepares a statement when it first runs it.
    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        let first = self.statements.len();
        self.statements.extend(statements.iter().map(|sql| Source::new(sql, self.dialect)));
        let all = (first..self.statements.len()).map(StatementId).collect();
        Box::pin(std::future::ready(self.refuse_if_broken().map(|()| all)))
    }

    fn ask(
        &mut self,
        statement: StatementId,
        parameters: &[SqlValue<'_>],
        now: Instant,
    ) -> Result<(), SessionError> {
        let statements = std::mem::take(&mut self.statements);
        let execution = [Execution { statement, parameters }];
        let asked =
            self.plan(&statements, &execution).and_then(|(steps, kinds)| self.run(&steps, &kinds, None, now));
        self.statements = statements;
        asked
    }

    fn poll_answer(&mut self, context: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        self.poll_whole(context).map_ok(rows_of)
    }

    fn batch<'a>(&'a mut self, sql: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(async move {
            let sources = Source::all(sql, self.dialect);
            self.all(&sources).await
        })
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
