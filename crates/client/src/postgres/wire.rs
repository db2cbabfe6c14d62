//! Bytes to and from the server: the socket, its options, one buffer each way, and frames.
//!
//! Knows where a message begins and ends and how to read its fields, not what the messages mean.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use nix::sys::socket::{setsockopt, sockopt};
use postgres_protocol::message::backend::Header;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use super::verdict::ServerMessage;
use crate::outbox::{self, Fate, LARGEST_LETTER_BYTES, Letter};

/// A message longer than this is taken for garbage on the line.
const LARGEST_MESSAGE_BYTES: usize = 256 << 20;
const FIRST_BUFFER_BYTES: usize = 8 << 10;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, space),
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, space),
        }
    }
}

/// The socket with its buffers.
pub(super) struct Wire {
    stream: Stream,
    /// Messages to be sent by the next [`Wire::poll_send`].
    pub(super) outgoing: BytesMut,
    /// How much of `outgoing` has been sent.
    sent: usize,
    /// For what leaves with other sessions' messages.
    letter: Option<Rc<Letter>>,
    incoming: Vec<u8>,
    read_from: usize,
    filled_to: usize,
}

/// One message: its tag and where its body lies in the buffer, until the next [`Wire::poll_fill`].
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
        let letter = Letter::of(stream.as_raw_fd());
        Ok(Self::over(Stream::Tcp(stream), Some(letter)))
    }

    /// Connects to a Unix socket.
    pub(super) async fn connect_unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path).await?;
        let letter = Letter::of(stream.as_raw_fd());
        Ok(Self::over(Stream::Unix(stream), Some(letter)))
    }

    fn over(stream: Stream, letter: Option<Rc<Letter>>) -> Self {
        Self {
            stream,
            outgoing: BytesMut::with_capacity(1 << 9),
            sent: 0,
            letter,
            incoming: vec![0; FIRST_BUFFER_BYTES],
            read_from: 0,
            filled_to: 0,
        }
    }

    /// Sends everything in `outgoing`, or hands it to the thread's outbox, whose failures [`Wire::poll_fill`] tells.
    /// `started` becomes true as soon as a byte may have left.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        started: &mut bool,
    ) -> Poll<io::Result<()>> {
        if self.sent == 0
            && self.outgoing.len() <= LARGEST_LETTER_BYTES
            && let Some(letter) = &self.letter
            && letter.fate.get() == Fate::Gone
            && outbox::post(letter, &mut self.outgoing, context.waker())
        {
            *started = true;
            return Poll::Ready(Ok(()));
        }
        self.poll_send_here(context, started)
    }

    fn poll_send_here(&mut self, context: &mut Context<'_>, started: &mut bool) -> Poll<io::Result<()>> {
        while let Some(rest) = self.outgoing.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let count = ready!(self.stream.poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *started = true;
            self.sent += count;
        }
        self.forget_outgoing();
        Poll::Ready(Ok(()))
    }

    /// Sends everything in `outgoing` and waits until it has left.
    pub(super) async fn send(&mut self, started: &mut bool) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_send_here(context, started)).await
    }

    /// Throws away what has not been sent.
    pub(super) fn forget_outgoing(&mut self) {
        self.outgoing.clear();
        self.sent = 0;
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
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(letter) = &self.letter {
            match letter.fate.get() {
                Fate::Gone | Fate::Waiting => {}
                Fate::Failed(errno) => return Poll::Ready(Err(errno.into())),
                Fate::Stuck(sent) => {
                    letter.fate.set(Fate::Gone);
                    std::mem::swap(&mut *letter.bytes.borrow_mut(), &mut self.outgoing);
                    self.sent = sent;
                }
            }
        }
        // Reading goes on meanwhile: a server that cannot get rid of its answers takes no questions either.
        if !self.outgoing.is_empty()
            && let Poll::Ready(sent) = self.poll_send_here(context, &mut true)
        {
            sent?;
        }
        self.incoming.copy_within(self.read_from..self.filled_to, 0);
        self.filled_to -= self.read_from;
        self.read_from = 0;
        if self.filled_to == self.incoming.len() {
            self.incoming.resize(self.incoming.len() * 2, 0);
        }
        let mut space = ReadBuf::new(&mut self.incoming[self.filled_to..]);
        ready!(self.stream.poll_read(context, &mut space))?;
        let count = space.filled().len();
        if count == 0 {
            let closed = io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the server");
            return Poll::Ready(Err(closed));
        }
        self.filled_to += count;
        Poll::Ready(Ok(()))
    }

    /// See [`Wire::poll_fill`].
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        std::future::poll_fn(|context| self.poll_fill(context)).await
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(letter) = &self.letter {
            letter.withdraw();
        }
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
