//! YCSB's records on databases of keys and values.
//!
//! Owns the keys: each field of a record stands under a key of its own, `usertable/user1.field0`, so that an update of one field
//! is one write, as in YCSB's bindings for hashes (Redis) and documents (MongoDB), and never a read and a write. What an operation
//! asks for of one record is one transaction; a scan is one of all keys behind the record's first. Writes ask for nothing: as with
//! Redis there, an insert and an update are the same.

use std::collections::BTreeMap;
use std::ops::Range;

use client::SessionError;
use client::key_value::{Found, KeyValueSession, Operation, Value};

use crate::key_value::{entries, senseless};
use crate::keyed_cells::is_cell;
use crate::workload::refused;

/// What all keys begin with.
pub(super) const FOLDER: &str = "usertable/";

/// What the keys of a record begin with. A point sorts before all digits: records are in the order of their names.
fn of_record(name: &str) -> String {
    format!("{FOLDER}{name}.")
}

fn key(name: &str, field: usize) -> String {
    format!("{}field{field}", of_record(name))
}

/// The write of one field.
pub(super) fn write_of(name: &str, field: usize, value: String) -> Operation {
    Operation::Write { key: key(name, field), value: Value::Text(value) }
}

/// The record's name and the field of a key, without its folder.
fn parts(key: &str) -> Option<(&str, usize)> {
    let (name, field) = key.split_once(".field")?;
    Some((name, field.parse().ok()?))
}

/// The cell of a key, by what numbers the names of records have and how many fields each has.
pub(super) fn cell_of(key: &str, numbers: &BTreeMap<String, u64>, fields: usize) -> Option<(u64, usize)> {
    let (name, field) = parts(key)?;
    let number = numbers.get(name)?;
    (field < fields).then_some((*number, field))
}

/// Reads these fields of a record, which must be there.
pub(super) async fn read(
    session: &mut dyn KeyValueSession,
    name: &str,
    fields: Range<usize>,
) -> Result<(), SessionError> {
    let reads = fields.clone().map(|field| Operation::Read { key: key(name, field) }).collect();
    let found = session.transact(reads).await?;
    for (field, found) in fields.zip(&found) {
        match found {
            Found::Value(Some(value)) => is_cell(value, format_args!("field{field} of {name}"))?,
            Found::Value(None) => return Err(refused(format!("field{field} of {name} is not there"))),
            other => return Err(senseless(Some(other))),
        }
    }
    Ok(())
}

/// Reads so many records, or as many as there are, from this one on.
pub(super) async fn scan(
    session: &mut dyn KeyValueSession,
    name: &str,
    records: i64,
    fields: usize,
) -> Result<(), SessionError> {
    let limit = u64::try_from(records).unwrap_or(0).saturating_mul(fields as u64);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let scan = Operation::Scan { prefix: FOLDER.to_owned(), after: Some(of_record(name)), limit };
    let found = session.transact(vec![scan]).await?;
    entries(found.first()).map(drop)
}

/// Writes these fields of a record, whether they are there or not.
pub(super) async fn write(
    session: &mut dyn KeyValueSession,
    name: &str,
    fields: Range<usize>,
    values: &[String],
) -> Result<(), SessionError> {
    let writes = fields.zip(values).map(|(field, value)| write_of(name, field, value.clone())).collect();
    session.transact(writes).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_record_lie_together_and_in_the_order_of_the_records_names() {
        let names = ["user1", "user10", "user12", "user2"];
        let keys: Vec<String> = names.iter().flat_map(|name| (0..10).map(|field| key(name, field))).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        let behind = |name: &str| keys.iter().find(|key| **key > of_record(name));
        assert_eq!(behind("user10"), Some(&key("user10", 0)), "a scan begins with the record it names");
    }

    #[test]
    fn a_key_that_no_record_has_is_no_cell() {
        let numbers = BTreeMap::from([("user7".to_owned(), 3)]);
        let cell = |key: &str| cell_of(key.strip_prefix(FOLDER).expect("its folder"), &numbers, 2);
        assert_eq!(cell(&key("user7", 1)), Some((3, 1)));
        assert_eq!(cell(&key("user7", 2)), None, "an earlier run had more fields");
        assert_eq!(cell(&key("user8", 0)), None);
        assert_eq!(cell("usertable/user7"), None);
        assert_eq!(cell("usertable/user7.field01x"), None);
    }
}
