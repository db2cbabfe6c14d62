//! From what was kept to the order of versions: who appended which value of every list, who of those without an answer
//! has happened, and what is wrong with single reads.
//!
//! After Kingsbury and Alvaro, "Elle: inferring isolation anomalies from experimental observations" (2020): every value
//! of a list names its append, and a list tells the appends before it in order. Beyond the paper: a committed append
//! that is in no read comes after all that were read, because a version, once in a list, stays in it.
//! Transactions are named by their place in order of their beginning.

use std::collections::HashMap;
use std::ops::Range;

use history::Outcome;

use super::record::{Did, Kind, NONE, Record};
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

/// Two transactions that read the same version of a list and both appended to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostUpdate {
    pub(super) read: Did,
    pub(super) one: u32,
    pub(super) other: u32,
}

/// The versions of all lists.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// For each list, the number of its first branch among all branches; one more at the end.
    first_branches: Vec<u32>,
    /// For each branch, where its values begin in `writers`; one more at the end.
    starts: Vec<u32>,
    /// Who appended each value of each branch; `NONE` where it is not known or the append was refused.
    writers: Vec<u32>,
    /// Lists from which no order can be told.
    pub(super) is_orderless: Vec<bool>,
    /// Committed appends that are in no read, in order of the list.
    pub(super) unseen: Vec<(u32, u32)>,
    /// Whether a transaction has happened.
    pub(super) has_happened: Vec<bool>,
    /// Values that were appended to a list more than once: nothing follows from who appended them.
    pub(super) reused: Vec<(u32, i64)>,
    /// A value that stands in a list more often than it was appended; one for each list.
    pub(super) duplicated: Vec<(u32, i64)>,
    /// Values that nobody appended, read.
    pub(super) invented: Examples,
    /// G1a: values of refused transactions, read.
    pub(super) aborted: Examples,
    /// G1b: a list read between two appends of one transaction.
    pub(super) intermediate: Examples,
    /// A transaction that read what it appended itself, before it did: reader and writer are the same.
    pub(super) future: Examples,
    /// An append in a list without those that its transaction had made before it to the same list; one for each list.
    pub(super) out_of_order: Examples,
    /// A committed append on top of a refused one: the writers are of the refused one, the readers of the committed.
    pub(super) dirty_updates: Examples,
    /// Two transactions that read the same version of a list and both appended to it.
    pub(super) lost_updates: Vec<LostUpdate>,
}

/// What is known of a value of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Committed { is_superseded: bool },
    Refused,
    Nobody,
    Reused,
}

impl Versions {
    /// Infers them. `places` are those of the transactions by arrival.
    pub(super) fn of(record: &Record, places: &[u32]) -> Versions {
        let mut versions = Versions {
            has_happened: record.transactions.iter().map(|one| one.outcome == Outcome::Ok).collect(),
            is_orderless: record.lists.iter().map(|list| !list.others.is_empty()).collect(),
            ..Versions::default()
        };
        let mut appends = Appends::of(record);
        let sources = versions.find_writers(record, &mut appends);
        for key in 0..numbered(record.lists.len()) {
            for same in appends.of_list(key).chunk_by(|one, other| one.value == other.value) {
                match same {
                    [only] if !only.is_seen() && versions.has_happened[only.writer as usize] => {
                        versions.unseen.push((key, only.writer));
                    }
                    [_] => {}
                    _ => versions.reused.push((key, same[0].value)),
                }
            }
        }
        versions.unseen.sort_unstable();
        versions.unseen.dedup();
        versions.judge_lists(record, &sources);
        versions.judge_reads(record, &sources);
        versions.find_future_reads(record, &appends);
        versions.find_lost_updates(record, places);
        for (key, _) in &versions.duplicated {
            versions.is_orderless[*key as usize] = true;
        }
        versions
    }

    fn slots(&self, key: u32, branch: u32) -> Range<usize> {
        let branch = (self.first_branches[key as usize] + branch) as usize;
        self.starts[branch] as usize..self.starts[branch + 1] as usize
    }

    /// Who appended the values of a branch of a list, in order.
    pub(super) fn writers(&self, key: u32, branch: u32) -> &[u32] {
        &self.writers[self.slots(key, branch)]
    }

    /// Finds the append of every value in every list. Gives what is known of each beside `writers`.
    fn find_writers(&mut self, record: &Record, appends: &mut Appends) -> Vec<Source> {
        let mut sources = Vec::new();
        for (list, key) in record.lists.iter().zip(0u32..) {
            self.first_branches.push(numbered(self.starts.len()));
            let mut too_often = None;
            let mut out_of_order = None;
            for values in list.branches() {
                let branch = numbered(self.starts.len());
                self.starts.push(numbered(sources.len()));
                let mut own_so_far: HashMap<u32, u32> = HashMap::new();
                for (value, position) in values.iter().zip(0u32..) {
                    let same = appends.of_value_mut(key, *value);
                    if let Some(append) = same.first_mut()
                        && append.count_at(position, branch) > same.len()
                    {
                        too_often = Some(too_often.map_or(*value, |least: i64| least.min(*value)));
                    }
                    let (source, writer) = self.source_of(record, same);
                    if let ([append], Source::Committed { is_superseded }) = (&*same, source)
                        && (is_superseded || append.ordinal > 0)
                    {
                        let own = own_so_far.entry(writer).or_default();
                        if append.ordinal > *own {
                            let seen = Seen { key, value: *value, writer, reader: writer };
                            out_of_order.get_or_insert(seen);
                        }
                        *own = append.ordinal + 1;
                    }
                    self.writers.push(writer);
                    sources.push(source);
                }
            }
            out_of_order.into_iter().for_each(|seen| self.out_of_order.add(seen));
            self.duplicated.extend(too_often.map(|value| (key, value)));
        }
        self.first_branches.push(numbered(self.starts.len()));
        self.starts.push(numbered(sources.len()));
        sources
    }

    /// Where a value that somebody read comes from, by all appends of it.
    fn source_of(&mut self, record: &Record, same: &[Append]) -> (Source, u32) {
        let [append] = same else {
            return (if same.is_empty() { Source::Nobody } else { Source::Reused }, NONE);
        };
        let outcome = record.transactions[append.writer as usize].outcome;
        self.has_happened[append.writer as usize] |= outcome == Outcome::Unknown;
        let source = match outcome {
            Outcome::Fail => Source::Refused,
            _ => Source::Committed { is_superseded: append.is_superseded },
        };
        (source, append.writer)
    }

    fn judge_lists(&mut self, record: &Record, sources: &[Source]) {
        for (list, key) in record.lists.iter().zip(0u32..) {
            for (values, branch) in list.branches().zip(0u32..) {
                let slots = self.slots(key, branch);
                let (sources, start) = (&sources[slots.clone()], slots.start);
                let Some(refused) = sources.iter().position(|source| *source == Source::Refused) else {
                    continue;
                };
                let on_top =
                    sources[refused..].iter().position(|source| matches!(source, Source::Committed { .. }));
                if let Some(on_top) = on_top {
                    self.dirty_updates.add(Seen {
                        key,
                        value: values[refused],
                        writer: self.writers[start + refused],
                        reader: self.writers[start + refused + on_top],
                    });
                    break;
                }
            }
        }
    }

    fn judge_reads(&mut self, record: &Record, sources: &[Source]) {
        let first = |wanted: Source| -> Vec<usize> {
            let place = |branch: &[u32]| {
                let sources = &sources[branch[0] as usize..branch[1] as usize];
                sources.iter().position(|source| *source == wanted).unwrap_or(usize::MAX)
            };
            self.starts.windows(2).map(place).collect()
        };
        let (refused, invented) = (first(Source::Refused), first(Source::Nobody));
        for (transaction, reader) in record.transactions.iter().zip(0u32..) {
            for did in record.steps_of(transaction).iter().filter(|did| did.kind == Kind::Read) {
                let length = did.length();
                let Some(last) = length.checked_sub(1) else { continue };
                let start = self.slots(did.key, did.branch()).start;
                let values = record.lists[did.key as usize].branch(did.branch());
                let seen = |at: usize| Seen {
                    key: did.key,
                    value: values[at],
                    writer: self.writers[start + at],
                    reader,
                };
                let branch = (self.first_branches[did.key as usize] + did.branch()) as usize;
                if refused[branch] < length {
                    let seen = seen(refused[branch]);
                    self.aborted.add(seen);
                }
                if invented[branch] < length {
                    let seen = seen(invented[branch]);
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

    /// Transactions that read what they appended themselves, before they did.
    fn find_future_reads(&mut self, record: &Record, appends: &Appends) {
        // The longest read of each branch by the transaction at hand.
        let mut longest: HashMap<(u32, u32), usize> = HashMap::new();
        for (transaction, reader) in record.transactions.iter().zip(0u32..) {
            longest.clear();
            for did in record.steps_of(transaction) {
                let list = &record.lists[did.key as usize];
                if did.kind == Kind::Read {
                    let longest = longest.entry((did.key, did.branch())).or_default();
                    *longest = did.length().max(*longest);
                } else if !longest.is_empty()
                    && let [append] = appends.of_value(did.key, did.value)
                {
                    let was_read = match (list.others.len(), longest.get(&(did.key, 0))) {
                        (0, longest) => longest.is_some_and(|longest| append.is_before(*longest)),
                        (others, _) => (0..=numbered(others)).any(|branch| {
                            let longest = longest.get(&(did.key, branch)).copied().unwrap_or(0);
                            list.branch(branch)[..longest].contains(&did.value)
                        }),
                    };
                    if was_read {
                        self.future.add(Seen { key: did.key, value: did.value, writer: reader, reader });
                    }
                }
            }
        }
    }

    fn find_lost_updates(&mut self, record: &Record, places: &[u32]) {
        let mut updates: Vec<(u32, u32, usize, u32, Did)> = record
            .updates
            .iter()
            .map(|(read, arrival)| (record.steps[*read as usize], places[*arrival as usize]))
            .filter(|(_, place)| record.transactions[*place as usize].outcome == Outcome::Ok)
            .map(|(read, place)| (read.key, read.branch(), read.length(), place, read))
            .collect();
        updates.sort_unstable_by_key(|(key, branch, length, place, _)| (*key, *branch, *length, *place));
        for pair in updates.windows(2) {
            let ((key, branch, length, one, read), (other_key, other_branch, other_length, other, _)) =
                (pair[0], pair[1]);
            if (key, branch, length) == (other_key, other_branch, other_length) && one != other {
                self.lost_updates.push(LostUpdate { read, one, other });
            }
        }
    }
}

/// An append, as found by its list and value.
#[derive(Debug, Clone, Copy)]
struct Append {
    value: i64,
    writer: u32,
    is_superseded: bool,
    /// Its place in its transaction.
    step: u32,
    /// How many values its transaction appended before it to the same list, those used twice left out.
    ordinal: u32,
    /// The branch in which the value was found last, among all branches; `NONE` where it is in none.
    branch: u32,
    /// Its last place in that branch.
    position: u32,
    /// How often it is in that branch.
    count: u32,
}

impl Append {
    fn is_seen(&self) -> bool {
        self.branch != NONE
    }

    /// Takes in that the value was found; gives how often it is in that branch by now.
    fn count_at(&mut self, position: u32, branch: u32) -> usize {
        self.count = if self.branch == branch { self.count + 1 } else { 1 };
        (self.position, self.branch) = (position, branch);
        self.count as usize
    }

    /// Whether it is among the first `length` values of the last branch.
    fn is_before(&self, length: usize) -> bool {
        self.is_seen() && (self.position as usize) < length
    }
}

/// Tells each append of one list how many its transaction had made before it.
fn count_own(of_list: &mut [Append]) {
    let mut in_order: Vec<(u32, u32, usize)> = Vec::new();
    let mut at = 0;
    for same in of_list.chunk_by(|one, other| one.value == other.value) {
        in_order.extend((same.len() == 1).then(|| (same[0].writer, same[0].step, at)));
        at += same.len();
    }
    in_order.sort_unstable();
    for of_writer in in_order.chunk_by(|one, other| one.0 == other.0) {
        for ((_, _, at), ordinal) in of_writer.iter().zip(0u32..) {
            of_list[*at].ordinal = ordinal;
        }
    }
}

/// All appends, list by list in order of their values.
struct Appends {
    starts: Vec<u32>,
    appends: Vec<Append>,
}

impl Appends {
    fn of(record: &Record) -> Appends {
        let is_append = |kind: Kind| matches!(kind, Kind::Append | Kind::AppendSuperseded);
        let mut starts = vec![0u32; record.lists.len() + 1];
        for did in record.steps.iter().filter(|did| is_append(did.kind)) {
            starts[did.key as usize + 1] += 1;
        }
        for key in 0..record.lists.len() {
            starts[key + 1] += starts[key];
        }
        let empty = Append {
            value: 0,
            writer: NONE,
            is_superseded: false,
            step: NONE,
            ordinal: 0,
            branch: NONE,
            position: NONE,
            count: 0,
        };
        let mut appends = vec![empty; starts.last().map_or(0, |end| *end as usize)];
        let mut next = starts.clone();
        for (transaction, writer) in record.transactions.iter().zip(0u32..) {
            for (did, step) in
                record.steps_of(transaction).iter().zip(0u32..).filter(|(did, _)| is_append(did.kind))
            {
                let is_superseded = did.kind == Kind::AppendSuperseded;
                let place = &mut next[did.key as usize];
                appends[*place as usize] = Append { value: did.value, writer, is_superseded, step, ..empty };
                *place += 1;
            }
        }
        for key in 0..record.lists.len() {
            let of_list = &mut appends[starts[key] as usize..starts[key + 1] as usize];
            of_list.sort_unstable_by_key(|append| (append.value, append.writer));
            if of_list.iter().any(|append| append.is_superseded) {
                count_own(of_list);
            }
        }
        Appends { starts, appends }
    }

    fn range(&self, key: u32) -> Range<usize> {
        self.starts[key as usize] as usize..self.starts[key as usize + 1] as usize
    }

    fn of_list(&self, key: u32) -> &[Append] {
        &self.appends[self.range(key)]
    }

    fn range_of_value(&self, key: u32, value: i64) -> Range<usize> {
        let (start, of_list) = (self.range(key).start, self.of_list(key));
        let first = of_list.partition_point(|append| append.value < value);
        let count = of_list[first..].partition_point(|append| append.value == value);
        start + first..start + first + count
    }

    fn of_value(&self, key: u32, value: i64) -> &[Append] {
        &self.appends[self.range_of_value(key, value)]
    }

    fn of_value_mut(&mut self, key: u32, value: i64) -> &mut [Append] {
        let range = self.range_of_value(key, value);
        &mut self.appends[range]
    }
}
