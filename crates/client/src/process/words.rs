//! What is said to a program and what it says: JSON, one message a line. docs/guide/client-programs.md is written for
//! those who write one.
//!
//! Owns the form of the lines. Pure.

use std::collections::BTreeMap;

use history::ErrorClass;
use serde::{Deserialize, Serialize};

use crate::Rows;

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;

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
    Hello { protocol: u32, driver: &'a str, folder: &'a str },
    /// A session.
    Open(Open<'a>),
    /// Steps, one after the other until one fails.
    Run { steps: &'a [Step<'a>], page_rows: Option<usize>, timeout_ms: u64 },
    /// The end of a session, whatever it is doing; not answered.
    Close {},
}

/// With whom a session is to be opened.
#[derive(Debug, Serialize)]
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
    /// A statement.
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
    #[serde(default)]
    pub(super) results: Vec<Outcome>,
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
    /// It certainly did not happen.
    Failed(Failure),
    /// It may have happened.
    Unknown(Failure),
}

impl Tell {
    /// What it tells; nothing where it tells several things or none.
    pub(super) fn answer(self) -> Option<Answer> {
        match (self.ok, self.more, self.failed, self.unknown) {
            (Some(ok), None, None, None) => Some(Answer::Ok(ok)),
            (None, Some(more), None, None) => Some(Answer::More(more)),
            (None, None, Some(failure), None) => Some(Answer::Failed(failure)),
            (None, None, None, Some(failure)) => Some(Answer::Unknown(failure)),
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
        let hello = line(
            0,
            None,
            What::Hello { protocol: VERSION, driver: "pg8000.dbapi", folder: "/run/node/driver" },
        );
        assert!(reference.contains(&hello), "{hello}");
        let close = serde_json::to_string(&Ask { ask: None, session: Some(3), what: What::Close {} });
        let close = close.expect("a line");
        assert!(reference.contains(&close), "{close}");
    }

    #[test]
    fn a_line_that_tells_two_things_or_none_or_something_unknown_is_no_answer() {
        let answers = |line: &str| serde_json::from_str::<Tell>(line).ok().and_then(Tell::answer).is_some();
        assert!(answers(r#"{"ask":1,"ok":{"results":[{"rows":[[1,"a",null]],"affected":1}]}}"#));
        assert!(answers(r#"{"ask":1,"failed":{"class":"read-only","text":"no"}}"#));
        for wrong in [
            r#"{"ask":1}"#,
            r#"{"ok":{}}"#,
            r#"{"ask":1,"ok":{},"failed":{"class":"other","text":"no"}}"#,
            r#"{"ask":1,"ok":{"rows":[]}}"#,
            r#"{"ask":1,"ok":{"results":[{"rows":[[1.5]]}]}}"#,
            r#"{"ask":1,"ok":{"results":[{"rows":[[true]]}]}}"#,
            r#"{"ask":1,"failed":{"class":"strange","text":"no"}}"#,
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
                && ["\"ok\"", "\"more\"", "\"failed\"", "\"unknown\""].iter().any(|word| line.contains(word))
        });
        let mut count = 0;
        for line in lines {
            let tell: Tell = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(tell.answer().is_some(), "{line}");
            count += 1;
        }
        assert!(count >= 5, "{count}");
    }
}
