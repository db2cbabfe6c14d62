//! Reads and writes of single keys, as `cockroach workload kv` has them.
//!
//! Follows that tool's `kv` (its options, in ours): a table of numbered keys with a value of random bytes; each operation
//! reads (`read`), counts a span of (`span`) or overwrites one or several keys. New keys come from one counter for all
//! clients, by default spread over all numbers by a hash, and begin anew after `keys` of them. Without `preload` the table
//! starts empty and reads may find nothing. The column `w` is ours: it says which write a row comes from, for the check
//! `last-writes`. How keys and values stand in a database of them is `pairs`' business.
//!
//! Options: `read`, `span`, `span_limit`, `batch`, `block_min`, `block_max`, `keys`, `order`, `exponent`, `preload`.

mod pairs;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use capabilities::workloads::{self, WorkloadFacts};
use client::key_value::{KeyValueSession, Operation};
use client::{BulkLoad, Dialect, Session, SessionError, SessionFuture, SqlValue};
use history::Action;
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::cells::{LOADED, NUMBER_CHARACTERS, next_write, read_all};
use crate::dialect::{analyse, has_written};
use crate::distribution::{RejectionZipf, hash, skewed};
use crate::keyed_cells::{KeyedCells, RowsToLoad};
use crate::loading::Loading;
use crate::options::{ConfigurationError, Options};
use crate::random_text::{alphanumeric, push_alphanumeric_of};
use crate::workload::{Attempt, ClientState, Request, Statement, TableSetup, Workload, refused, rows_bytes};

/// About how many bytes a row takes beside its block: key, number of the write, index entry, the row's own.
const BESIDE_BLOCK_BYTES: usize = 80;
/// Kinds of operation, in the order of [`KINDS`] and of the statements.
const READ: usize = 0;
const WRITE: usize = 1;
const SPAN: usize = 2;
const KINDS: &[&str] = workloads::KV.kinds;

/// How keys are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    /// In order of the counter, spread by a hash.
    Hashed,
    /// In order of the counter.
    Sequential,
    /// By popularity, spread by a hash.
    Zipfian(RejectionZipf),
}

/// See the module.
pub struct Kv {
    read: f64,
    span: f64,
    /// Absent where all keys are counted.
    span_limit: Option<u32>,
    batch: usize,
    block: (usize, usize),
    keys: u64,
    order: Order,
    preload: u64,
    statements: [Statement; 3],
    /// Keys taken from the counter so far.
    written: AtomicU64,
}

/// An operation drawn.
struct Drawn {
    /// In order: two writes of the same keys must not wait for each other.
    keys: Vec<i64>,
    value: i64,
    block: String,
}

impl Kv {
    /// With these options.
    ///
    /// # Errors
    /// When one of them does not fit.
    pub fn configured(given: &BTreeMap<String, String>) -> Result<Self, ConfigurationError> {
        let mut options = Options::new("kv", given);
        let read = options.share("read")?;
        let span = options.share("span")?;
        if read + span > 1.0 + 1e-9 {
            return Err(options.bad("span", options_text(given, "span"), "with `read` it is more than 100%"));
        }
        let span_limit = options.count("span_limit")?;
        let batch = options.count("batch")?;
        let block_min = options.count("block_min")?;
        let block_max = options.count_within("block_max", block_min..=u64::MAX, ", at least `block_min`")?;
        let keys = options.count_within("keys", batch..=u64::MAX, ", at least `batch`")?;
        let order = options.word("order")?;
        let exponent = options.number("exponent", skewed::LEAST_EXPONENT..=skewed::MOST_EXPONENT)?;
        let preload = options.count_within("preload", 0..=keys, ", at most `keys`")?;
        options.finish()?;
        let batch = usize::try_from(batch).unwrap_or(usize::MAX);
        let bytes = |count| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Kv {
            read,
            span,
            span_limit: u32::try_from(span_limit).ok().filter(|limit| *limit > 0),
            batch,
            block: (bytes(block_min), bytes(block_max)),
            keys,
            order: match (order, RejectionZipf::new(keys, exponent)) {
                ("zipfian", Some(zipf)) => Order::Zipfian(zipf),
                ("sequential", _) => Order::Sequential,
                _ => Order::Hashed,
            },
            preload,
            statements: statements(batch, span_limit),
            // As a table loaded before with the same options has them.
            written: AtomicU64::new(preload),
        })
    }

    /// The key with this place in the order.
    fn key(&self, place: u64) -> i64 {
        match self.order {
            Order::Sequential => place.cast_signed(),
            Order::Hashed | Order::Zipfian(_) => hash::fnv64(place).cast_signed(),
        }
    }

    fn place_to_write(&self, rng: &mut impl Rng) -> u64 {
        match self.order {
            Order::Zipfian(zipf) => zipf.draw(rng) - 1,
            Order::Hashed | Order::Sequential => self.written.fetch_add(1, Ordering::Relaxed) % self.keys,
        }
    }

    fn place_to_read(&self, rng: &mut impl Rng) -> u64 {
        match self.order {
            Order::Zipfian(zipf) => zipf.draw(rng) - 1,
            Order::Hashed | Order::Sequential => {
                rng.random_range(0..self.written.load(Ordering::Relaxed).clamp(1, self.keys))
            }
        }
    }

    /// As many different keys as a batch has.
    fn draw_keys<R: Rng>(&self, rng: &mut R, place: impl Fn(&Self, &mut R) -> u64) -> Vec<i64> {
        let mut keys: Vec<i64> = Vec::with_capacity(self.batch);
        while keys.len() < self.batch {
            let mut place = place(self, rng);
            // A popular key comes again and again: its neighbour is taken instead.
            while keys.contains(&self.key(place)) {
                place = (place + 1) % self.keys;
            }
            keys.push(self.key(place));
        }
        keys.sort_unstable();
        keys
    }
}

fn options_text<'o>(given: &'o BTreeMap<String, String>, name: &str) -> &'o str {
    given.get(name).map_or("", String::as_str)
}

fn statements(batch: usize, span_limit: u64) -> [Statement; 3] {
    let list = |each: &dyn Fn(usize) -> String| (0..batch).map(each).collect::<Vec<_>>().join(", ");
    let keys = list(&|row| format!("${}", row + 1));
    let rows = list(&|row| format!("(${}, $1, $2)", row + 3));
    let limit = if span_limit == 0 { String::new() } else { format!(" LIMIT {span_limit}") };
    let insert = format!("INSERT INTO holdfast_kv (k, v, w) VALUES {rows}");
    // An INSERT of CQL writes over the row that is there. Keys are in the order of their hashes, which is that of a span.
    let each = |row: usize| format!("INSERT INTO holdfast_kv (k, v, w) VALUES (${}, $1, $2)", row + 3);
    let cql = match batch {
        1 => each(0),
        _ => format!("BEGIN BATCH {}; APPLY BATCH", (0..batch).map(each).collect::<Vec<_>>().join("; ")),
    };
    [
        Statement::shaped(KINDS[READ], format!("SELECT k, v FROM holdfast_kv WHERE k IN ({keys})")),
        Statement {
            name: KINDS[WRITE].into(),
            sql: format!("{insert} ON CONFLICT (k) DO UPDATE SET v = excluded.v, w = excluded.w").into(),
            mysql: Some(format!("{insert} ON DUPLICATE KEY UPDATE v = VALUES(v), w = VALUES(w)").into()),
            cql: Some(cql.into()),
            standard: None,
            only: None,
        },
        Statement::shaped_with_cql(
            KINDS[SPAN],
            format!(
                "SELECT count(v) FROM (SELECT v FROM holdfast_kv WHERE k >= $1 ORDER BY k{limit}) AS span"
            ),
            format!("SELECT v FROM holdfast_kv WHERE token(k) >= token($1){limit}"),
        ),
    ]
}

impl Workload for Kv {
    fn loaded_bytes(&self, _scale: u32) -> u64 {
        rows_bytes(self.preload, self.block, BESIDE_BLOCK_BYTES)
    }

    fn facts(&self) -> &'static WorkloadFacts {
        &workloads::KV
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup<'a>(&'a self, setup: &'a mut TableSetup<'_>) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            self.written.store(self.preload, Ordering::Relaxed);
            if let Session::KeyValue(_) = setup.session {
                return self.load_pairs(setup).await;
            }
            let session = setup.session.sql()?;
            session.batch("DROP TABLE IF EXISTS holdfast_kv").await?;
            let columns = match session.dialect() {
                // What none but these know how to overwrite never gets here.
                Dialect::Postgres | Dialect::Standard => "v bytea NOT NULL, w bigint NOT NULL",
                Dialect::Mysql => "v longblob NOT NULL, w bigint NOT NULL",
                Dialect::Cql => "v blob, w bigint",
            };
            let create = format!("CREATE TABLE holdfast_kv (k bigint PRIMARY KEY, {columns})");
            session.batch(&create).await?;
            if self.preload > 0 {
                self.load(setup).await?;
            }
            Ok(())
        })
    }

    fn draw(&self, client: &mut ClientState) -> Request {
        let choice = client.rng.random::<f64>();
        if choice >= self.read + self.span {
            let keys = self.draw_keys(&mut client.rng, Self::place_to_write);
            let length = client.rng.random_range(self.block.0..=self.block.1);
            let block = alphanumeric(&mut client.rng, length);
            let value = next_write(client);
            let cells = keys.iter().map(|key| key.cast_unsigned()).collect();
            let drawn = Drawn { keys, value: value.cast_signed(), block };
            return Request::detailed(Action::CellsWrite { cells, value }, WRITE, drawn);
        }
        let kind = if choice < self.read { READ } else { SPAN };
        let action = Action::Transaction { name: KINDS[kind].into(), rolled_back: false, row: None };
        if self.batch == 1 {
            // The common case, without a list for its one key.
            let key = self.key(self.place_to_read(&mut client.rng));
            return Request::plain(action, kind, [key, 0, 0, 0]);
        }
        let mut keys = self.draw_keys(&mut client.rng, Self::place_to_read);
        if kind == SPAN {
            keys.truncate(1);
        }
        Request::detailed(action, kind, Drawn { keys, value: 0, block: String::new() })
    }

    fn perform<'a>(
        &'a self,
        request: &'a mut Request,
        attempt: &'a mut Attempt<'_>,
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move {
            if let Session::KeyValue(session) = attempt.session {
                return self.perform_by_key(request, session.as_mut()).await;
            }
            if request.details.is_none() {
                let [key, ..] = request.numbers;
                return attempt.run(request.kind, &[SqlValue::Integer(key)]).await.map(drop);
            }
            let drawn = request.details::<Drawn>()?;
            let mut values = Vec::with_capacity(drawn.keys.len() + 2);
            if request.kind == WRITE {
                values.push(SqlValue::Text(&drawn.block));
                values.push(SqlValue::Integer(drawn.value));
            }
            values.extend(drawn.keys.iter().map(|key| SqlValue::Integer(*key)));
            let rows = attempt.run(request.kind, &values).await?;
            let dialect = attempt.session.sql()?.dialect();
            let count = drawn.keys.len() as u64;
            if request.kind == WRITE && !has_written(dialect, rows.affected(), count) {
                // Committed, but not as it should be: nothing definite can be said of it.
                let message = format!("a write of {count} keys wrote {} rows", rows.affected());
                return Err(SessionError { definite: false, ..refused(message) });
            }
            Ok(())
        })
    }

    fn final_read<'a>(&'a self, session: &'a mut Session) -> SessionFuture<'a, Vec<Action>> {
        Box::pin(async move {
            if let Session::KeyValue(session) = session {
                let cell = |key: &str, _: u64| pairs::number_of_key(key).map(i64::cast_unsigned);
                return self.keyed_cells().read_all(session.as_mut(), cell).await;
            }
            read_all(session.sql()?, "SELECT k, w FROM holdfast_kv", |rows, row, cells| {
                let (key, write) = (rows.integer(row, 0)?, rows.integer(row, 1)?);
                cells.push((key.cast_unsigned(), write.cast_unsigned()));
                Some(())
            })
            .await
        })
    }
}

impl Kv {
    fn keyed_cells(&self) -> KeyedCells {
        KeyedCells { folder: pairs::FOLDER, text_bytes: NUMBER_CHARACTERS + self.block.1 }
    }

    async fn load_pairs(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let writes = &|place: u64, rng: &mut ChaCha8Rng, writes: &mut Vec<Operation>| {
            let length = rng.random_range(self.block.0..=self.block.1);
            writes.push(pairs::write_of(self.key(place), LOADED, &alphanumeric(rng, length)));
        };
        let rows = RowsToLoad { table: "kv", rows: self.preload, cells_per_row: 1, writes };
        self.keyed_cells().set_up(setup, rows).await
    }

    async fn perform_by_key(
        &self,
        request: &Request,
        session: &mut dyn KeyValueSession,
    ) -> Result<(), SessionError> {
        let [number, ..] = request.numbers;
        if request.details.is_none() {
            return match request.kind {
                SPAN => pairs::span(session, number, self.span_limit).await,
                _ => pairs::read(session, &[number]).await,
            };
        }
        let drawn = request.details::<Drawn>()?;
        match request.kind {
            WRITE => pairs::write(session, &drawn.keys, drawn.value.cast_unsigned(), &drawn.block).await,
            SPAN => match drawn.keys.first() {
                Some(first) => pairs::span(session, *first, self.span_limit).await,
                None => Ok(()),
            },
            _ => pairs::read(session, &drawn.keys).await,
        }
    }

    async fn load(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.keys);
        let mut places = 0..self.preload;
        let loading = Loading::begin("holdfast_kv", self.preload, setup.progress);
        let mut fill = |lines: &mut Vec<u8>| {
            for place in loading.next_rows(&mut places, 500) {
                lines.extend_from_slice(format!("{}\t{LOADED}\t", self.key(place)).as_bytes());
                push_alphanumeric_of(&mut rng, self.block.0..=self.block.1, lines);
                lines.push(b'\n');
            }
            !places.is_empty()
        };
        let session = setup.session.sql()?;
        let load = BulkLoad { table: "holdfast_kv", columns: "k, w, v", is_new: false };
        let loaded = session.load(load, &mut fill).await?;
        if loaded != self.preload {
            return Err(refused(format!("{loaded} keys were loaded instead of {}", self.preload)));
        }
        analyse(session, "holdfast_kv").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::chi_square;

    fn configured(options: &[(&str, &str)]) -> Result<Kv, ConfigurationError> {
        Kv::configured(
            &options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        )
    }

    fn client() -> ClientState {
        ClientState::new(3, 1, ChaCha8Rng::seed_from_u64(3))
    }

    #[test]
    fn kinds_come_in_the_shares_asked_for() {
        let kv = configured(&[("read", "70%"), ("span", "10%")]).expect("fits");
        let mut client = client();
        chi_square::check("kinds", &[0.7, 0.2, 0.1], 20_000, |_| kv.draw(&mut client).kind);
    }

    #[test]
    fn popular_keys_are_as_popular_as_the_exponent_says() {
        let kv = configured(&[("order", "zipfian"), ("exponent", "1.3"), ("keys", "50")]).expect("fits");
        let weights: Vec<f64> = (1..=50).map(|rank| f64::from(rank).powf(-1.3)).collect();
        let expected: Vec<f64> = weights.iter().map(|weight| weight / weights.iter().sum::<f64>()).collect();
        let mut client = client();
        chi_square::check("popularity", &expected, 20_000, |_| {
            let drawn = kv.draw(&mut client).details::<Drawn>().expect("its own");
            (0..50).position(|place| kv.key(place) == drawn.keys[0]).expect("of the fifty")
        });
    }

    #[test]
    fn a_batch_writes_different_keys_in_order_each_recorded_as_a_cell() {
        for order in ["hashed", "sequential", "zipfian"] {
            let kv = configured(&[("batch", "5"), ("keys", "7"), ("order", order)]).expect("fits");
            let mut client = client();
            for _ in 0..200 {
                let request = kv.draw(&mut client);
                let drawn = request.details::<Drawn>().expect("its own");
                assert!(
                    drawn.keys.len() == 5 && drawn.keys.windows(2).all(|pair| pair[0] < pair[1]),
                    "{order}"
                );
                let Action::CellsWrite { cells, value } = request.action else { panic!("not a write") };
                assert_eq!(cells.len(), 5);
                assert!(value > 0);
            }
        }
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let check = |options: &[(&str, &str)], expected: &str| {
            let error = configured(options).err().expect("refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&[("read", "60%"), ("span", "50%")], "with `read` it is more than 100%");
        check(&[("block_min", "9"), ("block_max", "8")], "from 9 to");
        check(&[("batch", "8"), ("keys", "7")], "from 8 to");
        check(&[("order", "random")], "hashed, sequential, zipfian");
        check(&[("reads", "1%")], "no option \"reads\"");
    }
}
