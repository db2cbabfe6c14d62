//! What a workload is: its tables, its statements, how one transaction is drawn and carried out, how the end is read.
//!
//! Drawing is apart from carrying out, so that the generator knows what was asked even when no answer ever comes.

use std::time::{Duration, Instant};

use client::{Rows, SessionError, SessionFuture, SqlSession, SqlValue, StatementId};
use history::Action;
use rand_chacha::ChaCha8Rng;

/// One SQL statement of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement {
    /// Its name in reports: `UPDATE accounts`.
    pub name: &'static str,
    /// Its text, parameters as `$1`, `$2` ...
    pub sql: &'static str,
}

/// What a workload keeps for one client, from the first transaction to the last and over all reconnections.
#[derive(Debug, Clone)]
pub struct ClientState {
    /// The client's number, unique over all loads of the run.
    pub client: u64,
    /// The scale factor.
    pub scale: u32,
    /// Transactions drawn so far.
    pub sequence: u64,
    /// The client's own chance.
    pub rng: ChaCha8Rng,
}

/// One transaction, drawn but not yet carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// What the history records of it.
    pub action: Action,
    /// The numbers its statements need; their meaning is the workload's own.
    pub numbers: [i64; 4],
}

/// Takes the latency of each statement that was answered well.
pub trait StatementObserver {
    /// `statement` is the index into [`Workload::statements`].
    fn answered(&mut self, statement: usize, latency: Duration);
}

/// One attempt at a transaction: the session, its prepared statements, and who takes the times.
pub struct Attempt<'a> {
    /// The session.
    pub session: &'a mut (dyn SqlSession + 'a),
    /// The statements of [`Workload::statements`] as prepared on this session, in the same order.
    pub prepared: &'a [StatementId],
    /// Takes the times.
    pub observer: &'a mut dyn StatementObserver,
}

impl Attempt<'_> {
    /// Runs the statement with this index and reports its latency.
    ///
    /// # Errors
    /// The session's, and when the index is not one of the prepared statements.
    pub async fn run(&mut self, statement: usize, parameters: &[SqlValue<'_>]) -> Result<Rows, SessionError> {
        let Some(prepared) = self.prepared.get(statement) else {
            return Err(refused(format!("statement {statement} was not prepared")));
        };
        let begun = Instant::now();
        let rows = self.session.execute(*prepared, parameters).await?;
        self.observer.answered(statement, begun.elapsed());
        Ok(rows)
    }
}

/// A workload. Stateless: what it keeps per client stands in [`ClientState`].
pub trait Workload: Sync {
    /// Its name in scenarios: `tpcb`.
    fn name(&self) -> &'static str;

    /// What it does, one line for people.
    fn summary(&self) -> &'static str;

    /// The operation whose rate is the load's throughput.
    fn transaction_name(&self) -> &'static str;

    /// Every statement of a transaction, in order.
    fn statements(&self) -> &'static [Statement];

    /// Names of the checks its history can be held against.
    fn checks(&self) -> &'static [&'static str];

    /// Creates and loads its tables, throwing away what an earlier run left.
    fn setup<'a>(&'a self, session: &'a mut (dyn SqlSession + 'a), scale: u32) -> SessionFuture<'a, ()>;

    /// Draws a client's next transaction.
    fn draw(&self, client: &mut ClientState) -> Request;

    /// Carries a transaction out. What it learns on the way it writes into the request's action.
    fn perform<'a>(&'a self, request: &'a mut Request, attempt: &'a mut Attempt<'_>)
    -> SessionFuture<'a, ()>;

    /// Reads, after everything, what the checks need to know of the database's final state.
    fn final_read<'a>(&'a self, session: &'a mut (dyn SqlSession + 'a)) -> SessionFuture<'a, Vec<Action>>;

    /// Names of the statements timed by themselves; none where a transaction is a single statement, whose latency is
    /// the transaction's.
    fn statement_names(&self) -> Vec<&'static str> {
        match self.statements() {
            [_] => Vec::new(),
            several => several.iter().map(|statement| statement.name).collect(),
        }
    }
}

/// An error of the workload's own: the server said nothing wrong, but not what was expected either.
pub(crate) fn refused(message: String) -> SessionError {
    SessionError { class: history::ErrorClass::Other, definite: true, message, code: None }
}
