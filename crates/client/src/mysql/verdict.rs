//! What an error of MySQL, MariaDB or Galera says: its class, and whether the transaction certainly did not happen.
//!
//! Pure. Everything here leans to "may have happened". Sources: MariaDB documentation, "MariaDB Error Code Reference" and
//! "InnoDB error handling" of the MySQL manual (a deadlock rolls the transaction back, other errors the statement); Galera
//! documentation, "Certification-Based Replication" (a transaction that fails certification is rolled back everywhere and
//! answered with 1213) and "Node provisioning and recovery" (1047 while a node is outside the primary component).

use history::ErrorClass;

use crate::SessionError;

/// `ER_LOCK_DEADLOCK`: InnoDB's deadlock, and Galera's certification failure, at COMMIT as well. Rolled back whole.
pub(super) const DEADLOCK: u16 = 1213;

/// `ER_TRANSACTION_ROLLBACK_DURING_COMMIT`: a failed certification of Group Replication, and what a member answers that cannot learn
/// what became of transactions which it had sent to the group (MySQL, plugin/group_replication, `plugin_utils.h`).
const ROLLBACK_DURING_COMMIT: u16 = 3101;

/// The class a code is counted under.
pub(super) fn class_of(code: u16) -> ErrorClass {
    match code {
        // Deadlock; lock wait timeout; record has changed since last read (snapshot isolation); certification.
        DEADLOCK | 1205 | 1020 | ROLLBACK_DURING_COMMIT => ErrorClass::Serialization,
        // WSREP has not yet prepared node for application use; --read-only; read-only transaction; read-only mode.
        1047 | 1290 | 1792 | 1836 => ErrorClass::ReadOnly,
        // Too many connections; shutdown in progress; too many of the user's; aborted; killed; network errors.
        1040 | 1053 | 1203 | 1226 | 1152 | 1184 | 1927 | 1158..=1161 => ErrorClass::Connection,
        _ => ErrorClass::Other,
    }
}

/// Whether an error with this code, in answer to a statement that could commit, proves that nothing was committed.
///
/// Statements that failed on their own account are rolled back before they are answered. What may strike while the commit
/// is under way is not listed: an interruption (1317), a kill (1927), a shutdown (1053), `ER_ERROR_DURING_COMMIT` (1180),
/// which Galera answers with when it lost its group meanwhile, [`ROLLBACK_DURING_COMMIT`], and whatever is unknown.
pub(super) fn proves_rollback(code: u16, sql_state: &str) -> bool {
    let of_statement = matches!(
        sql_state.get(..2).unwrap_or_default(),
        "0A" | "21" | "22" | "23" | "25" | "40" | "42" | "44"
    );
    code != ROLLBACK_DURING_COMMIT
        && (of_statement
            || matches!(
                code,
                // Deadlock, lock wait timeout, snapshot isolation; the node or the transaction takes no writes; the table is
                // full; no default for a field, and values that strict mode refuses.
                DEADLOCK | 1205 | 1020 | 1047 | 1290 | 1792 | 1836 | 1114 | 1364 | 1366 | 1406 | 1264
            ))
}

/// Whether a statement only reads, by its first word.
pub(super) fn is_read(sql: &str) -> bool {
    begins_with(sql, &["select"])
}

/// Whether a statement reads or changes rows, by its first word: others may commit what is open.
pub(super) fn is_of_rows(sql: &str) -> bool {
    begins_with(sql, &["select", "insert", "update", "delete", "replace", "with", "table", "values"])
}

fn begins_with(sql: &str, words: &[&str]) -> bool {
    let first = sql.split_whitespace().next().unwrap_or_default();
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// Statements that were sent together were answered well, none of them ends a transaction, and the one that was open is gone.
/// A Galera node that rolls it back between two of them runs the next one by itself: `definite` where that can only have read.
pub(super) fn lost_between(peer: &str, definite: bool) -> SessionError {
    let message =
        format!("{peer}: the transaction was rolled back between statements that were sent together");
    SessionError { class: ErrorClass::Serialization, definite, message, code: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_statement_does_to_rows_is_told_by_its_first_word() {
        let check = |sql: &str, reads: bool, of_rows: bool| {
            assert_eq!((is_read(sql), is_of_rows(sql)), (reads, of_rows), "{sql}");
        };
        check(" select 1", true, true);
        check("SELECT a FROM t FOR UPDATE", true, true);
        check("INSERT INTO t SELECT 1", false, true);
        check("CREATE TABLE t (a int)", false, false);
        check("/* SELECT */ DELETE", false, false);
        check("", false, false);
    }

    #[test]
    fn codes_fall_into_their_classes_and_only_some_prove_a_rollback() {
        let check = |code: u16, state: &str, class, proof| {
            assert_eq!((class_of(code), proves_rollback(code, state)), (class, proof), "{code}");
        };
        check(1213, "40001", ErrorClass::Serialization, true);
        check(1205, "HY000", ErrorClass::Serialization, true);
        check(1020, "HY000", ErrorClass::Serialization, true);
        check(1047, "08S01", ErrorClass::ReadOnly, true);
        check(1290, "HY000", ErrorClass::ReadOnly, true);
        check(1792, "25006", ErrorClass::ReadOnly, true);
        check(1062, "23000", ErrorClass::Other, true);
        check(1146, "42S02", ErrorClass::Other, true);
        check(1180, "HY000", ErrorClass::Other, false);
        check(3101, "40000", ErrorClass::Serialization, false);
        check(1317, "70100", ErrorClass::Other, false);
        check(1927, "70100", ErrorClass::Connection, false);
        check(1053, "08S01", ErrorClass::Connection, false);
        check(1105, "HY000", ErrorClass::Other, false);
        check(0, "", ErrorClass::Other, false);
        check(65_535, "é", ErrorClass::Other, false);
    }
}
