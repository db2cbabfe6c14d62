//! What is kept of a history of list-append transactions while it goes by.
//!
//! Lists only grow, so nearly every read is the beginning of the longest one seen of its key: of each read only its
//! length is kept, and of each key the longest list. A read that is not is evidence against the database, and is kept
//! as such. Whether a transaction agrees with itself is judged here, because here all it read is at hand.

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
    /// Read a beginning of the key's longest list: the value is its length.
    Read,
    /// Read something that is no beginning of it.
    OddRead,
}

/// One step, kept small: most of the memory is made of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct Did {
    pub(super) value: i64,
    pub(super) key: u32,
    pub(super) kind: Kind,
}

/// Two reads of one key of which neither is the beginning of the other. Transactions by their arrival.
#[derive(Debug)]
pub(super) struct Incompatible {
    pub(super) one: u32,
    pub(super) one_read: Vec<i64>,
    pub(super) other: u32,
    pub(super) other_read: Vec<i64>,
}

/// What is known of a list.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The longest that was read.
    pub(super) values: Vec<i64>,
    /// By whom, by arrival.
    reader: u32,
    pub(super) incompatible: Option<Incompatible>,
    latest: Latest,
}

/// What the transaction at hand last did to a list.
#[derive(Debug, Clone, Copy)]
struct Latest {
    transaction: u32,
    /// Its last step on the list, by place in the transaction.
    step: u32,
    /// The step before that, and so on, are chained through [`Recorder::before`].
    append: u32,
    /// Length of the list in its first step, if that was a read; `NONE` once told.
    first_read: u32,
}

impl Default for Latest {
    fn default() -> Self {
        Latest { transaction: NONE, step: NONE, append: NONE, first_read: NONE }
    }
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
    /// Who read a list and then appended to it: key, length read, transaction by arrival.
    pub(super) updates: Vec<(u32, u32, u32)>,
    pub(super) disagreements: Vec<Disagreement>,
    pub(super) disagreement_count: usize,
    pub(super) contradiction: Option<Contradiction>,
    pub(super) has_read_values: bool,
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
                    let length = self.read(key, values, arrival);
                    if latest.step == NONE { Latest { first_read: length, ..latest } } else { latest }
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
            self.updates.push((key, latest.first_read, arrival));
        }
        self.steps.push(Did { value, key, kind: Kind::Append });
        Latest { append: numbered(self.steps.len() - 1), first_read: NONE, ..latest }
    }

    /// Takes in what was read; gives its length, or `NONE` when it is not the beginning of what others read.
    fn read(&mut self, key: u32, values: &[i64], arrival: u32) -> u32 {
        self.has_read_values |= !values.is_empty();
        let list = &mut self.lists[key as usize];
        let shared = values.len().min(list.values.len());
        if values[..shared] == list.values[..shared] {
            if values.len() > shared {
                list.values.extend_from_slice(&values[shared..]);
                list.reader = arrival;
            }
            self.steps.push(Did { value: values.len() as i64, key, kind: Kind::Read });
            return numbered(values.len());
        }
        let (one, one_read) = (list.reader, &list.values);
        list.incompatible.get_or_insert_with(|| Incompatible {
            one,
            one_read: one_read.clone(),
            other: arrival,
            other_read: values.to_vec(),
        });
        self.steps.push(Did { value: 0, key, kind: Kind::OddRead });
        NONE
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

    /// Puts the transactions in order of their beginning; gives the place of each by its arrival.
    pub(super) fn put_in_order(&mut self) -> Vec<u32> {
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
