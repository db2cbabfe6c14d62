//! What the workloads that speak to databases of keys and values have in common with each other: the asking of one
//! transaction, and the reading of its answer.
//!
//! Owns no keys; each workload has its own.

use client::key_value::{Found, Operation, REFUSED, Value};
use client::{KeyValueSession, SessionError};
use history::ErrorClass;

use crate::workload::refused;

/// Runs a transaction in which a condition may fail because of what others did meanwhile. That is no trouble of the
/// database's, and counts as the conflict that it is.
pub(crate) async fn contended(
    session: &mut dyn KeyValueSession,
    operations: Vec<Operation>,
) -> Result<Vec<Found>, SessionError> {
    session.transact(operations).await.map_err(|error| match error.code.as_deref() {
        Some(REFUSED) => SessionError { class: ErrorClass::Serialization, ..error },
        _ => error,
    })
}

/// The number that a read found.
pub(crate) fn integer(found: Option<&Found>) -> Result<Option<i64>, SessionError> {
    match found {
        Some(Found::Value(None)) => Ok(None),
        Some(Found::Value(Some(Value::Integer(number)))) => Ok(Some(*number)),
        other => Err(senseless(other)),
    }
}

/// The list that a read found; a missing one is empty.
pub(crate) fn list(found: Option<&Found>) -> Result<Vec<i64>, SessionError> {
    match found {
        Some(Found::Value(None)) => Ok(Vec::new()),
        Some(Found::Value(Some(Value::List(list)))) => Ok(list.clone()),
        other => Err(senseless(other)),
    }
}

/// The text of a value.
pub(crate) fn text(value: &Value) -> Result<&str, SessionError> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(senseless(Some(&Found::Value(Some(other.clone()))))),
    }
}

/// The keys and values that a scan found.
pub(crate) fn entries(found: Option<&Found>) -> Result<&[(String, Value)], SessionError> {
    match found {
        Some(Found::Entries(entries)) => Ok(entries),
        other => Err(senseless(other)),
    }
}

/// Acknowledged, but not with what was asked for: nothing definite can be said of it.
pub(crate) fn senseless(found: Option<&Found>) -> SessionError {
    let kind = match found {
        Some(Found::Value(Some(Value::Integer(_)))) => "a number",
        Some(Found::Value(Some(Value::List(_)))) => "a list",
        Some(Found::Value(Some(Value::Text(_)))) => "a text",
        Some(Found::Value(Some(Value::Foreign(_)))) => "a value of somebody else",
        Some(Found::Value(None)) => "nothing",
        Some(Found::Entries(_)) => "a scan",
        Some(Found::Done) => "a write",
        None => "no answer",
    };
    SessionError { definite: false, ..refused(format!("a step was answered with {kind}")) }
}
