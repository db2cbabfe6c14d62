//! One HTTP/1.1 connection over which questions go and answers come, one at a time, each within its time.
//!
//! Owns the connection, the form of a request and the end of an answer (RFC 9112: a length, or chunks). What stands in a
//! body is the protocols'.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use history::ErrorClass;

use crate::connection::SessionError;
use crate::frames::{connected, failure};
use crate::reactor::{self, Socket};

/// The most fields a head may have.
const FIELDS_MAX: usize = 32;
/// The longest answer, bytes, chunks included, and the longest head.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const HEAD_BYTES_MAX: usize = 64 << 10;
/// How much is read at a time.
const READ_BYTES: usize = 64 << 10;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// Why no answer could be had.
#[derive(Debug, thiserror::Error)]
enum HttpError {
    /// The connection's own trouble.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not what HTTP calls an answer.
    #[error("an answer that is not HTTP: {0}")]
    Malformed(&'static str),
    /// Longer than any we wait for.
    #[error("an answer longer than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

/// A connection with one server.
pub(crate) struct HttpConnection {
    socket: Socket,
    pub(crate) address: SocketAddr,
    /// How long each answer is waited for.
    pub(crate) timeout: Duration,
    /// A question broke off: what comes next would be the answer to that one.
    pub(crate) broken: bool,
}

impl HttpConnection {
    /// Connects within `timeout`.
    pub(crate) async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        let socket = connected(address, timeout).await?;
        Ok(Self { socket, address, timeout, broken: false })
    }

    /// Sends a body of JSON to a path and reads the whole answer, whatever its status. From the first byte sent on, an
    /// error leaves open what happened.
    pub(crate) async fn post(&mut self, path: &str, body: &[u8]) -> Result<Answer, SessionError> {
        let (address, timeout) = (self.address, self.timeout);
        if self.broken {
            return Err(failure(ErrorClass::Connection, true, format!("{address}: the session is broken")));
        }
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        // Until the answer is whole; should this future be dropped before, the next answer would be this one's.
        self.broken = true;
        match reactor::timeout(timeout, self.exchange(&request)).await {
            Ok(Ok(answer)) => {
                self.broken = false;
                Ok(answer)
            }
            Ok(Err(error @ HttpError::Io(_))) => {
                Err(failure(ErrorClass::Connection, false, format!("{address}: {error}")))
            }
            Ok(Err(error)) => Err(failure(ErrorClass::Other, false, format!("{address}: {error}"))),
            Err(_) => {
                let message = format!("{address}: no answer within {timeout:?}");
                Err(failure(ErrorClass::Timeout, false, message))
            }
        }
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Answer, HttpError> {
        self.socket.write_all(request).await?;
        let mut reading = Reading::default();
        let mut space = vec![0; READ_BYTES];
        loop {
            let count = poll_fn(|context| self.socket.poll_read(context, &mut space)).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            if let Some(answer) = reading.take(space.get(..count).unwrap_or_default())? {
                return Ok(answer);
            }
            // A server that sends without end must not keep the thread to itself.
            reactor::yield_now().await;
        }
    }
}

/// An answer as far as it has arrived. Each part is read once, however small the pieces that it comes in.
#[derive(Default)]
struct Reading {
    received: Vec<u8>,
    head: Option<Head>,
    /// Up to where the chunks have been put together, and what they were.
    read_to: usize,
    body: Vec<u8>,
}

/// What a head says.
#[derive(Clone, Copy)]
struct Head {
    status: u16,
    /// None where the body comes in chunks.
    length: Option<usize>,
}

impl Reading {
    /// Takes in what has arrived; the answer, when it is whole.
    fn take(&mut self, arrived: &[u8]) -> Result<Option<Answer>, HttpError> {
        self.received.extend_from_slice(arrived);
        if self.received.len() > ANSWER_BYTES_MAX {
            return Err(HttpError::TooLong);
        }
        let head = match self.head {
            Some(head) => head,
            None => match head_of(&self.received)? {
                Some((head, begin)) => {
                    self.read_to = begin;
                    *self.head.insert(head)
                }
                None if self.received.len() > HEAD_BYTES_MAX => return Err(HttpError::Malformed("its head")),
                None => return Ok(None),
            },
        };
        let Head { status, length } = head;
        let rest = self.received.get(self.read_to..).unwrap_or_default();
        let body = match length {
            Some(length) => rest.get(..length).map(<[u8]>::to_vec),
            None => self.unchunked()?,
        };
        Ok(body.map(|body| Answer { status, body }))
    }
}

/// The head that these bytes begin with, and where the body begins; nothing as long as some of it is missing.
fn head_of(bytes: &[u8]) -> Result<Option<(Head, usize)>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head.parse(bytes).map_err(|_| HttpError::Malformed("its head"))?;
    let httparse::Status::Complete(begin) = parsed else { return Ok(None) };
    let status = head.code.ok_or(HttpError::Malformed("its status"))?;
    let field = |name: &str| head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let chunked =
        field("transfer-encoding").is_some_and(|field| field.value.eq_ignore_ascii_case(b"chunked"));
    if chunked {
        return Ok(Some((Head { status, length: None }, begin)));
    }
    let length = field("content-length").ok_or(HttpError::Malformed("it has no length"))?;
    let length = std::str::from_utf8(length.value).ok().and_then(|length| length.trim().parse().ok());
    let length: usize = length.ok_or(HttpError::Malformed("its length"))?;
    if length > ANSWER_BYTES_MAX {
        return Err(HttpError::TooLong);
    }
    Ok(Some((Head { status, length: Some(length) }, begin)))
}

impl Reading {
    /// The chunks put together; nothing as long as one is missing, or the empty line behind the last and its trailer.
    fn unchunked(&mut self) -> Result<Option<Vec<u8>>, HttpError> {
        const BROKEN: HttpError = HttpError::Malformed("its chunks");
        loop {
            let rest = self.received.get(self.read_to..).unwrap_or_default();
            let parsed = httparse::parse_chunk_size(rest).map_err(|_| BROKEN)?;
            let httparse::Status::Complete((begin, length)) = parsed else { return Ok(None) };
            let length = usize::try_from(length).map_err(|_| HttpError::TooLong)?;
            if length > ANSWER_BYTES_MAX {
                return Err(HttpError::TooLong);
            }
            let rest = rest.get(begin..).unwrap_or_default();
            if length == 0 {
                let ends = rest.starts_with(b"\r\n") || rest.windows(4).any(|four| four == b"\r\n\r\n");
                if !ends && rest.len() > HEAD_BYTES_MAX {
                    return Err(BROKEN);
                }
                return Ok(ends.then(|| std::mem::take(&mut self.body)));
            }
            let Some((chunk, behind)) = rest.split_at_checked(length) else { return Ok(None) };
            if behind.len() < 2 {
                return Ok(None);
            }
            if !behind.starts_with(b"\r\n") {
                return Err(BROKEN);
            }
            self.body.extend_from_slice(chunk);
            self.read_to += begin + length + 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole_answer(bytes: &[u8]) -> Result<Option<Answer>, HttpError> {
        Reading::default().take(bytes)
    }

    const SIZED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const CHUNKED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n\
        3\r\n{\"a\r\n6\r\n\": 12}\r\n0\r\nA: b\r\n\r\n";

    fn check(bytes: &[u8], status: u16, body: &str) {
        let answer = Answer { status, body: body.as_bytes().to_vec() };
        assert_eq!(whole_answer(bytes).ok().flatten(), Some(answer));
        for length in 0..bytes.len() {
            let found = whole_answer(&bytes[..length]);
            assert!(matches!(found, Ok(None)), "cut at {length}: {found:?}");
        }
        // Byte by byte it is the same answer, and whole no sooner.
        let mut reading = Reading::default();
        let told: Vec<bool> =
            bytes.iter().map(|byte| matches!(reading.take(&[*byte]), Ok(Some(_)))).collect();
        assert_eq!(told.iter().position(|whole| *whole), Some(bytes.len() - 1));
    }

    #[test]
    fn an_answer_is_taken_when_it_is_whole_and_not_before() {
        check(SIZED, 200, "{}");
        check(CHUNKED, 400, "{\"a\": 12}");
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let given_up = |beginning: &[u8], more: &[u8]| {
            let mut reading = Reading::default();
            let mut taken = reading.take(beginning);
            // 100,000 pieces of 1 KiB: what had been read were it read again for each would take hours.
            for _ in 0..100_000 {
                if !matches!(taken, Ok(None)) {
                    break;
                }
                taken = reading.take(more);
            }
            taken.expect_err("given up").to_string()
        };
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = [&b"3fa\r\n"[..], &[b'x'; 0x3fa], b"\r\n"].concat();
        assert_eq!(given_up(chunked, &chunk), "an answer longer than 67108864 bytes");
        assert_eq!(given_up(b"HTTP/1.1 200 OK\r\n", &[b'a'; 1024]), "an answer that is not HTTP: its head");
        assert_eq!(
            given_up(&[chunked, &b"0\r\n"[..]].concat(), &[b'a'; 1024]),
            "an answer that is not HTTP: its chunks"
        );
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let refused =
            |bytes: &[u8]| whole_answer(bytes).map_err(|error| error.to_string()).expect_err("none");
        assert_eq!(refused(b"220 mail.example ESMTP\r\n\r\n"), "an answer that is not HTTP: its head");
        assert_eq!(refused(b"HTTP/1.1 200 OK\r\n\r\n"), "an answer that is not HTTP: it has no length");
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            "an answer that is not HTTP: its length"
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
            "an answer that is not HTTP: its chunks"
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"),
            "an answer that is not HTTP: its chunks"
        );
    }
}
