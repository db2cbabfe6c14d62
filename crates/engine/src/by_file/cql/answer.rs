//! What is read of an answer in CQL: its rows as JSON, and the words of an error.
//!
//! Owns the bodies of answers, without those of prepared statements. Source: `native_protocol_v4.spec`, sections 2.2, 3, 4.2.5
//! and 6.

use std::io;
use std::net::IpAddr;

use serde_json::Value;

const COMPRESSED: u8 = 0x01;
const TRACED: u8 = 0x02;
const WITH_PAYLOAD: u8 = 0x04;
const WITH_WARNINGS: u8 = 0x08;

const GLOBAL_TABLE: i32 = 0x0001;
const MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;

const VOID: i32 = 1;
const ROWS: i32 = 2;
const KEYSPACE: i32 = 3;
const SCHEMA_CHANGE: i32 = 5;

/// How deep a type may nest.
const NESTING_MAX: u8 = 16;

/// How a cell becomes text.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// `ascii`, `text`.
    Text,
    /// A number of up to eight bytes, or a time as one.
    Integer,
    Boolean,
    Uuid,
    Address,
    /// Any other: in hexadecimal.
    Other,
}

pub(super) fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that is not of CQL's protocol")
}

/// The body without what the flags say stands before it.
pub(super) fn told(flags: u8, body: &[u8]) -> io::Result<&[u8]> {
    if flags & COMPRESSED != 0 {
        return Err(strange());
    }
    let mut rest = Rest(body);
    if flags & TRACED != 0 {
        rest.take(16)?;
    }
    if flags & WITH_WARNINGS != 0 {
        for _ in 0..rest.short()? {
            rest.string()?;
        }
    }
    if flags & WITH_PAYLOAD != 0 {
        for _ in 0..rest.short()? {
            rest.string()?;
            rest.value()?;
        }
    }
    Ok(rest.0)
}

/// The code and the words of an error.
pub(super) fn error_in(body: &[u8]) -> String {
    let Some((code, rest)) = body.split_first_chunk::<4>() else {
        return "an error without a message".to_owned();
    };
    let words = rest.get(2..).unwrap_or_default();
    let length = rest.first_chunk::<2>().map_or(0, |length| usize::from(u16::from_be_bytes(*length)));
    let words = String::from_utf8_lossy(words.get(..length).unwrap_or(words));
    format!("error {:#06x}: {words}", u32::from_be_bytes(*code))
}

/// The rows of a result, each a list of texts. What was written has none.
pub(super) fn rows(result: &[u8]) -> io::Result<Value> {
    let mut rest = Rest(result);
    match rest.int()? {
        ROWS => {}
        VOID | KEYSPACE | SCHEMA_CHANGE => return Ok(Value::Array(Vec::new())),
        _ => return Err(strange()),
    }
    let kinds = columns(&mut rest)?;
    let count = rest.count()?;
    // A row of no columns takes no bytes: any number of them would.
    if kinds.is_empty() && count > 0 {
        return Err(strange());
    }
    let mut rows = Vec::new();
    for _ in 0..count {
        let cells = kinds.iter().map(|kind| rest.value().map(|bytes| cell(*kind, bytes)));
        rows.push(Value::Array(cells.collect::<io::Result<_>>()?));
    }
    Ok(Value::Array(rows))
}

fn columns(rest: &mut Rest<'_>) -> io::Result<Vec<Kind>> {
    let flags = rest.int()?;
    let count = rest.count()?;
    if flags & MORE_PAGES != 0 {
        rest.value()?;
    }
    // Nobody asked for rows without their types.
    if flags & NO_METADATA != 0 {
        return Err(strange());
    }
    if flags & GLOBAL_TABLE != 0 {
        rest.table()?;
    }
    let mut kinds = Vec::new();
    for _ in 0..count {
        if flags & GLOBAL_TABLE == 0 {
            rest.table()?;
        }
        rest.string()?;
        kinds.push(kind(rest, 0)?);
    }
    Ok(kinds)
}

/// A column's type. What a type is made of is passed over.
fn kind(rest: &mut Rest<'_>, depth: u8) -> io::Result<Kind> {
    if depth > NESTING_MAX {
        return Err(strange());
    }
    let number = rest.short()?;
    match number {
        0x0001 | 0x000D => return Ok(Kind::Text),
        // `bigint`, `counter`, `int`, `timestamp`, `time`, `smallint`, `tinyint`.
        0x0002 | 0x0005 | 0x0009 | 0x000B | 0x0012 | 0x0013 | 0x0014 => return Ok(Kind::Integer),
        0x0004 => return Ok(Kind::Boolean),
        0x000C | 0x000F => return Ok(Kind::Uuid),
        0x0010 => return Ok(Kind::Address),
        _ => {}
    }
    let within = match number {
        // A class, by its name.
        0x0000 => {
            rest.string()?;
            0
        }
        // A list or a set, and a map.
        0x0020 | 0x0022 => 1,
        0x0021 => 2,
        // A type of the user's, with a name for each of its fields.
        0x0030 => {
            rest.table()?;
            for _ in 0..rest.short()? {
                rest.string()?;
                kind(rest, depth + 1)?;
            }
            0
        }
        // A tuple.
        0x0031 => rest.short()?,
        _ => 0,
    };
    for _ in 0..within {
        kind(rest, depth + 1)?;
    }
    Ok(Kind::Other)
}

fn cell(kind: Kind, bytes: Option<&[u8]>) -> Value {
    let Some(bytes) = bytes else { return Value::Null };
    let text = match kind {
        Kind::Text => Some(String::from_utf8_lossy(bytes).into_owned()),
        Kind::Integer => integer(bytes).map(|number| number.to_string()),
        Kind::Boolean => integer(bytes).map(|flag| (flag != 0).to_string()),
        Kind::Uuid => uuid(bytes),
        Kind::Address => address(bytes).map(|address| address.to_string()),
        Kind::Other => None,
    };
    Value::String(text.unwrap_or_else(|| hexadecimal(bytes)))
}

fn integer(bytes: &[u8]) -> Option<i64> {
    let (first, rest) = bytes.split_first().filter(|_| bytes.len() <= 8)?;
    let first = i64::from(i8::from_be_bytes([*first]));
    Some(rest.iter().fold(first, |number, byte| (number << 8) | i64::from(*byte)))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes.try_into().ok()?));
    Some([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let short = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    short.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

/// What is left of a body.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(strange)?;
        self.0 = rest;
        Ok(taken)
    }

    fn chunk<const LENGTH: usize>(&mut self) -> io::Result<[u8; LENGTH]> {
        let (chunk, rest) = self.0.split_first_chunk::<LENGTH>().ok_or_else(strange)?;
        self.0 = rest;
        Ok(*chunk)
    }

    fn short(&mut self) -> io::Result<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    fn int(&mut self) -> io::Result<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    /// How many of something follow.
    fn count(&mut self) -> io::Result<usize> {
        usize::try_from(self.int()?).map_err(|_| strange())
    }

    fn string(&mut self) -> io::Result<&'a [u8]> {
        let length = self.short()?;
        self.take(usize::from(length))
    }

    /// Two names: of a keyspace, and of a table or a type in it.
    fn table(&mut self) -> io::Result<()> {
        self.string()?;
        self.string()?;
        Ok(())
    }

    /// A value; none where it is NULL.
    fn value(&mut self) -> io::Result<Option<&'a [u8]>> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What `SELECT count(*) FROM system.peers_v2` is answered on one of three nodes, by the protocol: one `bigint`.
    const COUNT: &[u8] = b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x06system\0\x08peers_v2\0\x05count\0\x02\
        \0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x02";

    fn string(text: &str) -> Vec<u8> {
        let length = u16::try_from(text.len()).expect("short");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    }

    /// One row, whose cells have these types and values.
    fn one_row(cells: &[(&[u8], Option<&[u8]>)]) -> Vec<u8> {
        let int = |number: usize| i32::try_from(number).expect("few").to_be_bytes();
        let mut body = [int(2), int(0), int(cells.len())].concat();
        for (kind, _) in cells {
            body.extend([string("k"), string("t"), string("c"), kind.to_vec()].concat());
        }
        body.extend(int(1));
        for (_, value) in cells {
            body.extend(value.map_or((-1_i32).to_be_bytes(), |value| int(value.len())));
            body.extend(value.unwrap_or_default());
        }
        body
    }

    fn read(body: &[u8]) -> Result<Value, String> {
        rows(body).map_err(|error| error.to_string())
    }

    #[test]
    fn a_count_is_one_row_of_one_text_and_a_write_has_no_rows() {
        assert_eq!(read(COUNT), Ok(json!([["2"]])));
        assert_eq!(read(&[0, 0, 0, 1]), Ok(json!([])));
        let made = [&[0, 0, 0, 5][..], &string("CREATED"), &string("KEYSPACE"), &string("holdfast")].concat();
        assert_eq!(read(&made), Ok(json!([])));
        assert!(read(&[0, 0, 0, 9]).is_err() && read(&[]).is_err());
    }

    #[test]
    fn cells_are_told_by_their_types_and_unknown_ones_in_hexadecimal() {
        let host: Vec<u8> = (0..16).collect();
        let cells: &[(&[u8], Option<&[u8]>)] = &[
            (&[0, 0x0D], Some("ü".as_bytes())),
            (&[0, 0x0D], None),
            (&[0, 0x09], Some(&[0xff, 0xff, 0xff, 0xfb])),
            (&[0, 0x02], Some(&[0x80, 0, 0, 0, 0, 0, 0, 0])),
            (&[0, 0x14], Some(&[0x7f])),
            (&[0, 0x04], Some(&[1])),
            (&[0, 0x0C], Some(&host)),
            (&[0, 0x10], Some(&[10, 0, 0, 3])),
            (&[0, 0x10], Some(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3])),
            (&[0, 0x03], Some(&[0xca, 0xfe])),
            (&[0, 0x09], Some(&[])),
        ];
        let expected = json!([[
            "ü",
            null,
            "-5",
            "-9223372036854775808",
            "127",
            "true",
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
            "10.0.0.3",
            "fd00::3",
            "0xcafe",
            "0x"
        ]]);
        assert_eq!(read(&one_row(cells)), Ok(expected));
    }

    #[test]
    fn what_a_type_is_made_of_is_passed_over() {
        let named = [&[0, 0][..], &string("a.Class")].concat();
        let field = [string("f"), vec![0, 0x0D]].concat();
        let of_user = [&[0, 0x30][..], &string("k"), &string("u"), &[0, 1], &field].concat();
        let types: [&[u8]; 5] = [
            &named,
            &of_user,
            &[0, 0x22, 0, 0x0D],
            &[0, 0x21, 0, 0x0D, 0, 0x20, 0, 0x09],
            &[0, 0x31, 0, 2, 0, 0x09, 0, 0x0D],
        ];
        for kind in types {
            let cells: &[(&[u8], Option<&[u8]>)] = &[(kind, Some(&[1])), (&[0, 0x0D], Some(b"x"))];
            assert_eq!(read(&one_row(cells)), Ok(json!([["0x01", "x"]])), "{kind:?}");
        }
        let endless = [0, 0x20].repeat(1_000);
        assert!(read(&one_row(&[(&endless, None)])).is_err(), "a list of lists of lists");
    }

    #[test]
    fn a_warning_before_the_rows_is_passed_over_and_compression_is_refused() {
        let warned = [&[0, 1][..], &string("Aggregation query used without partition key"), COUNT].concat();
        assert_eq!(told(WITH_WARNINGS, &warned).expect("a body"), COUNT);
        let traced = [&[7; 16][..], COUNT].concat();
        assert_eq!(told(TRACED, &traced).expect("a body"), COUNT);
        let paid = [&[0, 1][..], &string("k"), &[0, 0, 0, 1, 9], COUNT].concat();
        assert_eq!(told(WITH_PAYLOAD, &paid).expect("a body"), COUNT);
        assert!(told(COMPRESSED, COUNT).is_err() && told(TRACED, b"short").is_err());
    }

    #[test]
    fn rows_cut_anywhere_and_impossible_counts_are_refused() {
        for cut in 0..COUNT.len() {
            assert!(read(&COUNT[..cut]).is_err(), "cut at {cut}");
        }
        let result = |numbers: &[i32]| {
            let body: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
            read(&body)
        };
        assert!(result(&[ROWS, 0, i32::MAX]).is_err(), "columns without end");
        assert!(result(&[ROWS, 0, -1]).is_err(), "fewer columns than none");
        assert!(result(&[ROWS, 0, 0, i32::MAX]).is_err(), "rows of nothing");
        assert!(result(&[ROWS, NO_METADATA, 1, 1, 0]).is_err(), "rows without types");
    }
}
