//! The ledger: every client inserts rows whose numbers nobody else ever uses, one a transaction.
//!
//! Owns the numbering. What was acknowledged and what must be there at the end is the ledger check's to judge.

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{Operation, Value};
use client::{Dialect, KeyValueSession, Rows, Session, SessionError, SessionFuture, SqlValue};
use history::{Action, LEDGER_READ_VALUES_MAX, LEDGER_SEQUENCE_BITS as SEQUENCE_BITS};

use crate::key_value::entries;
use crate::taken_key::where_taken;
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// What the keys begin with under which a database of keys and values has the rows.
const PREFIX: &str = "ledger/";

/// Rows of the final read fetched, and recorded, at a time.
const PAGE_ROWS: usize = 50_000;
/// Keys of one row each read at a time.
const PAGE_KEYS: u32 = 10_000;

/// The largest client number whose rows still fit the table's signed 64-bit column.
pub const LARGEST_CLIENT: u64 = (1 << (63 - SEQUENCE_BITS)) - 1;

/// See the module.
pub struct Ledger;

impl Workload for Ledger {
    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::LEDGER
    }

    fn statements(&self) -> &[Statement] {
        static STATEMENTS: [Statement; 1] =
            [Statement::fixed("INSERT", "INSERT INTO holdfast_ledger (value, client) VALUES ($1, $2)")
                .and_in_the_standard("INSERT INTO holdfast_ledger (\"value\", client) VALUES ($1, $2)")];
        &STATEMENTS
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(_) = setup.session {
                // Nothing to make: a list is there once it is appended to, and a lab's database is new.
                return Ok(());
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_ledger").await?;
            let columns = match session.dialect() {
                Dialect::Postgres => "client bigint NOT NULL, written_at timestamptz NOT NULL DEFAULT now()",
                Dialect::Mysql => "client bigint NOT NULL, written_at timestamp(6) NOT NULL DEFAULT now(6)",
                // Each cell has the time of its writing, `WRITETIME(client)`.
                Dialect::Cql => "client bigint",
                Dialect::Standard => "client bigint NOT NULL",
            };
            let value = value_column(session.dialect());
            let create = format!("CREATE TABLE holdfast_ledger ({value} bigint PRIMARY KEY, {columns})");
            session.batch(&create).await?;
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let value = row_number(client.client, client.sequence);
        // Counted on at once: a number is used up whatever becomes of its insert.
        client.sequence += 1;
        let numbers = [value.cast_signed(), client.client.cast_signed(), 0, 0];
        Request::plain(Action::LedgerInsert { value }, 0, numbers)
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let [value, client, ..] = request.numbers;
            if let Session::KeyValue(session) = attempt.session {
                let insert = if session.rewrites_lists() {
                    Operation::Insert { key: row_key(value), value: Value::Integer(client) }
                } else {
                    Operation::Append { key: format!("{PREFIX}{client}"), element: value }
                };
                session.transact(vec![insert]).await.map_err(where_taken)?;
                return Ok(());
            }
            let row = [SqlValue::Integer(value), SqlValue::Integer(client)];
            let rows = attempt.run(0, &row).await.map_err(where_taken)?;
            if rows.affected() == 1 {
                return Ok(());
            }
            // Committed, but not as the one row it was: nothing definite can be said of it.
            Err(SessionError {
                definite: false,
                ..refused(format!("insert of {value} wrote {} rows", rows.affected()))
            })
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let session = match session {
                Session::KeyValue(session) => return read_keys(session.as_mut()).await,
                other => other.sql()?,
            };
            let mut pages = Vec::new();
            let mut page = |rows: &Rows| {
                let value = |row| match rows.integer(row, 0) {
                    // A negative number is nobody's: it stays one that was never inserted.
                    Some(value) => Ok(value.cast_unsigned()),
                    None => Err(refused(format!("ledger row {row} has no readable number"))),
                };
                let values = (0..rows.len()).map(value).collect::<Result<Vec<u64>, SessionError>>()?;
                pages.push(Action::LedgerRead { values, complete: rows.len() < PAGE_ROWS });
                Ok(())
            };
            let query = format!("SELECT {} FROM holdfast_ledger", value_column(session.dialect()));
            session.read_table(&query, PAGE_ROWS, &mut page).await?;
            Ok(pages)
        })
    }
}

/// The column's name, which is a word of the standard's own.
fn value_column(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Standard { "\"value\"" } else { "value" }
}

/// Reads the keys under which a database of keys and values has the rows: one list for each client, or, where a list is
/// written again with each of its elements, each row by itself.
async fn read_keys(session: &mut dyn KeyValueSession) -> Result<Vec<Action>, SessionError> {
    let limit = if session.rewrites_lists() { PAGE_KEYS } else { 1 };
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let scan = Operation::Scan { prefix: PREFIX.to_owned(), after: after.take(), limit };
        let found = session.transact(vec![scan]).await?;
        let entries = entries(found.first())?;
        let mut values = Vec::new();
        for (key, value) in entries {
            match value {
                Value::List(rows) => values.extend(rows.iter().map(|row| row.cast_unsigned())),
                Value::Integer(_) => {
                    let row = key.strip_prefix(PREFIX).and_then(|row| row.parse().ok());
                    values.push(row.ok_or_else(|| refused(format!("{key} is no row")))?);
                }
                Value::Text(_) | Value::Foreign(_) => return Err(refused(format!("{key} holds no row"))),
            }
            after = Some(key.clone());
        }
        if entries.is_empty() {
            pages.push(Action::LedgerRead { values, complete: true });
            return Ok(pages);
        }
        // A client's list may be longer than a record of the history.
        let parts = values.chunks(LEDGER_READ_VALUES_MAX);
        pages.extend(parts.map(|part| Action::LedgerRead { values: part.to_vec(), complete: false }));
    }
}

/// The key of a row that stands by itself; keys are in the order of the numbers.
fn row_key(value: i64) -> String {
    format!("{PREFIX}{value:020}")
}

/// The number of a client's row.
fn row_number(client: u64, sequence: u64) -> u64 {
    (client << SEQUENCE_BITS) | sequence
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn no_two_clients_ever_draw_the_same_number() {
        let mut seen = BTreeSet::new();
        for client in [0, 1, 2, 63, LARGEST_CLIENT] {
            let mut state = ClientState::new(client, 1, ChaCha8Rng::seed_from_u64(client));
            for _ in 0..1000 {
                let request = Ledger.draw(&mut state);
                let Action::LedgerInsert { value } = request.action else { panic!("not an insert") };
                assert!(seen.insert(value), "{value} twice");
                assert!(request.numbers[0] >= 0, "{value} does not fit a signed column");
            }
        }
    }
}
