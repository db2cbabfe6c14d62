//! Several records of one load made one: batch by batch, second by second, as one process would have recorded it.
//!
//! Histograms are added count for count, so that percentiles are those of all operations; operations stand in the order of
//! their end. What no part can know by itself is put together here: how long nobody succeeded, and who was the first to
//! succeed after a fault. Pure.

use std::collections::{BTreeMap, BTreeSet};

use history::{ErrorClass, ErrorCounts, FaultId, FirstError, Operation};
use load::{Batch, FirstSuccess, OpenLoop};
use measure::combined::{Part, combined};
use measure::{Interval, OperationInterval, Wait};

/// What came from one part.
#[derive(Default)]
struct Record {
    /// Seconds that are not handed on yet.
    batches: BTreeMap<u64, Batch>,
    /// Where its record ends, whole seconds.
    until_s: u64,
    is_over: bool,
    waits: Part,
    marked: BTreeSet<FaultId>,
    first: BTreeMap<FaultId, FirstSuccess>,
}

/// Puts the records of a load's parts together.
pub struct Merger {
    load: String,
    parts: Vec<Record>,
    /// The next second to be handed on.
    next: u64,
    /// Faults marked whose first success is not known.
    unanswered: BTreeSet<FaultId>,
    known_errors: BTreeSet<ErrorClass>,
}

impl Merger {
    /// Nothing recorded yet, of a load in so many parts.
    #[must_use]
    pub fn new(load: &str, parts: usize) -> Merger {
        Merger {
            load: load.to_owned(),
            parts: (0..parts).map(|_| Record::default()).collect(),
            next: 0,
            unanswered: BTreeSet::new(),
            known_errors: BTreeSet::new(),
        }
    }

    /// A fault is marked: its first success is asked of all parts.
    pub fn mark(&mut self, fault: FaultId) {
        self.unanswered.insert(fault);
    }

    /// Takes in a second of a part.
    pub fn take(&mut self, part: usize, mut batch: Batch) {
        let Some(record) = self.parts.get_mut(part).filter(|record| !record.is_over) else { return };
        record.until_s = record.until_s.max(batch.interval.second + 1);
        record.waits.waits.append(&mut batch.waits);
        record.waits.quiet.append(&mut batch.quiet);
        record.marked.extend(batch.marked.drain(..));
        record.first.extend(batch.first_success.drain(..).map(|first| (first.fault, first)));
        record.batches.insert(batch.interval.second, batch);
    }

    /// Nothing more comes from a part. Nobody knows when the last success of a lost one was: it counts as silent from the last
    /// second that it told of on, so that no interruption is told too short.
    pub fn end(&mut self, part: usize, is_lost: bool) {
        let Some(record) = self.parts.get_mut(part) else { return };
        if is_lost && !record.is_over {
            let from_s = record.until_s.saturating_sub(1) as f64;
            record.waits.quiet.retain(|quiet| quiet.from_s < from_s);
            if let Some(last) = record.waits.quiet.last_mut() {
                last.to_s = last.to_s.min(from_s);
            }
            record.waits.quiet.push(Wait { from_s, to_s: f64::INFINITY, is_open: false });
        }
        record.is_over = true;
    }

    /// Until when a part's operations are recorded, seconds.
    #[must_use]
    pub fn recorded_until_s(&self, part: usize) -> f64 {
        self.parts.get(part).map_or(0.0, |record| record.until_s as f64)
    }

    /// The seconds that every part has told of and that were not handed on yet.
    pub fn whole_seconds(&mut self) -> Vec<Batch> {
        let going_on = self.parts.iter().filter(|record| !record.is_over);
        let Some(until) = going_on.map(|record| record.until_s).min() else { return Vec::new() };
        (self.next..until).map(|second| self.second(second)).collect()
    }

    /// The rest, once every part has ended, and why the load ends though nobody told it to. At least one batch.
    pub fn finish(&mut self, failure: Option<String>, further: Vec<Operation>) -> Vec<Batch> {
        self.parts.iter_mut().for_each(|record| record.is_over = true);
        let until = self.parts.iter().map(|record| record.until_s).max().unwrap_or(0).max(self.next + 1);
        let mut rest: Vec<Batch> = (self.next..until).map(|second| self.second(second)).collect();
        if let Some(last) = rest.last_mut() {
            let parts: Vec<Part> = self.parts.iter().map(|record| record.waits.clone()).collect();
            last.waits = combined(&parts);
            last.history.extend(further);
            last.failure = failure;
        }
        rest
    }

    /// One second, of all parts that have it.
    fn second(&mut self, second: u64) -> Batch {
        self.next = second + 1;
        let first_success = self.answered();
        let batches: Vec<Batch> =
            self.parts.iter_mut().filter_map(|record| record.batches.remove(&second)).collect();
        let mut whole = blank(&self.load, second, first_success);
        for batch in batches {
            for (name, measured) in &batch.interval.operations {
                add(whole.interval.operations.entry(name.clone()).or_default(), measured);
            }
            whole.history.extend(batch.history);
            if let Some(one) = batch.open_loop {
                add_open_loop(&mut whole.open_loop, &one);
            }
            whole.first_errors.extend(batch.first_errors);
        }
        whole.history.sort_by(|one, other| {
            one.completed_s.total_cmp(&other.completed_s).then(one.client.cmp(&other.client))
        });
        whole.first_errors = self.new_errors(whole.first_errors);
        whole
    }

    /// Of errors of one class that parts tell as their first, the earliest; none that was told before.
    fn new_errors(&mut self, mut told: Vec<FirstError>) -> Vec<FirstError> {
        told.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
        told.retain(|error| self.known_errors.insert(error.class));
        told
    }

    /// Faults after which the first success is known: nobody can have had an earlier one that it has not told.
    fn answered(&mut self) -> Vec<FirstSuccess> {
        let earliest = |fault: &FaultId| {
            let told = self.parts.iter().filter_map(|record| record.first.get(fault));
            let earliest = *told.min_by(|one, other| one.at_s.total_cmp(&other.at_s))?;
            let may_be_earlier = |record: &Record| {
                let has_looked = record.marked.contains(fault) && record.until_s as f64 >= earliest.at_s;
                !record.is_over && !has_looked && !record.first.contains_key(fault)
            };
            if self.parts.iter().any(may_be_earlier) {
                return None;
            }
            // A part leaves out what it was idle. Together they were idle no longer than the one that was least.
            let told = self.parts.iter().filter_map(|record| record.first.get(fault));
            let due_from_s = told.map(|first| first.at_s - first.after_s).reduce(f64::min)?;
            Some(FirstSuccess { after_s: earliest.at_s - due_from_s, ..earliest })
        };
        let answered: Vec<FirstSuccess> = self.unanswered.iter().filter_map(earliest).collect();
        for first in &answered {
            self.unanswered.remove(&first.fault);
        }
        answered
    }
}

fn blank(load: &str, second: u64, first_success: Vec<FirstSuccess>) -> Batch {
    Batch {
        interval: Interval { load: load.to_owned(), second, operations: BTreeMap::new() },
        history: Vec::new(),
        // Known when all parts have ended.
        waits: Vec::new(),
        quiet: Vec::new(),
        marked: Vec::new(),
        first_success,
        open_loop: None,
        first_errors: Vec::new(),
        failure: None,
    }
}

fn add(sum: &mut OperationInterval, part: &OperationInterval) {
    // It grows as it needs to, so that adding cannot fail.
    let _ = sum.histogram.add(&part.histogram);
    add_counts(&mut sum.errors, &part.errors);
    add_counts(&mut sum.errors_indefinite, &part.errors_indefinite);
    sum.retries = sum.retries.saturating_add(part.retries);
}

fn add_counts(sums: &mut ErrorCounts, counts: &ErrorCounts) {
    for (class, count) in counts {
        let sum = sums.entry(*class).or_insert(0);
        *sum = sum.saturating_add(*count);
    }
}

fn add_open_loop(sum: &mut Option<OpenLoop>, part: &OpenLoop) {
    match sum {
        Some(sum) => {
            let _ = sum.lateness.add(&part.lateness);
            sum.backlog = sum.backlog.saturating_add(part.backlog);
        }
        None => *sum = Some(part.clone()),
    }
}
