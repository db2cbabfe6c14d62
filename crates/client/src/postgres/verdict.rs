//! What an answer of the server says: the class of an error, and whether the transaction certainly did not happen.
//!
//! Pure: takes codes and states, does no I/O. Everything here leans to "may have happened".

use history::ErrorClass;

use crate::statement_kind::StatementKind;

/// The fields of an error or notice that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerMessage {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, `NOTICE` ..., never translated.
    pub(super) severity: String,
    /// SQLSTATE.
    pub(super) code: String,
    /// The primary text.
    pub(super) message: String,
    /// Further text.
    pub(super) detail: String,
    /// Source file and routine of the server that reported it; never translated.
    pub(super) file: String,
    /// See `file`.
    pub(super) routine: String,
}

impl ServerMessage {
    /// Whether the server closes the connection after it.
    pub(super) fn ends_the_session(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Whether this notice takes back the acknowledgement of the commit it came with.
    ///
    /// When a wait for synchronous replication is cut short, the server answers the commit with success and a
    /// warning: the transaction is on its own disk but perhaps nowhere else. Texts are translated by the server, so
    /// the place in its source that reports it is looked at too; and at an explicit COMMIT nothing else reports a
    /// plain warning, so any is taken for a doubt.
    pub(super) fn casts_doubt_on_a_commit(&self, kind: StatementKind) -> bool {
        if self.severity != "WARNING" {
            return false;
        }
        self.routine == "SyncRepWaitForLSN"
            || self.file == "syncrep.c"
            || self.code == "57P01"
            || self.message.contains("synchronous replication")
            || self.detail.contains("might not have been replicated")
            || (kind == StatementKind::Commit && self.code == "01000")
    }
}

/// The class an SQLSTATE is counted under.
pub(super) fn class_of(code: &str) -> ErrorClass {
    match code {
        "40001" | "40P01" => ErrorClass::Serialization,
        "25006" => ErrorClass::ReadOnly,
        // Shutting down, crashed, starting up, database dropped, idle too long, too many connections.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "53300" => ErrorClass::Connection,
        code if code.starts_with("08") => ErrorClass::Connection,
        _ => ErrorClass::Other,
    }
}

/// Whether an error with this code and these words, in answer to a statement that could commit, proves that nothing was
/// committed.
///
/// Only classes the server raises before it writes its commit record are listed. A cancelled query (57014) is not:
/// the cancel may strike between the commit record and the answer. Nor is 40003, which says itself that it does
/// not know, nor anything of the classes 53, 57, 58 and XX. Nor is YugabyteDB's 40001 "Transaction expired or aborted by a
/// conflict": it asks for the commit again after a timeout, and finds a transaction gone that was committed the first time
/// (yugabyte-db, issue 5228).
pub(super) fn proves_rollback(code: &str, message: &str) -> bool {
    let class = code.get(..2).unwrap_or_default();
    let may_have_been_committed_before = class == "40" && message.contains("expired");
    code != "40003"
        && !may_have_been_committed_before
        && matches!(class, "0A" | "22" | "23" | "25" | "40" | "42" | "44" | "P0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement_kind::StatementKind::*;

    #[test]
    fn codes_fall_into_their_classes_and_only_some_prove_a_rollback() {
        let check = |code: &str, class, proof| {
            assert_eq!((class_of(code), proves_rollback(code, "words")), (class, proof), "{code}");
        };
        check("40001", ErrorClass::Serialization, true);
        check("40P01", ErrorClass::Serialization, true);
        check("40003", ErrorClass::Other, false);
        check("25006", ErrorClass::ReadOnly, true);
        check("23505", ErrorClass::Other, true);
        check("57P01", ErrorClass::Connection, false);
        check("57P02", ErrorClass::Connection, false);
        check("57P03", ErrorClass::Connection, false);
        check("57014", ErrorClass::Other, false);
        check("08006", ErrorClass::Connection, false);
        check("XX000", ErrorClass::Other, false);
        check("53100", ErrorClass::Other, false);
        check("", ErrorClass::Other, false);
        check("é1", ErrorClass::Other, false);
        let expired = "Operation expired: Transaction expired or aborted by a conflict: 40001";
        assert!(!proves_rollback("40001", expired), "committed before it was asked again, perhaps");
    }

    #[test]
    fn a_cut_short_wait_for_a_standby_casts_doubt_in_any_language() {
        let check = |severity: &str, code: &str, message: &str, routine: &str, kind, expected| {
            let notice = ServerMessage {
                severity: severity.into(),
                code: code.into(),
                message: message.into(),
                routine: routine.into(),
                ..ServerMessage::default()
            };
            assert_eq!(notice.casts_doubt_on_a_commit(kind), expected, "{notice:?}");
        };
        let english = "canceling wait for synchronous replication due to user request";
        check("WARNING", "01000", english, "", Single, true);
        check("WARNING", "01000", "Warten wird abgebrochen", "SyncRepWaitForLSN", Single, true);
        check("WARNING", "57P01", "", "", Single, true);
        check("WARNING", "01000", "attente interrompue", "", Commit, true);
        check("WARNING", "01000", "a trigger's own warning", "exec_stmt_raise", Single, false);
        check("NOTICE", "00000", english, "", Commit, false);
    }
}
