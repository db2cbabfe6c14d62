//! From what was kept to the order of versions: who appended which value of every list, who of those without an answer
//! has happened, and what is wrong with single reads.
//!
//! After Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental observations" (2020): every value
//! of a list names its append, and a list tells the appends before it in order. Beyond the paper: a committed append
//! that is in no read comes after all that were read, because a version, once in a list, stays in it.
//! Transactions are named by their place in order of their beginning.

use history::Outcome;

use super::record::{Kind, NONE, Record};
use crate::names::numbered;

/// Something wrong with one read or one list, by example and number.
#[derive(Debug, Default)]
pub(super) struct Examples {
    pub(super) examples: Vec<Seen>,
    pub(super) count: usize,
}

impl Examples {
    fn add(&mut self, example: Seen) {
        self.count += 1;
        if self.examples.len() < 5 {
            self.examples.push(example);
        }
    }
}

/// A reader, what it read, and who had written it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) key: u32,
    pub(super) value: i64,
    pub(super) writer: u32,
    pub(super) reader: u32,
}

/// The versions of all lists.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// For each list, where its values begin in `writers`; one more at the end.
    starts: Vec<u32>,
    /// Who appended each value of each list; `NONE` where it is not known or the append was refused.
    writers: Vec<u32>,
    /// Lists from which no order can be told.
    pub(super) is_orderless: Vec<bool>,
    /// Committed appends that are in no read, in order of the list.
    pub(super) unseen: Vec<(u32, u32)>,
    /// Whether a transaction has happened.
    pub(super) has_happened: Vec<bool>,
    /// Lists to which a value was appended more than once.
    pub(super) reused: Vec<u32>,
    /// Lists in which a value stands more than once.
    pub(super) duplicated: Vec<(u32, i64)>,
    /// Values that nobody appended, read.
    pub(super) invented: Examples,
    /// G1a: values of refused transactions, read.
    pub(super) aborted: Examples,
    /// G1b: a list read between two appends of one transaction.
    pub(super) intermediate: Examples,
    /// A committed append on top of a refused one: the writers are of the refused one, the readers of the committed.
    pub(super) dirty_updates: Examples,
    /// Two transactions that read the same version of a list and both appended to it.
    pub(super) lost_updates: Examples,
}

/// An append, as found by its list and value.
#[derive(Debug, Clone, Copy)]
struct Append {
    value: i64,
    writer: u32,
    is_superseded: bool,
    is_seen: bool,
}

/// What is known of a value of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Committed { is_superseded: bool },
    Refused,
    Nobody,
}

impl Versions {
    /// Infers them. `places` are those of the transactions by arrival.
    pub(super) fn of(record: &Record, places: &[u32]) -> Versions {
        let mut versions = Versions {
            has_happened: record.transactions.iter().map(|one| one.outcome == Outcome::Ok).collect(),
            is_orderless: vec![false; record.lists.len()],
            ..Versions::default()
        };
        let (starts, mut appends) = appends_by_list(record);
        let sources = versions.find_writers(record, &starts, &mut appends);
        for key in 0..record.lists.len() {
            let appends = &appends[starts[key] as usize..starts[key + 1] as usize];
            let missed = appends.iter().filter(|append| !append.is_seen);
            let missed = missed.filter(|append| versions.has_happened[append.writer as usize]);
            versions.unseen.extend(missed.map(|append| (numbered(key), append.writer)));
        }
        versions.unseen.sort_unstable();
        versions.unseen.dedup();
        versions.judge_lists(record, &sources);
        versions.judge_reads(record, &sources);
        versions.find_lost_updates(record, places);
        for (list, is_orderless) in record.lists.iter().zip(&mut versions.is_orderless) {
            *is_orderless |= list.incompatible.is_some();
        }
        for key in versions.reused.iter().chain(versions.duplicated.iter().map(|(key, _)| key)) {
            versions.is_orderless[*key as usize] = true;
        }
        versions
    }

    /// Who appended the values of a list, in order.
    pub(super) fn writers(&self, key: u32) -> &[u32] {
        &self.writers[self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize]
    }

    /// Finds the append of every value in every list. Gives what is known of each beside `writers`.
    fn find_writers(&mut self, record: &Record, starts: &[u32], appends: &mut [Append]) -> Vec<Source> {
        let mut found = Vec::new();
        for (list, key) in record.lists.iter().zip(0u32..) {
            self.starts.push(numbered(found.len()));
            let range = starts[key as usize] as usize..starts[key as usize + 1] as usize;
            let appends = &mut appends[range];
            appends.sort_unstable_by_key(|append| (append.value, append.writer));
            if appends.windows(2).any(|pair| pair[0].value == pair[1].value) {
                self.reused.push(key);
            }
            for value in &list.values {
                let at = appends.binary_search_by_key(value, |append| append.value).ok();
                if let Some(append) = at.map(|at| &mut appends[at]) {
                    if append.is_seen && self.duplicated.last().is_none_or(|(last, _)| *last != key) {
                        self.duplicated.push((key, *value));
                    }
                    append.is_seen = true;
                    let outcome = record.transactions[append.writer as usize].outcome;
                    self.has_happened[append.writer as usize] |= outcome == Outcome::Unknown;
                }
                found.push(at.map(|at| appends[at]));
            }
        }
        self.starts.push(numbered(found.len()));
        let mut sources = Vec::with_capacity(found.len());
        for append in found {
            let source = match append {
                None => Source::Nobody,
                Some(append) if record.transactions[append.writer as usize].outcome == Outcome::Fail => {
                    Source::Refused
                }
                Some(append) => Source::Committed { is_superseded: append.is_superseded },
            };
            self.writers.push(append.map_or(NONE, |append| append.writer));
            sources.push(source);
        }
        sources
    }

    fn judge_lists(&mut self, record: &Record, sources: &[Source]) {
        for (list, key) in record.lists.iter().zip(0u32..) {
            let start = self.starts[key as usize] as usize;
            let sources = &sources[start..self.starts[key as usize + 1] as usize];
            let Some(refused) = sources.iter().position(|source| *source == Source::Refused) else {
                continue;
            };
            let on_top =
                sources[refused..].iter().position(|source| matches!(source, Source::Committed { .. }));
            if let Some(on_top) = on_top {
                self.dirty_updates.add(Seen {
                    key,
                    value: list.values[refused],
                    writer: self.writers[start + refused],
                    reader: self.writers[start + refused + on_top],
                });
            }
        }
    }

    fn judge_reads(&mut self, record: &Record, sources: &[Source]) {
        let first = |wanted: Source| -> Vec<usize> {
            let list = |key: usize| &sources[self.starts[key] as usize..self.starts[key + 1] as usize];
            let place = |key| list(key).iter().position(|source| *source == wanted).unwrap_or(usize::MAX);
            (0..record.lists.len()).map(place).collect()
        };
        let (refused, invented) = (first(Source::Refused), first(Source::Nobody));
        for (transaction, reader) in record.transactions.iter().zip(0u32..) {
            for did in record.steps_of(transaction).iter().filter(|did| did.kind == Kind::Read) {
                let length = usize::try_from(did.value).unwrap_or(0);
                let Some(last) = length.checked_sub(1) else { continue };
                let key = did.key as usize;
                let start = self.starts[key] as usize;
                let seen = |at: usize| Seen {
                    key: did.key,
                    value: record.lists[key].values[at],
                    writer: self.writers[start + at],
                    reader,
                };
                if refused[key] < length {
                    let seen = seen(refused[key]);
                    self.aborted.add(seen);
                }
                if invented[key] < length {
                    let seen = seen(invented[key]);
                    self.invented.add(seen);
                }
                let is_own = self.writers[start + last] == reader;
                if sources[start + last] == (Source::Committed { is_superseded: true }) && !is_own {
                    let seen = seen(last);
                    self.intermediate.add(seen);
                }
            }
        }
        // A refused append is no version that others come before or after.
        for (writer, source) in self.writers.iter_mut().zip(sources) {
            if *source == Source::Refused {
                *writer = NONE;
            }
        }
    }

    fn find_lost_updates(&mut self, record: &Record, places: &[u32]) {
        let placed = |(key, length, arrival): &(u32, u32, u32)| (*key, *length, places[*arrival as usize]);
        let mut updates: Vec<(u32, u32, u32)> = record
            .updates
            .iter()
            .filter(|(_, _, arrival)| {
                record.transactions[places[*arrival as usize] as usize].outcome == Outcome::Ok
            })
            .map(placed)
            .collect();
        updates.sort_unstable();
        for pair in updates.windows(2) {
            let ((key, length, writer), (other_key, other_length, reader)) = (pair[0], pair[1]);
            if (key, length) == (other_key, other_length) && writer != reader {
                self.lost_updates.add(Seen { key, value: i64::from(length), writer, reader });
            }
        }
    }
}

/// All appends list by list, and where those of each list begin.
fn appends_by_list(record: &Record) -> (Vec<u32>, Vec<Append>) {
    let is_append = |kind: Kind| matches!(kind, Kind::Append | Kind::AppendSuperseded);
    let mut starts = vec![0u32; record.lists.len() + 1];
    for did in record.steps.iter().filter(|did| is_append(did.kind)) {
        starts[did.key as usize + 1] += 1;
    }
    for key in 0..record.lists.len() {
        starts[key + 1] += starts[key];
    }
    let empty = Append { value: 0, writer: NONE, is_superseded: false, is_seen: false };
    let mut appends = vec![empty; starts.last().map_or(0, |end| *end as usize)];
    let mut next = starts.clone();
    for (transaction, writer) in record.transactions.iter().zip(0u32..) {
        for did in record.steps_of(transaction).iter().filter(|did| is_append(did.kind)) {
            let is_superseded = did.kind == Kind::AppendSuperseded;
            let place = &mut next[did.key as usize];
            appends[*place as usize] = Append { value: did.value, writer, is_superseded, is_seen: false };
            *place += 1;
        }
    }
    (starts, appends)
}
