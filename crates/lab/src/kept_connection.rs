//! A TCP connection of the lab's own between two places, kept open across what must not cut it.
//!
//! Evidence for what must leave connections alone: no program of the database holds an end of it, so nobody else has a reason to
//! close it.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::attachment::{enter, on_own_thread};
use crate::round_trip::{End, accept};

/// The connection. Both its ends are sockets of this process, each in the namespace of its place.
#[derive(Debug)]
pub struct KeptConnection {
    near: TcpStream,
    far: TcpStream,
}

impl KeptConnection {
    /// Connects one place with another; an answer is waited for so long, now and later.
    ///
    /// # Errors
    /// When a namespace cannot be entered, or there is no way there.
    pub fn open(from: End<'_>, to: End<'_>, patience: Duration) -> io::Result<KeptConnection> {
        let listening = on_own_thread(|| {
            enter(to.namespace)?;
            TcpListener::bind((to.address, 0))
        });
        let listener: TcpListener = listening.map_err(io::Error::other)??;
        let address = listener.local_addr()?;
        let connected = on_own_thread(|| {
            enter(from.namespace)?;
            TcpStream::connect_timeout(&address, patience)
        });
        let near: TcpStream = connected.map_err(io::Error::other)??;
        let far = accept(&listener, patience)?;
        for end in [&near, &far] {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(patience))?;
        }
        let mut connection = KeptConnection { near, far };
        connection.exchange()?;
        Ok(connection)
    }

    /// A byte there and one back; how long that took. Where nothing comes through the far end speaks all the same, so that the
    /// kernel of its place learns whether the connection was cut.
    ///
    /// # Errors
    /// When the connection was cut, or nothing came back in time.
    pub fn exchange(&mut self) -> io::Result<Duration> {
        let began = Instant::now();
        let mut byte = [7];
        self.near.write_all(&byte)?;
        let came = self.far.read_exact(&mut byte);
        let answered = self.far.write_all(&byte);
        came.and(answered)?;
        self.near.read_exact(&mut byte)?;
        Ok(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{IpAddr, Ipv4Addr, Shutdown};
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_connection_that_stands_answers_and_one_that_was_cut_does_not() {
        let namespace: OwnedFd = File::open("/proc/thread-self/ns/net").expect("our own").into();
        let end = End { namespace: &namespace, address: IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let Ok(mut kept) = KeptConnection::open(end, end, Duration::from_secs(2)) else {
            return eprintln!("skipped: a_connection_that_stands: no network namespace may be entered");
        };
        kept.exchange().expect("it stands");
        kept.far.shutdown(Shutdown::Both).expect("cut");
        kept.exchange().expect_err("it was cut");
    }
}
