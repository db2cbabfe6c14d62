//! What a workload is: its tables, its statements, how one transaction is drawn and carried out, how the end is read.
//!
//! Drawing is apart from carrying out, so that the generator knows what was asked even when no answer ever comes.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::{Duration, Instant};

use capabilities::workloads::{Timed, WorkloadFacts};
use client::{
    Connector, Dialect, Execution, Rows, Session, SessionError, SessionFuture, SqlValue, StatementId,
};
use history::{Action, ErrorClass};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// About how many bytes tables take that are loaded with next to nothing.
const SMALL_TABLES_BYTES: u64 = 1 << 20;

/// About how many bytes so many rows take whose texts have from so many to so many bytes, with this much beside each.
pub(crate) fn rows_bytes(rows: u64, text_bytes: (usize, usize), beside_bytes: usize) -> u64 {
    let (least, most) = (text_bytes.0 as u64, text_bytes.1 as u64);
    let row_bytes = (least / 2).saturating_add(most.div_ceil(2)).saturating_add(beside_bytes as u64);
    SMALL_TABLES_BYTES.saturating_add(rows.saturating_mul(row_bytes))
}

/// One SQL statement of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its name in reports: `UPDATE accounts`.
    pub name: Cow<'static, str>,
    /// Its text, parameters as `$1`, `$2` ...
    pub sql: Cow<'static, str>,
    /// Its text in MySQL's SQL, where it is another.
    pub mysql: Option<Cow<'static, str>>,
    /// Its text in CQL, where it is another.
    pub cql: Option<Cow<'static, str>>,
    /// Its text in the standard's SQL, where it is another.
    pub standard: Option<Cow<'static, str>>,
    /// The one dialect whose sessions run it; all where none is named.
    pub only: Option<Dialect>,
}

impl Statement {
    /// A statement known when the program was built.
    #[must_use]
    pub const fn fixed(name: &'static str, sql: &'static str) -> Self {
        Statement {
            name: Cow::Borrowed(name),
            sql: Cow::Borrowed(sql),
            mysql: None,
            cql: None,
            standard: None,
            only: None,
        }
    }

    /// One that a single dialect needs, because others do the same with other statements.
    #[must_use]
    pub const fn only_in(dialect: Dialect, name: &'static str, sql: &'static str) -> Self {
        let mut statement = Statement::fixed(name, sql);
        statement.only = Some(dialect);
        statement
    }

    /// The same where MySQL has another form.
    #[must_use]
    pub const fn with_mysql(name: &'static str, sql: &'static str, mysql: &'static str) -> Self {
        let mysql = Some(Cow::Borrowed(mysql));
        let (name, sql) = (Cow::Borrowed(name), Cow::Borrowed(sql));
        Statement { name, sql, mysql, cql: None, standard: None, only: None }
    }

    /// The same with its form in each dialect.
    #[must_use]
    pub const fn in_each(
        name: &'static str,
        sql: &'static str,
        mysql: &'static str,
        cql: &'static str,
    ) -> Self {
        let (mysql, cql) = (Some(Cow::Borrowed(mysql)), Some(Cow::Borrowed(cql)));
        let (name, sql) = (Cow::Borrowed(name), Cow::Borrowed(sql));
        Statement { name, sql, mysql, cql, standard: None, only: None }
    }

    /// The same, with its form in the standard's SQL.
    #[must_use]
    pub const fn and_in_the_standard(mut self, standard: &'static str) -> Self {
        // Forgotten, not dropped: nothing may be dropped when the program is built, and there is nothing in it.
        std::mem::forget(self.standard.replace(Cow::Borrowed(standard)));
        self
    }

    /// A statement that options shape.
    #[must_use]
    pub fn shaped(name: &'static str, sql: String) -> Self {
        Statement { name: name.into(), sql: sql.into(), mysql: None, cql: None, standard: None, only: None }
    }

    /// The same where CQL has another form.
    #[must_use]
    pub fn shaped_with_cql(name: &'static str, sql: String, cql: String) -> Self {
        Statement { cql: Some(cql.into()), ..Statement::shaped(name, sql) }
    }

    /// One that options shape, with its form in the standard's SQL.
    #[must_use]
    pub fn shaped_in_the_standard(self, standard: String) -> Self {
        Statement { standard: Some(standard.into()), ..self }
    }

    /// Its text as this dialect has it; nothing where sessions of this dialect do not run it.
    #[must_use]
    pub fn text(&self, dialect: Dialect) -> Option<&str> {
        if self.only.is_some_and(|only| only != dialect) {
            return None;
        }
        Some(match dialect {
            Dialect::Mysql => self.mysql.as_ref().unwrap_or(&self.sql),
            Dialect::Cql => self.cql.as_ref().unwrap_or(&self.sql),
            Dialect::Standard => self.standard.as_ref().unwrap_or(&self.sql),
            Dialect::Postgres => &self.sql,
        })
    }
}

/// The clients of each load have numbers from a multiple of this on, so that no two loads have a client of the same round.
pub const CLIENT_ROUND: u64 = 10_000;

/// What a workload keeps for one client, from the first transaction to the last and over all reconnections.
#[derive(Debug)]
pub struct ClientState {
    /// The client's number, unique over all loads of the run.
    pub client: u64,
    /// The scale factor.
    pub scale: u32,
    /// Transactions drawn so far.
    pub sequence: u64,
    /// The client's own chance.
    pub rng: ChaCha8Rng,
    /// What else the workload remembers of this client.
    pub memory: Memory,
}

impl ClientState {
    /// A client that has drawn nothing yet.
    #[must_use]
    pub fn new(client: u64, scale: u32, rng: ChaCha8Rng) -> Self {
        ClientState { client, scale, sequence: 0, rng, memory: Memory::default() }
    }
}

/// A place for a value of one type of the workload's own.
#[derive(Debug, Default)]
pub struct Memory(Option<Box<dyn Any>>);

impl Memory {
    /// What is remembered, made on first use; a value of another type is forgotten.
    pub fn of<T: Default + 'static>(&mut self) -> &mut T {
        if !self.0.as_ref().is_some_and(|kept| kept.is::<T>()) {
            self.0 = Some(Box::<T>::default());
        }
        match self.0.as_mut().and_then(|kept| kept.downcast_mut()) {
            Some(kept) => kept,
            None => unreachable!("a value of this type was put there just now"),
        }
    }
}

/// One transaction, drawn but not yet carried out.
#[derive(Debug, Clone)]
pub struct Request {
    /// What the history records of it.
    pub action: Action,
    /// Its place in [`Workload::kinds`]; 0 where all transactions are alike.
    pub kind: usize,
    /// The numbers its statements need; their meaning is the workload's own.
    pub numbers: [i64; 4],
    /// What does not fit into four numbers, of a type of the workload's own.
    pub details: Option<Rc<dyn Any>>,
}

impl Request {
    /// A transaction described by its numbers alone.
    #[must_use]
    pub fn plain(action: Action, kind: usize, numbers: [i64; 4]) -> Self {
        Request { action, kind, numbers, details: None }
    }

    /// A transaction with details of the workload's own type.
    #[must_use]
    pub fn detailed<T: 'static>(action: Action, kind: usize, details: T) -> Self {
        Request { action, kind, numbers: [0; 4], details: Some(Rc::new(details)) }
    }

    /// The details, shared with the request.
    ///
    /// # Errors
    /// When they are of another type: the request was drawn by another workload.
    pub(crate) fn details<T: 'static>(&self) -> Result<Rc<T>, SessionError> {
        let shared = self.details.clone().and_then(|details| details.downcast().ok());
        shared.ok_or_else(|| refused("the request was drawn by another workload".to_owned()))
    }
}

/// Takes what became of each statement; `statement` is the index into [`Workload::statements`].
pub trait StatementObserver {
    /// It was answered well.
    fn answered(&mut self, statement: usize, latency: Duration);

    /// It was not. Those sent after it in the same flight were not run, and are not told of.
    fn failed(&mut self, _statement: usize, _error: &SessionError) {}
}

/// One attempt at a transaction: the session, its prepared statements, and who takes the times.
pub struct Attempt<'a> {
    pub session: &'a mut Session,
    /// The statements of [`Workload::statements`] as prepared on this session, in the same order, nothing in place of
    /// those that its dialect does not run; none where it speaks no SQL.
    pub prepared: &'a [Option<StatementId>],
    /// Takes the times.
    pub observer: &'a mut dyn StatementObserver,
}

/// A statement on its way.
#[derive(Debug)]
#[must_use = "what was asked must be waited for"]
pub struct PendingStatement {
    statement: usize,
    begun: Instant,
}

impl Attempt<'_> {
    /// Runs several statements in one flight, each an index and its parameters; see [`client::SqlSession::pipeline`]. The latency
    /// of each is from the sending of the flight to its own answer.
    ///
    /// # Errors
    /// As [`Attempt::run`].
    pub async fn run_together(
        &mut self,
        statements: &[(usize, &[SqlValue<'_>])],
        answered: &mut dyn FnMut(usize, &Rows),
    ) -> Result<(), SessionError> {
        let mut executions = Vec::with_capacity(statements.len());
        for (statement, parameters) in statements {
            let Some(Some(prepared)) = self.prepared.get(*statement) else {
                return Err(refused(format!("statement {statement} was not prepared")));
            };
            executions.push(Execution { statement: *prepared, parameters });
        }
        let begun = Instant::now();
        let observer = &mut *self.observer;
        let mut next = 0;
        let mut each = |place: usize, rows: &Rows| {
            next = place + 1;
            if let Some((statement, _)) = statements.get(place) {
                observer.answered(*statement, begun.elapsed());
            }
            answered(place, rows);
        };
        let result = self.session.sql()?.pipeline(&executions, &mut each).await;
        if let (Err(error), Some((statement, _))) = (&result, statements.get(next)) {
            self.observer.failed(*statement, error);
        }
        result
    }

    /// Runs the statement with this index and reports its latency.
    ///
    /// # Errors
    /// The session's, and when the index is not one of the prepared statements.
    pub async fn run(&mut self, statement: usize, parameters: &[SqlValue<'_>]) -> Result<Rows, SessionError> {
        let asked = self.ask(statement, parameters)?;
        self.answer(asked).await
    }

    /// Asks for the statement with this index to be run; its answer is to be waited for next, with [`Attempt::answer`].
    ///
    /// # Errors
    /// As [`client::SqlSession::ask`], and when the index is not one of the prepared statements.
    pub fn ask(
        &mut self,
        statement: usize,
        parameters: &[SqlValue<'_>],
    ) -> Result<PendingStatement, SessionError> {
        let Some(Some(prepared)) = self.prepared.get(statement) else {
            return Err(refused(format!("statement {statement} was not prepared")));
        };
        let begun = Instant::now();
        if let Err(error) = self.session.sql()?.ask(*prepared, parameters, begun) {
            self.observer.failed(statement, &error);
            return Err(error);
        }
        Ok(PendingStatement { statement, begun })
    }

    /// The answer to what was asked, whose latency it reports.
    ///
    /// # Errors
    /// As [`client::SqlSession::poll_answer`].
    pub async fn answer(&mut self, asked: PendingStatement) -> Result<Rows, SessionError> {
        let session = self.session.sql()?;
        let result = poll_fn(|context| session.poll_answer(context)).await;
        match &result {
            Ok(_) => self.observer.answered(asked.statement, asked.begun.elapsed()),
            Err(error) => self.observer.failed(asked.statement, error),
        }
        result
    }
}

/// What a workload makes its tables with.
pub struct TableSetup<'a> {
    /// A session with the leader.
    pub session: &'a mut Session,
    /// Opens more of them, for loading in parallel; see [`Ground::open`].
    pub connector: &'a dyn Connector,
    /// The scale factor.
    pub scale: u32,
    /// Takes word of how far the loading is, one line for people.
    pub progress: &'a dyn Fn(String),
}

impl TableSetup<'_> {
    /// One more session with the leader.
    ///
    /// # Errors
    /// When no node takes writes just now.
    pub async fn open(&self) -> Result<Session, SessionError> {
        // The chance here only decides which node is asked first.
        let mut rng = ChaCha8Rng::seed_from_u64(u64::from(self.scale));
        match self.connector.connect(&mut rng).await {
            Ok(connected) => Ok(connected.session),
            Err(error) => {
                let standbys_only = error.failed_attempts.is_empty();
                let class = if standbys_only { ErrorClass::ReadOnly } else { ErrorClass::Connection };
                Err(SessionError { class, definite: true, message: error.to_string(), code: None })
            }
        }
    }
}

/// What a client waits around a transaction, as a standard has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Before it is sent; not part of its latency.
    pub keying: Duration,
    /// After its answer.
    pub thinking: Duration,
}

/// A workload, configured. What it keeps of one client stands in [`ClientState`]; what its clients share (the next free
/// key, the deliveries not yet carried out) is its own and begins anew with [`Workload::setup`].
pub trait Workload: Send + Sync {
    /// What is known of it whatever its options are.
    fn facts(&self) -> &'static WorkloadFacts;

    /// Its name in scenarios: `tpcb`.
    fn name(&self) -> &'static str {
        self.facts().name
    }

    /// The operation whose rate is the load's throughput.
    fn transaction_name(&self) -> &'static str {
        self.facts().transaction
    }

    /// Names of the kinds of transaction it draws, each an operation of its own in the results beside the total under
    /// [`Workload::transaction_name`]; none where all are alike.
    fn kinds(&self) -> Vec<&str> {
        self.facts().kinds.to_vec()
    }

    /// Figures that its standard defines, by name with the unit last, from how many transactions of each kind (by name)
    /// succeeded in so many seconds.
    fn figures(
        &self,
        _succeeded: &BTreeMap<String, u64>,
        _seconds: f64,
        _scale: u32,
    ) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// Every statement of its transactions.
    fn statements(&self) -> &[Statement];

    /// The statements, by their places in [`Workload::statements`], that are a request of their own each; none where a
    /// transaction is one request. Without SQL that is the rule.
    fn requests(&self, sql: bool) -> Vec<usize> {
        if sql { (0..self.statements().len()).collect() } else { Vec::new() }
    }

    /// How many times a transaction that met a serialization failure or a deadlock is tried again, as the workload's
    /// standard says. Tries are counted; the latency of a transaction is that of all its tries together.
    fn retries(&self) -> u32 {
        0
    }

    /// What a client waits around this transaction.
    fn pauses(&self, _request: &Request, _client: &mut ClientState) -> Pauses {
        Pauses::default()
    }

    /// What a client waits around a transaction on average.
    fn mean_pauses(&self) -> Duration {
        Duration::ZERO
    }

    /// About how many bytes its tables take on one node once they are loaded.
    fn loaded_bytes(&self, _scale: u32) -> u64 {
        SMALL_TABLES_BYTES
    }

    /// Creates and loads its tables, throwing away what an earlier run left.
    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()>;

    /// Draws a client's next transaction.
    fn draw(&self, client: &mut ClientState) -> Request;

    /// Carries a transaction out. What it learns on the way it writes into the request's action.
    fn perform<'a>(&'a self, request: &'a mut Request, attempt: &'a mut Attempt<'_>)
    -> SessionFuture<'a, ()>;

    /// Whether it compares and sets, and draws conclusions from the order in which that happens: where a database decides
    /// such writes by themselves, its reads must take part in it.
    fn compares_and_sets(&self) -> bool {
        false
    }

    /// Whether the final read tells registers and their values, so that what each replica holds can be compared.
    fn compares_replicas(&self) -> bool {
        false
    }

    /// How many registers there are, and a question in CQL for those of which a node has a row, each with the token at which it lies;
    /// nothing where there are none to compare.
    fn registers(&self) -> Option<(usize, String)> {
        None
    }

    /// Reads, after everything, what the checks need to know of the database's final state.
    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>>;

    /// Names of the statements timed by themselves, one for each of [`Workload::statements`]; none where every transaction
    /// is a single statement, whose latency is the transaction's.
    fn statement_names(&self) -> Vec<&str> {
        match self.facts().timed {
            Timed::None => Vec::new(),
            Timed::These(_) | Timed::All | Timed::Users => {
                self.statements().iter().map(|statement| statement.name.as_ref()).collect()
            }
        }
    }
}

/// An error of the workload's own: the server said nothing wrong, but not what was expected either.
pub(crate) fn refused(message: String) -> SessionError {
    SessionError { class: ErrorClass::Other, definite: true, message, code: None }
}
