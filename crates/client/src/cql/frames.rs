//! Frames of CQL's native protocol, version 4, on the line: where one begins and ends, and the requests that are sent.
//!
//! Owns their form. Source: Apache Cassandra, "CQL binary protocol v4", sections 2 to 4. What an answer holds is
//! `answer`'s.

use std::io;
use std::ops::Range;

use bytes::{BufMut as _, BytesMut};

use super::values::{Kind, Misfit, write_value};
use crate::sql::SqlValue;
use crate::wire::{LARGEST_ANSWER_BYTES, Wire, invalid};

/// Bytes before a frame's own: version, flags, stream, operation, length.
const HEAD_BYTES: usize = 9;
const REQUEST_VERSION: u8 = 0x04;
const ANSWER_VERSION: u8 = 0x84;

const STARTUP: u8 = 0x01;
const QUERY: u8 = 0x07;
const PREPARE: u8 = 0x09;
const EXECUTE: u8 = 0x0A;
const AUTH_RESPONSE: u8 = 0x0F;

const WITH_VALUES: u8 = 0x01;
const WITHOUT_METADATA: u8 = 0x02;
const WITH_PAGE_SIZE: u8 = 0x04;
const WITH_PAGING_STATE: u8 = 0x08;
const WITH_SERIAL_CONSISTENCY: u8 = 0x10;
const WITH_TIMESTAMP: u8 = 0x20;

/// The most parameters of a statement.
const MOST_PARAMETERS: usize = u16::MAX as usize;

/// What kind of answer a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) flags: u8,
    pub(super) stream: i16,
    pub(super) operation: u8,
}

/// A frame that has arrived, and where its body lies until the next [`Wire::poll_fill`].
pub(super) struct Frame {
    pub(super) head: Head,
    pub(super) place: Range<usize>,
}

/// The next whole frame that has already arrived.
pub(super) fn next_frame(wire: &mut Wire) -> io::Result<Option<Frame>> {
    let arrived = wire.arrived();
    let Some((head, length)) = read_head(arrived)? else { return Ok(None) };
    if arrived.len() < HEAD_BYTES + length {
        return Ok(None);
    }
    wire.pass_over(HEAD_BYTES);
    Ok(Some(Frame { head, place: wire.pass_over(length) }))
}

/// A frame's head and the length of its body; nothing where it has not arrived.
pub(super) fn read_head(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let Some(([version, flags, s, t, operation, a, b, c, d], _)) = bytes.split_first_chunk() else {
        return Ok(None);
    };
    if *version != ANSWER_VERSION {
        return Err(invalid(&format!("version {} of CQL's protocol instead of 4", version & 0x7F)));
    }
    let length = usize::try_from(i32::from_be_bytes([*a, *b, *c, *d])).ok();
    let length = length.filter(|length| *length <= LARGEST_ANSWER_BYTES);
    let length = length.ok_or_else(|| invalid("a frame of more than 64 MiB, or of less than nothing"))?;
    let head = Head { flags: *flags, stream: i16::from_be_bytes([*s, *t]), operation: *operation };
    Ok(Some((head, length)))
}

/// How a statement is to be carried out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Terms<'a> {
    pub(super) consistency: u16,
    /// Of what a conditional statement reads and decides.
    pub(super) serial_consistency: Option<u16>,
    /// Microseconds since 1970 by which it counts as written.
    pub(super) timestamp_us: Option<i64>,
    pub(super) page_rows: Option<i32>,
    /// Where the page before ended.
    pub(super) paging_state: Option<&'a [u8]>,
    /// The rows' columns are known already.
    pub(super) without_metadata: bool,
}

/// The values of a statement's places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'a> {
    /// Each place's type.
    pub(super) kinds: &'a [Kind],
    /// Which parameter stands at each place.
    pub(super) places: &'a [usize],
    pub(super) parameters: &'a [SqlValue<'a>],
}

/// Opens a session.
pub(super) fn write_startup(out: &mut BytesMut) {
    write_frame(STARTUP, 0, out, |out| {
        out.put_u16(1);
        put_string("CQL_VERSION", out);
        put_string("3.0.0", out);
    });
}

/// A user and a password as the mechanism PLAIN has them.
pub(super) fn write_plain(user: &str, password: &str, out: &mut BytesMut) {
    write_frame(AUTH_RESPONSE, 0, out, |out| {
        let length = user.len() + password.len() + 2;
        out.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
        for part in [user, password] {
            out.put_u8(0);
            out.put_slice(part.as_bytes());
        }
    });
}

/// Asks for a statement to be prepared.
pub(super) fn write_prepare(stream: i16, text: &str, out: &mut BytesMut) {
    write_frame(PREPARE, stream, out, |out| put_long_string(text, out));
}

/// A statement as text, without parameters.
pub(super) fn write_query(text: &str, terms: Terms<'_>, out: &mut BytesMut) {
    write_frame(QUERY, 0, out, |out| {
        put_long_string(text, out);
        put_terms(terms, 0, out);
        put_rest_of_terms(terms, out);
    });
}

/// Runs a prepared statement.
pub(super) fn write_execute(
    stream: i16,
    statement: &[u8],
    terms: Terms<'_>,
    bound: Bound<'_>,
    out: &mut BytesMut,
) -> Result<(), Misfit> {
    let Bound { kinds, places, parameters } = bound;
    if kinds.len() != places.len() || kinds.len() > MOST_PARAMETERS {
        return Err(Misfit::Count);
    }
    let begin = out.len();
    let mut misfit = None;
    write_frame(EXECUTE, stream, out, |out| {
        out.put_u16(u16::try_from(statement.len()).unwrap_or(u16::MAX));
        out.put_slice(statement);
        put_terms(terms, if kinds.is_empty() { 0 } else { WITH_VALUES }, out);
        if !kinds.is_empty() {
            out.put_u16(u16::try_from(kinds.len()).unwrap_or(u16::MAX));
        }
        for (kind, place) in kinds.iter().zip(places) {
            let written = match parameters.get(*place) {
                Some(value) => write_value(*kind, value, out),
                None => Err(Misfit::Count),
            };
            if let Err(error) = written {
                misfit.get_or_insert(error);
            }
        }
        put_rest_of_terms(terms, out);
    });
    match misfit {
        None => Ok(()),
        Some(misfit) => {
            out.truncate(begin);
            Err(misfit)
        }
    }
}

/// Consistency and flags, which come before the values.
fn put_terms(terms: Terms<'_>, mut flags: u8, out: &mut BytesMut) {
    let mut add = |is_given: bool, flag: u8| flags |= if is_given { flag } else { 0 };
    add(terms.without_metadata, WITHOUT_METADATA);
    add(terms.page_rows.is_some(), WITH_PAGE_SIZE);
    add(terms.paging_state.is_some(), WITH_PAGING_STATE);
    add(terms.serial_consistency.is_some(), WITH_SERIAL_CONSISTENCY);
    add(terms.timestamp_us.is_some(), WITH_TIMESTAMP);
    out.put_u16(terms.consistency);
    out.put_u8(flags);
}

/// What comes behind them.
fn put_rest_of_terms(terms: Terms<'_>, out: &mut BytesMut) {
    if let Some(rows) = terms.page_rows {
        out.put_i32(rows);
    }
    if let Some(state) = terms.paging_state {
        out.put_i32(i32::try_from(state.len()).unwrap_or(i32::MAX));
        out.put_slice(state);
    }
    if let Some(consistency) = terms.serial_consistency {
        out.put_u16(consistency);
    }
    if let Some(timestamp_us) = terms.timestamp_us {
        out.put_i64(timestamp_us);
    }
}

/// Appends a frame whose body `write` appends. Bodies are texts and values of ours, far below 2 GiB.
fn write_frame(operation: u8, stream: i16, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let begin = out.len();
    out.put_u8(REQUEST_VERSION);
    out.put_u8(0);
    out.put_i16(stream);
    out.put_u8(operation);
    out.put_i32(0);
    write(out);
    let length = i32::try_from(out.len() - begin - HEAD_BYTES).unwrap_or(i32::MAX);
    if let Some(place) = out.get_mut(begin + 5..begin + HEAD_BYTES) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

fn put_string(text: &str, out: &mut BytesMut) {
    out.put_u16(u16::try_from(text.len()).unwrap_or(u16::MAX));
    out.put_slice(text.as_bytes());
}

fn put_long_string(text: &str, out: &mut BytesMut) {
    out.put_i32(i32::try_from(text.len()).unwrap_or(i32::MAX));
    out.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_has_its_values_between_its_flags_and_the_rest_of_its_terms() {
        let mut out = BytesMut::new();
        let terms = Terms {
            consistency: 0x0004,
            serial_consistency: Some(0x0008),
            timestamp_us: Some(5),
            page_rows: Some(7),
            paging_state: Some(b"p"),
            without_metadata: true,
        };
        let bound = Bound {
            kinds: &[Kind::Bigint, Kind::Text],
            places: &[1, 0],
            parameters: &[SqlValue::Text("x"), SqlValue::Integer(-1)],
        };
        write_execute(3, b"id", terms, bound, &mut out).expect("fits");
        let expected = [
            &[4, 0, 0, 3, 0x0A, 0, 0, 0, 45][..],
            &[0, 2, b'i', b'd', 0, 4, 0x3F, 0, 2],
            &[0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 1, b'x'],
            &[0, 0, 0, 7, 0, 0, 0, 1, b'p', 0, 8, 0, 0, 0, 0, 0, 0, 0, 5],
        ]
        .concat();
        assert_eq!(&out[..], expected);
    }

    #[test]
    fn what_does_not_fit_leaves_nothing_behind() {
        let mut out = BytesMut::from(&b"before"[..]);
        let one = |kinds: &[Kind], places: &[usize], parameters: &[SqlValue<'_>], out: &mut BytesMut| {
            write_execute(0, b"i", Terms::default(), Bound { kinds, places, parameters }, out)
        };
        assert_eq!(one(&[Kind::Bigint], &[1], &[SqlValue::Null], &mut out), Err(Misfit::Count));
        assert_eq!(one(&[Kind::Bigint], &[], &[], &mut out), Err(Misfit::Count));
        assert!(one(&[Kind::Uuid], &[0], &[SqlValue::Text("x")], &mut out).is_err());
        assert_eq!(&out[..], b"before");
    }

    #[test]
    fn heads_of_other_versions_and_impossible_lengths_are_refused() {
        let head = |version: u8, length: i32| {
            let mut bytes = vec![version, 0, 0, 1, 8];
            bytes.extend_from_slice(&length.to_be_bytes());
            read_head(&bytes).map(|head| head.map(|(head, length)| (head.stream, length)))
        };
        assert_eq!(head(0x84, 5).expect("a head"), Some((1, 5)));
        assert!(head(0x85, 5).is_err() && head(0x04, 5).is_err());
        assert!(head(0x84, -1).is_err() && head(0x84, i32::MAX).is_err());
        assert_eq!(read_head(&[0x85, 0]).expect("too short to tell"), None);
    }
}
