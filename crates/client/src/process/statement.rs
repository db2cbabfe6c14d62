//! Statements as a program takes them: cut at their parameters, transactions begun and ended by steps of their own.
//!
//! Owns the text; asks nothing.

use crate::placeholders::{self, Quoting};
use crate::sql::{Dialect, SqlValue};
use crate::statement_kind::StatementKind;

use super::words::{Step, Value};

/// One statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) kind: StatementKind,
    /// Its text, cut at its parameters; of a transaction's beginning its statements.
    pieces: Vec<String>,
    /// Which parameter stands at each place, from 0; one may stand at several.
    places: Vec<usize>,
    /// Whether the driver begins transactions in its own way, without a statement.
    begun_by_driver: bool,
}

impl Source {
    /// A statement by its text, which may be the beginning of a transaction in several parts.
    pub(super) fn new(sql: &str, dialect: Dialect) -> Self {
        let parts = split(sql, quoting(dialect));
        let is_beginning = |part: &String| StatementKind::of(part) == StatementKind::Begin;
        if parts.last().is_some_and(is_beginning) && parts.iter().all(|part| is_harmless(part)) {
            return Self::beginning(parts, dialect);
        }
        let kind = StatementKind::of(sql);
        let (pieces, places) = placeholders::cut(sql, quoting(dialect));
        Self { kind, pieces, places, begun_by_driver: false }
    }

    /// The beginning of a transaction.
    fn beginning(pieces: Vec<String>, dialect: Dialect) -> Self {
        let begun_by_driver = dialect == Dialect::Standard;
        Self { kind: StatementKind::Begin, pieces, places: Vec::new(), begun_by_driver }
    }

    /// The statements of a text, each by itself; what begins a transaction in several parts is one.
    pub(super) fn all(sql: &str, dialect: Dialect) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut setting: Vec<String> = Vec::new();
        for part in split(sql, quoting(dialect)) {
            let kind = StatementKind::of(&part);
            if is_setting_of_transaction(&part) {
                setting.push(part);
                continue;
            }
            let own: Vec<String> = std::mem::take(&mut setting);
            if kind == StatementKind::Begin {
                found.push(Self::beginning(own.into_iter().chain([part]).collect(), dialect));
                continue;
            }
            found.extend(own.iter().map(|text| Self::whole(text)));
            found.push(Self::whole(&part));
        }
        found.extend(setting.iter().map(|text| Self::whole(text)));
        found
    }

    /// A statement without parameters.
    fn whole(text: &str) -> Self {
        Self { kind: StatementKind::of(text), ..Self::plain(text.to_owned()) }
    }

    /// A statement that is sent as it is.
    pub(super) fn plain(text: String) -> Self {
        let (kind, pieces) = (StatementKind::Single, vec![text]);
        Self { kind, pieces, places: Vec::new(), begun_by_driver: false }
    }

    /// The step that carries it out with these parameters; nothing when there are too few.
    pub(super) fn step<'a>(&'a self, parameters: &[SqlValue<'a>]) -> Option<Step<'a>> {
        Some(match self.kind {
            StatementKind::Begin => {
                let text = self.pieces.join("; ").to_uppercase();
                Step::Begin {
                    isolation: isolation(&text),
                    read_only: text.contains("READ ONLY"),
                    sql: if self.begun_by_driver { Vec::new() } else { self.pieces.clone() },
                }
            }
            StatementKind::Commit => Step::Commit {},
            StatementKind::Rollback => Step::Rollback {},
            StatementKind::Single | StatementKind::Several => {
                let value = |place: &usize| {
                    Some(match parameters.get(*place)? {
                        SqlValue::Null => Value::Null,
                        SqlValue::Integer(number) => Value::Integer(*number),
                        SqlValue::Text(text) => Value::Text(text),
                    })
                };
                Step::Statement {
                    sql: &self.pieces,
                    parameters: self.places.iter().map(value).collect::<Option<_>>()?,
                }
            }
        })
    }
}

fn quoting(dialect: Dialect) -> Quoting {
    match dialect {
        Dialect::Mysql => Quoting::WithBackslashes,
        Dialect::Postgres | Dialect::Standard | Dialect::Cql => Quoting::Doubled,
    }
}

fn is_setting_of_transaction(part: &str) -> bool {
    part.get(..16).is_some_and(|words| words.eq_ignore_ascii_case("set transaction "))
}

fn is_harmless(part: &str) -> bool {
    is_setting_of_transaction(part) || StatementKind::of(part) == StatementKind::Begin
}

/// The isolation level that a beginning names, in capitals.
fn isolation(text: &str) -> Option<String> {
    let behind = text.split_once("ISOLATION LEVEL ")?.1;
    let levels = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
    levels.iter().find(|level| behind.starts_with(**level)).map(|level| (*level).to_owned())
}

/// The statements of a text, at its semicolons outside of quotes and comments.
fn split(sql: &str, quoting: Quoting) -> Vec<String> {
    let parts = placeholders::statements(sql, quoting).into_iter().map(str::trim);
    let is_comment = |part: &str| part.starts_with("--") && !part.contains('\n');
    parts.filter(|part| !part.is_empty() && !is_comment(part)).map(str::to_owned).collect()
}

/// Lines of a bulk load as the rows of an INSERT, appended; how many there are. A cell that is a whole number is written as
/// one: not every database takes a text for it.
pub(super) fn push_rows(lines: &str, dialect: Dialect, sql: &mut String, is_first: &mut bool) -> u64 {
    let mut count = 0;
    for line in lines.lines() {
        sql.push_str(if std::mem::take(is_first) { "(" } else { ",(" });
        for (place, cell) in line.split('\t').enumerate() {
            if place > 0 {
                sql.push(',');
            }
            push_cell(cell, dialect, sql);
        }
        sql.push(')');
        count += 1;
    }
    count
}

fn push_cell(cell: &str, dialect: Dialect, sql: &mut String) {
    if cell == "\\N" {
        return sql.push_str("NULL");
    }
    if cell.parse::<i64>().is_ok_and(|number| number.to_string() == cell) {
        return sql.push_str(cell);
    }
    sql.push('\'');
    let mut signs = cell.chars();
    while let Some(sign) = signs.next() {
        let meant = match sign {
            // What stands behind a backslash is meant as it is.
            '\\' => signs.next().unwrap_or('\\'),
            other => other,
        };
        match meant {
            '\'' => sql.push_str("''"),
            '\\' if dialect == Dialect::Mysql => sql.push_str("\\\\"),
            other => sql.push(other),
        }
    }
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(source: &Source, parameters: &[SqlValue<'_>]) -> String {
        serde_json::to_string(&source.step(parameters).expect("enough parameters")).expect("JSON")
    }

    #[test]
    fn transactions_begin_and_end_by_steps_and_statements_are_cut_at_their_parameters() {
        let check = |dialect, sql: &str, kind, expected: &str| {
            let source = Source::new(sql, dialect);
            assert_eq!(source.kind, kind, "{sql}");
            assert_eq!(told(&source, &[SqlValue::Integer(1), SqlValue::Text("x")]), expected, "{sql}");
        };
        check(
            Dialect::Postgres,
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            StatementKind::Begin,
            r#"{"begin":{"isolation":"REPEATABLE READ","read_only":true,"sql":["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"]}}"#,
        );
        check(
            Dialect::Mysql,
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION",
            StatementKind::Begin,
            r#"{"begin":{"isolation":"SERIALIZABLE","read_only":false,"sql":["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE","START TRANSACTION"]}}"#,
        );
        check(
            Dialect::Standard,
            "START TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            StatementKind::Begin,
            r#"{"begin":{"isolation":"SERIALIZABLE","read_only":false,"sql":[]}}"#,
        );
        check(Dialect::Postgres, "END", StatementKind::Commit, r#"{"commit":{}}"#);
        check(Dialect::Postgres, "ROLLBACK", StatementKind::Rollback, r#"{"rollback":{}}"#);
        check(
            Dialect::Postgres,
            "SELECT $2, '$1', $1, $2",
            StatementKind::Single,
            r#"{"sql":["SELECT ",", '$1', ",", ",""],"parameters":["x",1,"x"]}"#,
        );
        assert!(Source::new("SELECT $3", Dialect::Postgres).step(&[SqlValue::Null]).is_none());
    }

    #[test]
    fn a_text_of_several_statements_becomes_a_step_for_each() {
        let kinds = |sql: &str, dialect| {
            Source::all(sql, dialect).into_iter().map(|source| source.kind).collect::<Vec<_>>()
        };
        use StatementKind::{Begin, Commit, Several, Single};
        // A semicolon in a literal is taken for the worst case, though the text is sent whole.
        assert_eq!(
            kinds("CREATE TABLE t (a int); INSERT INTO t VALUES (';'); -- ; no\n", Dialect::Postgres),
            [Single, Several]
        );
        let around =
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; START TRANSACTION; SELECT 'it\\'s;'; COMMIT;";
        assert_eq!(kinds(around, Dialect::Mysql), [Begin, Several, Commit]);
        assert_eq!(kinds(" ; ", Dialect::Postgres), []);
    }

    #[test]
    fn rows_of_a_bulk_load_keep_quotes_backslashes_and_leading_zeros() {
        let check = |dialect, expected: &str| {
            let (mut sql, mut is_first) = (String::new(), true);
            let lines = "1\tit's\t\\N\n-2\t007\ta\\\\b\n";
            assert_eq!(push_rows(lines, dialect, &mut sql, &mut is_first), 2);
            assert_eq!(sql, expected);
        };
        check(Dialect::Postgres, "(1,'it''s',NULL),(-2,'007','a\\b')");
        check(Dialect::Mysql, "(1,'it''s',NULL),(-2,'007','a\\\\b')");
    }
}
