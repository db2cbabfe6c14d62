//! Where a component is in the network: sockets made in the namespace of its host, so that what components say to each
//! other crosses the fabric.
//!
//! A socket belongs to the namespace it was made in, whoever uses it; only its making needs a thread inside.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use lab::attachment::{enter, on_own_thread};

/// A host's place in the network.
#[derive(Debug)]
pub struct HostPlace {
    /// Its path in the site.
    pub name: String,
    pub namespace: OwnedFd,
    pub address: IpAddr,
    /// The disk of it that the volume's component stands on, where it has one.
    pub disk: disk::Disk,
}

impl HostPlace {
    /// Listens on the host.
    ///
    /// # Errors
    /// When the namespace cannot be entered or the port is taken.
    pub fn listen(&self, port: u16) -> io::Result<TcpListener> {
        self.inside(|| TcpListener::bind(SocketAddr::new(self.address, port)))
    }

    /// Connects from the host. Whoever gives no sign for `timeout` is given up, while connecting and later.
    ///
    /// # Errors
    /// When there is no answer, or a refusal.
    pub fn connect(&self, to: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let stream = self.inside(|| TcpStream::connect_timeout(&to, timeout))?;
        prepare(&stream, timeout)?;
        Ok(stream)
    }

    fn inside<T: Send>(&self, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let made = on_own_thread(|| {
            enter(&self.namespace)?;
            make()
        });
        made.map_err(io::Error::other)?
    }
}

/// Takes a connection from another host. A node's processes reach the same ports, and must reach no volume by them: a
/// program without rights has no address but its node's.
///
/// # Errors
/// When nobody connected, or one who is no host.
pub fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, peer) = listener.accept()?;
    if are_alike(listener.local_addr()?.ip(), peer.ip()) {
        return Ok(stream);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{} is no host", peer.ip())))
}

/// Whether two addresses are of places of one kind: they begin alike, see `datacentre::addresses`.
fn are_alike(one: IpAddr, other: IpAddr) -> bool {
    match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => one.octets()[..2] == other.octets()[..2],
        (IpAddr::V6(one), IpAddr::V6(other)) => one.segments()[..6] == other.segments()[..6],
        _ => false,
    }
}

/// Small messages go out at once, and a peer that is gone is noticed.
///
/// # Errors
/// When the kernel does not know of it.
pub fn prepare(stream: &TcpStream, timeout: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(timeout))?;
    // Milliseconds of silence after which what was sent counts as lost (tcp(7)).
    let silence = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    set(stream, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, silence)
}

/// A peer that is gone is noticed also while nothing is under way to it but an answer is awaited: after the silence that
/// [`prepare`] was given, give or take a second (tcp(7)).
///
/// # Errors
/// When the kernel does not know of it.
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    set(stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    set(stream, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 1)?;
    set(stream, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1)
}

/// The shortest round trip that the kernel has seen on a connection (tcp_info in linux/tcp.h: `tcpi_min_rtt`); `None` where
/// it has seen none, or does not tell.
pub fn round_trip(stream: &TcpStream) -> Option<Duration> {
    const MIN_RTT_AT: usize = 148;
    let mut info = [0_u8; 232];
    let mut bytes = info.len() as libc::socklen_t;
    // SAFETY: the option writes at most `bytes` bytes to the buffer, which lives until the call returns, and tells how many.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    let told = info.get(..bytes as usize)?.get(MIN_RTT_AT..)?.first_chunk().filter(|_| result == 0)?;
    // The kernel says that it knows none by the largest number.
    let us = Some(u32::from_ne_bytes(*told)).filter(|us| (1..u32::MAX).contains(us))?;
    Some(Duration::from_micros(us.into()))
}

/// A host in the network of this process, for tests; none where its namespace may not be entered.
#[cfg(test)]
pub(super) fn here(name: &str) -> Option<std::sync::Arc<HostPlace>> {
    let namespace: OwnedFd = std::fs::File::open("/proc/thread-self/ns/net").ok()?.into();
    on_own_thread(|| enter(&namespace)).ok()?.ok()?;
    let address = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let disk = disk::Disk::alone(name);
    Some(std::sync::Arc::new(HostPlace { name: name.to_owned(), namespace, address, disk }))
}

fn set(stream: &TcpStream, level: libc::c_int, option: libc::c_int, value: u32) -> io::Result<()> {
    // SAFETY: each of these options takes an integer of this size, which lives until the call returns; the descriptor is
    // open.
    let result = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_from_a_node_in_both_families() {
        let check = |one: &str, other: &str, expected| {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            assert_eq!(are_alike(address(one), address(other)), expected, "{one} {other}");
        };
        check("10.1.0.1", "10.1.200.7", true);
        check("10.1.0.1", "10.2.0.1", false);
        check("fd00::10:1:0:1", "fd00::10:1:200:7", true);
        check("fd00::10:1:0:1", "fd00::10:2:0:1", false);
        check("10.1.0.1", "fd00::10:1:0:1", false);
    }
}
