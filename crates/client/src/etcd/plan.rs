//! A transaction of micro-operations as requests to etcd, which compares and writes but reads nothing in between.
//!
//! Owns which of three ways a transaction goes: only reading, in one request; writing under conditions that etcd compares
//! itself, or writing without any and reading other keys, in one request; anything else in two, the second of which changes something only if all that the first
//! found is as it was. Asks nothing itself.

use std::collections::{BTreeMap, BTreeSet};

use control::transaction::{Found, Operation, Value};

use super::words::{Compare, Done, Put, Range, Ranged, Request, Response, Txn, behind, encoded};
use crate::key_value::{read, written};

/// How a transaction is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Plan {
    /// One request that reads.
    Reading(Txn),
    /// One request that writes if its conditions hold, and otherwise reads what stands in the way.
    Writing(Txn),
    /// These keys are read first.
    ReadingFirst(Vec<String>),
}

/// A condition of the transaction's own was not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) step: usize,
    pub(super) reason: String,
}

/// What was under the keys when they were read, each with the revision of its last change.
pub(super) type Known = BTreeMap<String, Option<(Value, i64)>>;

/// Which way these operations go; an error for what cannot be asked at all.
pub(super) fn plan(operations: &[Operation]) -> Result<Plan, &'static str> {
    if !operations.iter().any(Operation::writes) {
        return Ok(Plan::Reading(Txn {
            success: operations.iter().map(reading).collect(),
            ..Txn::default()
        }));
    }
    let mut keys = BTreeSet::new();
    let mut txn = Txn::default();
    let mut at_once = true;
    let mut reads = false;
    for operation in operations {
        let key = key(operation).ok_or("a transaction that writes scans nothing")?;
        reads |= matches!(operation, Operation::Read { .. });
        at_once &= keys.insert(key) && add(operation, &mut txn);
    }
    // Where a condition is not met, what is read instead tells which.
    if at_once && (!reads || txn.compare.is_empty()) {
        return Ok(Plan::Writing(txn));
    }
    Ok(Plan::ReadingFirst(keys.into_iter().map(ToOwned::to_owned).collect()))
}

fn key(operation: &Operation) -> Option<&str> {
    match operation {
        Operation::Read { key }
        | Operation::Write { key, .. }
        | Operation::CompareAndSet { key, .. }
        | Operation::Append { key, .. }
        | Operation::Add { key, .. }
        | Operation::Insert { key, .. } => Some(key),
        Operation::Scan { .. } => None,
    }
}

fn reading(operation: &Operation) -> Request {
    let Operation::Scan { prefix, after, limit } = operation else {
        return range_of(key(operation).unwrap_or_default());
    };
    let from = match after {
        Some(after) if after.as_str() >= prefix.as_str() => [after.as_bytes(), &[0]].concat(),
        _ => prefix.as_bytes().to_vec(),
    };
    Request::RequestRange(Range {
        key: encoded(if from.is_empty() { vec![0] } else { from }),
        // A single zero byte stands for the end of all keys.
        range_end: Some(encoded(behind(prefix).unwrap_or_else(|| vec![0]))),
        limit: Some(limit.to_string()),
    })
}

fn range_of(key: &str) -> Request {
    Request::RequestRange(Range { key: encoded(key), range_end: None, limit: None })
}

fn put(key: &str, value: &Value) -> Request {
    Request::RequestPut(Put { key: encoded(key), value: encoded(written(value)) })
}

/// Adds an operation that needs nothing read before, its condition first; false for any other.
fn add(operation: &Operation, txn: &mut Txn) -> bool {
    let nothing = |key: &str| Compare::Version { key: encoded(key), version: "0".to_owned() };
    match operation {
        Operation::Write { key, value } => txn.success.push(put(key, value)),
        Operation::Read { key } => txn.success.push(range_of(key)),
        Operation::Insert { key, value } => {
            txn.compare.push(nothing(key));
            txn.success.push(put(key, value));
            txn.failure.push(range_of(key));
        }
        Operation::CompareAndSet { key, expected, new } => {
            txn.compare.push(match expected {
                None => nothing(key),
                Some(value) => Compare::Value { key: encoded(key), value: encoded(written(value)) },
            });
            txn.success.push(put(key, new));
            txn.failure.push(range_of(key));
        }
        _ => return false,
    }
    true
}

/// The request that reads these keys at one moment.
pub(super) fn reading_of(keys: &[String]) -> Txn {
    Txn { success: keys.iter().map(|key| range_of(key)).collect(), ..Txn::default() }
}

/// What stands under these keys by the answer to [`reading_of`]; nothing when it is no answer to that.
pub(super) fn known(keys: &[String], done: &Done) -> Option<Known> {
    let ranges = ranges(done)?;
    if ranges.len() != keys.len() {
        return None;
    }
    let mut known = Known::new();
    for (key, range) in keys.iter().zip(ranges) {
        let there = match range.kvs.as_slice() {
            [] => None,
            [one] => Some((read(&one.value), one.mod_revision)),
            _ => return None,
        };
        known.insert(key.clone(), there);
    }
    Some(known)
}

/// What a transaction that only reads found; nothing when the answer is to something else.
pub(super) fn found(operations: &[Operation], done: &Done) -> Option<Vec<Found>> {
    let ranges = ranges(done)?;
    if ranges.len() != operations.len() {
        return None;
    }
    let of_step = |(operation, range): (&Operation, &Ranged)| {
        let entries = range.kvs.iter().map(|one| {
            let key = String::from_utf8(one.key.clone()).ok()?;
            Some((key, read(&one.value)))
        });
        let mut entries: Vec<(String, Value)> = entries.collect::<Option<_>>()?;
        match operation {
            Operation::Scan { .. } => Some(Found::Entries(entries)),
            _ if entries.len() > 1 => None,
            _ => Some(Found::Value(entries.pop().map(|(_, value)| value))),
        }
    };
    operations.iter().zip(ranges).map(of_step).collect()
}

/// What a [`Plan::Writing`] whose conditions held found; nothing when the answer is to something else.
pub(super) fn done(operations: &[Operation], done: &Done) -> Option<Vec<Found>> {
    if done.responses.len() != operations.len() {
        return None;
    }
    let of_step = |(operation, response): (&Operation, &Response)| match operation {
        Operation::Read { .. } => match response.response_range.as_ref()?.kvs.as_slice() {
            [] => Some(Found::Value(None)),
            [one] => Some(Found::Value(Some(read(&one.value)))),
            _ => None,
        },
        _ => response.response_put.as_ref().map(|_| Found::Done),
    };
    operations.iter().zip(&done.responses).map(of_step).collect()
}

fn ranges(done: &Done) -> Option<Vec<&Ranged>> {
    done.responses.iter().map(|response| response.response_range.as_ref()).collect()
}

/// Which condition of a [`Plan::Writing`] was not met, by what was read instead; nothing when the answer is to something
/// else.
pub(super) fn refused(operations: &[Operation], done: &Done) -> Option<Refused> {
    let ranges = ranges(done)?;
    let conditions = operations.iter().enumerate().filter(|(_, operation)| {
        matches!(operation, Operation::Insert { .. } | Operation::CompareAndSet { .. })
    });
    let conditions: Vec<(usize, &Operation)> = conditions.collect();
    if ranges.len() != conditions.len() {
        return None;
    }
    for ((step, operation), range) in conditions.into_iter().zip(ranges) {
        let there = range.kvs.first();
        let reason = match operation {
            Operation::CompareAndSet { expected, .. } => {
                let expected = expected.as_ref().map(written);
                let holds = there.map(|one| one.value.as_slice()) == expected.as_ref().map(String::as_bytes);
                (!holds).then_some("another value is there")
            }
            _ => there.map(|_| "something is there already"),
        };
        if let Some(reason) = reason {
            return Some(Refused { step, reason: reason.to_owned() });
        }
    }
    None
}

/// Carries the operations out over what was read, and the request that makes it so if nothing has changed since.
pub(super) fn carried_out(operations: &[Operation], known: &Known) -> Result<(Vec<Found>, Txn), Refused> {
    let mut changed: BTreeMap<&str, Value> = BTreeMap::new();
    let mut found = Vec::new();
    for (step, operation) in operations.iter().enumerate() {
        let refuse = |reason: &str| Refused { step, reason: reason.to_owned() };
        let Some(key) = key(operation) else { return Err(refuse("a transaction that writes scans nothing")) };
        let before = known.get(key).and_then(Option::as_ref).map(|(value, _)| value);
        let there = changed.get(key).or(before).cloned();
        let after = match operation {
            Operation::Read { .. } | Operation::Scan { .. } => {
                found.push(Found::Value(there));
                continue;
            }
            Operation::Write { value, .. } => value.clone(),
            Operation::CompareAndSet { expected, new, .. } if there == *expected => new.clone(),
            Operation::CompareAndSet { .. } => return Err(refuse("another value is there")),
            Operation::Insert { value, .. } if there.is_none() => value.clone(),
            Operation::Insert { .. } => return Err(refuse("something is there already")),
            Operation::Append { element, .. } => match there {
                None => Value::List(vec![*element]),
                Some(Value::List(mut list)) => {
                    list.push(*element);
                    Value::List(list)
                }
                Some(Value::Integer(_) | Value::Text(_) | Value::Foreign(_)) => {
                    return Err(refuse("no list is there"));
                }
            },
            Operation::Add { amount, floor, .. } => {
                let sum = match there {
                    None => Some(*amount),
                    Some(Value::Integer(number)) => number.checked_add(*amount),
                    Some(Value::List(_) | Value::Text(_) | Value::Foreign(_)) => {
                        return Err(refuse("no number is there"));
                    }
                };
                let sum = sum.filter(|sum| floor.is_none_or(|floor| *sum >= floor));
                Value::Integer(sum.ok_or_else(|| refuse("the sum would be out of bounds"))?)
            }
        };
        changed.insert(key, after);
        found.push(Found::Done);
    }
    let unchanged = |(key, there): (&String, &Option<(Value, i64)>)| Compare::Mod {
        key: encoded(key),
        mod_revision: there.as_ref().map_or(0, |(_, revision)| *revision).to_string(),
    };
    let compare = known.iter().map(unchanged).collect();
    let success = changed.iter().map(|(key, value)| put(key, value)).collect();
    Ok((found, Txn { compare, success, failure: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_value(key: &str, value: &str, revision: i64) -> serde_json::Value {
        let (key, value) = (encoded(key), encoded(value));
        serde_json::json!({ "key": key, "value": value, "mod_revision": revision.to_string() })
    }

    /// The answer to reading, each range with what it held.
    fn read_back(ranges: &[&[(&str, &str, i64)]]) -> Done {
        let range = |entries: &&[(&str, &str, i64)]| {
            let kvs = entries.iter().map(|(key, value, revision)| key_value(key, value, *revision));
            serde_json::json!({ "response_range": { "kvs": kvs.collect::<Vec<_>>() } })
        };
        let responses: Vec<_> = ranges.iter().map(range).collect();
        serde_json::from_value(serde_json::json!({ "responses": responses })).expect("an answer")
    }

    fn add(key: &str, amount: i64, floor: Option<i64>) -> Operation {
        Operation::Add { key: key.to_owned(), amount, floor }
    }

    fn append(key: &str, element: i64) -> Operation {
        Operation::Append { key: key.to_owned(), element }
    }

    fn read_of(key: &str) -> Operation {
        Operation::Read { key: key.to_owned() }
    }

    fn insert(key: &str) -> Operation {
        Operation::Insert { key: key.to_owned(), value: Value::Integer(1) }
    }

    fn write(key: &str) -> Operation {
        Operation::Write { key: key.to_owned(), value: Value::Integer(1) }
    }

    fn exchange(key: &str, expected: Option<i64>) -> Operation {
        let expected = expected.map(Value::Integer);
        Operation::CompareAndSet { key: key.to_owned(), expected, new: Value::Integer(9) }
    }

    #[test]
    fn conditions_that_etcd_compares_itself_go_in_one_request_and_others_in_two() {
        let one = |operations: &[Operation]| matches!(plan(operations), Ok(Plan::Writing(_)));
        let two = |operations: &[Operation]| matches!(plan(operations), Ok(Plan::ReadingFirst(_)));
        assert!(matches!(plan(&[read_of("a"), read_of("a")]), Ok(Plan::Reading(_))));
        assert!(one(&[insert("a")]));
        assert!(one(&[exchange("a", Some(1)), exchange("b", None), insert("c")]));
        assert!(two(&[append("a", 1)]) && two(&[add("a", 1, None)]));
        assert!(one(&[write("a"), read_of("b")]));
        assert!(two(&[write("a"), read_of("a")]), "a key is read as it was before or after, by its place");
        assert!(two(&[insert("a"), read_of("b")]), "what was read must be of the same moment");
        // etcd refuses two writes to one key in a transaction.
        assert!(two(&[insert("a"), exchange("a", Some(1))]));
        let scan = Operation::Scan { prefix: "p".to_owned(), after: None, limit: 1 };
        assert!(matches!(plan(std::slice::from_ref(&scan)), Ok(Plan::Reading(_))));
        assert!(plan(&[scan, insert("a")]).is_err());
    }

    #[test]
    fn a_write_is_bound_to_the_revision_of_everything_that_was_read() {
        let operations = [append("a", 3), read_of("b"), append("a", 4), read_of("a")];
        let Ok(Plan::ReadingFirst(keys)) = plan(&operations) else { panic!("read first") };
        let known = known(&keys, &read_back(&[&[("a", "[1]", 7)], &[]])).expect("both keys");
        let (found, txn) = carried_out(&operations, &known).expect("no condition");
        let list = Value::List(vec![1, 3, 4]);
        let expected = [Found::Done, Found::Value(None), Found::Done, Found::Value(Some(list.clone()))];
        assert_eq!(found, expected);
        let unchanged =
            |key: &str, revision: &str| Compare::Mod { key: encoded(key), mod_revision: revision.to_owned() };
        assert_eq!(txn.compare, [unchanged("a", "7"), unchanged("b", "0")]);
        assert_eq!(txn.success, [put("a", &list)]);
    }

    #[test]
    fn a_condition_of_the_transaction_s_own_is_refused_with_its_step() {
        let known = Known::from([("a".to_owned(), Some((Value::Integer(5), 3))), ("b".to_owned(), None)]);
        let refused = |operations: &[Operation]| carried_out(operations, &known).map_err(|error| error.step);
        assert!(refused(&[add("a", -5, Some(0)), add("b", 5, None)]).is_ok());
        assert_eq!(refused(&[add("b", 5, None), add("a", -6, Some(0))]).err(), Some(1));
        assert_eq!(refused(&[add("a", i64::MAX, None)]).err(), Some(0));
        assert_eq!(refused(&[append("a", 1)]).err(), Some(0));
        assert_eq!(refused(&[insert("b"), insert("b")]).err(), Some(1));
        assert_eq!(refused(&[exchange("a", Some(5)), exchange("a", Some(5))]).err(), Some(1));
    }

    #[test]
    fn what_was_read_instead_says_which_condition_was_not_met() {
        let operations = [exchange("a", Some(5)), insert("b")];
        let step = |done: &Done| refused(&operations, done).map(|refused| refused.step);
        assert_eq!(step(&read_back(&[&[("a", "4", 1)], &[]])), Some(0));
        assert_eq!(step(&read_back(&[&[], &[]])), Some(0));
        assert_eq!(step(&read_back(&[&[("a", "5", 1)], &[("b", "1", 2)]])), Some(1));
        assert_eq!(step(&read_back(&[&[("a", "5", 1)], &[]])), None, "both were met");
        assert_eq!(step(&read_back(&[&[]])), None);
    }

    #[test]
    fn what_is_read_beside_a_write_is_found_at_its_place() {
        let operations = [write("a"), read_of("b")];
        let answer = |second: serde_json::Value| {
            let answer =
                serde_json::json!({ "succeeded": true, "responses": [{ "response_put": {} }, second] });
            done(&operations, &serde_json::from_value(answer).expect("an answer"))
        };
        let held = serde_json::json!({ "response_range": { "kvs": [key_value("b", "7", 3)] } });
        assert_eq!(answer(held), Some(vec![Found::Done, Found::Value(Some(Value::Integer(7)))]));
        let nothing = serde_json::json!({ "response_range": {} });
        assert_eq!(answer(nothing), Some(vec![Found::Done, Found::Value(None)]));
        assert_eq!(answer(serde_json::json!({ "response_put": {} })), None);
        assert_eq!(done(&operations[..1], &read_back(&[&[]])), None);
    }

    #[test]
    fn a_scan_goes_on_behind_a_key_and_ends_with_its_prefix() {
        let scan = |after: Option<&str>| Operation::Scan {
            prefix: "p/".to_owned(),
            after: after.map(ToOwned::to_owned),
            limit: 2,
        };
        let check = |after: Option<&str>, from: &[u8]| {
            let expected =
                Range { key: encoded(from), range_end: Some(encoded("p0")), limit: Some("2".to_owned()) };
            assert_eq!(reading(&scan(after)), Request::RequestRange(expected));
        };
        check(None, b"p/");
        check(Some("a"), b"p/");
        check(Some("p/7"), b"p/7\0");
        let done = read_back(&[&[("p/1", "1", 1), ("p/2", "[2]", 1)]]);
        let entries = vec![("p/1".to_owned(), Value::Integer(1)), ("p/2".to_owned(), Value::List(vec![2]))];
        assert_eq!(found(&[scan(None)], &done), Some(vec![Found::Entries(entries)]));
        assert_eq!(found(&[read_of("p/1")], &done), None, "one key holds one value");
        let strange = read_back(&[&[("p/1", "hello", 1)]]);
        let foreign = vec![("p/1".to_owned(), Value::Foreign("hello".to_owned()))];
        assert_eq!(found(&[scan(None)], &strange), Some(vec![Found::Entries(foreign)]));
    }
}
