//! Cells on databases of keys and values: each is a text under a key of its own that begins with the number of the write it comes
//! from. All cells of a workload lie in one folder, which is what their keys begin with, up to a slash.
//!
//! Owns their loading, their final read, and how a value that a client reads is known for one of theirs. What the keys are is the workload's.

use std::fmt;
use std::ops::Range;

use client::key_value::{Found, Operation, Value};
use client::{KeyValueSession, SessionError};
use history::{Action, NO_WRITE};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::cells::{LOADED, number_of, numbered};
use crate::key_value::{senseless, text};
use crate::loading::Loading;
use crate::workload::{TableSetup, refused};

/// Most writes of one transaction that loads: fewer than any database takes as it is shipped (`Protocol::operation_limit`).
const BATCH_WRITES: u64 = 100;
/// About how many bytes such a transaction has at most. etcd takes requests of 1.5 MiB as it is shipped.
const BATCH_BYTES: u64 = 256 << 10;
/// Most sessions that load at the same time.
const SESSIONS_MAX: u64 = 4;
/// Most keys of a page of a scan, and about how many bytes it has at most.
const PAGE_KEYS: u64 = 10_000;
const PAGE_BYTES: u64 = 4 << 20;
/// The fewest keys of a page where nothing is known of its texts: of the longest that a workload writes, a million characters.
const PAGE_KEYS_LEAST: u32 = 4;
/// About how many bytes a key takes on the line beside its text.
const KEY_BYTES: u64 = 64;

/// The cells of a workload.
pub(crate) struct KeyedCells {
    /// What every key begins with, its slash included.
    pub(crate) folder: &'static str,
    /// The most bytes of a text.
    pub(crate) text_bytes: usize,
}

/// Rows to be loaded, each of several cells.
pub(crate) struct RowsToLoad<'a> {
    /// What they are called when people are told.
    pub(crate) table: &'static str,
    pub(crate) rows: u64,
    pub(crate) cells_per_row: u64,
    /// Adds the writes of the row with this number, from 0; all of its cells are written by [`LOADED`].
    pub(crate) writes: &'a dyn Fn(u64, &mut ChaCha8Rng, &mut Vec<Operation>),
}

impl KeyedCells {
    /// Throws away what an earlier run left, and loads the rows.
    pub(crate) async fn set_up(
        &self,
        setup: &mut TableSetup<'_>,
        rows: RowsToLoad<'_>,
    ) -> Result<(), SessionError> {
        self.forget_all(setup).await?;
        if rows.rows == 0 {
            return Ok(());
        }
        let bytes_per_row = rows.cells_per_row.saturating_mul(cell_bytes(self.text_bytes)).max(1);
        let batch = (BATCH_WRITES / rows.cells_per_row.max(1)).min(BATCH_BYTES / bytes_per_row).max(1);
        let sessions = rows.rows.div_ceil(batch).min(SESSIONS_MAX);
        let share = rows.rows.div_ceil(sessions);
        let mut parts = Vec::new();
        for part in 0..sessions {
            parts.push((setup.open().await?, part * share..((part + 1) * share).min(rows.rows)));
        }
        let loading = &Loading::begin(rows.table, rows.rows, setup.progress);
        let writes = rows.writes;
        let loads = parts.into_iter().map(|(mut session, numbers)| async move {
            load_part(session.key_value()?, numbers, batch, loading, writes).await
        });
        crate::parallel::all(loads).await?;
        (setup.progress)(format!("{} rows of {} are loaded", rows.rows, rows.table));
        Ok(())
    }

    /// Writes over every cell that is not as loaded, or longer: no operation takes a key away. What an earlier run left may be longer than the
    /// texts of this one, so pages grow and shrink with what is found; one that fails is asked for again, as the shortest.
    async fn forget_all(&self, setup: &mut TableSetup<'_>) -> Result<(), SessionError> {
        let mut pages = Pages { folder: self.folder, limit: PAGE_KEYS_LEAST, after: None };
        loop {
            let page = match pages.next(setup.session.key_value()?).await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(_) if pages.limit > PAGE_KEYS_LEAST => {
                    pages.limit = PAGE_KEYS_LEAST;
                    *setup.session = setup.open().await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let longest = page.iter().map(|(_, value)| shown_bytes(value)).max().unwrap_or_default();
            pages.limit = keys_of_page(longest).clamp(PAGE_KEYS_LEAST, pages.limit.saturating_mul(2));
            let session = setup.session.key_value()?;
            let is_loaded = |value: &Value| match value {
                Value::Text(text) => number_of(text) == Some(LOADED) && text.len() <= self.text_bytes,
                _ => false,
            };
            let left = page.into_iter().filter(|(_, value)| !is_loaded(value));
            let writes: Vec<Operation> =
                left.map(|(key, _)| Operation::Write { key, value: Value::Text(numbered(LOADED)) }).collect();
            for batch in writes.chunks(usize::try_from(BATCH_WRITES).unwrap_or(usize::MAX)) {
                session.transact(batch.to_vec()).await?;
            }
        }
    }

    /// Reads every cell. `cell` tells the cell of a key, without its folder, that holds this write; nothing where it is none of the
    /// workload's.
    ///
    /// A key that is no cell and holds what was loaded was left by an earlier run. With another number it is one that no cell
    /// has, which the check calls invented, as it does a value that no write has, or that is none of ours.
    pub(crate) async fn read_all(
        &self,
        session: &mut dyn KeyValueSession,
        cell: impl Fn(&str, u64) -> Option<u64>,
    ) -> Result<Vec<Action>, SessionError> {
        let mut actions = Vec::new();
        let mut no_cell = u64::MAX;
        let mut pages = self.pages();
        while let Some(page) = pages.next(session).await? {
            let mut cells = Vec::with_capacity(page.len());
            for (key, value) in &page {
                let write = match value {
                    Value::Text(text) => number_of(text).unwrap_or(NO_WRITE),
                    Value::Integer(_) | Value::List(_) | Value::Foreign(_) => NO_WRITE,
                };
                match key.strip_prefix(self.folder).and_then(|key| cell(key, write)) {
                    Some(cell) => cells.push((cell, write)),
                    None if write == LOADED => {}
                    None => {
                        no_cell -= 1;
                        cells.push((no_cell, write));
                    }
                }
            }
            actions.push(Action::CellsRead { cells, complete: false });
        }
        actions.push(Action::CellsRead { cells: Vec::new(), complete: true });
        Ok(actions)
    }

    fn pages(&self) -> Pages {
        Pages { folder: self.folder, limit: keys_of_page(self.text_bytes), after: None }
    }
}

/// About how many bytes a cell with such a text takes on the line.
fn cell_bytes(text_bytes: usize) -> u64 {
    text_bytes as u64 + KEY_BYTES
}

/// How many keys with texts so long a page has.
fn keys_of_page(text_bytes: usize) -> u32 {
    u32::try_from((PAGE_BYTES / cell_bytes(text_bytes)).clamp(1, PAGE_KEYS)).unwrap_or(u32::MAX)
}

/// How long a value is as a text.
fn shown_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Foreign(text) => text.len(),
        Value::Integer(_) | Value::List(_) => 0,
    }
}

/// That a value that was read is a cell that somebody wrote. `of` is what it was read of.
pub(crate) fn is_cell(value: &Value, of: impl fmt::Display) -> Result<(), SessionError> {
    match number_of(text(value)?) {
        Some(_) => Ok(()),
        None => Err(refused(format!("{of} was written by nobody"))),
    }
}

/// The keys of a folder and their values, page by page.
struct Pages {
    folder: &'static str,
    limit: u32,
    /// The last key of the page before.
    after: Option<String>,
}

impl Pages {
    /// The next page; nothing behind the last. One that is not full need not be the last: a scan tells at most so many.
    async fn next(
        &mut self,
        session: &mut dyn KeyValueSession,
    ) -> Result<Option<Vec<(String, Value)>>, SessionError> {
        let scan =
            Operation::Scan { prefix: self.folder.to_owned(), after: self.after.clone(), limit: self.limit };
        let found = session.transact(vec![scan]).await?;
        let page = match found.into_iter().next() {
            Some(Found::Entries(page)) => page,
            other => return Err(senseless(other.as_ref())),
        };
        let Some((last, _)) = page.last() else { return Ok(None) };
        self.after = Some(last.clone());
        Ok(Some(page))
    }
}

async fn load_part(
    session: &mut dyn KeyValueSession,
    mut numbers: Range<u64>,
    batch: u64,
    loading: &Loading<'_>,
    writes: &dyn Fn(u64, &mut ChaCha8Rng, &mut Vec<Operation>),
) -> Result<(), SessionError> {
    let mut rng = ChaCha8Rng::seed_from_u64(numbers.start);
    while !numbers.is_empty() {
        let mut operations = Vec::new();
        for number in loading.next_rows(&mut numbers, batch) {
            writes(number, &mut rng, &mut operations);
        }
        session.transact(operations).await?;
    }
    Ok(())
}
