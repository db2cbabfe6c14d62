//! Round trips between two places, measured from inside them: what the network really does, whatever its rules say.
//!
//! A round trip is one byte there and one back over TCP, as a database's own messages go. What one direction does is
//! seen by `stream`.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::attachment::enter;

/// A place to measure from or to.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Its network namespace.
    pub namespace: &'a OwnedFd,
    pub address: IpAddr,
}

/// Measures `samples` round trips from one place to another, after one more that is thrown away because the
/// connection is fresh. Gives up after `patience` without an answer.
///
/// # Errors
/// When a namespace cannot be entered, the connection cannot be made, or an answer stays away.
pub fn round_trips(
    from: End<'_>,
    to: End<'_>,
    samples: usize,
    patience: Duration,
) -> io::Result<Vec<Duration>> {
    std::thread::scope(|scope| {
        let (address_there, address_here) = std::sync::mpsc::channel();
        let server = scope.spawn(move || -> io::Result<()> {
            enter(to.namespace)?;
            let listener = TcpListener::bind((to.address, 0))?;
            address_there.send(listener.local_addr()?).map_err(io::Error::other)?;
            let stream = accept(&listener, patience)?;
            answer(stream, samples + 1, patience)
        });
        let client = scope.spawn(move || -> io::Result<Vec<Duration>> {
            enter(from.namespace)?;
            let address = address_here.recv().map_err(io::Error::other)?;
            ask(address, samples, patience)
        });
        let measured = client.join().unwrap_or_else(|_| Err(io::Error::other("the probe panicked")));
        let served = server.join().unwrap_or_else(|_| Err(io::Error::other("the probe panicked")));
        measured.and_then(|times| served.map(|()| times))
    })
}

/// Takes the next connection, if one comes in time. Who connects may see it made when the last word of that has not come here, and
/// where a fault cuts the way then it never does.
pub(crate) fn accept(listener: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let deadline = Instant::now() + patience;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
}

fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))
}

fn answer(mut stream: TcpStream, times: usize, patience: Duration) -> io::Result<()> {
    prepare(&stream, patience)?;
    let mut byte = [0];
    for _ in 0..times {
        stream.read_exact(&mut byte)?;
        stream.write_all(&byte)?;
    }
    Ok(())
}

fn ask(address: SocketAddr, samples: usize, patience: Duration) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    prepare(&stream, patience)?;
    let mut times = Vec::with_capacity(samples);
    let mut byte = [1];
    for sample in 0..=samples {
        let sent = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        if sample > 0 {
            times.push(sent.elapsed());
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_never_made_is_not_waited_for_for_ever() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let nobody = accept(&listener, Duration::from_millis(5)).expect_err("nobody comes");
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock);
        let address = listener.local_addr().expect("its address");
        let near = TcpStream::connect(address).expect("connected");
        let far = accept(&listener, Duration::from_secs(10)).expect("somebody came");
        assert_eq!(far.peer_addr().expect("its address"), near.local_addr().expect("its address"));
    }
}
