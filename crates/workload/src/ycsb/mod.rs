//! YCSB's core workloads A to F, with its table, its keys and the names of its operations.
//!
//! Follows YCSB's `CoreWorkload` and its JDBC binding: `usertable` with a text key `user` + number and text fields.
//! Which keys are asked for is `keys`' business, which options there are `settings`', and how a record stands in a database of keys
//! and values `records`'. As in YCSB an operation is one
//! statement in a transaction of its own; READ-MODIFY-WRITE is two, and its parts count as a READ and an UPDATE as well.
//! Every field begins with the number of the write it comes from, for the check `last-writes`; the rest is random text.

mod keys;
mod records;
mod settings;

use std::collections::BTreeMap;
use std::sync::Mutex;

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{KeyValueSession, Operation};
use client::{BulkLoad, Dialect, Session, SessionError, SessionFuture, SqlSession, SqlValue};
use history::{Action, NO_WRITE};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use self::keys::{Keys, name_of};
pub use self::settings::{INSERT, READ, READ_MODIFY_WRITE, SCAN, UPDATE};
use self::settings::{KINDS, Settings};
use crate::cells::{LOADED, NUMBER_CHARACTERS, next_write, number_of, numbered, read_all};
use crate::dialect::analyse;
use crate::keyed_cells::{KeyedCells, RowsToLoad};
use crate::loading::Loading;
use crate::options::ConfigurationError;
use crate::random_text::push_alphanumeric;
use crate::taken_key::where_taken;
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused};

/// Rows loaded by one session.
const ROWS_PER_SESSION: u64 = 100_000;

/// The table that YCSB's own clients use.
const TABLE: &str = "usertable";

/// Most sessions that load at the same time.
const SESSIONS_MAX: u64 = 4;

/// See the module.
pub struct Ycsb {
    settings: Settings,
    statements: Vec<Statement>,
    /// What all clients know of the keys there are; held for a moment only.
    keys: Mutex<Keys>,
}

/// An operation drawn.
struct Drawn {
    /// The key's number; its name is made from it.
    number: u64,
    name: String,
    /// The fields written or read: their first and how many.
    fields: std::ops::Range<usize>,
    /// What they become.
    values: Vec<String>,
    rows: i64,
}

impl Ycsb {
    /// With these options.
    ///
    /// # Errors
    /// When one of them does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let settings = Settings::read(given)?;
        let keys = Mutex::new(Keys::new(&settings));
        Ok(Ycsb { statements: statements(&settings), settings, keys })
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn cell(&self, number: u64, field: usize) -> u64 {
        number * self.settings.fields as u64 + field as u64
    }

    fn value(&self, write: u64, rng: &mut impl Rng) -> String {
        let mut text = numbered(write).into_bytes();
        push_alphanumeric(rng, self.settings.field_length - NUMBER_CHARACTERS, &mut text);
        String::from_utf8(text).unwrap_or_default()
    }

    /// The field a read or an update asks for, or all of them.
    fn some_fields(&self, all: bool, rng: &mut impl Rng) -> std::ops::Range<usize> {
        if all {
            return 0..self.settings.fields;
        }
        let field = rng.random_range(0..self.settings.fields);
        field..field + 1
    }
}

/// The statements, one for each field where a single field is asked for. See [`Statements`] for their places.
fn statements(settings: &Settings) -> Vec<Statement> {
    let fields: Vec<String> = (0..settings.fields).map(|field| format!("field{field}")).collect();
    let all = fields.join(", ");
    let named = |kind: usize, sql: String| Statement::shaped(KINDS[kind], sql);
    let read = |what: &str| format!("SELECT ycsb_key, {what} FROM usertable WHERE ycsb_key = $1");
    let update = |what: &[String]| {
        let set: Vec<_> =
            what.iter().enumerate().map(|(place, field)| format!("{field} = ${}", place + 2)).collect();
        format!("UPDATE usertable SET {} WHERE ycsb_key = $1", set.join(", "))
    };
    let marks: Vec<_> = (0..=settings.fields).map(|place| format!("${}", place + 1)).collect();
    let mut statements = vec![
        named(INSERT, format!("INSERT INTO usertable (ycsb_key, {all}) VALUES ({})", marks.join(", "))),
        // As YCSB's own binding has it: rows of Cassandra are in the order of their keys' hashes.
        Statement::shaped_with_cql(
            KINDS[SCAN],
            format!("SELECT ycsb_key, {all} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2"),
            format!("SELECT ycsb_key, {all} FROM usertable WHERE token(ycsb_key) >= token($1) LIMIT $2"),
        )
        .shaped_in_the_standard(format!(
            "SELECT ycsb_key, {all} FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key FETCH FIRST $2 ROWS ONLY"
        )),
        named(READ, read(&all)),
        named(UPDATE, update(&fields)),
    ];
    statements.extend(fields.iter().map(|field| named(READ, read(field))));
    statements.extend(fields.iter().map(|field| named(UPDATE, update(std::slice::from_ref(field)))));
    statements
}

/// Places of the statements.
struct Statements;

impl Statements {
    const INSERT: usize = 0;
    const SCAN: usize = 1;
    const READ_ALL: usize = 2;
    const UPDATE_ALL: usize = 3;
    const READ_ONE: usize = 4;

    fn read(fields: &std::ops::Range<usize>, of: usize) -> usize {
        if fields.len() == of { Self::READ_ALL } else { Self::READ_ONE + fields.start }
    }

    fn update(fields: &std::ops::Range<usize>, of: usize) -> usize {
        if fields.len() == of { Self::UPDATE_ALL } else { Self::READ_ONE + of + fields.start }
    }
}

impl Workload for Ycsb {
    /// A row has a key and an index entry beside its fields.
    fn loaded_bytes(&self, _scale: u32) -> u64 {
        let field_bytes = self.settings.field_length as u64 + 4;
        let row_bytes = (self.settings.fields as u64).saturating_mul(field_bytes).saturating_add(120);
        self.settings.records.saturating_mul(row_bytes)
    }

    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::YCSB
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            *self.keys() = Keys::new(&self.settings);
            if let Session::KeyValue(_) = setup.session {
                return self.load_records(setup).await;
            }
            let (key, text) = match setup.session.sql()?.dialect() {
                Dialect::Postgres => ("varchar(255)", "text"),
                Dialect::Cql => ("text", "text"),
                Dialect::Standard => ("varchar(255)", "varchar(65536)"),
                // Byte for byte, as PostgreSQL compares without a collation.
                Dialect::Mysql => ("varchar(255) CHARACTER SET ascii COLLATE ascii_bin", "longtext"),
            };
            let fields: Vec<_> =
                (0..self.settings.fields).map(|field| format!("field{field} {text}")).collect();
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS usertable").await?;
            let create =
                format!("CREATE TABLE usertable (ycsb_key {key} PRIMARY KEY, {})", fields.join(", "));
            session.batch(&create).await?;
            self.load(setup).await?;
            analyse(setup.session.sql()?, "usertable").await
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let kind = self.settings.draw_kind(&mut client.rng);
        let mut keys = self.keys();
        let number = if kind == INSERT { keys.next_insert() } else { keys.draw(&mut client.rng) };
        drop(keys);
        let fields = match kind {
            INSERT | SCAN => 0..self.settings.fields,
            READ => self.some_fields(self.settings.read_all_fields, &mut client.rng),
            _ => self.some_fields(self.settings.write_all_fields, &mut client.rng),
        };
        let rows = if kind == SCAN { client.rng.random_range(1..=self.settings.scan_length) } else { 0 };
        let mut drawn =
            Drawn { number, name: name_of(number, self.settings.ordered), fields, values: Vec::new(), rows };
        if matches!(kind, READ | SCAN) {
            let action = Action::Transaction { name: KINDS[kind].into(), rolled_back: false, row: None };
            return Request::detailed(action, kind, drawn);
        }
        let write = next_write(client);
        drawn.values = drawn.fields.clone().map(|_| self.value(write, &mut client.rng)).collect();
        let cells = drawn.fields.clone().map(|field| self.cell(number, field)).collect();
        Request::detailed(Action::CellsWrite { cells, value: write }, kind, drawn)
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            let drawn = request.details::<Drawn>()?;
            let of = self.settings.fields;
            if let Session::KeyValue(session) = attempt.session {
                return self.perform_by_key(request.kind, &drawn, session.as_mut()).await;
            }
            let key = SqlValue::Text(&drawn.name);
            if matches!(request.kind, READ | READ_MODIFY_WRITE) {
                let fields = if self.settings.read_all_fields { 0..of } else { drawn.fields.clone() };
                let read = attempt.run(Statements::read(&fields, of), &[key]).await;
                // The write that would follow was never sent.
                let rows = read.map_err(|error| SessionError {
                    definite: error.definite || request.kind == READ_MODIFY_WRITE,
                    ..error
                })?;
                self.there(&drawn, rows.len() as u64)?;
            }
            if request.kind == SCAN {
                attempt.run(Statements::SCAN, &[key, SqlValue::Integer(drawn.rows)]).await?;
            }
            if drawn.values.is_empty() {
                return Ok(());
            }
            let mut values = vec![key];
            values.extend(drawn.values.iter().map(|value| SqlValue::Text(value)));
            let statement = if request.kind == INSERT {
                Statements::INSERT
            } else {
                Statements::update(&drawn.fields, of)
            };
            let mut result = attempt.run(statement, &values).await;
            if request.kind == INSERT {
                result = result.map_err(where_taken);
                self.inserted(drawn.number, result.as_ref().err());
            }
            // It has been carried out: whatever is wrong with the count, nothing definite can be said of it.
            self.there(&drawn, result?.affected()).map_err(|error| SessionError { definite: false, ..error })
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            let session = match session {
                Session::KeyValue(session) => return self.read_records(session.as_mut()).await,
                other => other.sql()?,
            };
            let beginning = |field: usize| match session.dialect() {
                // It has no functions of texts.
                Dialect::Cql => format!("field{field}"),
                Dialect::Standard => format!("substring(field{field} FROM 1 FOR {NUMBER_CHARACTERS})"),
                _ => format!("left(field{field}, {NUMBER_CHARACTERS})"),
            };
            let fields: Vec<_> = (0..self.settings.fields).map(beginning).collect();
            let numbers = self.keys().numbers_by_name(self.settings.ordered);
            let query = format!("SELECT ycsb_key, {} FROM usertable", fields.join(", "));
            let mut strangers = 0;
            read_all(session, &query, |rows, row, cells| {
                let name = rows.text(row, 0)?;
                // Each row by a name that no insert had gets a number that no key has: the check calls it invented.
                let number = numbers.get(name).copied().unwrap_or_else(|| {
                    strangers += 1;
                    u64::MAX / self.settings.fields as u64 - strangers
                });
                // A row that an update of one field has made, as Cassandra's do, has no others.
                for field in (0..self.settings.fields).filter(|field| !rows.is_null(row, field + 1)) {
                    let write = number_of(rows.text(row, field + 1)?).unwrap_or(NO_WRITE);
                    cells.push((self.cell(number, field), write));
                }
                Some(())
            })
            .await
        })
    }
}

impl Ycsb {
    /// An insert has ended.
    fn inserted(&self, number: u64, error: Option<&SessionError>) {
        // One without a definite answer may be there: who asks for it and finds nothing has an error to show.
        self.keys().inserted(number, error.is_none_or(|error| !error.definite));
    }

    fn keyed_cells(&self) -> KeyedCells {
        KeyedCells { folder: records::FOLDER, text_bytes: self.settings.field_length }
    }

    async fn load_records(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let fields = 0..self.settings.fields;
        let writes = &|number: u64, rng: &mut ChaCha8Rng, writes: &mut Vec<Operation>| {
            let name = name_of(number, self.settings.ordered);
            writes
                .extend(fields.clone().map(|field| records::write_of(&name, field, self.value(LOADED, rng))));
        };
        let cells_per_row = self.settings.fields as u64;
        let rows = RowsToLoad { table: TABLE, rows: self.settings.records, cells_per_row, writes };
        self.keyed_cells().set_up(setup, rows).await
    }

    async fn perform_by_key(
        &self,
        kind: usize,
        drawn: &Drawn,
        session: &mut dyn KeyValueSession,
    ) -> Result<(), SessionError> {
        let of = self.settings.fields;
        if matches!(kind, READ | READ_MODIFY_WRITE) {
            let fields = if self.settings.read_all_fields { 0..of } else { drawn.fields.clone() };
            let read = records::read(session, &drawn.name, fields).await;
            // Its write was never sent.
            let is_first_half = kind == READ_MODIFY_WRITE;
            read.map_err(|error| SessionError { definite: error.definite || is_first_half, ..error })?;
        }
        if kind == SCAN {
            return records::scan(session, &drawn.name, drawn.rows, of).await;
        }
        if drawn.values.is_empty() {
            return Ok(());
        }
        let result = records::write(session, &drawn.name, drawn.fields.clone(), &drawn.values).await;
        if kind == INSERT {
            self.inserted(drawn.number, result.as_ref().err());
        }
        result
    }

    async fn read_records(&self, session: &mut dyn KeyValueSession) -> Result<Vec<Action>, SessionError> {
        let numbers = self.keys().numbers_by_name(self.settings.ordered);
        let cell = |key: &str, _: u64| {
            let (number, field) = records::cell_of(key, &numbers, self.settings.fields)?;
            Some(self.cell(number, field))
        };
        self.keyed_cells().read_all(session, cell).await
    }

    fn there(&self, drawn: &Drawn, rows: u64) -> Result<(), SessionError> {
        if rows == 1 { Ok(()) } else { Err(refused(format!("key {} is there {rows} times", drawn.name))) }
    }

    async fn load(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let records = self.settings.records;
        let sessions = records.div_ceil(ROWS_PER_SESSION).clamp(1, SESSIONS_MAX);
        let share = records.div_ceil(sessions);
        let mut parts = Vec::new();
        for part in 0..sessions {
            parts.push((setup.open().await?, part * share..((part + 1) * share).min(records)));
        }
        let loading = &Loading::begin(TABLE, records, setup.progress);
        let loads = parts.into_iter().map(|(mut session, numbers)| async move {
            let wanted = numbers.end.saturating_sub(numbers.start);
            let loaded = self.load_part(session.sql()?, numbers, loading).await?;
            if loaded == wanted {
                Ok(())
            } else {
                Err(refused(format!("{loaded} of {wanted} rows were loaded")))
            }
        });
        crate::parallel::all(loads).await?;
        (setup.progress)(format!("{records} rows of {TABLE} are loaded"));
        Ok(())
    }

    async fn load_part(
        &self,
        session: &mut (dyn SqlSession + '_),
        mut numbers: std::ops::Range<u64>,
        loading: &Loading<'_>,
    ) -> Result<u64, SessionError> {
        let mut rng = ChaCha8Rng::seed_from_u64(numbers.start);
        let mut fill = |lines: &mut Vec<u8>| {
            for number in loading.next_rows(&mut numbers, 50) {
                lines.extend_from_slice(name_of(number, self.settings.ordered).as_bytes());
                for _ in 0..self.settings.fields {
                    lines.push(b'\t');
                    lines.extend_from_slice(self.value(LOADED, &mut rng).as_bytes());
                }
                lines.push(b'\n');
            }
            !numbers.is_empty()
        };
        let columns: String = (0..self.settings.fields).map(|field| format!(", field{field}")).collect();
        let columns = format!("ycsb_key{columns}");
        let load = BulkLoad { table: TABLE, columns: &columns, is_new: false };
        session.load(load, &mut fill).await
    }
}

#[cfg(test)]
mod tests;
