//! Bytes in bulk from one place to another over one TCP connection: they cross the fabric, and share its links with everything
//! else that does.
//!
//! What the bytes are does not matter to any link, so they are zeros. Owns the connection and both its ends; how many bytes are
//! sent, and what for, is the caller's business.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::attachment::{enter, on_own_thread};
use crate::round_trip::{End, accept};

/// How often it is asked whether to go on while nothing moves.
const GLANCE: Duration = Duration::from_millis(100);
/// What is handed to the kernel at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Says how many bytes follow.
const LENGTH_BYTES: usize = 8;

/// The connection. Dropping it ends both sides.
#[derive(Debug)]
pub struct Bulk {
    stream: TcpStream,
    patience: Duration,
}

impl Bulk {
    /// Connects one place with another. Whoever gives no sign for `patience` is given up, now and later.
    ///
    /// # Errors
    /// When a namespace cannot be entered, or there is no way there.
    pub fn open(from: End<'_>, to: End<'_>, patience: Duration) -> io::Result<Bulk> {
        let listener = inside(to.namespace, || TcpListener::bind((to.address, 0)))?;
        let address = listener.local_addr()?;
        let stream = inside(from.namespace, || TcpStream::connect_timeout(&address, patience))?;
        // A connection that has been made waits to be taken; a node's process that guessed the port would come after it.
        let there = accept(&listener, patience)?;
        let peer = there.peer_addr()?;
        if peer != stream.local_addr()? {
            return Err(io::Error::new(ErrorKind::PermissionDenied, format!("{peer} came in between")));
        }
        std::thread::Builder::new().name("bulk".to_owned()).spawn(move || take_in(there))?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(GLANCE))?;
        stream.set_read_timeout(Some(GLANCE))?;
        Ok(Bulk { stream, patience })
    }

    /// Sends so many bytes and waits until the other end has them all; how long that took. Ends early when `goes_on` says no.
    ///
    /// # Errors
    /// When the other end gives no sign for too long, or the connection breaks, or it was ended early (`Interrupted`).
    pub fn send(&mut self, bytes: u64, goes_on: &dyn Fn() -> bool) -> io::Result<Duration> {
        let began = Instant::now();
        self.write(&bytes.to_le_bytes(), goes_on)?;
        let zeros = vec![0; CHUNK_BYTES];
        let mut left = bytes;
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            self.write(&zeros[..chunk], goes_on)?;
            left -= chunk as u64;
        }
        let stream = &mut self.stream;
        insist(self.patience, goes_on, || match stream.read(&mut [0])? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        })?;
        Ok(began.elapsed())
    }

    fn write(&mut self, mut content: &[u8], goes_on: &dyn Fn() -> bool) -> io::Result<()> {
        while !content.is_empty() {
            let stream = &mut self.stream;
            let written = insist(self.patience, goes_on, || stream.write(content))?;
            content = &content[written..];
        }
        Ok(())
    }
}

/// Tries again while nothing moves, until `patience` is over or `goes_on` says no.
fn insist(
    patience: Duration,
    goes_on: &dyn Fn() -> bool,
    mut attempt: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    let began = Instant::now();
    loop {
        if !goes_on() {
            return Err(ErrorKind::Interrupted.into());
        }
        match attempt() {
            Err(error) if is_for_now(&error) && began.elapsed() < patience => {}
            Err(error) if is_for_now(&error) => return Err(ErrorKind::TimedOut.into()),
            ended => return ended,
        }
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The other end: reads what comes, and says when it has all of it, until the connection ends.
fn take_in(mut stream: TcpStream) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut length = [0; LENGTH_BYTES];
    while stream.read_exact(&mut length).is_ok() {
        let mut left = u64::from_le_bytes(length);
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
            match stream.read(&mut buffer[..chunk]) {
                Ok(0) | Err(_) => return,
                Ok(read) => left -= read as u64,
            }
        }
        if stream.write_all(&[1]).is_err() {
            return;
        }
    }
}

fn inside<T: Send>(namespace: &OwnedFd, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let made = on_own_thread(|| {
        enter(namespace)?;
        make()
    });
    made.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn all_bytes_arrive_round_by_round_and_a_stop_is_obeyed() {
        let namespace: OwnedFd = File::open("/proc/thread-self/ns/net").expect("our own").into();
        let end = End { namespace: &namespace, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let Ok(mut bulk) = Bulk::open(end, end, Duration::from_secs(5)) else {
            return eprintln!("skipped: all_bytes_arrive: no network namespace may be entered");
        };
        for bytes in [0, 1, 3 << 20] {
            assert!(bulk.send(bytes, &|| true).expect("sent") < Duration::from_secs(5));
        }
        let stopped = bulk.send(1 << 20, &|| false).expect_err("stopped");
        assert_eq!(stopped.kind(), ErrorKind::Interrupted);
    }
}
