//! One statement in MySQL's protocol to a node, for engine files that ask so.
//!
//! Owns the few packets that this takes (MySQL documentation, "Client/Server Protocol"), of a user without a password. An answer
//! becomes JSON: a list of rows, each a list of texts. The loads' clients speak it on connections of their own, fully.

use std::io::{self, Read, Write as _};
use std::time::Duration;

use serde_json::Value;

use crate::Node;

/// The longest packet that is read, bytes.
const PACKET_BYTES_MAX: usize = 1 << 20;
/// How many rows are read.
const ROWS_MAX: usize = 1_000;
/// Protocol 4.1, with an authentication by the name of its plugin.
const CAPABILITIES: u32 = 0x0000_0200 | 0x0000_8000 | 0x0008_0000;
/// UTF-8.
const CHARACTER_SET: u8 = 33;
const PLUGIN: &[u8] = b"mysql_native_password\0";
const QUERY: u8 = 0x03;
const OK: u8 = 0x00;
const ERROR: u8 = 0xff;
/// The end of columns or rows, and, during a log-in, the question to do it another way.
const END: u8 = 0xfe;
const NULL: u8 = 0xfb;
/// An end is shorter than this; a row may begin with the same byte.
const END_BYTES_MAX: usize = 9;

/// The rows with which the node answers a statement.
pub(super) fn execute(
    node: &dyn Node,
    port: u16,
    user: &str,
    query: &str,
    patience: Duration,
) -> io::Result<Value> {
    let mut stream = node.connect(port, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    sound(packet(&mut stream)?.1)?;
    stream.write_all(&framed(1, &log_in(user)))?;
    let (sequence, answer) = packet(&mut stream)?;
    if sound(answer)?.first() == Some(&END) {
        // No password is what every plugin without one is content with.
        stream.write_all(&framed(sequence.wrapping_add(1), &[]))?;
        sound(packet(&mut stream)?.1)?;
    }
    stream.write_all(&framed(0, &[&[QUERY], query.as_bytes()].concat()))?;
    rows(&mut stream)
}

fn framed(sequence: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length[..3], &[sequence], body].concat()
}

fn log_in(user: &str) -> Vec<u8> {
    let mut body = CAPABILITIES.to_le_bytes().to_vec();
    body.extend((PACKET_BYTES_MAX as u32).to_le_bytes());
    body.push(CHARACTER_SET);
    body.extend([0; 23]);
    body.extend(user.as_bytes());
    // The end of the name, and a password of no bytes.
    body.extend([0, 0]);
    body.extend(PLUGIN);
    body
}

fn strange() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that is not of MySQL's protocol")
}

/// The next packet, with its number.
fn packet(stream: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    if length > PACKET_BYTES_MAX {
        return Err(strange());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((head[3], body))
}

/// A packet that is no error of the server's.
fn sound(body: Vec<u8>) -> io::Result<Vec<u8>> {
    match body.split_first() {
        None => Err(strange()),
        Some((&ERROR, rest)) => {
            let code = rest.first_chunk::<2>().map_or(0, |code| u16::from_le_bytes(*code));
            // Behind the code stands its class, where the connection has got so far: `#08S01`.
            let words = rest.get(2..).unwrap_or_default();
            let words = if words.first() == Some(&b'#') { words.get(6..).unwrap_or_default() } else { words };
            Err(io::Error::other(format!("{code}: {}", String::from_utf8_lossy(words))))
        }
        Some(_) => Ok(body),
    }
}

fn is_end(body: &[u8]) -> bool {
    body.first() == Some(&END) && body.len() < END_BYTES_MAX
}

fn rows(stream: &mut impl Read) -> io::Result<Value> {
    let head = sound(packet(stream)?.1)?;
    if head.first() == Some(&OK) {
        return Ok(Value::Array(Vec::new()));
    }
    while !is_end(&sound(packet(stream)?.1)?) {}
    let mut rows = Vec::new();
    while rows.len() < ROWS_MAX {
        let body = sound(packet(stream)?.1)?;
        if is_end(&body) {
            return Ok(Value::Array(rows));
        }
        rows.push(row(&body)?);
    }
    Err(strange())
}

fn row(mut body: &[u8]) -> io::Result<Value> {
    let mut cells = Vec::new();
    while let Some((first, rest)) = body.split_first() {
        let (length, rest) = match *first {
            NULL => {
                cells.push(Value::Null);
                body = rest;
                continue;
            }
            // Two bytes of length follow, or three; longer is no packet.
            0xfc => rest
                .split_first_chunk::<2>()
                .map(|(length, rest)| (usize::from(u16::from_le_bytes(*length)), rest)),
            0xfd => rest.split_first_chunk::<3>().map(|(length, rest)| {
                (u32::from_le_bytes([length[0], length[1], length[2], 0]) as usize, rest)
            }),
            short => Some((usize::from(short), rest)),
        }
        .ok_or_else(strange)?;
        let (text, rest) = rest.split_at_checked(length).ok_or_else(strange)?;
        cells.push(Value::String(String::from_utf8_lossy(text).into_owned()));
        body = rest;
    }
    Ok(Value::Array(cells))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_read_and_an_error_is_its_code_and_its_words() {
        let answer = |bodies: &[&[u8]]| {
            let bytes: Vec<u8> = bodies.iter().flat_map(|body| framed(1, body)).collect();
            rows(&mut bytes.as_slice()).map_err(|error| error.to_string())
        };
        let end: &[u8] = &[END, 0, 0, 2, 0];
        let status: &[u8] = b"\x0bwsrep_ready\x02ON";
        assert_eq!(answer(&[&[2], b"a", b"b", end, status, end]), Ok(json!([["wsrep_ready", "ON"]])));
        assert_eq!(answer(&[&[1], b"a", end, &[NULL], &[0xfc, 1, 0, b'x'], end]), Ok(json!([[null], ["x"]])));
        assert_eq!(answer(&[&[OK, 0, 0]]), Ok(json!([])));
        let refused: &[u8] = b"\xff\x17\x04#08S01not prepared";
        assert_eq!(answer(&[refused]), Err("1047: not prepared".to_owned()));
        for cut in [&[&[2][..], b"a"][..], &[&[1], b"a", end, b"\x05ab", end], &[]] {
            assert!(answer(cut).is_err(), "{cut:?}");
        }
    }

    #[test]
    fn a_packet_has_its_length_and_its_number() {
        assert_eq!(framed(3, b"ab"), [2, 0, 0, 3, b'a', b'b']);
        assert_eq!(packet(&mut &framed(3, b"ab")[..]).expect("a packet"), (3, b"ab".to_vec()));
        assert!(packet(&mut &b"\xff\xff\xff\x00"[..]).is_err());
    }
}
