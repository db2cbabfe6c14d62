//! The trait that key-value workloads are written against.
//!
//! Owns the trait and the text of a value; the words of its transactions are the control database's, whose client is one of those that implement it.

use crate::connection::{Connection, SessionFuture};

pub use control::transaction::{Found, Operation, Value};

/// One connection to a database of keys and values.
pub trait KeyValueSession: Connection {
    /// Carries out one transaction of micro-operations, whole or not at all, as if no other ran beside it. Answers with
    /// what each found, in order.
    ///
    /// # Errors
    /// With [`crate::SessionError::definite`] telling whether it may have happened all the same. A condition that was not
    /// met (another value held, below the floor, there already) is definite and has the code [`REFUSED`].
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>>;

    /// Whether an append writes the whole list again, so that a list that grows for ever costs ever more.
    fn rewrites_lists(&self) -> bool {
        false
    }
}

/// The code of a transaction that was turned down by a condition of its own.
pub const REFUSED: &str = "refused";

/// A value as it stands under a key, which a person can read with the database's own tools: `42`, `[1,2]`, or `"text"`, as
/// JSON has them.
pub(crate) fn written(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::List(list) => {
            let elements: Vec<String> = list.iter().map(ToString::to_string).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Foreign(text) => text.clone(),
    }
}

/// The value that stands there.
pub(crate) fn read(bytes: &[u8]) -> Value {
    let own = std::str::from_utf8(bytes).ok().and_then(|text| match bytes.first() {
        Some(b'[') => serde_json::from_str(text).ok().map(Value::List),
        Some(b'"') => serde_json::from_str(text).ok().map(Value::Text),
        _ => text.parse().ok().map(Value::Integer),
    });
    own.unwrap_or_else(|| Value::Foreign(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written_and_others_are_not_ours() {
        for value in [
            Value::Integer(0),
            Value::Integer(i64::MIN),
            Value::List(Vec::new()),
            Value::List(vec![7, -1, i64::MAX]),
            Value::Text(String::new()),
            Value::Text("42".to_owned()),
            Value::Text("[1] \"said\"\n\\ \u{e9}".to_owned()),
        ] {
            assert_eq!(read(written(&value).as_bytes()), value);
        }
        for strange in ["", "x", "[1,", "[\"a\"]", "9223372036854775808", "1.5", "\"", "\"a\"b"] {
            assert_eq!(read(strange.as_bytes()), Value::Foreign(strange.to_owned()));
        }
        assert_eq!(read(&[b'"', 0xff, b'"']), Value::Foreign("\"\u{fffd}\"".to_owned()));
    }
}
