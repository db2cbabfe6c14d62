//! What is kept of a history of list-append transactions while it goes by.
//!
//! Lists only grow, so nearly every read is the beginning of the longest one seen of its key: of each read only its
//! length is kept, and of each key the longest list. Reads that disagree are evidence against the database: then the
//! longest of each branch is kept, and every read says of which branch it is a beginning. Whether a transaction agrees
//! with itself is judged here, because here all it read is at hand.

use std::collections::{BTreeMap, HashMap};

use history::{Operation, Outcome, Step};

use crate::names::{Keys, Sessions, numbered};
use crate::soundness::{Contradiction, check_times};

/// No step, no transaction.
pub(super) const NONE: u32 = u32::MAX;
/// How many examples are kept of what is told by examples.
const EXAMPLES_MAX: usize = 5;

/// One transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transaction {
    pub(super) invoked_s: f64,
    /// Infinite without a definite answer.
    pub(super) completed_s: f64,
    pub(super) session: u32,
    /// Its place in the order the history came in.
    pub(super) arrival: u32,
    first_step: u32,
    steps: u32,
    pub(super) outcome: Outcome,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Appended the value.
    Append,
    /// The same, and the transaction then appended to the same list again.
    AppendSuperseded,
    /// Read a beginning of one of the key's branches: see [`Did::length`] and [`Did::branch`].
    Read,
}

/// One step, kept small: most of the memory is made of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Did {
    pub(super) value: i64,
    pub(super) key: u32,
    pub(super) kind: Kind,
}

impl Did {
    fn read(key: u32, branch: u32, length: usize) -> Did {
        let value = i64::from(branch) << 32 | i64::from(numbered(length));
        Did { value, key, kind: Kind::Read }
    }

    /// Of a read: how many values it found.
    pub(super) fn length(&self) -> usize {
        (self.value & 0xFFFF_FFFF) as usize
    }

    /// Of a read: the branch of its list that it is a beginning of; the first of several.
    pub(super) fn branch(&self) -> u32 {
        (self.value >> 32) as u32
    }
}

/// What is known of a list.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The longest that was read.
    pub(super) values: Vec<i64>,
    /// Where reads disagree: the longest of every other branch. None is a beginning of another one. In order of their
    /// values, `values` first, once all is taken in.
    pub(super) others: Vec<Vec<i64>>,
    /// The places of `others` in order of their values.
    order: Vec<u32>,
    latest: Latest,
}

impl List {
    /// A branch: number 0 is `values`.
    pub(super) fn branch(&self, branch: u32) -> &[i64] {
        match branch.checked_sub(1) {
            None => &self.values,
            Some(other) => &self.others[other as usize],
        }
    }

    /// All branches, by number.
    pub(super) fn branches(&self) -> impl Iterator<Item = &[i64]> {
        std::iter::once(self.values.as_slice()).chain(self.others.iter().map(Vec::as_slice))
    }

    /// Takes in what was read; gives the number of its branch.
    fn take_in(&mut self, found: &[i64]) -> u32 {
        if extends(&mut self.values, found) {
            return 0;
        }
        // No branch begins another, so only the neighbours in the order of values can begin this one, or it them.
        let after = self.order.partition_point(|other| self.others[*other as usize].as_slice() < found);
        for neighbour in [Some(after), after.checked_sub(1)].into_iter().flatten() {
            if let Some(other) = self.order.get(neighbour)
                && extends(&mut self.others[*other as usize], found)
            {
                return other + 1;
            }
        }
        self.order.insert(after, numbered(self.others.len()));
        self.others.push(found.to_vec());
        numbered(self.others.len())
    }

    /// Puts the branches in order of their values; gives the new number of each.
    fn put_in_order(&mut self) -> Vec<u32> {
        let mut branches: Vec<(Vec<i64>, u32)> =
            std::iter::once(&mut self.values).chain(&mut self.others).map(std::mem::take).zip(0..).collect();
        branches.sort_unstable();
        let mut numbers = vec![0; branches.len()];
        for ((_, before), now) in branches.iter().zip(0u32..) {
            numbers[*before as usize] = now;
        }
        let mut branches = branches.into_iter().map(|(branch, _)| branch);
        self.values = branches.next().unwrap_or_default();
        self.others = branches.collect();
        numbers
    }

    /// The first branch that begins with the first `length` values of `branch`, once the branches are in order.
    fn first_with(&self, branch: u32, length: usize) -> u32 {
        let beginning = &self.branch(branch)[..length];
        match self.values.as_slice() >= beginning {
            true => 0,
            false => numbered(self.others.partition_point(|other| other.as_slice() < beginning)) + 1,
        }
    }
}

/// What the transaction at hand last did to a list.
#[derive(Debug, Clone, Copy)]
struct Latest {
    transaction: u32,
    /// Its last step on the list, by place in the transaction.
    step: u32,
    /// The step before that, and so on, are chained through [`Recorder::before`].
    append: u32,
    /// Its first step on the list, by place among all steps, if that was a read; `NONE` once told.
    first_read: u32,
}

impl Default for Latest {
    fn default() -> Self {
        Latest { transaction: NONE, step: NONE, append: NONE, first_read: NONE }
    }
}

/// Whether one of them is the beginning of the other; then the branch becomes the longer one.
fn extends(branch: &mut Vec<i64>, found: &[i64]) -> bool {
    let shared = found.len().min(branch.len());
    let agrees = found[..shared] == branch[..shared];
    if agrees {
        branch.extend_from_slice(&found[shared..]);
    }
    agrees
}

/// A transaction that does not agree with itself.
#[derive(Debug)]
pub(super) struct Disagreement {
    pub(super) transaction: u32,
    pub(super) key: u32,
    /// What it must have read by what it did before; only the end of it where it had not read before.
    pub(super) expected: Vec<i64>,
    pub(super) is_end_only: bool,
    pub(super) found: Vec<i64>,
}

/// What is kept.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) transactions: Vec<Transaction>,
    pub(super) steps: Vec<Did>,
    pub(super) lists: Vec<List>,
    pub(super) keys: Keys,
    pub(super) sessions: Sessions,
    /// Who read a list and then appended to it: the read by its place among all steps, the transaction by arrival.
    pub(super) updates: Vec<(u32, u32)>,
    pub(super) disagreements: Vec<Disagreement>,
    pub(super) disagreement_count: usize,
    pub(super) contradiction: Option<Contradiction>,
    pub(super) has_read_values: bool,
    /// When the final read of each load began that was made, seconds.
    pub(super) final_reads: BTreeMap<String, f64>,
    /// For each step of the transaction at hand, the one before it on the same list.
    before: Vec<u32>,
}

impl Record {
    /// Takes in a transaction.
    pub(super) fn observe(&mut self, operation: &Operation, steps: &[Step]) {
        if let Err(contradiction) = check_times(operation) {
            self.contradiction.get_or_insert(contradiction);
            return;
        }
        let arrival = numbered(self.transactions.len());
        let first_step = numbered(self.steps.len());
        self.before.clear();
        for (step, at) in steps.iter().zip(0u32..) {
            let key = self.keys.number_of(step.key());
            if key as usize == self.lists.len() {
                self.lists.push(List::default());
            }
            let latest = self.lists[key as usize].latest;
            let latest = if latest.transaction == arrival {
                latest
            } else {
                Latest { transaction: arrival, ..Latest::default() }
            };
            self.before.push(latest.step);
            let latest = match step {
                Step::Append { value, .. } => self.append(latest, key, *value, arrival),
                // What a transaction read that was not acknowledged, nobody was told.
                Step::Read { .. } if operation.outcome != Outcome::Ok => latest,
                Step::Read { values, .. } => {
                    let values = values.as_deref().unwrap_or_default();
                    self.check_agreement(steps, at, key, values, arrival);
                    let first_read = numbered(self.steps.len());
                    self.has_read_values |= !values.is_empty();
                    let branch = self.lists[key as usize].take_in(values);
                    self.steps.push(Did::read(key, branch, values.len()));
                    if latest.step == NONE { Latest { first_read, ..latest } } else { latest }
                }
            };
            self.lists[key as usize].latest = Latest { step: at, ..latest };
        }
        self.transactions.push(Transaction {
            invoked_s: operation.invoked_s,
            completed_s: match operation.outcome {
                Outcome::Unknown => f64::INFINITY,
                _ => operation.completed_s,
            },
            session: self.sessions.number_of(operation),
            arrival,
            first_step,
            steps: numbered(self.steps.len()) - first_step,
            outcome: operation.outcome,
        });
    }

    fn append(&mut self, latest: Latest, key: u32, value: i64, arrival: u32) -> Latest {
        if let Some(superseded) = self.steps.get_mut(latest.append as usize) {
            superseded.kind = Kind::AppendSuperseded;
        }
        if latest.first_read != NONE {
            self.updates.push((latest.first_read, arrival));
        }
        self.steps.push(Did { value, key, kind: Kind::Append });
        Latest { append: numbered(self.steps.len() - 1), first_read: NONE, ..latest }
    }

    /// Whether what was read is what the transaction had read before, with what it appended since.
    fn check_agreement(&mut self, steps: &[Step], at: u32, key: u32, found: &[i64], arrival: u32) {
        let mut appended = Vec::new();
        let mut base = None;
        let mut before = self.before[at as usize];
        while let Some(step) = steps.get(before as usize) {
            match step {
                Step::Append { value, .. } => appended.push(*value),
                Step::Read { values, .. } => {
                    base = Some(values.as_deref().unwrap_or_default());
                    break;
                }
            }
            before = self.before[before as usize];
        }
        appended.reverse();
        let agrees = match base {
            None => found.ends_with(&appended),
            Some(base) => found.strip_prefix(base).is_some_and(|rest| rest == appended),
        };
        if agrees {
            return;
        }
        self.disagreement_count += 1;
        if self.disagreements.len() < EXAMPLES_MAX {
            let expected = [base.unwrap_or_default(), &appended].concat();
            self.disagreements.push(Disagreement {
                transaction: arrival,
                key,
                expected,
                is_end_only: base.is_none(),
                found: found.to_vec(),
            });
        }
    }

    /// The steps of a transaction.
    pub(super) fn steps_of(&self, transaction: &Transaction) -> &[Did] {
        let first = transaction.first_step as usize;
        &self.steps[first..first + transaction.steps as usize]
    }

    /// Lists about whose values reads disagree, in order of their keys.
    pub(super) fn incompatible(&self) -> Vec<u32> {
        let lists = self.lists.iter().zip(0u32..).filter(|(list, _)| !list.others.is_empty());
        let mut keys: Vec<u32> = lists.map(|(_, key)| key).collect();
        keys.sort_by(|one, other| self.keys.key(*one).cmp(self.keys.key(*other)));
        keys
    }

    /// Numbers the branches of lists in order of their values, and every read by the first branch that it begins, so
    /// that nothing depends on the order in which reads came in.
    fn put_branches_in_order(&mut self) {
        let mut numbers: HashMap<u32, Vec<u32>> = HashMap::new();
        for (list, key) in self.lists.iter_mut().zip(0u32..).filter(|(list, _)| !list.others.is_empty()) {
            numbers.insert(key, list.put_in_order());
        }
        if numbers.is_empty() {
            return;
        }
        for did in self.steps.iter_mut().filter(|did| did.kind == Kind::Read) {
            if let Some(numbers) = numbers.get(&did.key) {
                let list = &self.lists[did.key as usize];
                let branch = list.first_with(numbers[did.branch() as usize], did.length());
                *did = Did::read(did.key, branch, did.length());
            }
        }
    }

    /// Puts the transactions in order of their beginning; gives the place of each by its arrival.
    pub(super) fn put_in_order(&mut self) -> Vec<u32> {
        self.put_branches_in_order();
        let ranks = self.sessions.ranks();
        self.transactions.sort_by(|one, other| {
            (one.invoked_s.total_cmp(&other.invoked_s))
                .then(one.completed_s.total_cmp(&other.completed_s))
                .then(ranks[one.session as usize].cmp(&ranks[other.session as usize]))
        });
        let mut places = vec![0; self.transactions.len()];
        for (transaction, place) in self.transactions.iter().zip(0u32..) {
            places[transaction.arrival as usize] = place;
        }
        places
    }
}
