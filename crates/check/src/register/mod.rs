//! Register: every key behaves as one register that operations act on one after another, each at some moment between
//! its beginning and its end.
//!
//! Linearizability is local (Herlihy and Wing, "Linearizability: a correctness condition for concurrent objects", 1990):
//! keys are judged one by one. Where no value is written twice to a key, `zones` judges in the time of sorting; else
//! `search` does, and says when it had to give up. This file owns what is kept of a history and what is told.

mod search;
mod zones;

use history::{Action, Operation, Outcome, Verdict};

use crate::Check;
use crate::names::{Keys, Sessions};
use crate::report::Report;
use crate::soundness::{Contradiction, check_times};
use crate::story::{Story, counted, is_or_are, with_examples};

/// The check's name.
pub const NAME: &str = "register";

/// Steps of search at most for one key, where values are written more than once. Each is one operation tried in one
/// possible state of affairs.
pub const SEARCH_STEPS_MAX: u64 = 20_000_000;

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut register = Box::<Register>::default();
    for operation in operations {
        register.observe(operation);
    }
    register.conclude()
}

/// What an operation does to its register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Read(Option<i64>),
    Write(i64),
    CompareAndSet { expected: Option<i64>, new: i64 },
}

/// An operation that happened or may have happened.
#[derive(Debug, Clone, Copy)]
struct Entry {
    invoked_s: f64,
    /// Infinite when there was no definite answer: it may take effect at any later time.
    completed_s: f64,
    effect: Effect,
    key: u32,
    session: u32,
}

impl Entry {
    fn is_certain(&self) -> bool {
        self.completed_s.is_finite()
    }

    /// The value it writes.
    fn written(&self) -> Option<i64> {
        match self.effect {
            Effect::Read(_) => None,
            Effect::Write(value) | Effect::CompareAndSet { new: value, .. } => Some(value),
        }
    }
}

/// The register check, to be fed operation by operation.
#[derive(Debug)]
pub struct Register {
    entries: Vec<Entry>,
    keys: Keys,
    sessions: Sessions,
    refused: usize,
    acknowledged_writes: usize,
    indeterminate: usize,
    informative: usize,
    contradiction: Option<Contradiction>,
    steps_max: u64,
}

impl Default for Register {
    fn default() -> Self {
        Register::with_budget(SEARCH_STEPS_MAX)
    }
}

impl Register {
    /// One that searches at most so many steps for a key. The budget matters only where a value is written twice.
    #[must_use]
    pub fn with_budget(steps_max: u64) -> Self {
        Register {
            entries: Vec::new(),
            keys: Keys::default(),
            sessions: Sessions::default(),
            refused: 0,
            acknowledged_writes: 0,
            indeterminate: 0,
            informative: 0,
            contradiction: None,
            steps_max,
        }
    }
}

/// What a history of one key can be shown to be.
#[derive(Debug)]
enum Judgement {
    Linearizable,
    /// Not, for this reason; entries by their place in the key's slice.
    Violation(zones::Violation),
    /// Not: no order was found to lead past the end of an operation.
    DeadEnd(search::DeadEnd),
    /// The search was given up.
    Undecided,
}

impl Check for Register {
    fn observe(&mut self, operation: &Operation) {
        let (key, effect) = match &operation.action {
            Action::RegisterRead { key, value } => (key, Effect::Read(*value)),
            Action::RegisterWrite { key, value } => (key, Effect::Write(*value)),
            Action::RegisterCompareAndSet { key, expected, new } => {
                (key, Effect::CompareAndSet { expected: *expected, new: *new })
            }
            _ => return,
        };
        if let Err(contradiction) = check_times(operation) {
            self.contradiction.get_or_insert(contradiction);
            return;
        }
        let is_read = matches!(effect, Effect::Read(_));
        let completed_s = match operation.outcome {
            Outcome::Fail => {
                self.refused += usize::from(!is_read);
                return;
            }
            Outcome::Unknown => {
                if is_read {
                    return;
                }
                self.indeterminate += 1;
                f64::INFINITY
            }
            Outcome::Ok => {
                self.acknowledged_writes += usize::from(!is_read);
                self.informative += usize::from(!matches!(effect, Effect::Write(_)));
                operation.completed_s
            }
        };
        let key = self.keys.number_of(key);
        let session = self.sessions.number_of(operation);
        self.entries.push(Entry { invoked_s: operation.invoked_s, completed_s, effect, key, session });
    }

    fn conclude(mut self: Box<Self>) -> Report {
        let ranks = self.sessions.ranks();
        self.entries.sort_unstable_by(|one, other| {
            (one.key.cmp(&other.key))
                .then(one.invoked_s.total_cmp(&other.invoked_s))
                .then(one.completed_s.total_cmp(&other.completed_s))
                .then(ranks[one.session as usize].cmp(&ranks[other.session as usize]))
        });
        let mut violations = Vec::new();
        let mut undecided = Vec::new();
        for entries in self.entries.chunk_by(|one, other| one.key == other.key) {
            match judge(entries, self.steps_max) {
                Judgement::Linearizable => {}
                Judgement::Undecided => undecided.push(entries[0].key),
                Judgement::Violation(violation) => {
                    violations.push((entries[0].key, self.tell_violation(entries, &violation)));
                }
                Judgement::DeadEnd(end) => {
                    violations.push((entries[0].key, self.tell_dead_end(entries, &end)));
                }
            }
        }
        self.tell(violations, undecided)
    }
}

fn judge(entries: &[Entry], steps_max: u64) -> Judgement {
    match zones::judge(entries) {
        Ok(()) => Judgement::Linearizable,
        Err(zones::Failure::Violation(violation)) => Judgement::Violation(violation),
        Err(zones::Failure::ValueWrittenTwice) => match search::judge(entries, steps_max) {
            Ok(()) => Judgement::Linearizable,
            Err(search::Failure::DeadEnd(end)) => Judgement::DeadEnd(end),
            Err(search::Failure::OutOfBudget) => Judgement::Undecided,
        },
    }
}

impl Register {
    fn tell(&self, mut violations: Vec<(u32, String)>, mut undecided: Vec<u32>) -> Report {
        // Keys are numbered in the order they came in, which says nothing.
        violations.sort_by(|one, other| self.keys.key(one.0).cmp(self.keys.key(other.0)));
        undecided.sort_by(|one, other| self.keys.key(*one).cmp(self.keys.key(*other)));
        let mut report = Report::new(NAME);
        report.acknowledged = Some(self.acknowledged_writes as u64);
        report.indeterminate = Some(self.indeterminate as u64);
        report.count("keys", self.keys.len());
        report.count("operations", self.entries.len());
        report.count("refused", self.refused);
        report.count("keys_not_linearizable", violations.len());
        report.count("keys_undecided", undecided.len());
        let mut story = Story::default();
        if !violations.is_empty() {
            let count = violations.len();
            let claim = format!(
                "{count} of {} {} not linearizable",
                counted(self.keys.len(), "register"),
                is_or_are(count)
            );
            story.fail(with_examples(&claim, &violations, |(key, told)| {
                format!("key {}: {told}", self.keys.key(*key))
            }));
        }
        if let Some(contradiction) = &self.contradiction {
            // What was left out may be the missing piece, so that nothing is shown either way.
            let mut story = Story::default();
            story.doubt(format!("the history contradicts itself, so it proves nothing: {contradiction}"));
            report.conclude(story, String::new());
            return report;
        }
        if !undecided.is_empty() {
            let claim = format!(
                "some values were written more than once and the search was given up after {} steps for key",
                self.steps_max
            );
            story.doubt(with_examples(&claim, &undecided, |key| self.keys.key(*key).to_string()));
        }
        if self.informative == 0 && self.acknowledged_writes == 0 {
            story.doubt("no operation was acknowledged, so nothing was shown".into());
        }
        let mut otherwise = format!(
            "{} on {} can be put in an order that explains every answer and keeps to the times",
            counted(self.entries.len(), "operation"),
            counted(self.keys.len(), "register"),
        );
        if self.informative == 0 {
            otherwise += "; no read or compare-and-set was acknowledged, so any order of the writes does";
        }
        report.conclude(story, otherwise);
        if report.verdict == Verdict::Pass && self.indeterminate > 0 {
            let count = counted(self.indeterminate, "write");
            report.explanation += &format!("; of {count} without a definite answer any may have happened");
        }
        report
    }

    /// `the write of 3 by client 1 (0.100 s to 0.200 s)`.
    fn told(&self, entry: &Entry) -> String {
        let value = |value: Option<i64>| value.map_or("nothing".to_owned(), |value| value.to_string());
        let what = match entry.effect {
            Effect::Read(found) => format!("the read of {}", value(found)),
            Effect::Write(written) => format!("the write of {written}"),
            Effect::CompareAndSet { expected, new } => {
                format!("the change from {} to {new}", value(expected))
            }
        };
        let client = self.sessions.told(entry.session);
        let until = match entry.is_certain() {
            true => format!("to {:.3} s", entry.completed_s),
            false => "on, without an answer".to_owned(),
        };
        format!("{what} by {client} ({:.3} s {until})", entry.invoked_s)
    }

    fn tell_violation(&self, entries: &[Entry], violation: &zones::Violation) -> String {
        use zones::Violation;
        let told = |at: &usize| self.told(&entries[*at]);
        match violation {
            Violation::NeverWritten { reader } => {
                format!("{} found a value that no client wrote, or whose write was refused", told(reader))
            }
            Violation::TwoSuccessors { one, other } => format!(
                "{} and {} both found the value that each replaced, which was written once: the register cannot \
                 have gone both ways",
                told(one),
                told(other)
            ),
            Violation::Circle { member } => {
                format!("{} needs, over a circle of changes, the value that it wrote itself", told(member))
            }
            Violation::TooLate { earlier, later } => format!(
                "{} depends on {}, which began only after it had ended: a contradiction",
                told(later),
                told(earlier)
            ),
            Violation::Overlap { one, other } => format!(
                "{} the register held {}, and {} it held {}: a contradiction, for these times overlap",
                self.tell_time(entries, one),
                one.told_values(entries),
                self.tell_time(entries, other),
                other.told_values(entries),
            ),
            Violation::Within { held, within } => {
                let effect = if within.first_to_end == within.last_to_begin {
                    format!("{} took effect at some moment", told(&within.first_to_end))
                } else {
                    format!(
                        "the register held {} at some moment after the beginning of {} and before the end of {}",
                        within.told_values(entries),
                        told(&within.last_to_begin),
                        told(&within.first_to_end)
                    )
                };
                let time = self.tell_time(entries, held);
                format!("{effect}, but {time} it held {}: a contradiction", held.told_values(entries))
            }
        }
    }

    /// `from the end of ... to the beginning of ...`: the time in which a register held the values of a zone.
    fn tell_time(&self, entries: &[Entry], zone: &zones::Zone) -> String {
        let until = self.told(&entries[zone.last_to_begin]);
        if zone.is_from_the_start() {
            return format!("from the start to the beginning of {until}");
        }
        format!("from the end of {} to the beginning of {until}", self.told(&entries[zone.first_to_end]))
    }

    fn tell_dead_end(&self, entries: &[Entry], end: &search::DeadEnd) -> String {
        let held: Vec<String> = end
            .held
            .iter()
            .take(3)
            .map(|value| value.map_or("nothing".to_owned(), |value| value.to_string()))
            .collect();
        format!(
            "no order of the operations explains {}: whatever the order until then, the register held {}{}",
            self.told(&entries[end.entry]),
            held.join(" or "),
            if end.held.len() > 3 { " or others" } else { "" }
        )
    }
}
