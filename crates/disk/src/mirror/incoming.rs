//! The side of a component that is told what to do: messages taken in and answered.
//!
//! Owns the answers and the frames' borders; what a message does is in `operation`.

use std::io::{self, Read};

use crate::Refusal;
use crate::mirror::extents::ExtentLog;
use crate::mirror::operation::{LENGTH_BYTES, MESSAGE_BYTES_MAX, Message, Operation};
use crate::store::Store;
use crate::volume::{Volume, refusal};

/// How far a component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Number of the last message received.
    pub received: u64,
    /// Number of the last message carried out; what it asks to be durable is.
    pub applied: u64,
}

impl Answer {
    /// Bytes of an answer on the wire.
    pub const BYTES: usize = 16;

    /// As it is sent: both numbers, the least byte first.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Answer::BYTES] {
        let mut bytes = [0; Answer::BYTES];
        bytes[..8].copy_from_slice(&self.received.to_le_bytes());
        bytes[8..].copy_from_slice(&self.applied.to_le_bytes());
        bytes
    }

    /// As it was sent.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Answer::BYTES]) -> Answer {
        let (received, applied) = bytes.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        Answer { received: number(received), applied: number(applied) }
    }
}

/// What is wrong with a message.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    /// It is none.
    #[error("a message that cannot be read: {0}")]
    Unreadable(postcard::Error),
    /// The component could not do what the one that serves did.
    #[error("it refused change {sequence} ({what}): {refusal}")]
    Refused {
        /// Its number.
        sequence: u64,
        /// What it asks.
        what: String,
        /// What the component says.
        refusal: Refusal,
    },
}

/// A message that has been read.
#[derive(Debug)]
pub struct Incoming<'a>(Message<'a>);

impl<'a> Incoming<'a> {
    /// Reads a message without the length before it.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(bytes: &'a [u8]) -> Result<Incoming<'a>, IncomingError> {
        postcard::from_bytes(bytes).map(Incoming).map_err(IncomingError::Unreadable)
    }

    /// Its number.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// Whether somebody waits for its answer.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        matches!(self.0.operation, Operation::Sync { .. } | Operation::End)
    }

    /// Carries it out; what it writes is noted before in the component's log, where it has one.
    ///
    /// # Errors
    /// When the component refuses: it is not like the one that serves any more.
    pub fn carry_out<S: Store>(
        &self,
        volume: &Volume<S>,
        extents: Option<&ExtentLog>,
    ) -> Result<(), IncomingError> {
        let noted = match (&self.0.operation, extents) {
            (Operation::Write { number, offset, content, .. }, Some(log)) => {
                log.note(*number, *offset, content.len() as u64)
            }
            (Operation::Content { number, from, content }, Some(log)) => {
                log.note(*number, *from, content.len() as u64)
            }
            _ => Ok(()),
        };
        let done = noted.map_err(|error| refusal(&error)).and_then(|()| self.0.operation.carry_out(volume));
        done.map_err(|refusal| {
            // The first word of the debug form names the operation; what it carries would flood the message.
            let what = format!("{:?}", self.0.operation);
            let what = what.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
            IncomingError::Refused { sequence: self.0.sequence, what, refusal }
        })
    }
}

/// Reads one message into `buffer`, without its length. False where the stream ends before one.
///
/// # Errors
/// When reading fails, the stream ends within one, or it is longer than any may be.
pub fn read_frame(stream: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; LENGTH_BYTES];
    let mut read = 0;
    while read < LENGTH_BYTES {
        match stream.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    buffer.resize(length, 0);
    stream.read_exact(buffer)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Flush, FolderStore};
    use crate::volume::Limits;

    proptest! {
        #[test]
        fn no_bytes_at_all_make_a_component_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let store = FolderStore::new(folder.path(), Flush::Pretended);
            let volume = Volume::new(store, Limits::default(), 0, 0, std::time::SystemTime::UNIX_EPOCH);
            if let Ok(message) = Incoming::read(&bytes) {
                let _ = message.carry_out(&volume, None);
            }
            let mut buffer = Vec::new();
            let _ = read_frame(&mut bytes.as_slice(), &mut buffer);
        }
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let answer = Answer { received: 1 << 40, applied: 77 };
        assert_eq!(Answer::from_bytes(answer.to_bytes()), answer);
    }
}
