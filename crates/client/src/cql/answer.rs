//! What a server of CQL answers: one frame for each request.
//!
//! Owns the reading of a frame's body and how values become text. What an answer means for a write is `verdict`'s. Bodies
//! are read by the primitives of `scylla-cql-core`; its parser of results takes a server's word for how many columns there
//! are and for how deep types nest, which this one does not.

use std::io;

use scylla_cql_core::frame::protocol_features::ProtocolFeatures;
use scylla_cql_core::frame::response::error::Error as Refusal;
use scylla_cql_core::frame::types::{
    read_bytes_opt, read_int, read_int_length, read_short, read_short_bytes, read_short_length, read_string,
};

use super::frames::Head;
use super::values::{Kind, push_cell, read_kind};
use crate::Rows;
use crate::wire::invalid;

/// What is kept of an error's text.
const LONGEST_TEXT_BYTES: usize = 4 << 10;
/// The most columns of a result; the server has no more in a table.
const MOST_COLUMNS: usize = u16::MAX as usize;

const COMPRESSED: u8 = 0x01;
const TRACED: u8 = 0x02;
const WITH_PAYLOAD: u8 = 0x04;
const WITH_WARNINGS: u8 = 0x08;

const GLOBAL_TABLE: i32 = 0x0001;
const MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;

/// A statement as the server has prepared it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PreparedAnswer {
    pub(super) id: Vec<u8>,
    /// Types of its places.
    pub(super) parameters: Vec<Kind>,
    /// Types of the columns that it answers with; none where that is only known later.
    pub(super) columns: Vec<Kind>,
}

/// What a frame said. Rows are put where the caller wants them.
#[derive(Debug)]
pub(super) enum Said {
    /// The session is open.
    Ready,
    /// A password is asked for, by a class of this name.
    Authenticate(String),
    /// The password is right.
    Authenticated,
    /// Done, and nothing to tell.
    Void,
    /// Rows were read; where the next page begins, if there is one.
    Rows(Option<Vec<u8>>),
    /// The statement is prepared.
    Prepared(PreparedAnswer),
    /// A keyspace or a table was made, changed or taken away.
    SchemaChange,
    /// The server's error.
    Refused(Box<Refusal>),
}

/// Reads a frame's body. `known` are the columns of rows that come without them.
pub(super) fn read(head: Head, body: &[u8], known: &[Kind], rows: &mut Rows) -> io::Result<Said> {
    let mut rest = body;
    pass_extensions(head.flags, &mut rest)?;
    match head.operation {
        0x00 => {
            let mut refusal =
                Refusal::deserialize(&ProtocolFeatures::default(), &mut rest).map_err(|error| bad(&error))?;
            truncate(&mut refusal.reason);
            Ok(Said::Refused(Box::new(refusal)))
        }
        0x02 => Ok(Said::Ready),
        0x03 => Ok(Said::Authenticate(text(&mut rest)?.to_owned())),
        0x08 => result(&mut rest, known, rows),
        0x10 => Ok(Said::Authenticated),
        0x0E => Err(invalid("the server asks for more than a user and a password")),
        other => Err(invalid(&format!("operation {other:#04x}, which answers nothing"))),
    }
}

/// What comes before the body's own, where the flags say so.
fn pass_extensions(flags: u8, rest: &mut &[u8]) -> io::Result<()> {
    if flags & COMPRESSED != 0 {
        return Err(invalid("a compressed frame, which was not asked for"));
    }
    if flags & TRACED != 0 {
        *rest = rest.get(16..).ok_or_else(|| invalid("a frame shorter than it claims"))?;
    }
    if flags & WITH_WARNINGS != 0 {
        for _ in 0..read_short_length(rest)? {
            text(rest)?;
        }
    }
    if flags & WITH_PAYLOAD != 0 {
        for _ in 0..read_short_length(rest)? {
            text(rest)?;
            read_bytes_opt(rest).map_err(|error| bad(&error))?;
        }
    }
    Ok(())
}

fn result(rest: &mut &[u8], known: &[Kind], rows: &mut Rows) -> io::Result<Said> {
    match read_int(rest)? {
        1 => Ok(Said::Void),
        2 => read_rows(rest, known, rows).map(Said::Rows),
        3 => Ok(Said::Void),
        4 => prepared(rest).map(Said::Prepared),
        5 => Ok(Said::SchemaChange),
        kind => Err(invalid(&format!("a result of kind {kind}"))),
    }
}

/// Columns of a result as they stand before its rows.
struct Metadata {
    kinds: Option<Vec<Kind>>,
    count: usize,
    next_page: Option<Vec<u8>>,
}

fn metadata(rest: &mut &[u8], parameters_of_key: bool) -> io::Result<Metadata> {
    let flags = read_int(rest)?;
    let count = count(rest)?;
    if count > MOST_COLUMNS {
        return Err(invalid(&format!("a result of {count} columns")));
    }
    if parameters_of_key {
        for _ in 0..self::count(rest)? {
            read_short(rest)?;
        }
    }
    let next_page = if flags & MORE_PAGES != 0 {
        read_bytes_opt(rest).map_err(|error| bad(&error))?.map(<[u8]>::to_vec)
    } else {
        None
    };
    if flags & NO_METADATA != 0 {
        return Ok(Metadata { kinds: None, count, next_page });
    }
    let pass_table = |rest: &mut &[u8]| text(rest).and_then(|_| text(rest)).map(drop);
    if flags & GLOBAL_TABLE != 0 {
        pass_table(rest)?;
    }
    let mut kinds = Vec::new();
    for _ in 0..count {
        if flags & GLOBAL_TABLE == 0 {
            pass_table(rest)?;
        }
        text(rest)?;
        kinds.push(read_kind(rest)?);
    }
    Ok(Metadata { kinds: Some(kinds), count, next_page })
}

fn read_rows(rest: &mut &[u8], known: &[Kind], rows: &mut Rows) -> io::Result<Option<Vec<u8>>> {
    let Metadata { kinds, count: columns, next_page } = metadata(rest, false)?;
    let kinds = match &kinds {
        Some(kinds) => kinds.as_slice(),
        None if known.len() == columns => known,
        None => return Err(invalid(&format!("rows of {columns} columns where {} were due", known.len()))),
    };
    let cells = u16::try_from(kinds.len()).map_err(|_| invalid("too many columns"))?;
    let count = self::count(rest)?;
    // A row of no columns takes no bytes: any number of them would.
    if kinds.is_empty() && count > 0 {
        return Err(invalid("rows without columns"));
    }
    for _ in 0..count {
        // What a row needs at least, looked at before anything is kept of it.
        if rest.len() < kinds.len() * 4 {
            return Err(invalid("a row shorter than it claims"));
        }
        rows.begin_row(cells);
        for kind in kinds {
            push_cell(*kind, read_bytes_opt(rest).map_err(|error| bad(&error))?, rows)?;
        }
    }
    Ok(next_page)
}

fn prepared(rest: &mut &[u8]) -> io::Result<PreparedAnswer> {
    let id = read_short_bytes(rest).map_err(|error| bad(&error))?.to_vec();
    let parameters = metadata(rest, true)?.kinds.unwrap_or_default();
    let columns = metadata(rest, false)?.kinds.unwrap_or_default();
    Ok(PreparedAnswer { id, parameters, columns })
}

/// A number of things that follow.
fn count(rest: &mut &[u8]) -> io::Result<usize> {
    read_int_length(rest).map_err(|error| bad(&error))
}

fn text<'a>(rest: &mut &'a [u8]) -> io::Result<&'a str> {
    read_string(rest).map_err(|error| bad(&error))
}

fn truncate(text: &mut String) {
    let mut end = LONGEST_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}

fn bad(error: &dyn std::fmt::Display) -> io::Error {
    invalid(&error.to_string())
}

/// Reads any bytes as frames, for who looks for bytes that a parser cannot bear: it must refuse them, and neither panic
/// nor keep more than they hold.
#[doc(hidden)]
pub fn read_any(mut bytes: &[u8]) {
    while let Ok(Some((head, length))) = super::frames::read_head(bytes) {
        let begin = bytes.len().min(9);
        let end = (begin + length).min(bytes.len());
        let mut rows = Rows::default();
        let body = bytes.get(begin..end).unwrap_or_default();
        let said = read(head, body, &[Kind::Bigint, Kind::Text], &mut rows);
        if let Ok(Said::Refused(refusal)) = said {
            super::verdict::of(&refusal, super::statement::Effect::Write);
        }
        bytes = bytes.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn int(number: i32) -> [u8; 4] {
        number.to_be_bytes()
    }

    fn string(text: &str) -> Vec<u8> {
        let length = u16::try_from(text.len()).expect("short");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    }

    fn head(operation: u8) -> Head {
        Head { flags: 0, stream: 0, operation }
    }

    /// Two rows of a number and a text, of which a second page follows.
    fn body() -> Vec<u8> {
        [
            &int(2)[..],
            &int(GLOBAL_TABLE | MORE_PAGES),
            &int(2),
            &[&int(2)[..], b"pq"].concat(),
            &[string("holdfast"), string("t"), string("k")].concat(),
            &[0, 2],
            &string("v"),
            &[0, 0x0D],
            &int(2),
            &[&int(8)[..], &7_i64.to_be_bytes(), &int(1), b"x"].concat(),
            &[&int(8)[..], &(-1_i64).to_be_bytes(), &int(-1)].concat(),
        ]
        .concat()
    }

    #[test]
    fn rows_are_read_as_text_and_tell_where_the_next_page_begins() {
        let mut rows = Rows::default();
        let Said::Rows(next) = read(head(8), &body(), &[], &mut rows).expect("a result") else { panic!() };
        assert_eq!(next.as_deref(), Some(&b"pq"[..]));
        assert_eq!([rows.row_text(0), rows.row_text(1)], ["7,x", "-1,"]);
        assert_eq!(rows.text(1, 1), None);
    }

    #[test]
    fn rows_without_metadata_have_the_columns_that_were_prepared() {
        let body = [&int(2)[..], &int(NO_METADATA), &int(1), &int(1), &int(8), &5_i64.to_be_bytes()].concat();
        let mut rows = Rows::default();
        read(head(8), &body, &[Kind::Bigint], &mut rows).expect("rows");
        assert_eq!(rows.integer(0, 0), Some(5));
        assert!(read(head(8), &body, &[], &mut rows).is_err(), "nothing was prepared");
    }

    #[test]
    fn a_prepared_statement_tells_its_types() {
        let parameters = [&int(GLOBAL_TABLE)[..], &int(1), &int(1), &[0, 0], &string("h"), &string("t")];
        let of_columns = [&int(0)[..], &int(1), &string("h"), &string("t"), &string("v"), &[0, 0x0C]];
        let body =
            [&int(4)[..], &string("id"), &parameters.concat(), &string("k"), &[0, 2], &of_columns.concat()]
                .concat();
        let Said::Prepared(prepared) = read(head(8), &body, &[], &mut Rows::default()).expect("prepared")
        else {
            panic!("not prepared")
        };
        let expected =
            PreparedAnswer { id: b"id".to_vec(), parameters: vec![Kind::Bigint], columns: vec![Kind::Uuid] };
        assert_eq!(prepared, expected);
    }

    #[test]
    fn warnings_and_traces_are_passed_over_and_compression_is_refused() {
        let warned = [&[0, 1][..], &string("careful"), &int(1)].concat();
        let flagged = |flags| Head { flags, ..head(8) };
        let said = |flags, body: &[u8]| read(flagged(flags), body, &[], &mut Rows::default());
        assert!(matches!(said(WITH_WARNINGS, &warned), Ok(Said::Void)));
        assert!(matches!(said(TRACED, &[&[0; 16][..], &int(1)].concat()), Ok(Said::Void)));
        assert!(said(TRACED, &int(1)).is_err());
        assert!(said(COMPRESSED, &int(1)).is_err());
    }

    #[test]
    fn frames_cut_anywhere_and_impossible_counts_are_refused() {
        let whole = body();
        for cut in 0..whole.len() {
            assert!(read(head(8), &whole[..cut], &[], &mut Rows::default()).is_err(), "cut at {cut}");
        }
        let result = |parts: &[&[u8]]| read(head(8), &parts.concat(), &[], &mut Rows::default());
        assert!(result(&[&int(2), &int(0), &int(i32::MAX)]).is_err(), "columns without end");
        assert!(result(&[&int(2), &int(0), &int(-1)]).is_err(), "fewer columns than none");
        assert!(result(&[&int(2), &int(NO_METADATA), &int(0), &int(i32::MAX)]).is_err(), "rows of nothing");
        assert!(
            result(&[
                &int(2),
                &int(GLOBAL_TABLE),
                &int(1),
                &string("h"),
                &string("t"),
                &string("l"),
                &[0, 0x20].repeat(10_000)
            ])
            .is_err(),
            "lists of lists"
        );
        assert!(result(&[&int(9)]).is_err());
        assert!(read(head(0x0C), &[], &[], &mut Rows::default()).is_err(), "an event");
        assert!(read(head(0), &int(0x1000), &[], &mut Rows::default()).is_err(), "an error without a text");
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), operation in 0_u8..17, flags in 0_u8..16) {
            let _ = read(Head { flags, stream: 0, operation }, &bytes, &[Kind::Bigint], &mut Rows::default());
            let length = i32::try_from(bytes.len()).expect("short").to_be_bytes();
            read_any(&[&[0x84, flags, 0, 0, operation][..], &length, &bytes].concat());
        }

        #[test]
        fn no_change_of_a_byte_makes_a_parser_panic(place in 0_usize..80, byte in any::<u8>()) {
            let mut bytes = body();
            if let Some(changed) = bytes.get_mut(place) {
                *changed = byte;
            }
            let _ = read(head(8), &bytes, &[], &mut Rows::default());
        }
    }
}
