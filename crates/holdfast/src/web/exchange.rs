//! One request of a browser and its answer, over a connection that ends with it.
//!
//! Owns the protocol: the head is read by `httparse`, bounded in length and time. What is answered is the site's.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a browser may take to ask, and to take its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest head that is read, bytes, and the most lines of it.
const LONGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// What every answer says: nothing is kept, run, loaded from elsewhere or shown within another site's page.
const HEADERS: &str = "Cache-Control: no-store\r\nConnection: close\r\nX-Content-Type-Options: nosniff\r\n\
    Referrer-Policy: no-referrer\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; \
    img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n";

/// What was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// What of the site, and what behind `?`: `/`.
    pub path: String,
    /// Under which name the site was found; absent in a request without.
    pub host: Option<String>,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The code, and its words.
    pub status: &'static str,
    /// The media type.
    pub kind: &'static str,
    /// The content.
    pub text: String,
}

impl Answer {
    /// A page.
    pub fn html(text: String) -> Answer {
        Answer { status: "200 OK", kind: "text/html; charset=utf-8", text }
    }

    /// A line of text.
    pub fn line(status: &'static str, text: &str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", text: text.to_owned() }
    }
}

/// Reads a request, answers it as `answer` says, and ends.
///
/// # Errors
/// When the other side goes away, takes too long or asks at too great a length: nobody is there to be told.
pub fn exchange(mut stream: TcpStream, answer: impl FnOnce(&Request) -> Answer) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    let request = parsed(&head);
    let said = match &request {
        Some(request) => answer(request),
        None => Answer::line("400 Bad Request", "this is no request"),
    };
    let without_content = request.is_some_and(|request| request.method == "HEAD");
    let mut whole = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{HEADERS}\r\n",
        said.status,
        said.kind,
        said.text.len()
    );
    if !without_content {
        whole.push_str(&said.text);
    }
    let until = Instant::now() + PATIENCE;
    write_until(&mut stream, whole.as_bytes(), until, |stream, left| stream.set_write_timeout(Some(left)))
}

/// Writes all of it, however slowly it is taken, until the time is up.
pub fn write_until<S: Write>(
    stream: &mut S,
    mut bytes: &[u8],
    until: Instant,
    limit: impl Fn(&S, Duration) -> io::Result<()>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        limit(stream, left)?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = bytes.get(written..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// The head with the empty line at its end.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        // No time at all would mean for ever.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let read = stream.read(&mut part)?;
        if read == 0 || left.is_zero() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..read]);
        if head.len() > LONGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(head)
}

fn parsed(head: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    if !request.parse(head).ok()?.is_complete() {
        return None;
    }
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("Host"));
    let host = hosts.next();
    // Which of two is meant, nobody could say (RFC 9112, section 3.2).
    if hosts.next().is_some() {
        return None;
    }
    Some(Request {
        method: request.method?.to_owned(),
        path: request.path?.to_owned(),
        host: host.and_then(|host| std::str::from_utf8(host.value).ok()).map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What becomes of a head that a browser sends.
    fn sent(head: &[u8]) -> io::Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut browser = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let (mut stream, _) = listener.accept().expect("accepted");
        browser.write_all(head).expect("sent");
        read_head(&mut stream)
    }

    #[test]
    fn a_head_is_read_to_its_empty_line_and_one_that_never_ends_is_refused() {
        let head = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        assert_eq!(sent(head).expect("a head"), head);
        let endless = [b'a'; 20 << 10];
        assert_eq!(sent(&endless).expect_err("too long").kind(), io::ErrorKind::InvalidData);
    }
}
