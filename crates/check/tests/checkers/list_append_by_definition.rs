//! What each isolation level allows of a small history of list-append transactions, by its definition: every order is
//! tried. Knows nothing of graphs, and nothing of how the check comes to its verdict.
//!
//! A list is the appends of the transactions that happened, in the order in which these come; an unanswered transaction
//! has happened or not, a refused one has not. An order keeps to a client's own order, or to that of time, where the
//! level demands it. Then:
//! - serializable: every read finds the lists as the transactions before it and its own steps left them;
//! - snapshot isolation: every read finds the lists as they were at the start of its transaction, with its own steps; of
//!   two transactions that write the same list, one starts after the other has committed;
//! - read committed: every read finds the beginning of a list as it is in the end, up to the last append of a transaction
//!   that comes before, or to an own append that was made before;
//! - read uncommitted: the same up to any append, and refused ones may stand anywhere in between. Where reads disagree
//!   about the order of appends, nothing is said.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use check::list_append::{Isolation, Level, Order};
use history::{Action, Key, Operation, Outcome, Step};

pub type Lists = BTreeMap<Key, Vec<i64>>;

/// What a level says of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    Allowed,
    Forbidden,
    /// The level's definition does not tell.
    Undefined,
}

/// Of every level, in the order of [`Level::all`].
pub fn truths(operations: &[Operation]) -> Vec<Truth> {
    Level::all().map(|level| truth(operations, level)).collect()
}

/// Whether a level allows a history.
pub fn truth(operations: &[Operation], level: Level) -> Truth {
    let happened: Vec<&Operation> = operations.iter().filter(|one| one.outcome != Outcome::Fail).collect();
    let refused: Vec<&Operation> = operations.iter().filter(|one| one.outcome == Outcome::Fail).collect();
    let is_allowed = match level.isolation {
        Isolation::Serializable => is_serializable(&happened, level.order),
        Isolation::Snapshot => is_snapshot_isolated(&happened, level.order),
        Isolation::ReadCommitted => {
            some_order(&happened, level.order, &|order| is_read_committed(&happened, order))
        }
        Isolation::ReadUncommitted => match longest_reads(&happened) {
            None => return Truth::Undefined,
            Some(longest) => some_order(&happened, level.order, &|order| {
                is_read_uncommitted(&happened, &refused, order, &longest)
            }),
        },
    };
    if is_allowed { Truth::Allowed } else { Truth::Forbidden }
}

pub fn steps(operation: &Operation) -> &[Step] {
    match &operation.action {
        Action::AppendTransaction { steps } => steps,
        _ => &[],
    }
}

/// What the acknowledged transactions read: the transaction, the step, the list and what was found.
fn reads<'o>(operations: &'o [&Operation]) -> impl Iterator<Item = (usize, usize, &'o Key, &'o [i64])> {
    let acknowledged = operations.iter().enumerate().filter(|(_, one)| one.outcome == Outcome::Ok);
    acknowledged.flat_map(|(at, operation)| {
        steps(operation).iter().enumerate().filter_map(move |(step, did)| match did {
            Step::Read { key, values } => Some((at, step, key, values.as_deref().unwrap_or_default())),
            Step::Append { .. } => None,
        })
    })
}

/// Whether one must come before the other in any order that keeps to `order`.
fn precedes(one: &Operation, other: &Operation, order: Order) -> bool {
    let ended_before = one.outcome == Outcome::Ok && one.completed_s < other.invoked_s;
    match order {
        Order::Any => false,
        Order::Session => ended_before && one.client == other.client,
        Order::RealTime => ended_before,
    }
}

/// Whether some order of all acknowledged and some unanswered transactions fits.
fn some_order(operations: &[&Operation], order: Order, fits: &dyn Fn(&[usize]) -> bool) -> bool {
    fn try_all(
        operations: &[&Operation],
        order: Order,
        so_far: &mut Vec<usize>,
        fits: &dyn Fn(&[usize]) -> bool,
    ) -> bool {
        let left: Vec<usize> = (0..operations.len()).filter(|at| !so_far.contains(at)).collect();
        let is_whole = left.iter().all(|at| operations[*at].outcome == Outcome::Unknown);
        if is_whole && fits(so_far) {
            return true;
        }
        left.iter().any(|at| {
            let must_wait = left.iter().any(|other| precedes(operations[*other], operations[*at], order));
            if must_wait {
                return false;
            }
            so_far.push(*at);
            let found = try_all(operations, order, so_far, fits);
            so_far.pop();
            found
        })
    }
    try_all(operations, order, &mut Vec::new(), fits)
}

/// The appends to a list in an order of transactions: value, transaction, step.
fn appends(operations: &[&Operation], order: &[usize], wanted: &Key) -> Vec<(i64, usize, usize)> {
    let of = |at: &usize| {
        let at = *at;
        steps(operations[at]).iter().enumerate().filter_map(move |(step, did)| match did {
            Step::Append { key, value } if key == wanted => Some((*value, at, step)),
            _ => None,
        })
    };
    order.iter().flat_map(of).collect()
}

fn is_read_committed(operations: &[&Operation], order: &[usize]) -> bool {
    let place = |at: usize| order.iter().position(|other| *other == at);
    reads(operations).all(|(reader, read_at, key, found)| {
        let list = appends(operations, order, key);
        let values: Vec<i64> = list.iter().map(|(value, ..)| *value).collect();
        let Some(last) = found.len().checked_sub(1) else { return true };
        if !values.starts_with(found) {
            return false;
        }
        let (_, writer, appended_at) = list[last];
        let is_last_of_its_writer = list.get(last + 1).is_none_or(|(_, next, _)| *next != writer);
        if writer == reader {
            appended_at < read_at
        } else {
            is_last_of_its_writer && place(writer) < place(reader)
        }
    })
}

/// The longest read of each list; `None` where reads disagree.
fn longest_reads(operations: &[&Operation]) -> Option<Lists> {
    let mut longest = Lists::new();
    for (_, _, key, found) in reads(operations) {
        let longest = longest.entry(key.clone()).or_default();
        let shared = longest.len().min(found.len());
        if longest[..shared] != found[..shared] {
            return None;
        }
        longest.extend_from_slice(&found[shared..]);
    }
    Some(longest)
}

fn is_read_uncommitted(
    operations: &[&Operation],
    refused: &[&Operation],
    order: &[usize],
    longest: &Lists,
) -> bool {
    /// Whether `found` begins with some of `refused`, each once, mixed into `committed`.
    fn is_mixed(found: &[i64], committed: &[i64], refused: &mut Vec<i64>) -> bool {
        let Some((value, rest)) = found.split_first() else { return true };
        if committed.first() == Some(value) && is_mixed(rest, &committed[1..], refused) {
            return true;
        }
        let Some(at) = refused.iter().position(|other| other == value) else { return false };
        let value = refused.swap_remove(at);
        let fits = is_mixed(rest, committed, refused);
        refused.push(value);
        fits
    }
    let every: Vec<usize> = (0..refused.len()).collect();
    longest.iter().all(|(key, found)| {
        let values = |list: Vec<(i64, usize, usize)>| -> Vec<i64> {
            list.into_iter().map(|(value, ..)| value).collect()
        };
        let committed = values(appends(operations, order, key));
        is_mixed(found, &committed, &mut values(appends(refused, &every, key)))
    })
}

/// Carries a transaction out on the lists as they are; `None` if it read something else than it would have.
fn carried_out(operation: &Operation, lists: &Lists) -> Option<Lists> {
    let mut lists = lists.clone();
    for step in steps(operation) {
        match step {
            Step::Append { key, value } => lists.entry(key.clone()).or_default().push(*value),
            Step::Read { key, values } => {
                let found = lists.get(key).map_or(&[][..], Vec::as_slice);
                if operation.outcome == Outcome::Ok && values.as_deref().unwrap_or_default() != found {
                    return None;
                }
            }
        }
    }
    Some(lists)
}

/// Whether some order of all acknowledged and some unanswered transactions explains all reads.
fn is_serializable(operations: &[&Operation], order: Order) -> bool {
    fn try_all(operations: &[&Operation], order: Order, done: u32, lists: &Lists) -> bool {
        let is_done = |at: usize| done >> at & 1 == 1;
        if (0..operations.len()).all(|at| is_done(at) || operations[at].outcome == Outcome::Unknown) {
            return true;
        }
        (0..operations.len()).filter(|at| !is_done(*at)).any(|at| {
            let must_wait = (0..operations.len())
                .any(|other| !is_done(other) && precedes(operations[other], operations[at], order));
            !must_wait
                && carried_out(operations[at], lists)
                    .is_some_and(|lists| try_all(operations, order, done | 1 << at, &lists))
        })
    }
    try_all(operations, order, 0, &Lists::new())
}

/// What a transaction under way started from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Started {
    snapshot: Lists,
    /// Committed by others since.
    written_since: Vec<Key>,
}

/// Who has committed, who is under way, and how the lists are.
type State = (u32, BTreeMap<usize, Started>, Lists);

fn written(operation: &Operation) -> Vec<Key> {
    let appended = steps(operation).iter().filter(|step| matches!(step, Step::Append { .. }));
    appended.map(|step| step.key().clone()).collect()
}

/// Whether some order of starts and commits explains all reads, every transaction reading the state at its start, and no
/// two of which one started before the other's commit and committed after it writing to the same list.
fn is_snapshot_isolated(operations: &[&Operation], order: Order) -> bool {
    struct Try<'t> {
        operations: &'t [&'t Operation],
        order: Order,
        failed: RefCell<BTreeSet<State>>,
    }
    impl Try<'_> {
        fn all(&self, committed: u32, started: &BTreeMap<usize, Started>, lists: &Lists) -> bool {
            let is_done = |at: usize| committed >> at & 1 == 1;
            let all = 0..self.operations.len();
            let is_over = |at: usize| {
                is_done(at) || (self.operations[at].outcome == Outcome::Unknown && !started.contains_key(&at))
            };
            if all.clone().all(is_over) {
                return true;
            }
            let here = (committed, started.clone(), lists.clone());
            if self.failed.borrow().contains(&here) {
                return false;
            }
            let may_start = |at: usize| {
                let precedes = |other| precedes(self.operations[other], self.operations[at], self.order);
                !is_done(at)
                    && !started.contains_key(&at)
                    && !all.clone().any(|other| !is_done(other) && precedes(other))
            };
            let starts = all.clone().filter(|at| may_start(*at)).any(|at| {
                let mut started = started.clone();
                let fresh = Started { snapshot: lists.clone(), written_since: Vec::new() };
                carried_out(self.operations[at], lists).is_some() && {
                    started.insert(at, fresh);
                    self.all(committed, &started, lists)
                }
            });
            let found = starts || started.keys().any(|at| self.commits(*at, committed, started, lists));
            if !found {
                self.failed.borrow_mut().insert(here);
            }
            found
        }

        fn commits(
            &self,
            at: usize,
            committed: u32,
            started: &BTreeMap<usize, Started>,
            lists: &Lists,
        ) -> bool {
            let own = &started[&at];
            let keys = written(self.operations[at]);
            if keys.iter().any(|key| own.written_since.contains(key)) {
                return false;
            }
            let Some(after) = carried_out(self.operations[at], &own.snapshot) else { return false };
            let mut lists = lists.clone();
            for key in &keys {
                lists.insert(key.clone(), after[key].clone());
            }
            let mut started = started.clone();
            started.remove(&at);
            for other in started.values_mut() {
                other.written_since.extend(keys.iter().cloned());
            }
            self.all(committed | 1 << at, &started, &lists)
        }
    }
    Try { operations, order, failed: RefCell::default() }.all(0, &BTreeMap::new(), &Lists::new())
}
