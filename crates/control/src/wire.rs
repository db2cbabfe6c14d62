//! The wire's form: frames of JSON, each behind its length in four bytes, the most significant first.
//!
//! Owns the frames and what may stand in them, for clients and nodes alike. Knows no socket.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::replica::Status;
use crate::transaction::{Answer, Operation};

/// The longest frame, bytes, its length not counted.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

/// What a node is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// Another node says something; no answer comes on this connection.
    Peer {
        /// The node.
        from: String,
        /// What it says.
        message: Message,
    },
    /// Carry out this transaction. Answered by [`Tell::Answer`].
    Transaction {
        /// Its steps.
        operations: Vec<Operation>,
    },
    /// How do you see yourself? Answered by [`Tell::Status`].
    Status,
    /// Stand for election now. Answered by [`Tell::Status`], before it is decided.
    Campaign,
}

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tell", rename_all = "kebab-case")]
pub enum Tell {
    /// What became of a transaction.
    Answer {
        /// It.
        answer: Answer,
    },
    /// How the node sees itself.
    Status {
        /// So.
        status: Status,
    },
}

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The connection's own trouble.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Longer than any frame of ours.
    #[error("a frame of {bytes} bytes is longer than {FRAME_BYTES_MAX}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not what may stand in a frame.
    #[error("a frame that means nothing: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// A frame's bytes.
///
/// # Errors
/// When it would be too long.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = bytes.len() - 4;
    match u32::try_from(length) {
        Ok(head) if length <= FRAME_BYTES_MAX => bytes[..4].copy_from_slice(&head.to_be_bytes()),
        _ => return Err(WireError::TooLong { bytes: length }),
    }
    Ok(bytes)
}

/// The length of the frame with this head.
///
/// # Errors
/// When it is too long.
pub fn length(head: [u8; 4]) -> Result<usize, WireError> {
    let bytes = usize::try_from(u32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if bytes > FRAME_BYTES_MAX { Err(WireError::TooLong { bytes }) } else { Ok(bytes) }
}

/// What stands in a frame, its head taken off.
///
/// # Errors
/// When it means nothing.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    Ok(serde_json::from_slice(body)?)
}

/// Reads one frame; nothing when the stream ends between two.
///
/// # Errors
/// When the stream fails or ends within the frame, or the frame is none of ours.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> Result<Option<T>, WireError> {
    let mut head = [0; 4];
    if stream.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut head[1..])?;
    let length = length(head)?;
    // The length is a stranger's word: memory is taken as bytes come.
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body)?;
    if body.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(Some(decode(&body)?))
}

/// Writes one frame.
///
/// # Errors
/// When the stream fails or the frame would be too long.
pub fn write(stream: &mut impl Write, value: &impl Serialize) -> Result<(), WireError> {
    Ok(stream.write_all(&encode(value)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back_one_after_another_and_a_cut_one_is_an_error() {
        let mut bytes = encode(&Ask::Status).expect("short");
        let operations = vec![Operation::Read { key: "k".to_owned() }];
        bytes.extend(encode(&Ask::Transaction { operations: operations.clone() }).expect("short"));
        let mut stream = bytes.as_slice();
        assert_eq!(read::<Ask>(&mut stream).expect("whole"), Some(Ask::Status));
        assert_eq!(read::<Ask>(&mut stream).expect("whole"), Some(Ask::Transaction { operations }));
        assert_eq!(read::<Ask>(&mut stream).expect("the end"), None);
        assert!(matches!(read::<Ask>(&mut &bytes[..3]), Err(WireError::Io(_))));
        assert!(matches!(read::<Ask>(&mut &bytes[..9]), Err(WireError::Io(_))));
    }

    #[test]
    fn a_stranger_s_frame_is_refused() {
        let told = |bytes: &[u8]| read::<Ask>(&mut &bytes[..]).expect_err("not ours").to_string();
        assert_eq!(told(b"GET / HTTP/1.1\r\n"), "a frame of 1195725856 bytes is longer than 67108864");
        assert!(told(b"\0\0\0\x02{}").starts_with("a frame that means nothing: "));
    }
}
