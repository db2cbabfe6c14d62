//! The changes of names that are not durable yet, in order, and which of them depend on which.
//!
//! Pure. An operation is one or several changes of names that happen whole or not at all: a rename takes a name away and
//! gives one. Making one durable makes everything durable that it depends on, so that what is left can be taken back from
//! the newest to the oldest, whatever has been made durable in between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// One name that meant one object, or none, and then another, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameChange {
    pub(crate) directory: u64,
    pub(crate) name: OsString,
    pub(crate) before: Option<u64>,
    pub(crate) after: Option<u64>,
}

/// Changes that happen together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) changes: Vec<NameChange>,
    /// Moves a directory into another. Two such, one durable and one not, could make a circle that hangs on nothing, so
    /// each depends on everything before it.
    pub(crate) moves_directory: bool,
}

impl Operation {
    /// Every object that gained or lost a name.
    pub(crate) fn objects(&self) -> BTreeSet<u64> {
        self.changes.iter().flat_map(|change| [change.before, change.after]).flatten().collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct NameLog {
    pending: BTreeMap<u64, Operation>,
    next: u64,
    by_object: BTreeMap<u64, BTreeSet<u64>>,
    by_directory: BTreeMap<u64, BTreeSet<u64>>,
    by_name: BTreeMap<(u64, OsString), BTreeSet<u64>>,
}

impl NameLog {
    /// Appends an operation. A creation that is undone before anybody synced leaves no trace.
    pub(crate) fn record(&mut self, operation: Operation) {
        if let Some(creation) = self.creation_undone_by(&operation) {
            self.take(creation);
            return;
        }
        let number = self.next;
        self.next += 1;
        for object in operation.objects() {
            self.by_object.entry(object).or_default().insert(number);
        }
        for change in &operation.changes {
            self.by_directory.entry(change.directory).or_default().insert(number);
            let name = (change.directory, change.name.clone());
            self.by_name.entry(name).or_default().insert(number);
        }
        self.pending.insert(number, operation);
    }

    fn creation_undone_by(&self, operation: &Operation) -> Option<u64> {
        let [NameChange { directory, name, before: Some(object), after: None }] =
            operation.changes.as_slice()
        else {
            return None;
        };
        let only = |numbers: Option<&BTreeSet<u64>>| {
            numbers.filter(|numbers| numbers.len() == 1).and_then(BTreeSet::first).copied()
        };
        let creation = only(self.by_object.get(object))?;
        let same_name = only(self.by_name.get(&(*directory, name.clone()))) == Some(creation);
        let was_free =
            matches!(self.pending.get(&creation)?.changes.as_slice(), [NameChange { before: None, .. }]);
        (same_name && was_free && !self.by_directory.contains_key(object)).then_some(creation)
    }

    /// Operations waiting.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether an object, or a name in it, is part of a waiting operation.
    pub(crate) fn mentions(&self, object: u64) -> bool {
        self.by_object.contains_key(&object) || self.by_directory.contains_key(&object)
    }

    /// Operations on the names of an object.
    pub(crate) fn of_object(&self, object: u64) -> BTreeSet<u64> {
        self.by_object.get(&object).cloned().unwrap_or_default()
    }

    /// Operations on names in a directory.
    pub(crate) fn in_directory(&self, directory: u64) -> BTreeSet<u64> {
        self.by_directory.get(&directory).cloned().unwrap_or_default()
    }

    /// The oldest operation waiting.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.pending.keys().next().copied()
    }

    /// Makes operations durable, with all they depend on: forgets and returns them. `ancestors` names a directory's
    /// parent, its parent, and so on.
    pub(crate) fn make_durable(
        &mut self,
        operations: BTreeSet<u64>,
        ancestors: impl Fn(u64) -> Vec<u64>,
    ) -> Vec<Operation> {
        let mut waiting = operations;
        let mut durable = Vec::new();
        while let Some(number) = waiting.pop_last() {
            let Some(operation) = self.pending.get(&number) else { continue };
            let earlier = |numbers: Option<&BTreeSet<u64>>| -> Vec<u64> {
                numbers.into_iter().flat_map(|numbers| numbers.range(..number)).copied().collect()
            };
            if operation.moves_directory {
                waiting.extend(self.pending.range(..number).map(|(number, _)| *number));
            }
            for object in operation.objects() {
                waiting.extend(earlier(self.by_object.get(&object)));
                waiting.extend(earlier(self.by_directory.get(&object)));
            }
            for change in &operation.changes {
                waiting.extend(earlier(self.by_name.get(&(change.directory, change.name.clone()))));
                let mut above = ancestors(change.directory);
                above.push(change.directory);
                for directory in above {
                    waiting.extend(earlier(self.by_object.get(&directory)));
                }
            }
            durable.extend(self.take(number));
        }
        durable
    }

    /// Takes the newest operation off, to be undone.
    pub(crate) fn take_newest(&mut self) -> Option<Operation> {
        let newest = self.pending.keys().next_back().copied()?;
        self.take(newest)
    }

    fn take(&mut self, number: u64) -> Option<Operation> {
        let operation = self.pending.remove(&number)?;
        for object in operation.objects() {
            drop_from(&mut self.by_object, &object, number);
        }
        for change in &operation.changes {
            drop_from(&mut self.by_directory, &change.directory, number);
            drop_from(&mut self.by_name, &(change.directory, change.name.clone()), number);
        }
        Some(operation)
    }
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<u64>>, key: &K, number: u64) {
    if let Some(numbers) = index.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            index.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `A/b: 3 -> 4` as one change, several parted by `;`. `-` is no object; a directory is its number.
    fn operation(text: &str) -> Operation {
        let object = |text: &str| text.parse().ok();
        let change = |text: &str| {
            let (place, values) = text.split_once(": ").expect("a change");
            let (directory, name) = place.split_once('/').expect("a place");
            let (before, after) = values.split_once(" -> ").expect("values");
            NameChange {
                directory: directory.parse().expect("a number"),
                name: name.into(),
                before: object(before),
                after: object(after),
            }
        };
        Operation { changes: text.split("; ").map(change).collect(), moves_directory: false }
    }

    /// How many of `operations` are left when operation `number` was made durable.
    fn check(operations: &[&str], number: u64, expected_left: &[u64]) {
        let mut log = NameLog::default();
        for text in operations {
            log.record(operation(text));
        }
        log.make_durable(BTreeSet::from([number]), |_| Vec::new());
        let left: Vec<u64> = log.pending.keys().copied().collect();
        assert_eq!(left, expected_left, "{operations:?}, {number} made durable");
    }

    #[test]
    fn an_operation_is_durable_by_itself_when_it_touches_nothing_of_the_others() {
        check(&["1/a: - -> 10", "1/b: - -> 11", "1/c: - -> 12"], 1, &[0, 2]);
    }

    #[test]
    fn a_name_given_again_depends_on_its_earlier_changes_and_not_on_later_ones() {
        check(&["1/a: 10 -> -", "1/a: - -> 11", "1/a: 11 -> 12"], 1, &[2]);
    }

    #[test]
    fn a_file_in_a_new_directory_depends_on_the_directory() {
        check(&["1/d: - -> 10", "10/f: - -> 11", "1/e: - -> 12"], 1, &[2]);
    }

    #[test]
    fn a_removed_directory_depends_on_what_left_it() {
        check(&["10/f: 11 -> -; 1/f: - -> 11", "1/d: 10 -> -"], 1, &[]);
    }

    #[test]
    fn a_removed_name_depends_on_the_other_name_given_before() {
        check(&["1/b: - -> 10", "1/a: 10 -> -"], 1, &[]);
    }

    #[test]
    fn a_file_made_and_removed_leaves_no_trace_unless_it_had_another_name() {
        let mut log = NameLog::default();
        log.record(operation("1/a: - -> 10"));
        log.record(operation("1/a: 10 -> -"));
        assert_eq!((log.len(), log.mentions(10), log.by_name.is_empty()), (0, false, true));
        log.record(operation("1/a: - -> 11"));
        log.record(operation("1/b: - -> 11"));
        log.record(operation("1/a: 11 -> -"));
        assert_eq!(log.len(), 3);
    }
}
