//! TPC-C (standard revision 5.11): five transactions of a wholesale supplier on nine tables.
//!
//! The scale is the number of warehouses. Terminals are the load's clients, ten to a warehouse where the standard's
//! pauses are on. `terminal` draws the input, `transactions` carries it out, `population` fills the tables, `conditions`
//! looks at the twelve consistency conditions in the end, and `rows` at the orders and payments, for the check `tpcc-conditions`.
//! PostgreSQL's SQL and MySQL's are spoken.
//!
//! Where it leaves the standard: without pauses (the default) there are as many terminals as the load has clients;
//! queued deliveries are carried out by the next terminal that is free instead of by processes of their own, and their
//! results are recorded as operations instead of in a file of their own; the run is as long as the scenario says.
//!
//! Options: `pauses`, `mix`, `deliveries`, `isolation`.

mod conditions;
mod population;
mod random;
mod rows;
mod schema;
mod terminal;
mod transactions;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use capabilities::workloads::{self, WorkloadFacts};
use client::{BulkLoad, Dialect, Session, SessionError, SessionFuture};
use history::Action;

use self::population::Part;
use self::random::{DELIVERY, KINDS, NEW_ORDER};
use self::schema::Layout;
use self::terminal::{DeliveryQueue, Habits, Input, Terminal};
use crate::dialect::analyse;
use crate::loading::left_s;
use crate::options::{ConfigurationError, Options};
use crate::parallel;
use crate::workload::{Attempt, ClientState, Pauses, Request, Statement, TableSetup, Workload, refused};

/// Most sessions that load at the same time.
const SESSIONS_MAX: usize = 4;

/// New orders a minute that one warehouse can have by the standard's pauses (clause 4.1.3).
const MOST_TPMC_PER_WAREHOUSE: f64 = 12.86;

/// Asks for the time of day to the second, as a table takes it.
fn question_for_the_time(layout: Layout) -> &'static str {
    match layout {
        Layout::ByKeyInMysql => "SELECT CAST(now() AS char)",
        Layout::Heap | Layout::ByKey => "SELECT CAST(date_trunc('second', LOCALTIMESTAMP) AS text)",
    }
}

/// How often a transaction that met a serialization failure or a deadlock is tried again, as the terminal of a user
/// would.
const RETRIES: u32 = 10;

/// See the module.
pub struct Tpcc {
    weights: bool,
    queue: bool,
    pauses: bool,
    statements: Vec<Statement>,
    waiting: Mutex<DeliveryQueue>,
}

impl Tpcc {
    /// With these options.
    ///
    /// # Errors
    /// When one of them does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("tpcc", given);
        let pauses = options.switch("pauses")?;
        let weights = options.word("mix")? == "weights";
        let queue = options.word("deliveries")? == "queued";
        let begin = options.begin()?;
        options.finish()?;
        let mut statements = transactions::statements();
        if let Some(first) = statements.first_mut() {
            *first = begin;
        }
        Ok(Tpcc { weights, queue, pauses, statements, waiting: Mutex::default() })
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, DeliveryQueue> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workload for Tpcc {
    /// On PostgreSQL, with indexes.
    fn loaded_bytes(&self, warehouses: u32) -> u64 {
        u64::from(warehouses) * (100 << 20)
    }

    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::TPCC
    }

    fn figures(&self, succeeded: &BTreeMap<String, u64>, seconds: f64, scale: u32) -> BTreeMap<String, f64> {
        let Some(new_orders) = succeeded.get(KINDS[NEW_ORDER]) else { return BTreeMap::new() };
        if seconds <= 0.0 {
            return BTreeMap::new();
        }
        let tpmc = *new_orders as f64 / seconds * 60.0;
        let most = MOST_TPMC_PER_WAREHOUSE * f64::from(scale.max(1));
        BTreeMap::from([("tpmC".to_owned(), tpmc), ("efficiency_percent".to_owned(), tpmc / most * 100.0)])
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn retries(&self) -> u32 {
        RETRIES
    }

    fn pauses(&self, request: &Request, client: &mut ClientState) -> Pauses {
        let owed = std::mem::take(&mut client.memory.of::<Terminal>().owed);
        if !self.pauses {
            return Pauses::default();
        }
        if self.queue && request.kind == DELIVERY {
            // It was keyed in when it was queued.
            return Pauses { keying: Duration::ZERO, thinking: owed };
        }
        let thinking = random::thinking(request.kind, &mut client.rng);
        Pauses { keying: owed + random::keying(request.kind), thinking }
    }

    fn mean_pauses(&self) -> Duration {
        if self.pauses { random::mean_pauses(self.weights) } else { Duration::ZERO }
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            self.waiting().clear();
            let session = setup.session.sql()?;
            if !matches!(session.dialect(), Dialect::Postgres | Dialect::Mysql) {
                return Err(refused("tpcc is written in PostgreSQL's SQL and in MySQL's only".to_owned()));
            }
            let layout = Layout::of(session);
            for statement in schema::TABLES.iter().flat_map(|table| table.creation(layout)) {
                session.batch(&statement).await?;
            }
            let now = session.batch(question_for_the_time(layout)).await?;
            let now = now.text(0, 0).ok_or_else(|| refused("the time cannot be read".to_owned()))?.to_owned();
            let mut sessions = Vec::new();
            for _ in 0..SESSIONS_MAX {
                sessions.push(setup.open().await?);
            }
            let warehouses = setup.scale.max(1);
            load(&mut sessions, warehouses, &now, setup.progress).await?;
            finish(&mut sessions, layout, setup.progress).await
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let ClientState { client: number, scale, rng, memory, .. } = client;
        let habits = Habits {
            warehouses: (*scale).max(1),
            weights: self.weights,
            queue: self.queue,
            pauses: self.pauses,
        };
        let (kind, input) = memory.of::<Terminal>().draw(*number, habits, &mut self.waiting(), rng);
        client.sequence += 1;
        let action = Action::Transaction { name: KINDS[kind].into(), rolled_back: false, row: None };
        Request::detailed(action, kind, input)
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let input = request.details::<Input>()?;
            let mut row = None;
            let performed = transactions::perform(&input, attempt, &mut row).await;
            let rolled_back = performed == Ok(true);
            // Of an attempt that was refused, nothing is left in the next one's.
            let row = row.filter(|_| !rolled_back);
            request.action = Action::Transaction { name: KINDS[request.kind].into(), rolled_back, row };
            performed.map(drop)
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move { conditions::look(session.sql()?).await })
    }
}

/// Fills the tables: every session takes the next part as long as there are any.
async fn load(
    sessions: &mut [Session],
    warehouses: u32,
    now: &str,
    progress: &dyn Fn(String),
) -> Result<(), SessionError> {
    let parts = Part::all(warehouses);
    let all: u64 = parts.iter().map(|part| part.bytes()).sum();
    let began = Instant::now();
    let parts = RefCell::new(parts.into_iter());
    let (parts, done) = (&parts, &Cell::new(0));
    let workers = sessions.iter_mut().map(|session| async move {
        loop {
            // Taken in a statement of its own: the borrow must not outlive it.
            let next = parts.borrow_mut().next();
            let Some(part) = next else { return Ok(()) };
            let table = part.table();
            let load = BulkLoad { table: table.name, columns: &table.loaded_columns(), is_new: false };
            session.sql()?.load(load, &mut *part.lines(now)).await?;
            done.set(done.get() + part.bytes());
            progress(loaded(table.name, done.get(), all, began.elapsed()));
        }
    });
    parallel::all(workers).await
}

/// How far the loading is, with an estimate of the rest from the bytes loaded so far.
fn loaded(table: &str, done: u64, all: u64, elapsed: Duration) -> String {
    let percent = 100.0 * done as f64 / all.max(1) as f64;
    let left_s = left_s(done, all, elapsed);
    format!(
        "tpcc: {percent:.0} % of the rows are loaded (last {table}), about {left_s:.0} s left; then keys and indexes"
    )
}

/// Makes indexes, and keys where the tables have none, and the statistics that the planner needs.
async fn finish(
    sessions: &mut [Session],
    layout: Layout,
    progress: &dyn Fn(String),
) -> Result<(), SessionError> {
    let steps = RefCell::new(schema::TABLES.iter());
    let waiting: Vec<&str> = schema::TABLES.iter().map(|table| table.name).collect();
    let (steps, waiting) = (&steps, &RefCell::new(waiting));
    let tell = || {
        let waiting = waiting.borrow();
        let all = schema::TABLES.len();
        let done = all - waiting.len();
        let left = waiting.join(", ");
        progress(format!("tpcc: keys and indexes, {done} of {all} tables done; left: {left}"));
    };
    let tell = &tell;
    tell();
    let workers = sessions.iter_mut().map(|session| async move {
        loop {
            let next = steps.borrow_mut().next();
            let Some(table) = next else { return Ok(()) };
            let session = session.sql()?;
            for statement in table.finishing(layout) {
                session.batch(&statement).await?;
            }
            analyse(session, table.name).await?;
            waiting.borrow_mut().retain(|name| *name != table.name);
            tell();
        }
    });
    parallel::all(workers).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loading_is_told_with_an_estimate() {
        let told = loaded("stock", 25, 100, Duration::from_secs(10));
        assert_eq!(
            told,
            "tpcc: 25 % of the rows are loaded (last stock), about 30 s left; then keys and indexes"
        );
    }

    /// Everything that a database is asked.
    fn asked(dialect: Dialect, layout: Layout) -> Vec<String> {
        let mut asked: Vec<String> = vec![question_for_the_time(layout).to_owned()];
        let statements = transactions::statements();
        asked.extend(statements.iter().filter_map(|statement| statement.text(dialect)).map(str::to_owned));
        asked.extend(conditions::questions(dialect).map(|(_, question)| question));
        asked.extend(rows::QUESTIONS.map(|(_, question)| question.to_owned()));
        for table in &schema::TABLES {
            asked.extend(table.creation(layout));
            asked.extend(table.finishing(layout));
        }
        asked
    }

    #[test]
    fn what_mysql_does_not_have_is_not_asked_of_it_and_each_of_its_tables_has_a_key() {
        let foreign =
            ["FULL JOIN", "IS DISTINCT", "AS text", "timestamp,", "date_trunc", "unnest", "RETURNING"];
        let asked = asked(Dialect::Mysql, Layout::ByKeyInMysql);
        for text in &asked {
            assert_eq!(foreign.iter().find(|words| text.contains(**words)), None, "{text}");
        }
        assert_eq!(asked.iter().filter(|text| text.contains("PRIMARY KEY")).count(), schema::TABLES.len());
    }

    #[test]
    fn what_only_postgresql_has_is_not_asked_of_databases_that_speak_its_protocol() {
        let foreign =
            ["VACUUM", "USING (SELECT", "fillfactor", "TEMPORARY", "ON COMMIT", "format(", "to_char("];
        let asked = asked(Dialect::Postgres, Layout::ByKey);
        for text in &asked {
            assert_eq!(foreign.iter().find(|words| text.contains(**words)), None, "{text}");
        }
        let keys = asked.iter().filter(|text| text.contains("PRIMARY KEY")).count();
        assert_eq!((keys, asked.iter().any(|text| text.contains("ADD PRIMARY KEY"))), (8, false));
    }

    #[test]
    fn postgresql_loads_tables_without_keys_and_makes_them_afterwards() {
        let named = |name: &str| schema::TABLES.iter().find(|table| table.name == name).expect("a table");
        let (of_items, of_orders) = (named("item"), named("orders"));
        assert!(!of_items.creation(Layout::Heap)[1].contains("KEY"));
        assert_eq!(of_items.finishing(Layout::Heap), ["ALTER TABLE item ADD PRIMARY KEY (i_id)"]);
        assert_eq!(of_orders.finishing(Layout::Heap).len(), 2);
        assert_eq!(of_orders.finishing(Layout::ByKey).len(), 1, "its index");
    }

    #[test]
    fn tpmc_and_efficiency_are_those_of_the_standard() {
        let tpcc = Tpcc::configured(&BTreeMap::new()).expect("fits");
        // FR-1's baseline: 1,000 warehouses, 12,581.6 new orders a minute.
        let succeeded = BTreeMap::from([("NEW-ORDER".to_owned(), 125_816), ("PAYMENT".to_owned(), 120_000)]);
        let figures = tpcc.figures(&succeeded, 600.0, 1_000);
        assert!(figures.keys().all(|name| tpcc.facts().figures.contains(&name.as_str())), "{figures:?}");
        assert!((figures["tpmC"] - 12_581.6).abs() < 1e-6);
        assert!((figures["efficiency_percent"] - 97.8).abs() < 0.1, "{figures:?}");
        assert!(tpcc.figures(&BTreeMap::new(), 600.0, 1).is_empty());
        assert!(tpcc.figures(&succeeded, 0.0, 1).is_empty());
    }

    #[test]
    fn the_isolation_level_asked_for_is_the_one_begun_with() {
        let begin = |level: &str| {
            let options = BTreeMap::from([("isolation".to_owned(), level.to_owned())]);
            Tpcc::configured(&options).map(|tpcc| tpcc.statements()[0].sql.to_string())
        };
        assert_eq!(begin("repeatable-read").as_deref(), Ok("BEGIN ISOLATION LEVEL REPEATABLE READ"));
        assert!(begin("chaos").is_err());
        let by_default = Tpcc::configured(&BTreeMap::new()).map(|tpcc| tpcc.statements()[0].sql.to_string());
        assert_eq!(by_default.as_deref(), Ok("BEGIN"), "databases of one level take no other");
    }
}
