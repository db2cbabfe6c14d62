//! Registers: few keys, each read, written and, where asked, compared-and-set by everybody.
//!
//! Owns the keys and the values, no two of which are the same. Whether each key behaved as one register is the register
//! check's to judge.

use std::collections::BTreeMap;

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{Operation, Value};
use client::{Dialect, Session, SessionError, SessionFuture, SqlValue};
use history::{Action, ErrorClass, Key};
use rand::RngExt;

use crate::dialect::{has_written, look_now};
use crate::key_value::{contended, integer};
use crate::options::{ConfigurationError, Options};
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// How many registers there are.
const KEYS: i64 = 10;
/// Bits of a value that hold the client's own count; the client's number stands above them.
const SEQUENCE_BITS: u32 = 40;

const READ: usize = 0;
const WRITE: usize = 1;
const COMPARE_AND_SET: usize = 2;

/// See the module.
pub struct Register {
    compares_and_sets: bool,
    statements: [Statement; 3],
}

impl Register {
    /// Registers with these options.
    ///
    /// # Errors
    /// When an option is unknown or does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("register", given);
        let compares_and_sets = options.switch("compare_and_set")?;
        options.finish()?;
        // Cassandra orders conditional writes among each other only: every write has a condition where one has.
        let write = match compares_and_sets {
            true => "UPDATE holdfast_register SET value = $2 WHERE key = $1 IF EXISTS",
            false => "UPDATE holdfast_register SET value = $2 WHERE key = $1",
        };
        let statements = [
            Statement::with_mysql(
                "SELECT",
                "SELECT value FROM holdfast_register WHERE key = $1",
                "SELECT value FROM holdfast_register WHERE `key` = $1",
            )
            .and_in_the_standard("SELECT \"value\" FROM holdfast_register WHERE \"key\" = $1"),
            Statement::in_each(
                "INSERT",
                "INSERT INTO holdfast_register (key, value) VALUES ($1, $2) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                "INSERT INTO holdfast_register (`key`, value) VALUES ($1, $2) \
                 ON DUPLICATE KEY UPDATE value = VALUES(value)",
                write,
            )
            .and_in_the_standard("UPDATE holdfast_register SET \"value\" = $2 WHERE \"key\" = $1"),
            Statement::in_each(
                "UPDATE",
                "UPDATE holdfast_register SET value = $3 WHERE key = $1 AND value = $2",
                "UPDATE holdfast_register SET value = $3 WHERE `key` = $1 AND value = $2",
                "UPDATE holdfast_register SET value = $3 WHERE key = $1 IF value = $2",
            )
            .and_in_the_standard(
                "UPDATE holdfast_register SET \"value\" = $3 WHERE \"key\" = $1 AND \"value\" = $2",
            ),
        ];
        Ok(Register { compares_and_sets, statements })
    }
}

impl Workload for Register {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::REGISTER
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(_) = setup.session {
                // Nothing to make: a key is there once it is written, and a lab's database is new.
                return Ok(());
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_register").await?;
            let columns = match session.dialect() {
                Dialect::Postgres => "key bigint PRIMARY KEY, value bigint NOT NULL",
                Dialect::Mysql => "`key` bigint PRIMARY KEY, value bigint NOT NULL",
                Dialect::Cql => "key bigint PRIMARY KEY, value bigint",
                // Rows that are there from the beginning: "insert or update" is two statements in the standard's SQL.
                Dialect::Standard => "\"key\" bigint PRIMARY KEY, \"value\" bigint",
            };
            session.batch(&format!("CREATE TABLE holdfast_register ({columns})")).await?;
            if session.dialect() == Dialect::Cql {
                for key in 0..KEYS {
                    let row = format!("INSERT INTO holdfast_register (key) VALUES ({key}) IF NOT EXISTS");
                    session.batch(&row).await?;
                }
            }
            if session.dialect() == Dialect::Standard {
                let rows: Vec<String> = (0..KEYS).map(|key| format!("({key})")).collect();
                let rows = rows.join(", ");
                session.batch(&format!("INSERT INTO holdfast_register (\"key\") VALUES {rows}")).await?;
            }
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let number = client.rng.random_range(0..KEYS);
        client.sequence += 1;
        let new = ((client.client << SEQUENCE_BITS) | client.sequence).cast_signed();
        let key = Key::Number(number);
        // What this client last knew the key to hold: often enough still right.
        let known = client.memory.of::<BTreeMap<i64, i64>>().get(&number).copied();
        let choice = client.rng.random_range(0..10);
        let read = |key| Request::plain(Action::RegisterRead { key, value: None }, READ, [number, 0, 0, 0]);
        match (choice, known) {
            (0..5, _) | (8.., None) => read(key),
            (8.., Some(expected)) if self.compares_and_sets => {
                let action = Action::RegisterCompareAndSet { key, expected: Some(expected), new };
                client.memory.of::<BTreeMap<i64, i64>>().remove(&number);
                Request::plain(action, COMPARE_AND_SET, [number, expected, new, 0])
            }
            (8.., Some(_)) => read(key),
            _ => {
                client.memory.of::<BTreeMap<i64, i64>>().insert(number, new);
                Request::plain(Action::RegisterWrite { key, value: new }, WRITE, [number, new, 0, 0])
            }
        }
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let [key, first, second, _] = request.numbers;
            let read = if let Session::KeyValue(session) = attempt.session {
                let key = key_name(key);
                let operation = match request.kind {
                    READ => Operation::Read { key },
                    WRITE => Operation::Write { key, value: Value::Integer(first) },
                    _ => Operation::CompareAndSet {
                        key,
                        expected: Some(Value::Integer(first)),
                        new: Value::Integer(second),
                    },
                };
                let found = contended(session.as_mut(), vec![operation]).await?;
                if request.kind == READ { integer(found.first())? } else { None }
            } else {
                let numbers = [key, first, second].map(SqlValue::Integer);
                let count = [1, 2, 3][request.kind.min(2)];
                let rows = attempt.run(request.kind.min(2), &numbers[..count]).await?;
                match request.kind {
                    // The row of a register that was never written is not there, or has no value.
                    READ if rows.text(0, 0).is_none() => None,
                    READ => Some(
                        rows.integer(0, 0).ok_or_else(|| refused("a register has no number".to_owned()))?,
                    ),
                    COMPARE_AND_SET if rows.affected() == 0 => {
                        let message = format!("register {key} does not hold what was expected");
                        return Err(SessionError { class: ErrorClass::Serialization, ..refused(message) });
                    }
                    _ if has_written(attempt.session.sql()?.dialect(), rows.affected(), 1) => None,
                    _ => {
                        let message = format!("register {key} is there {} times", rows.affected());
                        return Err(SessionError { definite: false, ..refused(message) });
                    }
                }
            };
            if let Action::RegisterRead { value, .. } = &mut request.action {
                *value = read;
            }
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let mut actions = Vec::new();
            if let Session::KeyValue(session) = session {
                let reads = (0..KEYS).map(|key| Operation::Read { key: key_name(key) }).collect();
                let found = session.transact(reads).await?;
                for key in 0..KEYS {
                    let found = usize::try_from(key).ok().and_then(|place| found.get(place));
                    actions.push(Action::RegisterRead { key: Key::Number(key), value: integer(found)? });
                }
                return Ok(actions);
            }
            let session = session.sql()?;
            let mut held = BTreeMap::new();
            if session.dialect() == Dialect::Cql {
                // One by one: a read that takes part in the order of conditional writes is of one key.
                let read = session.prepare(&[&self.statements()[READ].sql]).await?;
                for (key, statement) in (0..KEYS).zip(read.iter().cycle()) {
                    let rows = session.execute(*statement, &[SqlValue::Integer(key)]).await?;
                    held.extend(rows.integer(0, 0).map(|value| (key, value)));
                }
            } else {
                let (key, value) = columns(session.dialect());
                let query = format!("SELECT {key}, {value} FROM holdfast_register");
                let rows = look_now(session, &query).await?;
                for row in 0..rows.len() {
                    match (rows.integer(row, 0), rows.integer(row, 1)) {
                        (Some(key), Some(value)) => held.insert(key, value),
                        // Never written.
                        (Some(_), None) if rows.text(row, 1).is_none() => None,
                        _ => return Err(refused(format!("register row {row} cannot be read"))),
                    };
                }
            }
            let read = |key| Action::RegisterRead { key: Key::Number(key), value: held.get(&key).copied() };
            Ok((0..KEYS).map(read).collect())
        })
    }

    fn compares_and_sets(&self) -> bool {
        self.compares_and_sets
    }

    fn compares_replicas(&self) -> bool {
        true
    }

    fn registers(&self) -> Option<(usize, String)> {
        let keys: Vec<String> = (0..KEYS).map(|key| key.to_string()).collect();
        let question =
            format!("SELECT key, token(key) FROM holdfast_register WHERE key IN ({})", keys.join(", "));
        Some((keys.len(), question))
    }
}

/// The names of the columns, which are words of their own in some dialects.
fn columns(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Postgres | Dialect::Cql => ("key", "value"),
        Dialect::Mysql => ("`key`", "value"),
        Dialect::Standard => ("\"key\"", "\"value\""),
    }
}

fn key_name(key: i64) -> String {
    format!("register/{key}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    /// Of so many requests how many read, write, and compare and set; no value is written twice.
    fn drawn(register: &Register) -> [usize; 3] {
        let (mut values, mut kinds) = (BTreeSet::new(), [0; 3]);
        for client in [0, 1, crate::ledger::LARGEST_CLIENT] {
            let mut state = ClientState::new(client, 1, ChaCha8Rng::seed_from_u64(client));
            for _ in 0..1_000 {
                let request = register.draw(&mut state);
                kinds[request.kind] += 1;
                match request.action {
                    Action::RegisterWrite { value, .. } => assert!(values.insert(value) && value > 0),
                    Action::RegisterCompareAndSet { expected: Some(expected), new, .. } => {
                        assert!(values.contains(&expected), "{expected} was never written");
                        assert!(values.insert(new) && new > 0);
                    }
                    Action::RegisterRead { value: None, .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        kinds
    }

    fn with(options: &[(&str, &str)]) -> Register {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Register::configured(&options).expect("options that fit")
    }

    #[test]
    fn no_value_is_written_twice_and_every_kind_of_operation_is_drawn() {
        let kinds = drawn(&with(&[]));
        assert!(kinds.iter().all(|count| *count > 300), "{kinds:?}");
    }

    #[test]
    fn without_compare_and_set_keys_are_read_and_written_and_no_write_has_a_condition() {
        let register = with(&[("compare_and_set", "off")]);
        let [reads, writes, sets] = drawn(&register);
        assert!(reads > 300 && writes > 300 && sets == 0, "{reads} {writes} {sets}");
        assert!(!register.compares_and_sets());
        let has_condition = |register: &Register| {
            register.statements()[WRITE].cql.as_deref().is_some_and(|cql| cql.contains(" IF "))
        };
        assert!(!has_condition(&register) && has_condition(&with(&[])));
    }
}
