//! Round trips and one-way arrivals between two places, measured from inside them: what the network really does,
//! whatever its rules say.
//!
//! A round trip is one byte there and one back over TCP, as a database's own messages go. A one-way arrival is a UDP
//! datagram that carries its number: the only way to tell which direction is cut.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::attachment::enter;

/// A place to measure from or to.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Its network namespace.
    pub namespace: &'a OwnedFd,
    /// Its address.
    pub address: Ipv4Addr,
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
            listener.set_nonblocking(true)?;
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

fn accept(listener: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
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

/// Sends `count` datagrams from one place to another, `interval` apart, and returns how many arrived within `patience`
/// after the last, each counted once.
///
/// # Errors
/// When a namespace cannot be entered or a socket cannot be made.
pub fn arrivals(
    from: End<'_>,
    to: End<'_>,
    count: u32,
    interval: Duration,
    patience: Duration,
) -> io::Result<u32> {
    std::thread::scope(|scope| {
        let (address_there, address_here) = std::sync::mpsc::channel();
        let receiver = scope.spawn(move || -> io::Result<u32> {
            enter(to.namespace)?;
            let socket = UdpSocket::bind((to.address, 0))?;
            address_there.send(socket.local_addr()?).map_err(io::Error::other)?;
            receive(&socket, count, interval * count + patience)
        });
        let sender = scope.spawn(move || -> io::Result<()> {
            enter(from.namespace)?;
            let address = address_here.recv().map_err(io::Error::other)?;
            send(from.address, address, count, interval)
        });
        let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the probe panicked")));
        let arrived = receiver.join().unwrap_or_else(|_| Err(io::Error::other("the probe panicked")));
        sent.and(arrived)
    })
}

fn send(from: Ipv4Addr, to: SocketAddr, count: u32, interval: Duration) -> io::Result<()> {
    let socket = UdpSocket::bind((from, 0))?;
    for number in 0..count {
        match socket.send_to(&number.to_be_bytes(), to) {
            // A reset by ICMP of an earlier datagram shows here; this one may still go.
            Ok(_) | Err(_) if number + 1 < count => std::thread::sleep(interval),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn receive(socket: &UdpSocket, count: u32, patience: Duration) -> io::Result<u32> {
    let deadline = Instant::now() + patience;
    let mut seen = std::collections::BTreeSet::new();
    let mut bytes = [0; 4];
    while seen.len() < count as usize {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match socket.recv(&mut bytes) {
            Ok(4) => {
                seen.insert(u32::from_be_bytes(bytes));
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(u32::try_from(seen.len()).unwrap_or(u32::MAX))
}
