//! CQL's values: which types a session knows, how a parameter becomes one and how one becomes text.
//!
//! Owns the scalar types that workloads need; collections, tuples and user-defined types are refused by name. Source:
//! Apache Cassandra, "CQL binary protocol v4", section 6, and its numbers of types in section 4.2.5.2.

use std::io;

use bytes::{BufMut as _, BytesMut};
use scylla_cql_core::frame::types::{read_short, read_string};

use crate::Rows;
use crate::sql::SqlValue;
use crate::wire::invalid;

/// A column's type, or a parameter's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `ascii`, `text`, `varchar`; and `blob`, which is handed on as it is.
    Text,
    /// `bigint`, `counter`.
    Bigint,
    Int,
    Smallint,
    Tinyint,
    Boolean,
    Double,
    Float,
    /// `timestamp`: milliseconds since 1970, as a number.
    Timestamp,
    /// `uuid`, `timeuuid`.
    Uuid,
}

/// Why a parameter cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Misfit {
    /// Too few were given.
    #[error("the statement has more parameters than were given")]
    Count,
    /// It is none of its type's values.
    #[error("{0} is no value of the type {1:?}")]
    Value(String, Kind),
}

/// Reads a type.
pub(super) fn read_kind(bytes: &mut &[u8]) -> io::Result<Kind> {
    match read_short(bytes)? {
        0x0001 | 0x0003 | 0x000D => Ok(Kind::Text),
        0x0002 | 0x0005 => Ok(Kind::Bigint),
        0x0004 => Ok(Kind::Boolean),
        0x0007 => Ok(Kind::Double),
        0x0008 => Ok(Kind::Float),
        0x0009 => Ok(Kind::Int),
        0x000B => Ok(Kind::Timestamp),
        0x000C | 0x000F => Ok(Kind::Uuid),
        0x0013 => Ok(Kind::Smallint),
        0x0014 => Ok(Kind::Tinyint),
        0x0000 => {
            let name = read_string(bytes).map_err(|error| invalid(&error.to_string()))?;
            Err(invalid(&format!("a column of the type {name}, which is not supported")))
        }
        number => Err(invalid(&format!("a column of the type {number:#06x}, which is not supported"))),
    }
}

/// Appends a parameter with its length before it.
pub(super) fn write_value(kind: Kind, value: &SqlValue<'_>, out: &mut BytesMut) -> Result<(), Misfit> {
    match (kind, value) {
        (_, SqlValue::Null) => out.put_i32(-1),
        (Kind::Text, SqlValue::Text(text)) => put(text.as_bytes(), out),
        (Kind::Text, SqlValue::Integer(number)) => put(itoa::Buffer::new().format(*number).as_bytes(), out),
        (Kind::Bigint | Kind::Timestamp, SqlValue::Integer(number)) => put(&number.to_be_bytes(), out),
        (kind, SqlValue::Integer(number)) => put_number(kind, *number, out)?,
        (kind, SqlValue::Text(text)) => put_text(kind, text, out)?,
    }
    Ok(())
}

fn put_number(kind: Kind, number: i64, out: &mut BytesMut) -> Result<(), Misfit> {
    let misfit = || Misfit::Value(number.to_string(), kind);
    match kind {
        Kind::Int => put(&i32::try_from(number).map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Smallint => put(&i16::try_from(number).map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Tinyint => put(&i8::try_from(number).map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Double | Kind::Float => put_text(kind, itoa::Buffer::new().format(number), out)?,
        _ => return Err(misfit()),
    }
    Ok(())
}

fn put_text(kind: Kind, text: &str, out: &mut BytesMut) -> Result<(), Misfit> {
    let misfit = || Misfit::Value(format!("{text:?}"), kind);
    match kind {
        Kind::Text => put(text.as_bytes(), out),
        Kind::Double => put(&text.parse::<f64>().map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Float => put(&text.parse::<f32>().map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Boolean => put(&[u8::from(text.parse::<bool>().map_err(|_| misfit())?)], out),
        Kind::Uuid => put(&uuid(text).ok_or_else(misfit)?, out),
        Kind::Bigint | Kind::Timestamp => put(&text.parse::<i64>().map_err(|_| misfit())?.to_be_bytes(), out),
        Kind::Int | Kind::Smallint | Kind::Tinyint => {
            put_number(kind, text.parse().map_err(|_| misfit())?, out)?;
        }
    }
    Ok(())
}

fn put(bytes: &[u8], out: &mut BytesMut) {
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.put_slice(bytes);
}

/// The bytes of an identifier, `8-4-4-4-12` digits.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut digits = text.bytes().filter(|sign| *sign != b'-');
    for byte in &mut bytes {
        let mut digit = || char::from(digits.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit()? << 4 | digit()?;
    }
    let hyphens = text.bytes().enumerate().filter(|(_, sign)| *sign == b'-').map(|(place, _)| place);
    (digits.next().is_none() && hyphens.eq([8, 13, 18, 23])).then_some(bytes)
}

/// Appends a cell as text; an empty value of a type that has none is NULL.
pub(super) fn push_cell(kind: Kind, bytes: Option<&[u8]>, rows: &mut Rows) -> io::Result<()> {
    let Some(bytes) = bytes.filter(|bytes| kind == Kind::Text || !bytes.is_empty()) else {
        rows.push_cell(None);
        return Ok(());
    };
    let mut digits = itoa::Buffer::new();
    match kind {
        Kind::Text => rows.push_cell(Some(bytes)),
        Kind::Bigint | Kind::Timestamp => {
            rows.push_cell(Some(digits.format(i64::from_be_bytes(whole(bytes)?)).as_bytes()));
        }
        Kind::Int => rows.push_cell(Some(digits.format(i32::from_be_bytes(whole(bytes)?)).as_bytes())),
        Kind::Smallint => rows.push_cell(Some(digits.format(i16::from_be_bytes(whole(bytes)?)).as_bytes())),
        Kind::Tinyint => rows.push_cell(Some(digits.format(i8::from_be_bytes(whole(bytes)?)).as_bytes())),
        Kind::Boolean => {
            let [byte] = whole(bytes)?;
            rows.push_cell(Some(if byte == 0 { b"false" } else { b"true" }));
        }
        Kind::Double => rows.push_cell(Some(f64::from_be_bytes(whole(bytes)?).to_string().as_bytes())),
        Kind::Float => rows.push_cell(Some(f32::from_be_bytes(whole(bytes)?).to_string().as_bytes())),
        Kind::Uuid => {
            let number = u128::from_be_bytes(whole(bytes)?);
            let part = |shift: u32, bits: u32| number >> shift & ((1 << bits) - 1);
            let text = format!(
                "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                part(96, 32),
                part(80, 16),
                part(64, 16),
                part(48, 16),
                part(0, 48)
            );
            rows.push_cell(Some(text.as_bytes()));
        }
    }
    Ok(())
}

fn whole<const LENGTH: usize>(bytes: &[u8]) -> io::Result<[u8; LENGTH]> {
    let told = || invalid(&format!("a value of {} bytes where its type has {LENGTH}", bytes.len()));
    bytes.try_into().map_err(|_| told())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_the_text_that_was_written() {
        let check = |kind: Kind, value: SqlValue<'_>, expected: Option<&str>| {
            let mut out = BytesMut::new();
            write_value(kind, &value, &mut out).expect("fits");
            let (length, bytes) = out.split_first_chunk().expect("a length");
            let length = i32::from_be_bytes(*length);
            assert_eq!(i32::try_from(bytes.len()).expect("short"), length.max(0));
            let mut rows = Rows::default();
            rows.begin_row(1);
            push_cell(kind, (length >= 0).then_some(bytes), &mut rows).expect("a cell");
            assert_eq!(rows.text(0, 0), expected, "{kind:?} {value:?}");
        };
        let id = "00112233-4455-6677-8899-aabbccddeeff";
        check(Kind::Text, SqlValue::Text("ü"), Some("ü"));
        check(Kind::Text, SqlValue::Text(""), Some(""));
        check(Kind::Text, SqlValue::Integer(-4), Some("-4"));
        check(Kind::Bigint, SqlValue::Integer(i64::MIN), Some("-9223372036854775808"));
        check(Kind::Bigint, SqlValue::Text("12"), Some("12"));
        check(Kind::Timestamp, SqlValue::Text("1577836800000"), Some("1577836800000"));
        check(Kind::Int, SqlValue::Integer(-5), Some("-5"));
        check(Kind::Smallint, SqlValue::Text("300"), Some("300"));
        check(Kind::Tinyint, SqlValue::Integer(-128), Some("-128"));
        check(Kind::Boolean, SqlValue::Text("true"), Some("true"));
        check(Kind::Double, SqlValue::Text("99.5"), Some("99.5"));
        check(Kind::Float, SqlValue::Integer(3), Some("3"));
        check(Kind::Uuid, SqlValue::Text(id), Some(id));
        check(Kind::Uuid, SqlValue::Null, None);
    }

    #[test]
    fn what_a_type_does_not_have_is_refused() {
        let check = |kind: Kind, value: SqlValue<'_>| {
            let mut out = BytesMut::new();
            assert!(write_value(kind, &value, &mut out).is_err(), "{kind:?} {value:?}");
        };
        check(Kind::Int, SqlValue::Integer(1 << 31));
        check(Kind::Tinyint, SqlValue::Text("128"));
        check(Kind::Uuid, SqlValue::Text("00112233-4455-6677-8899-aabbccddeef"));
        check(Kind::Uuid, SqlValue::Text("0011223344556677-8899-aabb-ccdd-eeff"));
        check(Kind::Uuid, SqlValue::Text("00112233-4455-6677-8899-aabbccddeegg"));
        check(Kind::Uuid, SqlValue::Integer(1));
        check(Kind::Boolean, SqlValue::Text("yes"));
        check(Kind::Double, SqlValue::Text("much"));
        let mut rows = Rows::default();
        rows.begin_row(1);
        assert!(push_cell(Kind::Bigint, Some(&[1, 2]), &mut rows).is_err());
        assert!(read_kind(&mut &[0, 0x20, 0, 1][..]).is_err(), "a list");
        assert!(read_kind(&mut &[0, 0, 0, 9, b'x'][..]).is_err(), "a name that is cut off");
    }
}
