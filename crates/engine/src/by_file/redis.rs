//! One command in Redis' protocol to a node, for engine files that ask so.
//!
//! Owns the little of the protocol's version 2 that this takes (Redis documentation, "Redis serialization protocol
//! specification"). An answer becomes JSON, in which files name fields. The loads' clients speak it on connections of their
//! own.

use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::time::Duration;

use serde_json::Value;

use crate::Node;

/// The longest answer that is read, bytes.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// How deep lists may lie in each other.
const DEPTH_MAX: usize = 8;

/// What the node answers to a command.
pub(super) fn execute(node: &dyn Node, port: u16, words: &[String], patience: Duration) -> io::Result<Value> {
    let mut stream = node.connect(port, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&written(words))?;
    reply(&mut BufReader::new(stream.take(ANSWER_BYTES_MAX)), 0)
}

fn written(words: &[String]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that is not of Redis' protocol")
}

/// Reads one answer; one that is an error of the server's is an error here.
fn reply(stream: &mut impl BufRead, depth: usize) -> io::Result<Value> {
    let mut line = Vec::new();
    stream.read_until(b'\n', &mut line)?;
    let line = line.strip_suffix(b"\r\n").ok_or_else(strange)?;
    let line = String::from_utf8_lossy(line);
    let mut letters = line.chars();
    let kind = letters.next().ok_or_else(strange)?;
    let rest = letters.as_str();
    let number = || rest.parse::<i64>().map_err(|_| strange());
    match kind {
        '+' => Ok(Value::String(rest.to_owned())),
        '-' => Err(io::Error::other(rest.to_owned())),
        ':' => number().map(Value::from),
        '$' => bulk(stream, number()?),
        '*' if depth < DEPTH_MAX => {
            // A list that is not there has the length -1.
            let elements = (0..number()?).map(|_| reply(stream, depth + 1));
            elements.collect::<io::Result<_>>().map(Value::Array)
        }
        _ => Err(strange()),
    }
}

/// Text of so many bytes; none where the length is -1.
fn bulk(stream: &mut impl Read, length: i64) -> io::Result<Value> {
    let Ok(length) = u64::try_from(length) else { return Ok(Value::Null) };
    let mut text = Vec::new();
    stream.take(length.saturating_add(2)).read_to_end(&mut text)?;
    let text = text.strip_suffix(b"\r\n").filter(|text| text.len() as u64 == length).ok_or_else(strange)?;
    Ok(Value::String(String::from_utf8_lossy(text).into_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_its_words_each_with_its_length() {
        let words = ["CONFIG", "REWRITE"].map(str::to_owned);
        assert_eq!(written(&words), b"*2\r\n$6\r\nCONFIG\r\n$7\r\nREWRITE\r\n");
    }

    #[test]
    fn an_answer_becomes_json_and_an_error_its_words() {
        let read = |bytes: &[u8]| reply(&mut &*bytes, 0).map_err(|error| error.to_string());
        assert_eq!(read(b"+OK\r\n"), Ok(json!("OK")));
        assert_eq!(read(b"$-1\r\n"), Ok(Value::Null));
        let role = b"*3\r\n$6\r\nmaster\r\n:3229\r\n*1\r\n*2\r\n$9\r\n127.0.0.2\r\n$1\r\n0\r\n";
        assert_eq!(read(role), Ok(json!(["master", 3229, [["127.0.0.2", "0"]]])));
        assert_eq!(read(b"-LOADING Redis is loading\r\n"), Err("LOADING Redis is loading".to_owned()));
        for cut in [&b""[..], b"+OK", b"$6\r\nmas", b"*2\r\n:1\r\n", b":x\r\n", b"HTTP/1.0 400\r\n"] {
            assert!(read(cut).is_err(), "{cut:?}");
        }
        assert!(read(&b"*1\r\n".repeat(20)).is_err(), "lists without end");
    }
}
