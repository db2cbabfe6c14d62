//! Appends that are not there at the end although they happened.
//!
//! Owns what the final read says beside isolation. A level without the order of time lets a read be of the past, and
//! so calls a lost append a read that came too early. The final read is none of the past: it asks for every list once
//! all clients have ended. What it does not find is lost whatever level is claimed, and a list that it does not find at
//! all is an empty one. What ended after the final read had begun is not judged.
//!
//! A transaction without an answer of which something was read has happened, where reads are of what was committed. Then all of it
//! has, and it stays: what is gone of it was taken back or never done.

use std::collections::BTreeMap;

use history::Outcome;

use super::level::{Isolation, Level};
use super::record::{Kind, Record, Transaction};

/// An append that happened and is not there at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) key: u32,
    pub(super) value: i64,
    /// Its transaction, by place.
    pub(super) writer: u32,
    /// Whether that was acknowledged; else reads show that it happened.
    pub(super) is_acknowledged: bool,
}

/// Finds them, in order of their transactions. `reused` are the values that were appended more than once, in order.
pub(super) fn find(record: &Record, reused: &[(u32, i64)], claimed: Level) -> Vec<Lost> {
    let Some(begun_s) = record.final_reads.values().copied().reduce(f64::min) else { return Vec::new() };
    let there = read_by(record, |one| one.invoked_s >= begun_s);
    let shown = (claimed.isolation >= Isolation::ReadCommitted).then(|| Shown::by(record, begun_s));
    let is_ambiguous = |append: &(u32, i64)| reused.binary_search(append).is_ok();
    let mut lost = Vec::new();
    for (transaction, writer) in record.transactions.iter().zip(0u32..) {
        // Loads may share their lists, but each asks in the end only for those that it knows.
        let load = record.sessions.load(transaction.session);
        let Some(read_s) = record.final_reads.get(load) else { continue };
        let appends = || {
            let steps = record.steps_of(transaction).iter().filter(|did| did.kind != Kind::Read);
            steps.map(|did| (did.key, did.value)).filter(|append| !is_ambiguous(append))
        };
        let is_judged = match transaction.outcome {
            Outcome::Ok => transaction.completed_s <= *read_s,
            Outcome::Unknown => {
                shown.as_ref().is_some_and(|shown| appends().any(|append| shown.is_in(load, append)))
            }
            Outcome::Fail => false,
        };
        if is_judged {
            let is_acknowledged = transaction.outcome == Outcome::Ok;
            let gone = appends().filter(|append| there.binary_search(append).is_err());
            lost.extend(gone.map(|(key, value)| Lost { key, value, writer, is_acknowledged }));
        }
    }
    lost
}

/// What reads have shown to be committed.
struct Shown<'r> {
    /// Before any final read began.
    before: Vec<(u32, i64)>,
    /// In the final read of each load, which reads all lists that one transaction appends to at one moment. That of another load may
    /// be later, and find what came in between.
    at_the_end: BTreeMap<&'r str, Vec<(u32, i64)>>,
}

impl<'r> Shown<'r> {
    fn by(record: &'r Record, begun_s: f64) -> Shown<'r> {
        let of_load = |(load, read_s): (&'r String, &f64)| {
            let is_of_it = |one: &Transaction| {
                one.invoked_s >= *read_s && record.sessions.load(one.session) == load.as_str()
            };
            (load.as_str(), read_by(record, is_of_it))
        };
        Shown {
            before: read_by(record, |one| one.completed_s <= begun_s),
            at_the_end: record.final_reads.iter().map(of_load).collect(),
        }
    }

    fn is_in(&self, load: &str, append: (u32, i64)) -> bool {
        let end = self.at_the_end.get(load);
        self.before.binary_search(&append).is_ok()
            || end.is_some_and(|end| end.binary_search(&append).is_ok())
    }
}

/// The values that acknowledged reads of these transactions found, by list, in order.
fn read_by(record: &Record, is_meant: impl Fn(&Transaction) -> bool) -> Vec<(u32, i64)> {
    // The longest read of each branch of each list.
    let mut longest: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let is_one = |one: &&Transaction| one.outcome == Outcome::Ok && is_meant(one);
    for transaction in record.transactions.iter().filter(is_one) {
        for did in record.steps_of(transaction).iter().filter(|did| did.kind == Kind::Read) {
            let longest = longest.entry((did.key, did.branch())).or_default();
            *longest = did.length().max(*longest);
        }
    }
    let mut read = Vec::new();
    for ((key, branch), length) in longest {
        let values = record.lists[key as usize].branch(branch);
        read.extend(values[..length].iter().map(|value| (key, *value)));
    }
    read.sort_unstable();
    read
}
