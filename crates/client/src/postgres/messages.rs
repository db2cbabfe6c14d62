//! PostgreSQL's messages on the line: where one begins and ends, and how its fields are read.
//!
//! Owns their form, not what they mean.

use std::io;
use std::ops::Range;

use bytes::BytesMut;
use postgres_protocol::message::backend::Header;
use postgres_protocol::message::frontend;

use super::verdict::ServerMessage;
use crate::wire::{LARGEST_ANSWER_BYTES, Wire, invalid};

/// What is kept of a field of an error or a notice.
const LONGEST_FIELD_BYTES: usize = 4 << 10;
/// Ends the session.
pub(super) const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];

/// One message: its tag and where its body lies in the buffer, until the next [`Wire::poll_fill`].
pub(super) struct Frame {
    pub(super) tag: u8,
    pub(super) body: Range<usize>,
}

impl Wire {
    /// Asks the server whether it encrypts.
    pub(super) async fn asks_for_encryption(&mut self) -> io::Result<bool> {
        let mut question = BytesMut::new();
        frontend::ssl_request(&mut question);
        // One byte and no more: what came with it, unencrypted, would be taken for the server's own words later.
        let mut answer = [0];
        self.ask_in_clear(&question, &mut answer).await?;
        match answer {
            [b'S'] => Ok(true),
            [b'N'] => Ok(false),
            _ => Err(invalid("no answer to whether it encrypts")),
        }
    }

    /// The next whole message that has already arrived.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let arrived = self.arrived();
        let Some(header) = Header::parse(arrived)? else { return Ok(None) };
        let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
        if length > LARGEST_ANSWER_BYTES {
            return Err(invalid(&format!("a message of {length} bytes is announced, which no answer has")));
        }
        if arrived.len() < length + 1 {
            return Ok(None);
        }
        let tag = header.tag();
        self.pass_over(5);
        Ok(Some(Frame { tag, body: self.pass_over(length - 4) }))
    }

    /// A frame's body.
    pub(super) fn body(&self, frame: &Frame) -> &[u8] {
        self.at(&frame.body)
    }
}

/// Splits a zero-terminated string off the front of `body`.
pub(super) fn take_string<'a>(body: &mut &'a [u8]) -> io::Result<&'a [u8]> {
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(|| invalid("string without an end"))?;
    let (string, rest) = body.split_at(end);
    *body = rest.get(1..).unwrap_or_default();
    Ok(string)
}

/// Splits `count` bytes off the front of `body`.
pub(super) fn take_bytes<'a>(body: &mut &'a [u8], count: usize) -> io::Result<&'a [u8]> {
    let (bytes, rest) =
        body.split_at_checked(count).ok_or_else(|| invalid("message shorter than it claims"))?;
    *body = rest;
    Ok(bytes)
}

/// Splits a big-endian 32-bit number off the front of `body`.
pub(super) fn take_i32(body: &mut &[u8]) -> io::Result<i32> {
    let bytes = take_bytes(body, 4)?;
    Ok(bytes.iter().fold(0, |number, byte| (number << 8) | i32::from(*byte)))
}

/// Reads the fields of an error or a notice; unknown ones are passed over, as the protocol asks.
pub(super) fn read_server_message(mut body: &[u8]) -> io::Result<ServerMessage> {
    let mut message = ServerMessage::default();
    loop {
        let field = take_bytes(&mut body, 1)?[0];
        if field == 0 {
            return Ok(message);
        }
        let written = take_string(&mut body)?;
        // Longer ones end up in every error of the run.
        let text =
            String::from_utf8_lossy(written.get(..LONGEST_FIELD_BYTES).unwrap_or(written)).into_owned();
        match field {
            b'V' => message.severity = text,
            // Translated, and superseded by V, which servers before 9.6 lack.
            b'S' if message.severity.is_empty() => message.severity = text,
            b'C' => message.code = text,
            b'M' => message.message = text,
            b'D' => message.detail = text,
            b'F' => message.file = text,
            b'R' => message.routine = text,
            _ => {}
        }
    }
}

/// Reads any bytes as an error or a notice, for who looks for bytes that a parser cannot bear.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) {
    if let Ok(message) = read_server_message(bytes) {
        let _ = (message.ends_the_session(), super::verdict::class_of(&message.code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_off_fields_are_refused_not_panicked_on() {
        let whole = b"SWARNUNG\0VWARNING\0C01000\0Mwait\0Xwhatever\0\0";
        let message = read_server_message(whole).expect("whole message");
        assert_eq!((message.severity.as_str(), message.code.as_str()), ("WARNING", "01000"));
        for cut in 0..whole.len() {
            assert!(read_server_message(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert_eq!(take_i32(&mut [0xff, 0xff, 0xff, 0xff].as_slice()).expect("four bytes"), -1);
        assert!(take_i32(&mut [1, 2].as_slice()).is_err());
    }
}
