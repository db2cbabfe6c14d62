//! MySQL's packets on the line: where one begins and ends, and the commands that are sent.
//!
//! Owns their form. Source: MySQL internals manual, "MySQL packets" and "COM_STMT_EXECUTE".

use std::io;
use std::ops::Range;

use bytes::{BufMut as _, BytesMut};

use crate::sql::SqlValue;
use crate::wire::{LARGEST_ANSWER_BYTES, Wire, invalid};

/// Ends the session.
pub(super) const QUIT: [u8; 5] = [1, 0, 0, 0, 0x01];
pub(super) const QUERY: u8 = 0x03;
pub(super) const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
pub(super) const CLOSE: u8 = 0x19;

/// Bytes before a packet's own: its length and its number.
const HEAD_BYTES: usize = 4;
/// A packet of this length goes on in the next.
const CUT_LENGTH: usize = (1 << 24) - 1;
/// The most parameters of a statement.
const MOST_PARAMETERS: usize = u16::MAX as usize;

/// A packet that has arrived: its number and where its content lies until the next [`Wire::poll_fill`].
pub(super) struct Packet {
    pub(super) number: u8,
    pub(super) place: Range<usize>,
}

/// The next whole packet that has already arrived.
pub(super) fn next_packet(wire: &mut Wire) -> io::Result<Option<Packet>> {
    let arrived = wire.arrived();
    let Some(([a, b, c, number], rest)) = arrived.split_first_chunk() else { return Ok(None) };
    let (number, length) = (*number, usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16);
    if length >= CUT_LENGTH.min(LARGEST_ANSWER_BYTES) {
        return Err(invalid("a row of 16 MiB or more, which no answer has"));
    }
    if rest.len() < length {
        return Ok(None);
    }
    wire.pass_over(HEAD_BYTES);
    Ok(Some(Packet { number, place: wire.pass_over(length) }))
}

/// Appends a packet whose content `write` appends.
pub(super) fn write_packet(
    number: u8,
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut),
) -> Result<(), &'static str> {
    let begin = out.len();
    out.put_slice(&[0, 0, 0, number]);
    write(out);
    let length = out.len() - begin - HEAD_BYTES;
    if length >= CUT_LENGTH {
        out.truncate(begin);
        return Err("a question of 16 MiB or more");
    }
    if let (Some(place), [a, b, c, ..]) = (out.get_mut(begin..begin + 3), length.to_le_bytes()) {
        place.copy_from_slice(&[a, b, c]);
    }
    Ok(())
}

/// A command whose argument is text.
pub(super) fn write_text(command: u8, text: &str, out: &mut BytesMut) -> Result<(), &'static str> {
    write_packet(0, out, |out| {
        out.put_u8(command);
        out.put_slice(text.as_bytes());
    })
}

/// Runs a prepared statement; `places` says which parameter stands at each of its places. Numbers travel as numbers of
/// 64 bits, everything else as text.
pub(super) fn write_execution(
    statement: u32,
    places: &[usize],
    parameters: &[SqlValue<'_>],
    out: &mut BytesMut,
) -> Result<(), &'static str> {
    const LONG_LONG: u8 = 0x08;
    const NULL: u8 = 0x06;
    const VAR_STRING: u8 = 0xFD;
    if places.len() > MOST_PARAMETERS {
        return Err("more parameters than a statement can have");
    }
    let at = |place: &usize| parameters.get(*place).copied().unwrap_or(SqlValue::Null);
    if places.iter().any(|place| *place >= parameters.len()) {
        return Err("the statement has more parameters than were given");
    }
    write_packet(0, out, |out| {
        out.put_u8(EXECUTE);
        out.put_u32_le(statement);
        // No cursor; once.
        out.put_u8(0);
        out.put_u32_le(1);
        if places.is_empty() {
            return;
        }
        for eight in places.chunks(8) {
            let bit =
                |(place, parameter): (usize, &usize)| u8::from(at(parameter) == SqlValue::Null) << place;
            out.put_u8(eight.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit));
        }
        // Types follow.
        out.put_u8(1);
        for place in places {
            let kind = match at(place) {
                SqlValue::Null => NULL,
                SqlValue::Integer(_) => LONG_LONG,
                SqlValue::Text(_) => VAR_STRING,
            };
            out.put_slice(&[kind, 0]);
        }
        for place in places {
            match at(place) {
                SqlValue::Null => {}
                SqlValue::Integer(number) => out.put_i64_le(number),
                SqlValue::Text(text) => put_text(text, out),
            }
        }
    })
}

/// Text behind its length, which takes one byte, three, four or nine.
fn put_text(text: &str, out: &mut BytesMut) {
    let length = text.len() as u64;
    match length {
        0..=250 => out.put_uint_le(length, 1),
        251..=0xFFFF => {
            out.put_u8(0xFC);
            out.put_uint_le(length, 2);
        }
        0x1_0000..=0xFF_FFFF => {
            out.put_u8(0xFD);
            out.put_uint_le(length, 3);
        }
        _ => {
            out.put_u8(0xFE);
            out.put_uint_le(length, 8);
        }
    }
    out.put_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_has_its_bitmap_its_types_and_its_values_in_the_order_of_its_places() {
        let mut out = BytesMut::new();
        let parameters = [SqlValue::Integer(-2), SqlValue::Null, SqlValue::Text("ab")];
        write_execution(7, &[2, 0, 1, 0], &parameters, &mut out).expect("fits");
        let minus_two = (-2_i64).to_le_bytes();
        let content = [
            &[0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0b0100, 1][..],
            &[0xFD, 0, 0x08, 0, 0x06, 0, 0x08, 0],
            &[2, b'a', b'b'],
            &minus_two,
            &minus_two,
        ]
        .concat();
        assert_eq!(out[..4], [u8::try_from(content.len()).expect("short"), 0, 0, 0]);
        assert_eq!(out[4..], content);
        assert!(write_execution(7, &[3], &parameters, &mut out).is_err());
    }

    #[test]
    fn what_is_too_long_for_a_packet_leaves_nothing_behind() {
        let mut out = BytesMut::new();
        assert!(write_text(QUERY, &"x".repeat(CUT_LENGTH), &mut out).is_err());
        assert!(out.is_empty());
        let long = "x".repeat(70_000);
        write_execution(1, &[0], &[SqlValue::Text(&long)], &mut out).expect("fits");
        assert_eq!(out[4 + 10 + 1 + 1 + 2..][..4], [0xFD, 0x70, 0x11, 0x01]);
    }
}
