//! One command of MongoDB to a node, for engine files that ask so.
//!
//! Owns the little of its wire protocol that this takes (MongoDB manual, "MongoDB Wire Protocol": OP_MSG with one section) and
//! of BSON (bsonspec.org, version 1.1). A command comes as JSON and its reply becomes JSON, in which files name fields. The
//! loads' clients have its driver, in a program of their own.
//!
//! The crate `bson` (3.1, without features) was looked at for this: it brings eighteen crates that nothing else here needs, a
//! second calendar and a second generator of random numbers among them, for one command and its reply.

use std::io::{self, Read, Write as _};
use std::time::Duration;

use serde_json::{Map, Number, Value};

use crate::Node;

/// Every command goes there.
const DATABASE: &str = "admin";
const OP_MSG: i32 = 2013;
const HEAD_BYTES: usize = 16;
/// Flags, and the kind of the section.
const BEFORE_DOCUMENT_BYTES: usize = 5;
/// The longest reply that is read, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How deep documents may lie in each other.
const DEPTH_MAX: usize = 32;

// Kinds of elements, as BSON numbers them.
const END: u8 = 0x00;
const DOUBLE: u8 = 0x01;
const TEXT: u8 = 0x02;
const DOCUMENT: u8 = 0x03;
const LIST: u8 = 0x04;
const BINARY: u8 = 0x05;
const OBJECT_ID: u8 = 0x07;
const BOOLEAN: u8 = 0x08;
const DATE: u8 = 0x09;
const NULL: u8 = 0x0A;
const INT32: u8 = 0x10;
const TIMESTAMP: u8 = 0x11;
const INT64: u8 = 0x12;
const DECIMAL: u8 = 0x13;

/// What the node replies to a command.
pub(super) fn execute(node: &dyn Node, port: u16, command: &str, patience: Duration) -> io::Result<Value> {
    let mut stream = node.connect(port, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&message(command)?)?;
    succeeded(answer(&mut stream)?)
}

/// A reply that is no error.
fn succeeded(reply: Value) -> io::Result<Value> {
    if reply.get("ok").and_then(Value::as_f64).is_some_and(|ok| ok > 0.0) {
        return Ok(reply);
    }
    let words = reply.get("errmsg").and_then(Value::as_str).unwrap_or("an error without a message");
    Err(io::Error::other(words.to_owned()))
}

/// A command as it travels. Its fields keep their order: the first one is its name.
fn message(command: &str) -> io::Result<Vec<u8>> {
    let command: Map<String, Value> = serde_json::from_str(command)
        .map_err(|error| io::Error::other(format!("the command is not JSON: {error}")))?;
    let database = Value::from(DATABASE);
    let fields = command.iter().map(|(name, value)| (name.as_str(), value));
    let mut bytes = vec![0; HEAD_BYTES + BEFORE_DOCUMENT_BYTES];
    push_document(fields.chain([("$db", &database)]), &mut bytes);
    let length = i32::try_from(bytes.len()).map_err(io::Error::other)?;
    // The message's own number is 1, and it replies to none.
    for (place, number) in [length, 1, 0, OP_MSG].into_iter().enumerate() {
        bytes[place * 4..place * 4 + 4].copy_from_slice(&number.to_le_bytes());
    }
    Ok(bytes)
}

/// Appends a document: its length, its elements, and an end.
fn push_document<'v>(elements: impl Iterator<Item = (&'v str, &'v Value)>, bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend([0; 4]);
    for (name, value) in elements {
        push_element(name, value, bytes);
    }
    bytes.push(END);
    let length = u32::try_from(bytes.len() - begin).unwrap_or(u32::MAX);
    bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

fn push_element(name: &str, value: &Value, bytes: &mut Vec<u8>) {
    let place = bytes.len();
    bytes.push(NULL);
    bytes.extend(name.as_bytes());
    bytes.push(0);
    let kind = match value {
        Value::Null => NULL,
        Value::Bool(flag) => {
            bytes.push(u8::from(*flag));
            BOOLEAN
        }
        Value::Number(number) => push_number(number, bytes),
        Value::String(text) => {
            let length = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(text.as_bytes());
            bytes.push(0);
            TEXT
        }
        Value::Array(list) => {
            let names: Vec<String> = (0..list.len()).map(|place| place.to_string()).collect();
            push_document(names.iter().map(String::as_str).zip(list), bytes);
            LIST
        }
        Value::Object(fields) => {
            push_document(fields.iter().map(|(name, value)| (name.as_str(), value)), bytes);
            DOCUMENT
        }
    };
    bytes[place] = kind;
}

fn push_number(number: &Number, bytes: &mut Vec<u8>) -> u8 {
    let Some(whole) = number.as_i64() else {
        bytes.extend(number.as_f64().unwrap_or_default().to_le_bytes());
        return DOUBLE;
    };
    match i32::try_from(whole) {
        Ok(small) => {
            bytes.extend(small.to_le_bytes());
            INT32
        }
        Err(_) => {
            bytes.extend(whole.to_le_bytes());
            INT64
        }
    }
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that is not of MongoDB's protocol")
}

/// Reads one reply.
fn answer(stream: &mut impl Read) -> io::Result<Value> {
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let mut head = head.as_slice();
    let length = i32::from_le_bytes(take(&mut head)?);
    let [_, _, code] = [take(&mut head)?, take(&mut head)?, take(&mut head)?].map(i32::from_le_bytes);
    let length = usize::try_from(length).ok().filter(|length| *length <= ANSWER_BYTES_MAX);
    let length = length.and_then(|length| length.checked_sub(HEAD_BYTES)).ok_or_else(strange)?;
    if code != OP_MSG {
        return Err(strange());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let mut body = body.as_slice();
    let [.., kind] = take::<BEFORE_DOCUMENT_BYTES>(&mut body)?;
    // A section of another kind is a sequence of documents, which no reply is.
    if kind != 0 {
        return Err(strange());
    }
    document(&mut body, false, 0)
}

fn take<const COUNT: usize>(bytes: &mut &[u8]) -> io::Result<[u8; COUNT]> {
    let (first, rest) = bytes.split_first_chunk::<COUNT>().ok_or_else(strange)?;
    *bytes = rest;
    Ok(*first)
}

/// So many bytes, by a number that stands before them.
fn take_counted<'b>(bytes: &mut &'b [u8], more: usize) -> io::Result<&'b [u8]> {
    let count = usize::try_from(i32::from_le_bytes(take(bytes)?)).map_err(|_| strange())?;
    let count = count.checked_add(more).ok_or_else(strange)?;
    let (counted, rest) = bytes.split_at_checked(count).ok_or_else(strange)?;
    *bytes = rest;
    Ok(counted)
}

/// Reads a document; or a list, which is one whose names are numbers.
fn document(bytes: &mut &[u8], is_list: bool, depth: usize) -> io::Result<Value> {
    if depth >= DEPTH_MAX {
        return Err(strange());
    }
    // The length counts itself.
    let mut inner = {
        let length = usize::try_from(i32::from_le_bytes(take(bytes)?)).map_err(|_| strange())?;
        let length = length.checked_sub(4).ok_or_else(strange)?;
        let (inner, rest) = bytes.split_at_checked(length).ok_or_else(strange)?;
        *bytes = rest;
        inner
    };
    let (mut list, mut fields) = (Vec::new(), Map::new());
    loop {
        let [kind] = take(&mut inner)?;
        if kind == END {
            break;
        }
        let end = inner.iter().position(|byte| *byte == 0).ok_or_else(strange)?;
        let name = String::from_utf8_lossy(&inner[..end]).into_owned();
        inner = &inner[end + 1..];
        let value = value(kind, &mut inner, depth)?;
        if is_list {
            list.push(value);
        } else {
            fields.insert(name, value);
        }
    }
    Ok(if is_list { Value::Array(list) } else { Value::Object(fields) })
}

/// Reads a value of this kind. Of those that a file has no use for nothing is told.
fn value(kind: u8, bytes: &mut &[u8], depth: usize) -> io::Result<Value> {
    Ok(match kind {
        DOUBLE => Value::from(f64::from_le_bytes(take(bytes)?)),
        TEXT => {
            let text = take_counted(bytes, 0)?;
            let text = text.strip_suffix(&[0]).ok_or_else(strange)?;
            Value::String(String::from_utf8_lossy(text).into_owned())
        }
        DOCUMENT => document(bytes, false, depth + 1)?,
        LIST => document(bytes, true, depth + 1)?,
        BOOLEAN => Value::Bool(take::<1>(bytes)? != [0]),
        INT32 => Value::from(i32::from_le_bytes(take(bytes)?)),
        INT64 | DATE => Value::from(i64::from_le_bytes(take(bytes)?)),
        TIMESTAMP => Value::from(u64::from_le_bytes(take(bytes)?)),
        NULL => Value::Null,
        // Its length does not count its kind.
        BINARY => take_counted(bytes, 1).map(|_| Value::Null)?,
        OBJECT_ID => take::<12>(bytes).map(|_| Value::Null)?,
        DECIMAL => take::<16>(bytes).map(|_| Value::Null)?,
        _ => return Err(strange()),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A reply with this document, whose elements are as they stand.
    fn reply(elements: &[u8]) -> Vec<u8> {
        let mut body = vec![0; BEFORE_DOCUMENT_BYTES];
        body.extend(u32::try_from(elements.len() + 5).expect("short").to_le_bytes());
        body.extend(elements);
        body.push(END);
        let length = i32::try_from(HEAD_BYTES + body.len()).expect("short");
        let mut bytes: Vec<u8> =
            [length, 9, 1, OP_MSG].iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_command_is_its_fields_in_their_order_and_the_database() {
        let told = message(r#"{ "ping": 1 }"#).expect("a command");
        let head = b"\x33\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0";
        let document = b"\x1e\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x06\0\0\0admin\0\0";
        assert_eq!(told, [head.as_slice(), document.as_slice()].concat());
        let two = message(r#"{ "z": 1, "a": [true, "b"] }"#).expect("a command");
        let place = |name: &[u8]| two.windows(name.len()).position(|bytes| bytes == name).expect("a name");
        assert!(place(b"\x10z\0") < place(b"\x04a\0"));
        assert!(message("[1]").is_err() && message("ping").is_err());
    }

    #[test]
    fn what_is_sent_can_be_read_again() {
        let sent = r#"{"a":1,"b":[null,true,{"c":-9223372036854775808}],"d":"text","e":0.5,"f":{}}"#;
        let bytes = message(sent).expect("a command");
        let seen = document(&mut &bytes[HEAD_BYTES + BEFORE_DOCUMENT_BYTES..], false, 0).expect("a document");
        let expected = json!({ "a": 1, "b": [null, true, { "c": i64::MIN }], "d": "text", "e": 0.5, "f": {}, "$db": "admin" });
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_reply_becomes_json_and_an_error_its_words() {
        let mut elements = b"\x08isWritablePrimary\0\x01\x11ts\0".to_vec();
        let ts = (7_u64 << 32) + 3;
        elements.extend(ts.to_le_bytes());
        elements.extend(b"\x07id\0____________\x05hash\0\x02\0\0\0\0__\x01ok\0");
        elements.extend(1_f64.to_le_bytes());
        let told = answer(&mut reply(&elements).as_slice()).and_then(succeeded).expect("a reply");
        assert_eq!(told, json!({ "isWritablePrimary": true, "ts": ts, "id": null, "hash": null, "ok": 1.0 }));
        let mut refused = b"\x02errmsg\0\x03\0\0\0no\0\x01ok\0".to_vec();
        refused.extend(0_f64.to_le_bytes());
        let error = answer(&mut reply(&refused).as_slice()).and_then(succeeded).expect_err("refused");
        assert_eq!(error.to_string(), "no");
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        let whole = reply(b"\x10ok\0\x01\0\0\0");
        assert!(answer(&mut whole.as_slice()).is_ok());
        for count in 0..whole.len() {
            assert!(answer(&mut &whole[..count]).is_err(), "{count} bytes");
        }
        for (place, wrong) in [(12, 1), (3, 0x7f), (20, 1), (21, 0xff), (25, 0x7e)] {
            let mut broken = whole.clone();
            broken[place] = wrong;
            assert!(answer(&mut broken.as_slice()).is_err(), "byte {place}");
        }
        assert!(answer(&mut b"HTTP/1.0 400 Bad Request\r\n\r\n".as_slice()).is_err());
        let mut deep = Vec::new();
        for _ in 0..100 {
            let mut outer = vec![DOCUMENT, b'a', 0];
            outer.extend(u32::try_from(deep.len() + 5).expect("short").to_le_bytes());
            outer.extend(deep);
            outer.push(END);
            deep = outer;
        }
        assert!(answer(&mut reply(&deep).as_slice()).is_err(), "documents without end");
    }
}
