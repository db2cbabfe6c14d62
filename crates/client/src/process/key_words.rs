//! Transactions over keys as the lines have them, and what their operations found. docs/guide/client-programs.md is written
//! for those who write a program.
//!
//! Owns the form. Pure.

use control::transaction::{Found, Operation, Value};
use serde::{Deserialize, Serialize};

/// One operation of a transaction.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(super) enum KeyStep<'a> {
    /// See [`Operation::Read`].
    Read { key: &'a str },
    /// See [`Operation::Write`].
    Write { key: &'a str, value: Stored<'a> },
    /// See [`Operation::CompareAndSet`].
    CompareAndSet { key: &'a str, expected: Option<Stored<'a>>, new: Stored<'a> },
    /// See [`Operation::Append`].
    Append { key: &'a str, element: i64 },
    /// See [`Operation::Add`].
    Add { key: &'a str, amount: i64, floor: Option<i64> },
    /// See [`Operation::Insert`].
    Insert { key: &'a str, value: Stored<'a> },
    /// See [`Operation::Scan`].
    Scan { prefix: &'a str, after: Option<&'a str>, limit: u32 },
}

/// A value that is sent: `5`, `[1,2]`, or `"text"`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Stored<'a> {
    Integer(i64),
    List(&'a [i64]),
    Text(&'a str),
}

impl<'a> From<&'a Value> for Stored<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Integer(number) => Stored::Integer(*number),
            Value::List(list) => Stored::List(list),
            Value::Text(text) | Value::Foreign(text) => Stored::Text(text),
        }
    }
}

impl<'a> From<&'a Operation> for KeyStep<'a> {
    fn from(operation: &'a Operation) -> Self {
        match operation {
            Operation::Read { key } => KeyStep::Read { key },
            Operation::Write { key, value } => KeyStep::Write { key, value: value.into() },
            Operation::CompareAndSet { key, expected, new } => {
                let expected = expected.as_ref().map(Stored::from);
                KeyStep::CompareAndSet { key, expected, new: new.into() }
            }
            Operation::Append { key, element } => KeyStep::Append { key, element: *element },
            Operation::Add { key, amount, floor } => KeyStep::Add { key, amount: *amount, floor: *floor },
            Operation::Insert { key, value } => KeyStep::Insert { key, value: value.into() },
            Operation::Scan { prefix, after, limit } => {
                KeyStep::Scan { prefix, after: after.as_deref(), limit: *limit }
            }
        }
    }
}

/// What an operation found: `{"value":5}`, `{"value":null}`, `{"entries":[["key",5]]}`, `"done"`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FoundWord {
    /// Of a read.
    Value(Option<StoredValue>),
    /// Of a scan.
    Entries(Vec<(String, StoredValue)>),
    /// Of anything that writes.
    Done,
}

/// A value that is told; `{"foreign":"<html>"}` is one that the program cannot tell otherwise.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredValue {
    Integer(i64),
    List(Vec<i64>),
    Text(String),
    Foreign { foreign: String },
}

impl From<StoredValue> for Value {
    fn from(held: StoredValue) -> Self {
        match held {
            StoredValue::Integer(number) => Value::Integer(number),
            StoredValue::List(list) => Value::List(list),
            StoredValue::Text(text) => Value::Text(text),
            StoredValue::Foreign { foreign } => Value::Foreign(foreign),
        }
    }
}

/// What the operations found; nothing where that is an answer to others.
pub(super) fn found(operations: &[Operation], words: Vec<FoundWord>) -> Option<Vec<Found>> {
    if words.len() != operations.len() {
        return None;
    }
    operations.iter().zip(words).map(|(operation, word)| of_operation(operation, word)).collect()
}

fn of_operation(operation: &Operation, word: FoundWord) -> Option<Found> {
    match (operation, word) {
        (Operation::Read { .. }, FoundWord::Value(held)) => Some(Found::Value(held.map(Value::from))),
        (Operation::Scan { prefix, after, limit }, FoundWord::Entries(entries)) => {
            let is_within = |key: &str| {
                key.starts_with(prefix.as_str()) && after.as_deref().is_none_or(|after| key > after)
            };
            let is_sound = entries.iter().all(|(key, _)| is_within(key))
                && entries.is_sorted_by(|one, next| one.0 < next.0)
                && u32::try_from(entries.len()).is_ok_and(|count| count <= *limit);
            let entries = entries.into_iter().map(|(key, held)| (key, Value::from(held)));
            is_sound.then(|| Found::Entries(entries.collect()))
        }
        (Operation::Read { .. } | Operation::Scan { .. }, _) => None,
        (_, FoundWord::Done) => Some(Found::Done),
        (_, FoundWord::Value(_) | FoundWord::Entries(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_operation() -> Vec<Operation> {
        let key = || "k".to_owned();
        vec![
            Operation::Read { key: key() },
            Operation::Write { key: key(), value: Value::Integer(5) },
            Operation::Write { key: key(), value: Value::Text("a text".to_owned()) },
            Operation::CompareAndSet { key: key(), expected: None, new: Value::List(vec![1, 2]) },
            Operation::CompareAndSet {
                key: key(),
                expected: Some(Value::Integer(1)),
                new: Value::Integer(2),
            },
            Operation::Append { key: key(), element: 7 },
            Operation::Add { key: key(), amount: -5, floor: Some(0) },
            Operation::Add { key: key(), amount: 5, floor: None },
            Operation::Insert { key: key(), value: Value::List(Vec::new()) },
            Operation::Scan { prefix: "ledger/".to_owned(), after: Some("ledger/1".to_owned()), limit: 9 },
        ]
    }

    #[test]
    fn every_operation_stands_in_the_reference_as_it_is_sent() {
        let reference = include_str!("../../../../docs/guide/client-programs.md");
        for operation in every_operation() {
            let sent = serde_json::to_string(&KeyStep::from(&operation)).expect("JSON");
            assert!(reference.contains(&sent), "{sent}");
        }
    }

    fn told(operations: &[Operation], words: &str) -> Option<Vec<Found>> {
        found(operations, serde_json::from_str(words).expect("words"))
    }

    #[test]
    fn an_answer_is_taken_only_for_what_was_asked() {
        let read = [Operation::Read { key: "k".to_owned() }];
        assert_eq!(told(&read, r#"[{"value":null}]"#), Some(vec![Found::Value(None)]));
        let list = Found::Value(Some(Value::List(vec![1, -2])));
        assert_eq!(told(&read, r#"[{"value":[1,-2]}]"#), Some(vec![list]));
        let text = Found::Value(Some(Value::Text("1".to_owned())));
        assert_eq!(told(&read, r#"[{"value":"1"}]"#), Some(vec![text]));
        let foreign = Found::Value(Some(Value::Foreign("1.5".to_owned())));
        assert_eq!(told(&read, r#"[{"value":{"foreign":"1.5"}}]"#), Some(vec![foreign]));
        let write = [Operation::Append { key: "k".to_owned(), element: 1 }];
        assert_eq!(told(&write, r#"["done"]"#), Some(vec![Found::Done]));
        for wrong in ["[]", r#"["done"]"#, r#"[{"entries":[]}]"#, r#"[{"value":1},{"value":1}]"#] {
            assert_eq!(told(&read, wrong), None, "{wrong}");
        }
        for wrong in [r#"[{"value":null}]"#, r#"[{"entries":[]}]"#] {
            assert_eq!(told(&write, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_scan_has_keys_of_its_own_in_order_and_no_more_than_were_asked_for() {
        let scan = Operation::Scan { prefix: "a/".to_owned(), after: Some("a/1".to_owned()), limit: 2 };
        let scan = [scan];
        let two = vec![("a/2".to_owned(), Value::Integer(1)), ("a/3".to_owned(), Value::List(vec![4]))];
        let right = r#"[{"entries":[["a/2",1],["a/3",[4]]]}]"#;
        assert_eq!(told(&scan, right), Some(vec![Found::Entries(two)]));
        assert_eq!(told(&scan, r#"[{"entries":[]}]"#), Some(vec![Found::Entries(Vec::new())]));
        for wrong in [
            r#"[{"entries":[["a/1",1]]}]"#,
            r#"[{"entries":[["b/2",1]]}]"#,
            r#"[{"entries":[["a/3",1],["a/2",1]]}]"#,
            r#"[{"entries":[["a/2",1],["a/2",1]]}]"#,
            r#"[{"entries":[["a/2",1],["a/3",1],["a/4",1]]}]"#,
        ] {
            assert_eq!(told(&scan, wrong), None, "{wrong}");
        }
    }
}
