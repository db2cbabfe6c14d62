//! Bytes to and from the server: the socket, its options, one buffer each way, and frames.
//!
//! Knows where a message begins and ends and how to read its fields, not what the messages mean.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::message::backend::Header;
use postgres_protocol::message::frontend;
use rustix::net::sockopt;

use super::tls::Tls;
use super::verdict::ServerMessage;
use crate::reactor::{Fate, LARGEST_LETTER_BYTES, Letter, Socket, post};

/// The longest answer to one question, of however many messages, that is waited for: a server may send without end.
const LARGEST_ANSWER_BYTES: usize = 64 << 20;
/// The same for all sessions of a thread together.
const LARGEST_ANSWERS_BYTES: usize = 1 << 30;
/// How often a session reads before the others of its thread, and alarms, have their turn.
const READS_A_TURN: u32 = 64;
/// A buffer longer than this is given back with the next question.
const USUAL_BUFFER_BYTES: usize = 1 << 20;
/// What the kernel takes for a time of keep-alive.
const LONGEST_PATIENCE: Duration = Duration::from_secs(32_767);
/// What is kept of a field of an error or a notice.
const LONGEST_FIELD_BYTES: usize = 4 << 10;
const FIRST_BUFFER_BYTES: usize = 8 << 10;

/// The socket with its buffers.
pub(super) struct Wire {
    socket: Socket,
    /// Messages to be sent by the next [`Wire::poll_send`].
    pub(super) outgoing: BytesMut,
    /// How much of `outgoing` has been sent.
    sent: usize,
    /// For what leaves with other sessions' messages.
    letter: Option<Rc<Letter>>,
    encrypted: Option<Box<Encrypted>>,
    incoming: Vec<u8>,
    read_from: usize,
    filled_to: usize,
    /// What has arrived of the answer to the question that is open.
    arrived: Arrived,
    /// Reads since it last had to wait.
    reads_in_a_row: u32,
}

thread_local! {
    /// What has arrived of the open answers of all sessions.
    static ARRIVED_BYTES: Cell<usize> = const { Cell::new(0) };
}

/// Counts bytes of one answer among those of all.
#[derive(Default)]
struct Arrived(usize);

impl Arrived {
    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.0 += bytes;
        let all = ARRIVED_BYTES.get() + bytes;
        ARRIVED_BYTES.set(all);
        if self.0 > LARGEST_ANSWER_BYTES {
            return Err(invalid(&format!("the answer is longer than {LARGEST_ANSWER_BYTES} bytes")));
        }
        if all > LARGEST_ANSWERS_BYTES {
            let told =
                format!("the answers of all clients together are longer than {LARGEST_ANSWERS_BYTES} bytes");
            return Err(invalid(&told));
        }
        Ok(())
    }

    fn forget(&mut self) {
        ARRIVED_BYTES.set(ARRIVED_BYTES.get().saturating_sub(std::mem::take(&mut self.0)));
    }
}

impl Drop for Arrived {
    fn drop(&mut self) {
        self.forget();
    }
}

/// What an encrypted session has beside.
struct Encrypted {
    tls: Tls,
    /// Whether `outgoing` has been encrypted already; what is left of it is sent as it is.
    is_sealed: bool,
    /// For what comes over the line.
    arrived: Vec<u8>,
}

/// One message: its tag and where its body lies in the buffer, until the next [`Wire::poll_fill`].
pub(super) struct Frame {
    pub(super) tag: u8,
    pub(super) body: Range<usize>,
}

impl Wire {
    /// Connects over TCP. `patience` is how long unacknowledged bytes or silence are put up with by the kernel.
    pub(super) async fn connect_tcp(address: SocketAddr, patience: Duration) -> io::Result<Self> {
        let socket = Socket::connect_tcp(address).await?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        let limited = patience.clamp(Duration::from_secs(1), LONGEST_PATIENCE);
        sockopt::set_tcp_keepidle(&socket, limited)?;
        sockopt::set_tcp_keepintvl(&socket, limited)?;
        sockopt::set_tcp_user_timeout(&socket, u32::try_from(limited.as_millis()).unwrap_or(u32::MAX))?;
        Ok(Self::over(socket))
    }

    /// Connects to a Unix socket.
    pub(super) async fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Self::over(Socket::connect_unix(path).await?))
    }

    fn over(socket: Socket) -> Self {
        let letter = Some(Letter::of(socket.as_raw_fd()));
        Self {
            socket,
            outgoing: BytesMut::with_capacity(1 << 9),
            sent: 0,
            letter,
            encrypted: None,
            incoming: vec![0; FIRST_BUFFER_BYTES],
            read_from: 0,
            filled_to: 0,
            arrived: Arrived::default(),
            reads_in_a_row: 0,
        }
    }

    /// What arrives from now on answers another question.
    pub(super) fn begin_answer(&mut self) {
        self.arrived.forget();
        if self.incoming.len() > USUAL_BUFFER_BYTES && self.read_from == self.filled_to {
            (self.read_from, self.filled_to) = (0, 0);
            self.incoming = vec![0; FIRST_BUFFER_BYTES];
        }
    }

    /// Sends everything in `outgoing`, or hands it to the thread's outbox, whose failures [`Wire::poll_fill`] tells.
    /// `started` becomes true as soon as a byte may have left.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        started: &mut bool,
    ) -> Poll<io::Result<()>> {
        if let Some(encrypted) = self.encrypted.as_mut().filter(|encrypted| !encrypted.is_sealed) {
            encrypted.tls.seal(&mut self.outgoing)?;
            encrypted.is_sealed = true;
        }
        if self.sent == 0
            && self.outgoing.len() <= LARGEST_LETTER_BYTES
            && let Some(letter) = &self.letter
            && letter.fate.get() == Fate::Gone
            && post(letter, &mut self.outgoing, context.waker())
        {
            *started = true;
            self.forget_outgoing();
            return Poll::Ready(Ok(()));
        }
        self.poll_send_here(context, started)
    }

    fn poll_send_here(&mut self, context: &mut Context<'_>, started: &mut bool) -> Poll<io::Result<()>> {
        while let Some(rest) = self.outgoing.get(self.sent..).filter(|rest| !rest.is_empty()) {
            let count = ready!(self.socket.poll_write(context, rest))?;
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
        if let Some(encrypted) = self.encrypted.as_mut().filter(|encrypted| !encrypted.is_sealed) {
            encrypted.tls.seal(&mut self.outgoing)?;
            encrypted.is_sealed = true;
        }
        std::future::poll_fn(|context| self.poll_send_here(context, started)).await
    }

    /// Asks the server whether it encrypts.
    pub(super) async fn asks_for_encryption(&mut self) -> io::Result<bool> {
        let mut question = BytesMut::new();
        frontend::ssl_request(&mut question);
        self.socket.write_all(&question).await?;
        // One byte and no more: what came with it, unencrypted, would be taken for the server's own words later.
        let mut answer = [0];
        self.socket.read_exact(&mut answer).await?;
        match answer {
            [b'S'] => Ok(true),
            [b'N'] => Ok(false),
            _ => Err(invalid("no answer to whether it encrypts")),
        }
    }

    /// Carries the handshake out; what is sent and read from now on is encrypted.
    pub(super) async fn encrypt(&mut self, mut tls: Tls) -> io::Result<()> {
        let mut arrived = vec![0; FIRST_BUFFER_BYTES * 2];
        loop {
            let mut due = BytesMut::new();
            if tls.take_due(&mut due)? {
                self.socket.write_all(&due).await?;
            }
            if !tls.is_handshaking() {
                break;
            }
            let count = std::future::poll_fn(|context| self.socket.poll_read(context, &mut arrived)).await?;
            if count == 0 {
                return Err(closed());
            }
            let heard = arrived.get(..count).unwrap_or_default();
            if let Err(error) = tls.open(heard, &mut self.incoming, &mut self.filled_to) {
                // The server is told why, should it still listen.
                if tls.take_due(&mut due).is_ok() {
                    let _ = self.socket.try_write(&due);
                }
                return Err(error);
            }
        }
        self.encrypted = Some(Box::new(Encrypted { tls, is_sealed: false, arrived }));
        Ok(())
    }

    /// Throws away what has not been sent.
    pub(super) fn forget_outgoing(&mut self) {
        self.outgoing.clear();
        self.sent = 0;
        if let Some(encrypted) = &mut self.encrypted {
            encrypted.is_sealed = false;
        }
    }

    /// Says goodbye without waiting; a full socket buffer is no reason to.
    pub(super) fn say_goodbye(&mut self) {
        const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];
        // The server closes the session either way; goodbye only spares its log a complaint.
        let _ = match &mut self.encrypted {
            Some(encrypted) => {
                encrypted.tls.farewell(&TERMINATE).and_then(|sealed| self.socket.try_write(&sealed))
            }
            None => self.socket.try_write(&TERMINATE),
        };
    }

    /// The next whole message that has already arrived.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        let arrived = self.incoming.get(self.read_from..self.filled_to).unwrap_or_default();
        let Some(header) = Header::parse(arrived)? else { return Ok(None) };
        let length = usize::try_from(header.len()).unwrap_or(usize::MAX);
        if length > LARGEST_ANSWER_BYTES {
            return Err(invalid(&format!("a message of {length} bytes is announced, which no answer has")));
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
                    if let Some(encrypted) = &mut self.encrypted {
                        encrypted.is_sealed = true;
                    }
                }
            }
        }
        // Reading goes on meanwhile: a server that cannot get rid of its answers takes no questions either.
        if !self.outgoing.is_empty()
            && let Poll::Ready(sent) = self.poll_send_here(context, &mut true)
        {
            sent?;
        }
        self.reads_in_a_row += 1;
        if self.reads_in_a_row > READS_A_TURN {
            self.reads_in_a_row = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.incoming.copy_within(self.read_from..self.filled_to, 0);
        self.filled_to -= self.read_from;
        self.read_from = 0;
        if self.filled_to == self.incoming.len() {
            self.incoming.resize(self.incoming.len() * 2, 0);
        }
        if self.encrypted.is_some() {
            return self.poll_fill_encrypted(context);
        }
        let space = self.incoming.get_mut(self.filled_to..).unwrap_or_default();
        let Poll::Ready(count) = self.socket.poll_read(context, space) else {
            self.reads_in_a_row = 0;
            return Poll::Pending;
        };
        let count = count?;
        if count == 0 {
            return Poll::Ready(Err(closed()));
        }
        self.filled_to += count;
        Poll::Ready(self.arrived.add(count))
    }

    fn poll_fill_encrypted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(encrypted) = &mut self.encrypted else { return Poll::Ready(Ok(())) };
        let before = self.filled_to;
        while self.filled_to == before {
            let Poll::Ready(count) = self.socket.poll_read(context, &mut encrypted.arrived) else {
                self.reads_in_a_row = 0;
                return Poll::Pending;
            };
            let count = count?;
            if count == 0 {
                return Poll::Ready(Err(closed()));
            }
            self.arrived.add(count)?;
            let heard = encrypted.arrived.get(..count).unwrap_or_default();
            encrypted.tls.open(heard, &mut self.incoming, &mut self.filled_to)?;
            // New keys, for example, which servers hardly ever ask for.
            let mut due = BytesMut::new();
            if encrypted.tls.take_due(&mut due)? && self.socket.try_write(&due)? < due.len() {
                return Poll::Ready(Err(invalid("no room for the encryption's own messages")));
            }
        }
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

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "connection closed by the server")
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
