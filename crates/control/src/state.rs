//! The state machine: keys, what stands under them, and how transactions change it.
//!
//! Owns what micro-operations mean. The same commands in the same order make the same state on every node; when a
//! command comes, and whether it may, is the replica's to decide.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::Flaw;
use crate::transaction::{Answer, Found, Operation, Value};

/// What a log entry asks of the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Nothing; a new leader's first entry, which commits those before it.
    Nothing,
    /// A transaction, whole.
    Transaction {
        /// Its steps.
        operations: Vec<Operation>,
        /// The wall clock of the leader that took it, microseconds since 1970. Only the flaw of the clock reads it.
        stamp_us: u64,
    },
    /// What a transaction came to when it was carried out on an earlier state. Only written by flaws.
    Outcome {
        /// What is to stand where.
        writes: BTreeMap<String, Value>,
        /// Versions that must still stand where this writes; empty when nobody is to look.
        versions: BTreeMap<String, u64>,
        /// What its steps found.
        found: Vec<Found>,
    },
    /// The beginning of a transaction, there for everybody to see. Only written by a flaw.
    Begin {
        /// Its first steps.
        operations: Vec<Operation>,
    },
    /// The rest of it.
    Finish {
        /// The number of the log entry that began it.
        begun: u64,
        /// Its remaining steps.
        operations: Vec<Operation>,
    },
}

#[derive(Debug, Clone)]
struct Cell {
    value: Value,
    /// The log entry that wrote it last.
    version: u64,
    stamp_us: u64,
}

/// How one step is taken back.
#[derive(Debug, Clone)]
enum Undo {
    Restore { key: String, before: Option<Cell> },
    Remove { key: String, place: usize, version: u64, stamp_us: u64 },
}

/// A transaction of which the beginning alone was carried out.
#[derive(Debug, Clone)]
struct Begun {
    undo: Vec<Undo>,
    found: Vec<Found>,
    steps: usize,
}

/// A step that could not be carried out.
struct Refusal(String);

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct State {
    cells: BTreeMap<String, Cell>,
    begun: BTreeMap<u64, Begun>,
    flaw: Option<Flaw>,
}

/// Where in the log a command stands, and when it was taken.
#[derive(Clone, Copy)]
struct Origin {
    version: u64,
    stamp_us: u64,
}

impl State {
    /// An empty state.
    #[must_use]
    pub fn new(flaw: Option<Flaw>) -> Self {
        State { flaw, ..State::default() }
    }

    /// Carries out the command of log entry `index`.
    pub fn apply(&mut self, index: u64, command: &Command) -> Answer {
        match command {
            Command::Nothing => Answer::Committed { found: Vec::new() },
            Command::Transaction { operations, stamp_us } => {
                let origin = Origin { version: index, stamp_us: *stamp_us };
                match self.carry_out(operations, origin) {
                    Ok((found, _)) => Answer::Committed { found },
                    Err(refused) => refused,
                }
            }
            Command::Outcome { writes, versions, found } => {
                if let Some(key) = versions.iter().find(|(key, seen)| self.version(key) != **seen) {
                    return Answer::Conflict { key: key.0.clone() };
                }
                for (key, value) in writes {
                    let cell = Cell { value: value.clone(), version: index, stamp_us: 0 };
                    self.cells.insert(key.clone(), cell);
                }
                Answer::Committed { found: found.clone() }
            }
            Command::Begin { operations } => {
                match self.carry_out(operations, Origin { version: index, stamp_us: 0 }) {
                    Ok((found, undo)) => {
                        let begun = Begun { undo, found: found.clone(), steps: operations.len() };
                        self.begun.insert(index, begun);
                        Answer::Committed { found }
                    }
                    Err(refused) => refused,
                }
            }
            Command::Finish { begun, operations } => self.finish(*begun, index, operations),
        }
    }

    fn finish(&mut self, begun: u64, index: u64, operations: &[Operation]) -> Answer {
        let Some(first) = self.begun.remove(&begun) else {
            return Answer::Refused { step: 0, reason: "its beginning was never carried out".to_owned() };
        };
        match self.carry_out(operations, Origin { version: index, stamp_us: 0 }) {
            Ok((rest, _)) => Answer::Committed { found: first.found.into_iter().chain(rest).collect() },
            Err(refused) => {
                self.take_back(first.undo);
                match refused {
                    Answer::Refused { step, reason } => {
                        let before = u32::try_from(first.steps).unwrap_or(u32::MAX);
                        Answer::Refused { step: step.saturating_add(before), reason }
                    }
                    other => other,
                }
            }
        }
    }

    /// Answers a transaction that only reads, from this state and at once.
    #[must_use]
    pub fn read(&self, operations: &[Operation]) -> Answer {
        Answer::Committed { found: operations.iter().map(|operation| self.look(operation)).collect() }
    }

    /// What a transaction would come to if it were carried out now; nothing is changed. Versions are those of the keys
    /// it writes.
    ///
    /// # Errors
    /// The refusal, when one of its conditions is not met.
    pub fn foresee(&self, operations: &[Operation]) -> Result<Command, Answer> {
        let mut scratch = State::new(self.flaw);
        let mut written = BTreeSet::new();
        for operation in operations {
            let key = match operation {
                Operation::Scan { prefix, .. } => {
                    let within = self.cells.range(prefix.clone()..);
                    let within = within.take_while(|(key, _)| key.starts_with(prefix));
                    scratch.cells.extend(within.map(|(key, cell)| (key.clone(), cell.clone())));
                    continue;
                }
                Operation::Read { key }
                | Operation::Write { key, .. }
                | Operation::CompareAndSet { key, .. }
                | Operation::Append { key, .. }
                | Operation::Add { key, .. }
                | Operation::Insert { key, .. } => key,
            };
            if let Some(cell) = self.cells.get(key) {
                scratch.cells.insert(key.clone(), cell.clone());
            }
            if operation.writes() {
                written.insert(key.clone());
            }
        }
        let (found, _) = scratch.carry_out(operations, Origin { version: 0, stamp_us: 0 })?;
        let versions = written.iter().map(|key| (key.clone(), self.version(key))).collect();
        let value =
            |key: String| scratch.cells.get(&key).map(|cell| cell.value.clone()).map(|value| (key, value));
        let writes = written.into_iter().filter_map(value).collect();
        Ok(Command::Outcome { writes, versions, found })
    }

    /// The log entry that wrote a key last; 0 when none did.
    fn version(&self, key: &str) -> u64 {
        self.cells.get(key).map_or(0, |cell| cell.version)
    }

    /// All the steps, or none of them.
    fn carry_out(
        &mut self,
        operations: &[Operation],
        origin: Origin,
    ) -> Result<(Vec<Found>, Vec<Undo>), Answer> {
        let mut undo = Vec::new();
        let mut found = Vec::with_capacity(operations.len());
        for (step, operation) in operations.iter().enumerate() {
            match self.step(operation, origin, &mut undo) {
                Ok(one) => found.push(one),
                Err(Refusal(reason)) => {
                    self.take_back(undo);
                    return Err(Answer::Refused { step: u32::try_from(step).unwrap_or(u32::MAX), reason });
                }
            }
        }
        Ok((found, undo))
    }

    fn step(
        &mut self,
        operation: &Operation,
        origin: Origin,
        undo: &mut Vec<Undo>,
    ) -> Result<Found, Refusal> {
        match operation {
            Operation::Read { .. } | Operation::Scan { .. } => return Ok(self.look(operation)),
            Operation::Write { key, value } => self.put(key, value.clone(), origin, undo),
            Operation::CompareAndSet { key, expected, new } => {
                let held = self.cells.get(key).map(|cell| &cell.value);
                if held != expected.as_ref() {
                    return Err(Refusal(format!("{key} does not hold what was expected")));
                }
                self.put(key, new.clone(), origin, undo);
            }
            Operation::Append { key, element } => self.append(key, *element, origin, undo)?,
            Operation::Add { key, amount, floor } => {
                let held = match self.cells.get(key).map(|cell| &cell.value) {
                    None => 0,
                    Some(Value::Integer(held)) => *held,
                    Some(Value::List(_) | Value::Text(_) | Value::Foreign(_)) => {
                        return Err(Refusal(format!("{key} does not hold a number")));
                    }
                };
                let sum = held
                    .checked_add(*amount)
                    .ok_or_else(|| Refusal(format!("{key} would hold more than 64 bits")))?;
                if floor.is_some_and(|floor| sum < floor) {
                    return Err(Refusal(format!("{key} would fall to {sum}, below its floor")));
                }
                self.put(key, Value::Integer(sum), origin, undo);
            }
            Operation::Insert { key, value } => {
                if self.cells.contains_key(key) {
                    return Err(Refusal(format!("{key} is there already")));
                }
                self.put(key, value.clone(), origin, undo);
            }
        }
        Ok(Found::Done)
    }

    fn look(&self, operation: &Operation) -> Found {
        match operation {
            Operation::Read { key } => Found::Value(self.cells.get(key).map(|cell| cell.value.clone())),
            Operation::Scan { prefix, after, limit } => {
                let begin = match after {
                    Some(after) if after >= prefix => Bound::Excluded(after.clone()),
                    _ => Bound::Included(prefix.clone()),
                };
                let within = self.cells.range((begin, Bound::Unbounded));
                let within = within.take_while(|(key, _)| key.starts_with(prefix));
                let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
                Found::Entries(
                    within.take(limit).map(|(key, cell)| (key.clone(), cell.value.clone())).collect(),
                )
            }
            _ => Found::Done,
        }
    }

    /// Whether this write loses against what stands there already.
    fn is_outdated(&self, key: &str, origin: Origin) -> bool {
        self.flaw == Some(Flaw::ClockLastWriteWins)
            && self.cells.get(key).is_some_and(|cell| cell.stamp_us > origin.stamp_us)
    }

    fn put(&mut self, key: &str, value: Value, origin: Origin, undo: &mut Vec<Undo>) {
        if self.is_outdated(key, origin) {
            return;
        }
        let cell = Cell { value, version: origin.version, stamp_us: origin.stamp_us };
        let before = self.cells.insert(key.to_owned(), cell);
        undo.push(Undo::Restore { key: key.to_owned(), before });
    }

    fn append(
        &mut self,
        key: &str,
        element: i64,
        origin: Origin,
        undo: &mut Vec<Undo>,
    ) -> Result<(), Refusal> {
        if self.is_outdated(key, origin) {
            return Ok(());
        }
        match self.cells.get_mut(key) {
            None => self.put(key, Value::List(vec![element]), origin, undo),
            Some(Cell { value: Value::Integer(_) | Value::Text(_) | Value::Foreign(_), .. }) => {
                return Err(Refusal(format!("{key} does not hold a list")));
            }
            Some(Cell { value: Value::List(elements), version, stamp_us }) => {
                let place = match self.flaw {
                    Some(Flaw::NonRepeatableOrder) => {
                        elements.partition_point(|other| scattered(*other) < scattered(element))
                    }
                    _ => elements.len(),
                };
                elements.insert(place, element);
                undo.push(Undo::Remove {
                    key: key.to_owned(),
                    place,
                    version: *version,
                    stamp_us: *stamp_us,
                });
                (*version, *stamp_us) = (origin.version, origin.stamp_us);
            }
        }
        Ok(())
    }

    fn take_back(&mut self, undo: Vec<Undo>) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Restore { key, before: Some(cell) } => drop(self.cells.insert(key, cell)),
                Undo::Restore { key, before: None } => drop(self.cells.remove(&key)),
                Undo::Remove { key, place, version, stamp_us } => {
                    if let Some(cell) = self.cells.get_mut(&key)
                        && let Value::List(elements) = &mut cell.value
                        && place < elements.len()
                    {
                        elements.remove(place);
                        (cell.version, cell.stamp_us) = (version, stamp_us);
                    }
                }
            }
        }
    }
}

/// Another order of the numbers, far from their own (Fibonacci hashing).
fn scattered(element: i64) -> u64 {
    element.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
