//! Whether anybody answers at a TCP port: not whether the kernel takes the connection, but whether the program behind it says
//! something.
//!
//! Speaks no database's protocol. A server that is alive answers to what is none of its protocol as well: with an error, or by
//! hanging up. One that stands still does neither, though its kernel has accepted the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::attachment::{enter, on_own_thread};

/// What is sent: a request of HTTP/1.0, which to any other server is no message at all.
const GREETING: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The program behind the port sent something or hung up, so long after the connection was asked for.
    Answered(Duration),
    /// The connection was taken, and nothing came for as long as was waited.
    Accepted,
    /// The connection was refused: nobody listens.
    Refused,
    /// Nothing came back at all.
    Silent,
}

/// Knocks from this network namespace, and waits that long at most for an answer.
///
/// # Errors
/// When the namespace cannot be entered, or no socket can be made.
pub fn knock(namespace: &OwnedFd, address: SocketAddr, patience: Duration) -> io::Result<Answer> {
    on_own_thread(|| {
        enter(namespace)?;
        knock_here(address, patience)
    })
    .map_err(io::Error::other)?
}

/// A connection from this network namespace on which nothing is said.
///
/// # Errors
/// When it cannot be had in that time.
pub fn connect(namespace: &OwnedFd, address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    on_own_thread(|| {
        enter(namespace)?;
        TcpStream::connect_timeout(&address, patience)
    })
    .map_err(io::Error::other)?
}

/// Whether the other end closes or resets a connection within that time.
///
/// # Errors
/// When the socket cannot be told how long to wait.
pub fn is_cut(connection: &mut TcpStream, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    let mut byte = [0; 64];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        connection.set_read_timeout(Some(left))?;
        match connection.read(&mut byte) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if is_timeout(&error) => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Ok(true),
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn knock_here(address: SocketAddr, patience: Duration) -> io::Result<Answer> {
    let began = Instant::now();
    let mut connection = match TcpStream::connect_timeout(&address, patience) {
        Ok(connection) => connection,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(Answer::Refused),
        Err(error) if is_timeout(&error) => return Ok(Answer::Silent),
        Err(error) if matches!(error.kind(), ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => {
            return Ok(Answer::Silent);
        }
        Err(error) => return Err(error),
    };
    // A few bytes go into the kernel's buffer whether or not somebody reads them; a reset is found by the read.
    let _ = connection.write_all(GREETING);
    let left = patience.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
    connection.set_read_timeout(Some(left))?;
    let mut byte = [0; 1];
    match connection.read(&mut byte) {
        Err(error) if is_timeout(&error) => Ok(Answer::Accepted),
        Ok(_) | Err(_) => Ok(Answer::Answered(began.elapsed())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    #[test]
    fn who_speaks_hangs_up_keeps_silent_or_is_not_there_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        // The kernel takes the connection, and nobody behind it does anything.
        assert_eq!(knock_here(address, SOON).expect("a knock"), Answer::Accepted);
        let first = listener.accept().expect("the first connection");
        drop(first);
        let hangs_up = std::thread::spawn(move || drop(listener.accept()));
        let answer = knock_here(address, Duration::from_secs(10)).expect("a knock");
        assert!(matches!(answer, Answer::Answered(_)), "{answer:?}");
        hangs_up.join().expect("the listener");
        assert_eq!(knock_here(address, SOON).expect("a knock"), Answer::Refused);
    }

    #[test]
    fn a_connection_is_cut_when_the_other_end_is_gone_and_not_before() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut connection = TcpStream::connect(listener.local_addr().expect("address")).expect("connected");
        let (other, _) = listener.accept().expect("the other end");
        assert!(!is_cut(&mut connection, Duration::from_millis(50)).expect("looked"));
        drop(other);
        assert!(is_cut(&mut connection, Duration::from_secs(10)).expect("looked"));
    }
}
