//! List-append: transactions of a few steps, each the append to a list or the reading of one, over keys that are given up
//! after a while for new ones. Option: `isolation`.
//!
//! Owns the keys and the values, no two of which are the same. What the transactions saw of each other is the list-append
//! check's to judge.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::Operation;
use client::{Dialect, Session, SessionError, SessionFuture, SqlValue};
use history::{Action, Key, Step};
use rand::RngExt;

use crate::dialect::look_now;
use crate::key_value::list;
use crate::options::{ConfigurationError, Options};
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// Lists in use at a time.
const ACTIVE_KEYS: u64 = 5;
/// Transactions after which all of them are given up for new ones: lists that grow for ever would be read for ever.
const TRANSACTIONS_PER_KEYS: u64 = 200;
/// The most steps of a transaction.
const STEPS_MAX: usize = 4;
/// Lists that one transaction of the final read looks at.
const READ_TOGETHER: usize = 100;
/// Bits of a value that hold the client's own count; the client's number stands above them.
const SEQUENCE_BITS: u32 = 40;

/// Names of the statements.
const TIMED: &[&str] = workloads::APPEND.timed.names();

/// See the module.
pub struct Append {
    drawn: AtomicU64,
    statements: [Statement; 4],
}

impl Append {
    /// The workload with these options.
    ///
    /// # Errors
    /// When an option is not its own or does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("append", given);
        let begin = options.begin()?;
        options.finish()?;
        let statements = [
            begin,
            Statement::with_mysql(
                TIMED[1],
                "SELECT elements FROM holdfast_append WHERE key = $1",
                "SELECT elements FROM holdfast_append WHERE `key` = $1",
            )
            .and_in_the_standard("SELECT elements FROM holdfast_append WHERE \"key\" = $1"),
            Statement::with_mysql(
                TIMED[2],
                "INSERT INTO holdfast_append (key, elements) VALUES ($1, $2::bigint::text) ON CONFLICT (key) \
                 DO UPDATE SET elements = holdfast_append.elements || ',' || excluded.elements",
                "INSERT INTO holdfast_append (`key`, elements) VALUES ($1, $2) ON DUPLICATE KEY \
                 UPDATE elements = concat(elements, ',', VALUES(elements))",
            )
            .and_in_the_standard(
                "UPDATE holdfast_append SET elements = elements || ',' || CAST($2 AS varchar(30)) WHERE \"key\" = $1",
            ),
            Statement::fixed(TIMED[3], "COMMIT"),
        ];
        Ok(Append { drawn: AtomicU64::default(), statements })
    }
}

impl Workload for Append {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::APPEND
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(_) = setup.session {
                return Ok(());
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_append").await?;
            let columns = match session.dialect() {
                Dialect::Postgres | Dialect::Cql => "key bigint PRIMARY KEY, elements text NOT NULL",
                Dialect::Mysql => "`key` bigint PRIMARY KEY, elements longtext NOT NULL",
                Dialect::Standard => "\"key\" bigint PRIMARY KEY, elements varchar(65536) NOT NULL",
            };
            session.batch(&format!("CREATE TABLE holdfast_append ({columns})")).await?;
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let generation = self.drawn.fetch_add(1, Ordering::Relaxed) / TRANSACTIONS_PER_KEYS;
        let count = client.rng.random_range(1..=STEPS_MAX);
        let steps = (0..count).map(|_| {
            let key = generation * ACTIVE_KEYS + client.rng.random_range(0..ACTIVE_KEYS);
            let key = Key::Number(key.cast_signed());
            if client.rng.random_range(0..2) == 0 {
                return Step::Read { key, values: None };
            }
            client.sequence += 1;
            Step::Append { key, value: ((client.client << SEQUENCE_BITS) | client.sequence).cast_signed() }
        });
        let mut steps: Vec<Step> = steps.collect();
        appends_in_order(&mut steps);
        Request::detailed(Action::AppendTransaction { steps: steps.clone() }, 0, steps)
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let steps: Rc<Vec<Step>> = request.details()?;
            let mut done = steps.as_ref().clone();
            if let Session::KeyValue(session) = attempt.session {
                let found = session.transact(done.iter().map(operation).collect()).await?;
                for (step, found) in done.iter_mut().zip(&found) {
                    if let Step::Read { values, .. } = step {
                        *values = Some(list(Some(found))?);
                    }
                }
            } else {
                attempt.run(0, &[]).await?;
                for step in &mut done {
                    take_step(attempt, step).await?;
                }
                attempt.run(3, &[]).await?;
            }
            request.action = Action::AppendTransaction { steps: done };
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let mut steps = Vec::new();
            if let Session::KeyValue(session) = session {
                let generations = self.drawn.load(Ordering::Relaxed).div_ceil(TRANSACTIONS_PER_KEYS);
                let read = |key| Step::Read { key: Key::Number(key), values: None };
                let asked: Vec<Step> = (0..(generations * ACTIVE_KEYS).cast_signed()).map(read).collect();
                // Not all at once: lists that nobody changes any more need no common moment, and answers have a limit.
                for asked in asked.chunks(READ_TOGETHER) {
                    let found = session.transact(asked.iter().map(operation).collect()).await?;
                    for (step, found) in asked.iter().zip(&found) {
                        steps.push(Step::Read { key: step.key().clone(), values: Some(list(Some(found))?) });
                    }
                }
            } else {
                let session = session.sql()?;
                let key = match session.dialect() {
                    Dialect::Postgres | Dialect::Cql => "key",
                    Dialect::Mysql => "`key`",
                    Dialect::Standard => "\"key\"",
                };
                let query = format!("SELECT {key}, elements FROM holdfast_append");
                let rows = look_now(session, &query).await?;
                for row in 0..rows.len() {
                    let key = rows.integer(row, 0);
                    let key = key.ok_or_else(|| refused(format!("list row {row} cannot be read")))?;
                    let values = Some(elements(rows.text(row, 1).unwrap_or_default())?);
                    steps.push(Step::Read { key: Key::Number(key), values });
                }
            }
            let read = |steps: &[Step]| Action::AppendTransaction { steps: steps.to_vec() };
            Ok(steps.chunks(READ_TOGETHER).map(read).collect())
        })
    }
}

/// Has a transaction append to its lists in the order of their keys, wherever its reads stand. Transactions that lock rows
/// in any order wait for each other in circles, and a database takes its time to notice.
fn appends_in_order(steps: &mut [Step]) {
    let mut keys: Vec<Key> = steps
        .iter()
        .filter(|step| matches!(step, Step::Append { .. }))
        .map(|step| step.key().clone())
        .collect();
    keys.sort();
    let appends = steps.iter_mut().filter_map(|step| match step {
        Step::Append { key, .. } => Some(key),
        Step::Read { .. } => None,
    });
    for (place, key) in appends.zip(keys) {
        *place = key;
    }
}

async fn take_step(attempt: &mut Attempt<'_>, step: &mut Step) -> Result<(), SessionError> {
    let Key::Number(key) = *step.key() else {
        return Err(refused("the request was drawn by another workload".to_owned()));
    };
    match step {
        Step::Append { value, .. } => {
            let row = [SqlValue::Integer(key), SqlValue::Integer(*value)];
            let appended = attempt.run(2, &row).await?.affected();
            let session = attempt.session.sql()?;
            if appended == 0 && session.dialect() == Dialect::Standard {
                // "Insert or update" is two statements there.
                let insert =
                    format!("INSERT INTO holdfast_append (\"key\", elements) VALUES ({key}, '{value}')");
                session.batch(&insert).await?;
            }
        }
        Step::Read { values, .. } => {
            let rows = attempt.run(1, &[SqlValue::Integer(key)]).await?;
            *values = Some(elements(rows.text(0, 0).unwrap_or_default())?);
        }
    }
    Ok(())
}

fn operation(step: &Step) -> Operation {
    let key = format!("append/{}", step.key());
    match step {
        Step::Append { value, .. } => Operation::Append { key, element: *value },
        Step::Read { .. } => Operation::Read { key },
    }
}

/// The elements of a list as its row holds them; of a missing row, none.
fn elements(text: &str) -> Result<Vec<i64>, SessionError> {
    let element = |element: &str| {
        element.parse().map_err(|_| refused(format!("`{element}` is no element of a list of ours")))
    };
    text.split(',').filter(|element| !element.is_empty()).map(element).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn no_value_is_drawn_twice_and_appends_stand_in_the_order_of_their_keys() {
        let append = Append::configured(&BTreeMap::new()).expect("no options");
        let (mut values, mut lists) = (BTreeSet::new(), BTreeSet::new());
        for client in [0, 1, 63, crate::ledger::LARGEST_CLIENT] {
            let mut state = ClientState::new(client, 1, ChaCha8Rng::seed_from_u64(client));
            for _ in 0..500 {
                let Action::AppendTransaction { steps } = append.draw(&mut state).action else {
                    panic!("not a transaction over lists")
                };
                assert!(!steps.is_empty() && steps.len() <= STEPS_MAX);
                let mut last = None;
                for step in steps {
                    lists.insert(step.key().clone());
                    if let Step::Append { key, value } = step {
                        assert!(values.insert(value) && value > 0, "{value} twice, or not a positive number");
                        assert!(last.is_none_or(|last| last <= key), "a key before a smaller one");
                        last = Some(key);
                    }
                }
            }
        }
        assert_eq!(lists.len() as u64, 2_000 / TRANSACTIONS_PER_KEYS * ACTIVE_KEYS);
    }

    #[test]
    fn a_list_is_read_from_its_row_and_anything_else_is_an_error() {
        let check = |text: &str, expected: Option<&[i64]>| {
            assert_eq!(elements(text).ok().as_deref(), expected, "{text:?}");
        };
        check("", Some(&[]));
        check("7", Some(&[7]));
        check("7,-1,9", Some(&[7, -1, 9]));
        check("7,x", None);
        check("9223372036854775808", None);
    }
}
