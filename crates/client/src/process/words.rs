//! What is said to a program and what it says: JSON, one message a line. docs/guide/client-programs.md is written for
//! those who write one.
//!
//! Owns the form of the lines. Pure.

use std::collections::BTreeMap;
use std::fmt;

use history::ErrorClass;
use serde::{Deserialize, Serialize};

use super::key_words::{FoundWord, KeyStep};
use crate::Rows;
use crate::sql::Dialect;

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;

/// How those that speak of keys and values are called on the lines.
const KEYS: &str = "keys";
const SQL: &str = "sql";

/// What a program speaks of with its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// Statements, in the SQL of this dialect.
    Sql(Dialect),
    /// Transactions over keys and values.
    Keys,
}

impl Speaks {
    /// What a greeting says of it; nothing of SQL, which programs spoke before there was anything else.
    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Speaks::Sql(_) => None,
            Speaks::Keys => Some(KEYS),
        }
    }

    /// Whether a program that answers the greeting with this word speaks it.
    pub(super) fn is_met_by(self, word: Option<&str>) -> bool {
        word.unwrap_or(SQL) == self.word().unwrap_or(SQL)
    }

    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Speaks::Sql(_) => "SQL",
            Speaks::Keys => "keys and values",
        }
    }
}

/// A line to the program.
#[derive(Debug, Serialize)]
pub(super) struct Ask<'a> {
    /// The number that its answer has; those without one are not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ask: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<u64>,
    #[serde(flatten)]
    pub(super) what: What<'a>,
}

/// What is asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What<'a> {
    /// First of all: what is to be spoken, and with which driver.
    Hello {
        protocol: u32,
        driver: &'a str,
        folder: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        speaks: Option<&'static str>,
    },
    /// A session.
    Open(Open<'a>),
    /// Steps, one after the other until one fails.
    Run { steps: &'a [Step<'a>], page_rows: Option<usize>, timeout_ms: u64 },
    /// A transaction over keys, whole or not at all.
    Transact { operations: &'a [KeyStep<'a>], timeout_ms: u64 },
    /// The end of a session, whatever it is doing; not answered.
    Close {},
}

/// With whom a session is to be opened.
#[derive(Serialize)]
pub(super) struct Open<'a> {
    pub(super) node: &'a str,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: &'a str,
    pub(super) database: &'a str,
    pub(super) password: Option<&'a str>,
    pub(super) url: &'a str,
    pub(super) options: &'a BTreeMap<String, String>,
    pub(super) timeout_ms: u64,
}

/// Without the password, and without what a scenario may have written one into.
impl fmt::Debug for Open<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Open");
        shown.field("node", &self.node).field("host", &self.host).field("port", &self.port);
        shown.field("user", &self.user).finish_non_exhaustive()
    }
}

/// One step of several.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step<'a> {
    /// Begins a transaction, by these statements or in the driver's own way.
    Begin {
        /// In capitals, as in SQL; the database's own where it is absent.
        isolation: Option<String>,
        read_only: bool,
        sql: Vec<String>,
    },
    /// Ends the transaction that is open.
    Commit {},
    /// Throws the transaction that is open away; where none is, nothing.
    Rollback {},
    #[serde(untagged)]
    Statement {
        /// Its text, cut at its parameters: one more piece than there are of them.
        sql: &'a [String],
        parameters: Vec<Value<'a>>,
    },
}

/// A parameter.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

/// A line of the program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tell {
    pub(super) ask: u64,
    #[serde(default)]
    pub(super) ok: Option<Ok>,
    #[serde(default)]
    pub(super) more: Option<More>,
    #[serde(default)]
    pub(super) refused: Option<Refusal>,
    #[serde(default)]
    pub(super) failed: Option<Failure>,
    #[serde(default)]
    pub(super) unknown: Option<Failure>,
}

/// It went well.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Ok {
    #[serde(default)]
    pub(super) protocol: Option<u32>,
    /// Of a greeting: what it speaks; SQL where it does not say so.
    #[serde(default)]
    pub(super) speaks: Option<String>,
    /// Of a greeting: whether an append writes the whole list again.
    #[serde(default)]
    pub(super) rewrites_lists: bool,
    /// Of a session that was opened: whether its node takes writes; it does where nothing is said.
    #[serde(default)]
    pub(super) takes_writes: Option<bool>,
    #[serde(default)]
    pub(super) results: Vec<Outcome>,
    /// Of a transaction over keys: what each operation found.
    #[serde(default)]
    pub(super) found: Vec<FoundWord>,
}

/// What a step answered.
#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Outcome {
    #[serde(default)]
    pub(super) rows: Vec<Vec<Cell>>,
    #[serde(default)]
    pub(super) affected: Option<u64>,
}

/// A page of rows, behind which more come.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct More {
    pub(super) rows: Vec<Vec<Cell>>,
}

/// A condition of a transaction over keys was not met: nothing of it happened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    /// Which operation, from 0.
    pub(super) step: usize,
    pub(super) reason: String,
}

/// It failed, or nobody knows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    pub(super) class: Class,
    #[serde(default)]
    pub(super) code: Option<String>,
    pub(super) text: String,
}

/// A cell of a row.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Cell {
    Null,
    Integer(i64),
    Text(String),
}

/// What an error is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Class {
    Connection,
    Timeout,
    Serialization,
    ReadOnly,
    Other,
}

impl From<Class> for ErrorClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Connection => ErrorClass::Connection,
            Class::Timeout => ErrorClass::Timeout,
            Class::Serialization => ErrorClass::Serialization,
            Class::ReadOnly => ErrorClass::ReadOnly,
            Class::Other => ErrorClass::Other,
        }
    }
}

/// The answer to an ask, or a part of it.
#[derive(Debug)]
pub(super) enum Answer {
    Ok(Ok),
    More(More),
    /// A condition of its own was not met.
    Refused(Refusal),
    /// It certainly did not happen.
    Failed(Failure),
    /// It may have happened.
    Unknown(Failure),
}

impl Tell {
    /// What it tells; nothing where it tells several things or none.
    pub(super) fn answer(self) -> Option<Answer> {
        match (self.ok, self.more, self.refused, self.failed, self.unknown) {
            (Some(ok), None, None, None, None) => Some(Answer::Ok(ok)),
            (None, Some(more), None, None, None) => Some(Answer::More(more)),
            (None, None, Some(refusal), None, None) => Some(Answer::Refused(refusal)),
            (None, None, None, Some(failure), None) => Some(Answer::Failed(failure)),
            (None, None, None, None, Some(failure)) => Some(Answer::Unknown(failure)),
            _ => None,
        }
    }
}

/// Adds these rows.
pub(super) fn push_rows(rows: &mut Rows, cells: Vec<Vec<Cell>>) {
    let mut digits = itoa::Buffer::new();
    for row in cells {
        rows.begin_row(u16::try_from(row.len()).unwrap_or(u16::MAX));
        for cell in row.into_iter().take(usize::from(u16::MAX)) {
            match cell {
                Cell::Null => rows.push_cell(None),
                Cell::Integer(number) => rows.push_cell(Some(digits.format(number).as_bytes())),
                Cell::Text(text) => rows.push_cell(Some(text.as_bytes())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ask: u64, session: Option<u64>, what: What<'_>) -> String {
        serde_json::to_string(&Ask { ask: Some(ask), session, what }).expect("a line")
    }

    #[test]
    fn lines_to_a_program_are_those_of_the_reference() {
        let pieces = ["UPDATE t SET a = ".to_owned(), " WHERE b = ".to_owned(), String::new()];
        let steps = [
            Step::Begin {
                isolation: Some("SERIALIZABLE".to_owned()),
                read_only: false,
                sql: vec!["BEGIN".to_owned()],
            },
            Step::Statement { sql: &pieces, parameters: vec![Value::Integer(5), Value::Null] },
            Step::Commit {},
        ];
        let told = line(7, Some(3), What::Run { steps: &steps, page_rows: None, timeout_ms: 5_000 });
        let reference = include_str!("../../../../docs/guide/client-programs.md");
        assert!(reference.contains(&told), "{told}");
        let greeting = |driver, speaks: Speaks| {
            let folder = "/run/node/driver";
            line(0, None, What::Hello { protocol: VERSION, driver, folder, speaks: speaks.word() })
        };
        let hello = greeting("pg8000.dbapi", Speaks::Sql(Dialect::Postgres));
        assert!(reference.contains(&hello), "{hello}");
        let hello = greeting("pymongo", Speaks::Keys);
        assert!(reference.contains(&hello), "{hello}");
        let close = serde_json::to_string(&Ask { ask: None, session: Some(3), what: What::Close {} });
        let close = close.expect("a line");
        assert!(reference.contains(&close), "{close}");
    }

    #[test]
    fn a_session_that_is_asked_for_is_shown_without_its_password() {
        let open = Open {
            node: "n1",
            host: "10.0.0.1".to_owned(),
            port: 3306,
            user: "load",
            database: "test",
            password: Some("geheim"),
            url: "jdbc:x://n1/?password=geheim",
            options: &BTreeMap::from([("password".to_owned(), "geheim".to_owned())]),
            timeout_ms: 1000,
        };
        let ask = Ask { ask: Some(1), session: Some(1), what: What::Open(open) };
        let shown = format!("{ask:?}");
        assert!(shown.contains("n1") && shown.contains("3306") && !shown.contains("geheim"), "{shown}");
    }

    #[test]
    fn a_line_that_tells_two_things_or_none_or_something_unknown_is_no_answer() {
        let answers = |line: &str| serde_json::from_str::<Tell>(line).ok().and_then(Tell::answer).is_some();
        assert!(answers(r#"{"ask":1,"ok":{"results":[{"rows":[[1,"a",null]],"affected":1}]}}"#));
        assert!(answers(r#"{"ask":1,"failed":{"class":"read-only","text":"no"}}"#));
        assert!(answers(r#"{"ask":1,"ok":{"found":[{"value":null},"done",{"entries":[["k",[1]]]}]}}"#));
        assert!(answers(r#"{"ask":1,"refused":{"step":0,"reason":"no number is there"}}"#));
        for wrong in [
            r#"{"ask":1}"#,
            r#"{"ok":{}}"#,
            r#"{"ask":1,"ok":{},"failed":{"class":"other","text":"no"}}"#,
            r#"{"ask":1,"ok":{"rows":[]}}"#,
            r#"{"ask":1,"ok":{"results":[{"rows":[[1.5]]}]}}"#,
            r#"{"ask":1,"ok":{"results":[{"rows":[[true]]}]}}"#,
            r#"{"ask":1,"failed":{"class":"strange","text":"no"}}"#,
            r#"{"ask":1,"ok":{"found":[{"value":1.5}]}}"#,
            r#"{"ask":1,"ok":{"found":[{"value":["1"]}]}}"#,
            r#"{"ask":1,"ok":{"found":[{"value":9223372036854775808}]}}"#,
            r#"{"ask":1,"ok":{"found":[null]}}"#,
            r#"{"ask":1,"ok":{"found":[{"value":1,"entries":[]}]}}"#,
            r#"{"ask":1,"refused":{"step":-1,"reason":"no"}}"#,
            r#"{"ask":1,"refused":{"step":0,"reason":"no"},"ok":{}}"#,
            r#"{"ask":-1,"ok":{}}"#,
            "[]",
        ] {
            assert!(!answers(wrong), "{wrong}");
        }
    }

    #[test]
    fn every_line_of_a_program_in_the_reference_is_understood() {
        let reference = include_str!("../../../../docs/guide/client-programs.md");
        let lines = reference.lines().filter(|line| {
            ["{\"ask\":", "{\"ask\": "].iter().any(|begin| line.starts_with(begin))
                && ["\"ok\"", "\"more\"", "\"refused\"", "\"failed\"", "\"unknown\""]
                    .iter()
                    .any(|word| line.contains(word))
        });
        let mut count = 0;
        for line in lines {
            let tell: Tell = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(tell.answer().is_some(), "{line}");
            count += 1;
        }
        assert!(count >= 8, "{count}");
    }

    #[test]
    fn a_program_speaks_sql_where_its_greeting_says_nothing() {
        let sql = Speaks::Sql(Dialect::Standard);
        assert!(sql.is_met_by(None) && sql.is_met_by(Some("sql")) && !sql.is_met_by(Some("keys")));
        assert!(Speaks::Keys.is_met_by(Some("keys")) && !Speaks::Keys.is_met_by(None));
        assert!(!Speaks::Keys.is_met_by(Some("documents")));
    }
}
