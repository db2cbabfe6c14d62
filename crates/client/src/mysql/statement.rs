//! Statements as MySQL takes them: `$1` becomes `?` or a literal, and which kind of statement it is.
//!
//! Owns the text; asks nothing.

use super::verdict::is_of_rows;
use crate::placeholders::{self, Quoting};
use crate::sql::SqlValue;
use crate::statement_kind::{StatementKind, TransactionStatus};

/// A statement's text, cut at its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// One more than there are places.
    pieces: Vec<String>,
    /// Which parameter stands at each place, from 0; one may stand at several.
    pub(super) places: Vec<usize>,
    pub(super) kind: StatementKind,
}

impl Source {
    pub(super) fn new(sql: &str) -> Self {
        let kind = kind_of(sql);
        // COMMIT has no other name here.
        let sql = if kind == StatementKind::Commit && sql.trim().eq_ignore_ascii_case("end") {
            "COMMIT"
        } else {
            sql
        };
        let (pieces, places) = placeholders::cut(sql, Quoting::WithBackslashes);
        Self { pieces, places, kind }
    }

    /// Whether running it in `status` can make anything permanent.
    pub(super) fn may_commit(&self, status: TransactionStatus) -> bool {
        may_commit(self.pieces.first().map_or("", String::as_str), self.kind, status)
    }

    /// The text to prepare; nothing for what is asked as it is each time: servers prepare no BEGIN, nor several at once.
    pub(super) fn to_prepare(&self) -> Option<String> {
        (self.kind == StatementKind::Single).then(|| self.pieces.join("?"))
    }

    /// The text with these parameters in it; nothing when there are too few.
    pub(super) fn filled_in(&self, parameters: &[SqlValue<'_>]) -> Option<String> {
        let mut pieces = self.pieces.iter();
        let mut sql = pieces.next()?.clone();
        for (place, piece) in self.places.iter().zip(pieces) {
            push_literal(parameters.get(*place)?, &mut sql);
            sql.push_str(piece);
        }
        Some(sql)
    }
}

fn push_literal(value: &SqlValue<'_>, sql: &mut String) {
    match value {
        SqlValue::Null => sql.push_str("NULL"),
        SqlValue::Integer(number) => sql.push_str(itoa::Buffer::new().format(*number)),
        SqlValue::Text(text) => {
            sql.push('\'');
            for sign in text.chars() {
                match sign {
                    '\'' => sql.push_str("''"),
                    '\\' => sql.push_str("\\\\"),
                    '\0' => sql.push_str("\\0"),
                    other => sql.push(other),
                }
            }
            sql.push('\'');
        }
    }
}

/// Whether running `sql`, which is of this kind, in `status` can make anything permanent. Before statements that define something, lock
/// tables or begin a transaction MySQL commits the one that is open (Reference Manual, "Statements That Cause an Implicit Commit").
pub(super) fn may_commit(sql: &str, kind: StatementKind, status: TransactionStatus) -> bool {
    let commits_what_is_open = match kind {
        StatementKind::Begin => true,
        StatementKind::Single => !is_of_rows(sql),
        StatementKind::Commit | StatementKind::Rollback | StatementKind::Several => false,
    };
    kind.may_commit(status) || (status == TransactionStatus::Open && commits_what_is_open)
}

/// The kind of the statement(s) in `sql`. A transaction's isolation level is set by a statement of its own before it
/// begins, which commits as little as the beginning itself.
pub(super) fn kind_of(sql: &str) -> StatementKind {
    let whole = StatementKind::of(sql);
    let is_harmless = |part: &str| {
        let sets = part.trim_start().get(..4).is_some_and(|word| word.eq_ignore_ascii_case("set "));
        sets || StatementKind::of(part) == StatementKind::Begin
    };
    let begins = sql.trim().trim_end_matches(';').rsplit(';').next().unwrap_or_default();
    match whole {
        StatementKind::Several
            if StatementKind::of(begins) == StatementKind::Begin && sql.split(';').all(is_harmless) =>
        {
            StatementKind::Begin
        }
        other => other,
    }
}

/// Lines of a bulk load as the rows of an INSERT, appended; how many there are. Their escapes are those of a text literal,
/// but for the quote.
pub(super) fn push_rows(lines: &str, sql: &mut String, is_first: &mut bool) -> u64 {
    let mut count = 0;
    for line in lines.lines() {
        sql.push_str(if std::mem::take(is_first) { "(" } else { ",(" });
        for (place, cell) in line.split('\t').enumerate() {
            if place > 0 {
                sql.push(',');
            }
            if cell == "\\N" {
                sql.push_str("NULL");
                continue;
            }
            sql.push('\'');
            for (part, text) in cell.split('\'').enumerate() {
                sql.push_str(if part > 0 { "''" } else { "" });
                sql.push_str(text);
            }
            sql.push('\'');
        }
        sql.push(')');
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_outside_quotes_and_comments_and_may_stand_twice() {
        let check = |sql: &str, prepared: &str, places: &[usize]| {
            let source = Source::new(sql);
            assert_eq!(source.to_prepare().as_deref(), Some(prepared));
            assert_eq!(source.places, places, "{sql}");
        };
        check("SELECT 1", "SELECT 1", &[]);
        check(
            "UPDATE b SET x = x - $1 WHERE a = $2 AND x >= $1",
            "UPDATE b SET x = x - ? WHERE a = ? AND x >= ?",
            &[0, 1, 0],
        );
        check(
            "SELECT '$1', \"a\\\"$2\", `$3`, 'it''s $4', $12 -- $5\n, $1 /* $6 */",
            "SELECT '$1', \"a\\\"$2\", `$3`, 'it''s $4', ? -- $5\n, ? /* $6 */",
            &[11, 0],
        );
        check("SELECT $, $0, '$1", "SELECT $, $0, '$1", &[]);
        check("SELECT 'ü$1', $1", "SELECT 'ü$1', ?", &[0]);
    }

    #[test]
    fn what_servers_do_not_prepare_is_asked_as_text() {
        let check = |sql: &str, kind| {
            assert_eq!((Source::new(sql).kind, Source::new(sql).to_prepare()), (kind, None), "{sql}");
        };
        check("BEGIN", StatementKind::Begin);
        check("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION", StatementKind::Begin);
        check("START TRANSACTION; INSERT INTO t VALUES (1)", StatementKind::Several);
        check("COMMIT", StatementKind::Commit);
        check("ROLLBACK", StatementKind::Rollback);
        assert_eq!(Source::new("END").filled_in(&[]).as_deref(), Some("COMMIT"));
    }

    #[test]
    fn what_is_no_work_on_rows_may_commit_the_transaction_that_is_open() {
        let may_commit = |sql: &str| {
            let statuses = [TransactionStatus::Idle, TransactionStatus::Open];
            statuses.map(|status| Source::new(sql).may_commit(status))
        };
        for rows in ["INSERT INTO t VALUES ($1)", "select 1", "UPDATE t SET x = $1", "DELETE FROM t"] {
            assert_eq!(may_commit(rows), [true, false], "{rows}");
        }
        for other in ["TRUNCATE t", "ALTER TABLE t ADD y INT", "LOCK TABLES t WRITE", "CALL p()"] {
            assert_eq!(may_commit(other), [true, true], "{other}");
        }
        assert_eq!(may_commit("START TRANSACTION"), [false, true]);
        assert_eq!((may_commit("ROLLBACK"), may_commit("COMMIT")), ([false, false], [true, true]));
    }

    #[test]
    fn literals_and_rows_keep_quotes_and_backslashes_for_what_they_are() {
        let filled = Source::new("INSERT INTO t VALUES ($1, $2, $3)").filled_in(&[
            SqlValue::Integer(-5),
            SqlValue::Null,
            SqlValue::Text("it's \\ \0 ü"),
        ]);
        assert_eq!(filled.as_deref(), Some("INSERT INTO t VALUES (-5, NULL, 'it''s \\\\ \\0 ü')"));
        assert_eq!(Source::new("SELECT $2").filled_in(&[SqlValue::Null]), None);
        let (mut sql, mut is_first) = (String::new(), true);
        assert_eq!(push_rows("1\tit's\t\\N\n2\ta\\\\b\t\n", &mut sql, &mut is_first), 2);
        assert_eq!(sql, "('1','it''s',NULL),('2','a\\\\b','')");
    }
}
