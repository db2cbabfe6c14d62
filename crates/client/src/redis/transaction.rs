//! A transaction of micro-operations as one call of a script, which Redis runs whole and while nothing else runs.
//!
//! Owns the call's words and what its answer says; the script stands in `transaction.lua`. Asks nothing itself. Source:
//! Redis documentation, "Scripting with Lua" (a script blocks the server while it runs, and its effects are replicated as
//! one transaction).

use control::transaction::{Found, Operation, Value};

use super::resp::Reply;
use crate::key_value::{read, written};

/// The script.
pub(super) const SCRIPT: &str = include_str!("transaction.lua");

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answered {
    Committed(Vec<Found>),
    /// A condition of its own was not met.
    Refused {
        step: String,
        reason: String,
    },
}

/// The words that call the script of this digest; an error for what cannot be asked.
pub(super) fn call(digest: &str, operations: &[Operation]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut words = vec![b"EVALSHA".to_vec(), digest.into(), operations.len().to_string().into_bytes()];
    let mut arguments = Vec::with_capacity(operations.len() * 3);
    for operation in operations {
        let number = |number: &Option<i64>| number.map_or_else(String::new, |number| number.to_string());
        let (key, step, first, second) = match operation {
            Operation::Read { key } => (key, "read", String::new(), String::new()),
            Operation::Write { key, value } => (key, "write", storable(value)?, String::new()),
            Operation::Insert { key, value } => (key, "insert", storable(value)?, String::new()),
            Operation::CompareAndSet { key, expected, new } => {
                let expected = expected.as_ref().map_or_else(String::new, written);
                (key, "exchange", expected, storable(new)?)
            }
            Operation::Append { key, element } => (key, "append", element.to_string(), String::new()),
            Operation::Add { key, amount, floor } => (key, "add", amount.to_string(), number(floor)),
            Operation::Scan { prefix, after, limit } => {
                if !prefix.contains('/') {
                    return Err("a scan is one of the keys of a folder");
                }
                let after = after.clone().filter(|after| after >= prefix);
                (prefix, "scan", after.unwrap_or_default(), limit.to_string())
            }
        };
        words.push(key.as_bytes().to_vec());
        arguments.extend([step.as_bytes().to_vec(), first.into_bytes(), second.into_bytes()]);
    }
    words.append(&mut arguments);
    Ok(words)
}

/// The text of a value that Redis can hold: a key without elements is no key.
fn storable(value: &Value) -> Result<String, &'static str> {
    if *value == Value::List(Vec::new()) { Err("an empty list cannot be stored") } else { Ok(written(value)) }
}

/// What the answer says; nothing when it is one to something else.
pub(super) fn answered(operations: &[Operation], reply: Reply) -> Option<Answered> {
    let Reply::Array(parts) = reply else { return None };
    let (head, found) = parts.split_first()?;
    match (head.text()?, found) {
        ("refused", [step, reason]) => {
            Some(Answered::Refused { step: step.text()?.to_owned(), reason: reason.text()?.to_owned() })
        }
        ("committed", found) if found.len() == operations.len() => {
            let found = operations.iter().zip(found).map(|(operation, found)| of_step(operation, found));
            found.collect::<Option<_>>().map(Answered::Committed)
        }
        _ => None,
    }
}

fn of_step(operation: &Operation, found: &Reply) -> Option<Found> {
    match (operation, found) {
        (Operation::Read { .. }, Reply::Nothing) => Some(Found::Value(None)),
        (Operation::Read { .. }, Reply::Bulk(text)) => Some(Found::Value(Some(read(text)))),
        (Operation::Scan { .. }, Reply::Array(parts)) if parts.len() % 2 == 0 => {
            let entry = |pair: &[Reply]| match pair {
                [key, Reply::Bulk(text)] => Some((key.text()?.to_owned(), read(text))),
                _ => None,
            };
            parts.chunks(2).map(entry).collect::<Option<_>>().map(Found::Entries)
        }
        (Operation::Read { .. } | Operation::Scan { .. }, _) => None,
        (_, done) => (done.text() == Some("done")).then_some(Found::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn a_call_has_the_keys_first_and_three_words_for_each_step() {
        let operations = [
            Operation::Append { key: "ledger/1".to_owned(), element: 7 },
            Operation::Add { key: "bank/2".to_owned(), amount: -5, floor: Some(0) },
            Operation::CompareAndSet { key: "k".to_owned(), expected: None, new: Value::List(vec![1, 2]) },
        ];
        let words = call("5f2", &operations).expect("can be asked");
        let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).expect("text")).collect();
        let keys = ["EVALSHA", "5f2", "3", "ledger/1", "bank/2", "k"];
        let steps = ["append", "7", "", "add", "-5", "0", "exchange", "", "[1,2]"];
        assert_eq!(words, [keys.as_slice(), steps.as_slice()].concat());
        let scan = Operation::Scan { prefix: "led".to_owned(), after: None, limit: 1 };
        assert!(call("5f2", &[scan]).is_err());
        let empty = Operation::Write { key: "k".to_owned(), value: Value::List(Vec::new()) };
        assert!(call("5f2", &[empty]).is_err());
    }

    #[test]
    fn an_answer_is_taken_only_for_what_was_asked() {
        let reading = [Operation::Read { key: "k".to_owned() }];
        let committed = |found: Reply| answered(&reading, Reply::Array(vec![bulk("committed"), found]));
        let value = |value| Some(Answered::Committed(vec![Found::Value(value)]));
        assert_eq!(committed(Reply::Nothing), value(None));
        assert_eq!(committed(bulk("9223372036854775807")), value(Some(Value::Integer(i64::MAX))));
        assert_eq!(committed(bulk("[1,2]")), value(Some(Value::List(vec![1, 2]))));
        assert_eq!(committed(bulk("\"zset\"")), value(Some(Value::Text("zset".to_owned()))));
        assert_eq!(committed(bulk("zset")), value(Some(Value::Foreign("zset".to_owned()))));
        assert_eq!(committed(Reply::Integer(1)), None);
        assert_eq!(answered(&reading, Reply::Array(vec![bulk("committed")])), None);
        assert_eq!(answered(&reading, bulk("committed")), None);
        let refused = Reply::Array(vec![bulk("refused"), bulk("0"), bulk("no list is there")]);
        let expected = Answered::Refused { step: "0".to_owned(), reason: "no list is there".to_owned() };
        assert_eq!(answered(&reading, refused), Some(expected));
        let writing = [Operation::Append { key: "k".to_owned(), element: 1 }];
        let wrong = Reply::Array(vec![bulk("committed"), Reply::Nothing]);
        assert_eq!(answered(&writing, wrong), None);
    }
}
