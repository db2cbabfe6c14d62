//! Acknowledged appends that are not there at the end.
//!
//! Owns what the final read says beside isolation. A level without the order of time lets a read be of the past, and
//! so calls a lost append a read that came too early. The final read is none of the past: it asks for every list once
//! all clients have ended. What it does not find is lost whatever level is claimed, and a list that it does not find at
//! all is an empty one. What ended after the final read had begun is not judged.

use std::collections::BTreeMap;

use history::Outcome;

use super::record::{Kind, Record, Transaction};

/// An acknowledged append that is not there at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) key: u32,
    pub(super) value: i64,
    /// Its transaction, by place.
    pub(super) writer: u32,
}

/// Finds them, in order of their transactions. `reused` are the values that were appended more than once, in order.
pub(super) fn find(record: &Record, reused: &[(u32, i64)]) -> Vec<Lost> {
    let Some(begun_s) = record.final_reads.values().copied().reduce(f64::min) else { return Vec::new() };
    let there = there_at_the_end(record, begun_s);
    let mut lost = Vec::new();
    for (transaction, writer) in record.transactions.iter().zip(0u32..) {
        // Loads may share their lists, but each asks in the end only for those that it knows.
        let read_s = record.final_reads.get(record.sessions.load(transaction.session));
        let is_judged = transaction.outcome == Outcome::Ok
            && read_s.is_some_and(|read_s| transaction.completed_s <= *read_s);
        if !is_judged {
            continue;
        }
        for did in record.steps_of(transaction).iter().filter(|did| did.kind != Kind::Read) {
            let append = (did.key, did.value);
            if there.binary_search(&append).is_err() && reused.binary_search(&append).is_err() {
                lost.push(Lost { key: did.key, value: did.value, writer });
            }
        }
    }
    lost
}

/// The values that reads found which began at `begun_s` or later, by list, in order.
fn there_at_the_end(record: &Record, begun_s: f64) -> Vec<(u32, i64)> {
    // The longest read of each branch of each list.
    let mut longest: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    let is_of_the_end = |one: &&Transaction| one.outcome == Outcome::Ok && one.invoked_s >= begun_s;
    for transaction in record.transactions.iter().filter(is_of_the_end) {
        for did in record.steps_of(transaction).iter().filter(|did| did.kind == Kind::Read) {
            let longest = longest.entry((did.key, did.branch())).or_default();
            *longest = did.length().max(*longest);
        }
    }
    let mut there = Vec::new();
    for ((key, branch), length) in longest {
        let values = record.lists[key as usize].branch(branch);
        there.extend(values[..length].iter().map(|value| (key, *value)));
    }
    there.sort_unstable();
    there
}
