//! Bytes to and from a server of SQL: the socket, its options, one buffer each way, encryption.
//!
//! Owns how they travel and how many of them an answer may have. Where a message begins and ends is each protocol's.

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
use rustix::net::sockopt;

use crate::reactor::{Fate, LARGEST_LETTER_BYTES, Letter, Socket, post};
use crate::tls::Tls;

/// The longest answer to one question, of however many messages, that is waited for: a server may send without end.
pub(crate) const LARGEST_ANSWER_BYTES: usize = 64 << 20;
/// The same for all sessions of a thread together.
const LARGEST_ANSWERS_BYTES: usize = 1 << 30;
/// How often a session reads before the others of its thread, and alarms, have their turn.
const READS_A_TURN: u32 = 64;
/// A buffer longer than this is given back with the next question.
const USUAL_BUFFER_BYTES: usize = 1 << 20;
/// What the kernel takes for a time of keep-alive.
const LONGEST_PATIENCE: Duration = Duration::from_secs(32_767);
const FIRST_BUFFER_BYTES: usize = 8 << 10;

/// The socket with its buffers.
pub(crate) struct Wire {
    socket: Socket,
    /// Messages to be sent by the next [`Wire::poll_send`].
    pub(crate) outgoing: BytesMut,
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

impl Wire {
    /// Connects over TCP. `patience` is how long unacknowledged bytes or silence are put up with by the kernel.
    pub(crate) async fn connect_tcp(address: SocketAddr, patience: Duration) -> io::Result<Self> {
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
    pub(crate) async fn connect_unix(path: &Path) -> io::Result<Self> {
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
    pub(crate) fn begin_answer(&mut self) {
        self.arrived.forget();
        if self.incoming.len() > USUAL_BUFFER_BYTES && self.read_from == self.filled_to {
            (self.read_from, self.filled_to) = (0, 0);
            self.incoming = vec![0; FIRST_BUFFER_BYTES];
        }
    }

    /// Sends everything in `outgoing`, or hands it to the thread's outbox, whose failures [`Wire::poll_fill`] tells.
    /// `started` becomes true as soon as a byte may have left.
    pub(crate) fn poll_send(
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
    pub(crate) async fn send(&mut self, started: &mut bool) -> io::Result<()> {
        if let Some(encrypted) = self.encrypted.as_mut().filter(|encrypted| !encrypted.is_sealed) {
            encrypted.tls.seal(&mut self.outgoing)?;
            encrypted.is_sealed = true;
        }
        std::future::poll_fn(|context| self.poll_send_here(context, started)).await
    }

    /// Carries the handshake out; what is sent and read from now on is encrypted.
    pub(crate) async fn encrypt(&mut self, mut tls: Tls) -> io::Result<()> {
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
    pub(crate) fn forget_outgoing(&mut self) {
        self.outgoing.clear();
        self.sent = 0;
        if let Some(encrypted) = &mut self.encrypted {
            encrypted.is_sealed = false;
        }
    }

    /// Sends a few bytes outside the buffer and reads as many as there is room for, before anything else is said.
    pub(crate) async fn ask_in_clear(&mut self, question: &[u8], answer: &mut [u8]) -> io::Result<()> {
        self.socket.write_all(question).await?;
        self.socket.read_exact(answer).await
    }

    /// Says goodbye without waiting; a full socket buffer is no reason to.
    pub(crate) fn say_goodbye(&mut self, words: &[u8]) {
        // The server closes the session either way; goodbye only spares its log a complaint.
        let _ = match &mut self.encrypted {
            Some(encrypted) => {
                encrypted.tls.farewell(words).and_then(|sealed| self.socket.try_write(&sealed))
            }
            None => self.socket.try_write(words),
        };
    }

    /// What has arrived and has not been passed over.
    pub(crate) fn arrived(&self) -> &[u8] {
        self.incoming.get(self.read_from..self.filled_to).unwrap_or_default()
    }

    /// Passes over so many bytes that have arrived, and answers where they lie until the next [`Wire::poll_fill`].
    pub(crate) fn pass_over(&mut self, bytes: usize) -> Range<usize> {
        let begin = self.read_from;
        self.read_from = (begin + bytes).min(self.filled_to);
        begin..self.read_from
    }

    /// What lies there.
    pub(crate) fn at(&self, place: &Range<usize>) -> &[u8] {
        self.incoming.get(place.clone()).unwrap_or_default()
    }

    /// Waits for more bytes. Places handed out before are void.
    pub(crate) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
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

pub(crate) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
