//! Bytes to and from the server: the socket, its options, one buffer each way, and frames.
//!
//! Knows where a message begins and ends and how to read its fields, not what the messages mean.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use nix::sys::socket::{setsockopt, sockopt};
use postgres_protocol::message::backend::Header;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::verdict::ServerMessage;

/// A message longer than this is taken for garbage on the line.
const LARGEST_MESSAGE_BYTES: usize = 256 << 20;
const FIRST_BUFFER_BYTES: usize = 8 << 10;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The socket with its buffers.
pub(super) struct Wire {
    stream: Stream,
    /// Messages to be sent by the next [`Wire::send`].
    pub(super) outgoing: BytesMut,
    incoming: Vec<u8>,
    read_from: usize,
    filled_to: usize,
}

/// One message: its tag and where its body lies in the buffer, until the next [`Wire::fill`].
pub(super) struct Frame {
    pub(super) tag: u8,
    pub(super) body: Range<usize>,
}

impl Wire {
    /// Connects over TCP. `patience` is how long unacknowledged bytes or silence are put up with by the kernel.
    pub(super) async fn connect_tcp(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        setsockopt(&stream, sockopt::KeepAlive, &true)?;
        let patience_s = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX).clamp(1, 32_767);
        setsockopt(&stream, sockopt::TcpKeepIdle, &patience_s)?;
        setsockopt(&stream, sockopt::TcpKeepInterval, &patience_s)?;
        let patience_ms =
            u32::try_from(patience.as_millis()).unwrap_or(u32::MAX).clamp(1_000, i32::MAX as u32);
        setsockopt(&stream, sockopt::TcpUserTimeout, &patience_ms)?;
        Ok(Self::over(Stream::Tcp(stream)))
    }

    /// Connects to a Unix socket.
    pub(super) async fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Self::over(Stream::Unix(UnixStream::connect(path).await?)))
    }

    fn over(stream: Stream) -> Self {
        Self {
            stream,
            outgoing: BytesMut::with_capacity(1 << 10),
            incoming: vec![0; FIRST_BUFFER_BYTES],
            read_from: 0,
            filled_to: 0,
        }
    }

    /// Sends everything in `outgoing`. `started` becomes true as soon as one byte has left.
    pub(super) async fn send(&mut self, started: &mut bool) -> io::Result<()> {
        let mut sent = 0;
        while let Some(rest) = self.outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
            let count = match &mut self.stream {
                Stream::Tcp(stream) => stream.write(rest).await?,
                Stream::Unix(stream) => stream.write(rest).await?,
            };
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *started = true;
            sent += count;
        }
        self.outgoing.clear();
        Ok(())
    }

    /// Says goodbye without waiting; a full socket buffer is no reason to.
    pub(super) fn say_goodbye(&mut self) {
        const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
        // The server closes the session either way; goodbye only spares its log a complaint.
        let _ = match &mut self.stream {
            Stream::Tcp(stream) => stream.try_write(&TERMINATE),
            Stream::Unix(stream) => stream.try_write(&TERMINATE),
        };
    }

    /// The next whole message that has already arrived.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let arrived = self.incoming.get(self.read_from..self.filled_to).unwrap_or_default();
        let Some(header) = Header::parse(arrived)? else { return Ok(None) };
        let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
        if length > LARGEST_MESSAGE_BYTES {
            return Err(invalid("message length beyond all reason"));
        }
        if arrived.len() < length + 1 {
            return Ok(None);
        }
        let body = self.read_from + 5..self.read_from + 1 + length;
        self.read_from = body.end;
        Ok(Some(Frame { tag: header.tag(), body }))
    }

    /// A frame's body.
    pub(super) fn body(&self, frame: &Frame) -> &[u8] {
        self.incoming.get(frame.body.clone()).unwrap_or_default()
    }

    /// Waits for more bytes. Frames handed out before are void.
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        self.incoming.copy_within(self.read_from..self.filled_to, 0);
        self.filled_to -= self.read_from;
        self.read_from = 0;
        if self.filled_to == self.incoming.len() {
            self.incoming.resize(self.incoming.len() * 2, 0);
        }
        let space = &mut self.incoming[self.filled_to..];
        let count = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(space).await?,
            Stream::Unix(stream) => stream.read(space).await?,
        };
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the server"));
        }
        self.filled_to += count;
        Ok(())
    }
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
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
        let text = String::from_utf8_lossy(take_string(&mut body)?).into_owned();
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
