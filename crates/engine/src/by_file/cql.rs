//! One statement in CQL to a node, for engine files that ask so.
//!
//! Owns the few messages that this takes, as the native protocol's version 4 has them (`native_protocol_v4.spec`, sections 2,
//! 4.1 and 4.2). What an answer holds is `answer`'s. The loads' clients speak it on connections of their own, fully.

mod answer;

use std::io::{self, Read, Write as _};
use std::time::Duration;

use capabilities::file::Consistency;
use serde_json::Value;

use crate::Node;

const VERSION: u8 = 4;
/// An answer has this bit set in its version.
const ANSWER: u8 = 0x80;
const ERROR: u8 = 0x00;
const STARTUP: u8 = 0x01;
const READY: u8 = 0x02;
const AUTHENTICATE: u8 = 0x03;
const QUERY: u8 = 0x07;
const RESULT: u8 = 0x08;
/// The longest answer that is read, bytes.
const ANSWER_BYTES_MAX: u32 = 1 << 20;

/// The rows with which the node answers a statement.
pub(super) fn execute(
    node: &dyn Node,
    port: u16,
    query: &str,
    consistency: Consistency,
    patience: Duration,
) -> io::Result<Value> {
    let mut stream = node.connect(port, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&frame(STARTUP, &startup()))?;
    expect(&mut stream, READY)?;
    stream.write_all(&frame(QUERY, &statement(query, consistency)))?;
    answer::rows(&expect(&mut stream, RESULT)?)
}

/// A message on stream 0.
fn frame(opcode: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    let mut bytes = vec![VERSION, 0, 0, 0, opcode];
    bytes.extend(length.to_be_bytes());
    bytes.extend(body);
    bytes
}

fn startup() -> Vec<u8> {
    let mut body = 1_u16.to_be_bytes().to_vec();
    for text in ["CQL_VERSION", "3.0.0"] {
        body.extend((text.len() as u16).to_be_bytes());
        body.extend(text.as_bytes());
    }
    body
}

fn statement(query: &str, consistency: Consistency) -> Vec<u8> {
    let level: u16 = match consistency {
        Consistency::One => 1,
        Consistency::Quorum => 4,
        Consistency::All => 5,
    };
    let mut body = u32::try_from(query.len()).unwrap_or(u32::MAX).to_be_bytes().to_vec();
    body.extend(query.as_bytes());
    body.extend(level.to_be_bytes());
    body.push(0);
    body
}

/// The body of the next answer, which must be of this kind.
fn expect(stream: &mut impl Read, wanted: u8) -> io::Result<Vec<u8>> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    if head[0] & ANSWER == 0 || length > ANSWER_BYTES_MAX {
        return Err(answer::strange());
    }
    let mut body = vec![0; length as usize];
    stream.read_exact(&mut body)?;
    let told = answer::told(head[1], &body)?;
    match head[4] {
        found if found == wanted => Ok(told.to_vec()),
        ERROR => Err(io::Error::other(answer::error_in(told))),
        AUTHENTICATE => Err(io::Error::other("it asks for a password, and the lab has none")),
        other => Err(io::Error::other(format!("an answer of kind {other:#04x} where {wanted:#04x} was due"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_its_length_its_text_its_consistency_and_no_flags() {
        let told = frame(QUERY, &statement("ab", Consistency::Quorum));
        assert_eq!(told, [4, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, b'a', b'b', 0, 4, 0]);
    }

    #[test]
    fn an_answer_is_told_by_its_kind_and_an_error_by_its_words() {
        let answer = |opcode: u8, body: &[u8]| {
            let mut bytes = frame(opcode, body);
            bytes[0] |= ANSWER;
            expect(&mut bytes.as_slice(), RESULT).map_err(|error| error.to_string())
        };
        assert_eq!(answer(RESULT, &[0, 0, 0, 1]), Ok(vec![0, 0, 0, 1]));
        let unavailable = [0, 0, 0x10, 0, 0, 2, b'n', b'o', 9, 9];
        assert_eq!(answer(ERROR, &unavailable), Err("error 0x1000: no".to_owned()));
        assert!(answer(READY, &[]).is_err_and(|why| why.contains("where 0x08 was due")));
        assert!(expect(&mut b"HTTP/1.0 400".as_slice(), RESULT).is_err());
    }
}
