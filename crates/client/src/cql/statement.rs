//! Statements as CQL takes them: `$1` becomes `?`, and what a statement can do.
//!
//! Owns the text; asks nothing.

use crate::placeholders::{self, Quoting};

/// What a statement can do to the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It reads.
    Read,
    /// It writes one partition.
    Write,
    /// It writes one partition if a condition holds: a lightweight transaction.
    ConditionalWrite,
    /// It writes several partitions: a batch.
    Batch,
    /// The same, sent partition by partition without a log: one of several, or of counters.
    UnloggedBatch,
    /// Anything else: tables, keyspaces.
    Other,
}

/// A statement's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) text: String,
    /// Which parameter stands at each place, from 0; one may stand at several.
    pub(super) places: Vec<usize>,
    pub(super) effect: Effect,
}

impl Source {
    pub(super) fn new(cql: &str) -> Self {
        let (pieces, places) = placeholders::cut(cql, Quoting::Doubled);
        Self { text: pieces.join("?"), places, effect: effect_of(cql) }
    }
}

/// What a statement can do, by its words.
pub(super) fn effect_of(cql: &str) -> Effect {
    let is = |word: &str, wanted: &str| word.eq_ignore_ascii_case(wanted);
    let first = cql.split_whitespace().next().unwrap_or_default();
    // A text that has the word in it is taken for the worse case.
    let is_conditional = || cql.split_whitespace().any(|word| is(word, "if"));
    match first {
        word if is(word, "select") => Effect::Read,
        word if ["insert", "update", "delete"].iter().any(|wanted| is(word, wanted)) => {
            if is_conditional() {
                Effect::ConditionalWrite
            } else {
                Effect::Write
            }
        }
        word if is(word, "begin") => {
            let kind = cql.split_whitespace().nth(1).unwrap_or_default();
            if is_conditional() {
                Effect::ConditionalWrite
            } else if is(kind, "unlogged") || is(kind, "counter") {
                Effect::UnloggedBatch
            } else {
                Effect::Batch
            }
        }
        // Chooses a keyspace for the session.
        word if is(word, "use") => Effect::Read,
        _ => Effect::Other,
    }
}

/// A name as it stands in a statement.
pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A cell of a bulk load's line: its text, without the escapes; nothing for NULL.
pub(super) fn cell(written: &str) -> Option<String> {
    if written == "\\N" {
        return None;
    }
    let mut text = String::with_capacity(written.len());
    let mut signs = written.chars();
    while let Some(sign) = signs.next() {
        text.extend(if sign == '\\' { signs.next() } else { Some(sign) });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_says_what_it_can_do_and_where_its_parameters_stand() {
        let check = |cql: &str, text: &str, places: &[usize], effect| {
            let expected = Source { text: text.to_owned(), places: places.to_vec(), effect };
            assert_eq!(Source::new(cql), expected);
        };
        check("SELECT v FROM t WHERE k = $1", "SELECT v FROM t WHERE k = ?", &[0], Effect::Read);
        check(
            "INSERT INTO t (k, v) VALUES ($2, $1)",
            "INSERT INTO t (k, v) VALUES (?, ?)",
            &[1, 0],
            Effect::Write,
        );
        check(
            "update t SET v = $1 WHERE k = $2 IF v = $1",
            "update t SET v = ? WHERE k = ? IF v = ?",
            &[0, 1, 0],
            Effect::ConditionalWrite,
        );
        check(
            "BEGIN BATCH DELETE FROM t WHERE k = $1; APPLY BATCH",
            "BEGIN BATCH DELETE FROM t WHERE k = ?; APPLY BATCH",
            &[0],
            Effect::Batch,
        );
        check(
            "begin unlogged batch APPLY BATCH",
            "begin unlogged batch APPLY BATCH",
            &[],
            Effect::UnloggedBatch,
        );
        check(
            "BEGIN COUNTER BATCH APPLY BATCH",
            "BEGIN COUNTER BATCH APPLY BATCH",
            &[],
            Effect::UnloggedBatch,
        );
        check(
            "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)",
            "CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)",
            &[],
            Effect::Other,
        );
        check("", "", &[], Effect::Other);
    }

    #[test]
    fn names_and_cells_are_read_as_they_were_meant() {
        assert_eq!(quoted_name("a\"b"), "\"a\"\"b\"");
        assert_eq!(cell("\\N"), None);
        assert_eq!(cell("it's \\\\ \\\t x").as_deref(), Some("it's \\ \t x"));
        assert_eq!(cell("").as_deref(), Some(""));
    }
}
