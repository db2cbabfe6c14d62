//! An insert of a key that nobody else has, and that is refused because the key is there.

use client::SessionError;
use client::key_value::REFUSED;

/// The class of SQLSTATE of a constraint that was violated; the tables of those who ask have none but their keys.
const INTEGRITY_CLASS: &str = "23";
/// MySQL's `ER_DUP_ENTRY`.
const DUPLICATE_ENTRY: &str = "1062";

/// The error of such an insert. Where its key is taken, it has come through before, repeated by the database or by what lies
/// between, and may well have happened.
pub(crate) fn where_taken(error: SessionError) -> SessionError {
    let is_taken =
        |code: &str| code.starts_with(INTEGRITY_CLASS) || [DUPLICATE_ENTRY, REFUSED].contains(&code);
    let is_definite = error.definite && !error.code.as_deref().is_some_and(is_taken);
    SessionError { definite: is_definite, ..error }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::refused;

    #[test]
    fn an_insert_whose_number_is_taken_has_come_through_before() {
        let is_definite = |code: Option<&str>| {
            let code = code.map(str::to_owned);
            where_taken(SessionError { code, ..refused("no".to_owned()) }).definite
        };
        for taken in ["23505", "23000", "1062", REFUSED] {
            assert!(!is_definite(Some(taken)), "{taken}");
        }
        // Whatever has no code says nothing of a key.
        assert!(is_definite(None) && is_definite(Some("40001")) && is_definite(Some("1213")));
    }
}
