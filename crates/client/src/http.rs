//! One HTTP/1.1 connection over which questions go and answers come, one at a time, each within its time.
//!
//! Owns the connection, the form of a request and the end of an answer (RFC 9112: a length, or chunks). What stands in a
//! body is the protocols'.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use history::ErrorClass;

use crate::frames::{connected, failure};
use crate::reactor::{self, Socket};
use crate::session::SessionError;

/// The most fields a head may have.
const FIELDS_MAX: usize = 32;
/// The longest answer, bytes, head and chunks included.
const ANSWER_BYTES_MAX: usize = 256 << 20;
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
    #[error("an answer that is no HTTP: {0}")]
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
    received: Vec<u8>,
}

impl HttpConnection {
    /// Connects within `timeout`.
    pub(crate) async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        let socket = connected(address, timeout).await?;
        Ok(Self { socket, address, timeout, broken: false, received: Vec::new() })
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
        self.received.clear();
        self.socket.write_all(request).await?;
        let mut space = vec![0; READ_BYTES];
        loop {
            let count = poll_fn(|context| self.socket.poll_read(context, &mut space)).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.received.extend_from_slice(space.get(..count).unwrap_or_default());
            if let Some(answer) = whole_answer(&self.received)? {
                return Ok(answer);
            }
            if self.received.len() > ANSWER_BYTES_MAX {
                return Err(HttpError::TooLong);
            }
        }
    }
}

/// The answer that these bytes are; nothing as long as some of it is missing.
fn whole_answer(bytes: &[u8]) -> Result<Option<Answer>, HttpError> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let parsed = head.parse(bytes).map_err(|_| HttpError::Malformed("its head"))?;
    let httparse::Status::Complete(begin) = parsed else { return Ok(None) };
    let status = head.code.ok_or(HttpError::Malformed("its status"))?;
    let field = |name: &str| head.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
    let rest = bytes.get(begin..).unwrap_or_default();
    let chunked =
        field("transfer-encoding").is_some_and(|field| field.value.eq_ignore_ascii_case(b"chunked"));
    let body = if chunked {
        unchunked(rest)?
    } else {
        let length = field("content-length").ok_or(HttpError::Malformed("it has no length"))?;
        let length = std::str::from_utf8(length.value).ok().and_then(|length| length.trim().parse().ok());
        let length: usize = length.ok_or(HttpError::Malformed("its length"))?;
        if length > ANSWER_BYTES_MAX {
            return Err(HttpError::TooLong);
        }
        rest.get(..length).map(<[u8]>::to_vec)
    };
    Ok(body.map(|body| Answer { status, body }))
}

/// The chunks put together; nothing as long as one is missing, or the empty line behind the last and its trailer.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, HttpError> {
    const BROKEN: HttpError = HttpError::Malformed("its chunks");
    let mut body = Vec::new();
    loop {
        let parsed = httparse::parse_chunk_size(rest).map_err(|_| BROKEN)?;
        let httparse::Status::Complete((begin, length)) = parsed else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| HttpError::TooLong)?;
        if length > ANSWER_BYTES_MAX {
            return Err(HttpError::TooLong);
        }
        rest = rest.get(begin..).unwrap_or_default();
        if length == 0 {
            let ends = rest.starts_with(b"\r\n") || rest.windows(4).any(|four| four == b"\r\n\r\n");
            return Ok(ends.then_some(body));
        }
        let Some((chunk, behind)) = rest.split_at_checked(length) else { return Ok(None) };
        body.extend_from_slice(chunk);
        if behind.len() < 2 {
            return Ok(None);
        }
        rest = behind.strip_prefix(b"\r\n").ok_or(BROKEN)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn an_answer_is_taken_when_it_is_whole_and_not_before() {
        check(SIZED, 200, "{}");
        check(CHUNKED, 400, "{\"a\": 12}");
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let refused =
            |bytes: &[u8]| whole_answer(bytes).map_err(|error| error.to_string()).expect_err("none");
        assert_eq!(refused(b"220 mail.example ESMTP\r\n\r\n"), "an answer that is no HTTP: its head");
        assert_eq!(refused(b"HTTP/1.1 200 OK\r\n\r\n"), "an answer that is no HTTP: it has no length");
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
            "an answer that is no HTTP: its length"
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
            "an answer that is no HTTP: its chunks"
        );
        assert_eq!(
            refused(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"),
            "an answer that is no HTTP: its chunks"
        );
    }
}
