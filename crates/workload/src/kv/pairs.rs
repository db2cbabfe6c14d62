//! kv's keys and values on databases of them.
//!
//! Owns the form of both: `kv/` and the key's number in hexadecimal, in the order of the numbers; and a text, the number of the write and
//! behind it the bytes that the options ask for. A batch is one transaction.

use client::SessionError;
use client::key_value::{Found, KeyValueSession, Operation, Value};

use crate::cells::numbered;
use crate::key_value::{entries, senseless};
use crate::keyed_cells::is_cell;

/// What all keys begin with.
pub(super) const FOLDER: &str = "kv/";

/// Signed numbers in the order of the keys' bytes.
const SIGN: u64 = 1 << 63;

fn key(number: i64) -> String {
    format!("{FOLDER}{:016x}", number.cast_unsigned() ^ SIGN)
}

/// The number of a key, without its folder.
pub(super) fn number_of_key(key: &str) -> Option<i64> {
    let number = u64::from_str_radix(key, 16).ok()?;
    (key.len() == 16).then_some((number ^ SIGN).cast_signed())
}

/// The write of a key.
pub(super) fn write_of(number: i64, write: u64, block: &str) -> Operation {
    Operation::Write { key: key(number), value: Value::Text(numbered(write) + block) }
}

/// Writes the same to each of these keys.
pub(super) async fn write(
    session: &mut dyn KeyValueSession,
    keys: &[i64],
    write: u64,
    block: &str,
) -> Result<(), SessionError> {
    let writes = keys.iter().map(|number| write_of(*number, write, block)).collect();
    session.transact(writes).await.map(drop)
}

/// Reads these keys, whether they are there or not.
pub(super) async fn read(session: &mut dyn KeyValueSession, keys: &[i64]) -> Result<(), SessionError> {
    let reads = keys.iter().map(|number| Operation::Read { key: key(*number) }).collect();
    session.transact(reads).await?.iter().try_for_each(|found| match found {
        Found::Value(None) => Ok(()),
        Found::Value(Some(value)) => is_cell(value, "a value"),
        other => Err(senseless(Some(other))),
    })
}

/// Reads the keys from this one on, at most so many; all of them without a limit.
pub(super) async fn span(
    session: &mut dyn KeyValueSession,
    first: i64,
    limit: Option<u32>,
) -> Result<(), SessionError> {
    // The key itself, and those behind it, of the same moment.
    let mut operations = vec![Operation::Read { key: key(first) }];
    let behind = limit.map_or(u32::MAX, |limit| limit.saturating_sub(1));
    if behind > 0 {
        let (prefix, after) = (FOLDER.to_owned(), Some(key(first)));
        operations.push(Operation::Scan { prefix, after, limit: behind });
    }
    let found = session.transact(operations).await?;
    match found.get(1) {
        None => Ok(()),
        behind => entries(behind)?.iter().try_for_each(|(key, value)| is_cell(value, key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_their_numbers_and_tell_them() {
        let numbers = [i64::MIN, -7, -1, 0, 1, 10, i64::MAX];
        let keys = numbers.map(key);
        assert!(keys.is_sorted(), "{keys:?}");
        for (number, key) in numbers.into_iter().zip(keys) {
            assert_eq!(key.strip_prefix(FOLDER).and_then(number_of_key), Some(number));
        }
        assert_eq!(number_of_key("7"), None);
        assert_eq!(number_of_key("800000000000000x"), None);
    }
}
