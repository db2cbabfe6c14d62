//! A stream of numbered datagrams from one place to another: when each left, and when each copy of it arrived.
//!
//! Both ends run in this process, so that one clock times them: what a way takes in one direction is seen directly.
//! Owns sending and timing; what the times show is for the caller to say.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};

use crate::attachment::enter;
use crate::round_trip::End;

/// A datagram carries its number in its first bytes.
const NUMBER_BYTES: usize = 4;
/// Largest datagram that stands in one packet of 1500 bytes over IPv4; IPv6 has room for 20 less.
pub const BYTES_MAX: usize = 1_472;
/// How much may wait to be read: a burst comes faster than a reader wakes.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
/// What the kernel sends with one call is at most so many datagrams (UDP_MAX_SEGMENTS in the kernel's udp.h) and
/// less than 64 KiB.
const BATCH_MAX: usize = 40;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// How many datagrams.
    pub count: u32,
    /// Between two of them; none: all at once, as fast as the kernel takes them.
    pub interval: Duration,
    /// Bytes of each, 4 to [`BYTES_MAX`].
    pub bytes: usize,
    /// How long the last may take.
    pub patience: Duration,
    /// Whether a datagram larger than its way carries is lost, instead of being sent in pieces.
    pub is_whole: bool,
    /// Whether to wait so long for further copies when all have been seen.
    pub wants_copies: bool,
}

/// One datagram of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// When it was handed to the kernel.
    pub sent: Instant,
    /// When each copy of it was read, in order.
    pub arrivals: Vec<Instant>,
}

impl Datagram {
    /// How long the first copy took.
    #[must_use]
    pub fn took(&self) -> Option<Duration> {
        self.arrivals.first().map(|arrival| arrival.saturating_duration_since(self.sent))
    }
}

/// Sends the stream and waits for it.
///
/// # Errors
/// When a namespace cannot be entered or a socket cannot be made.
pub fn stream(from: End<'_>, to: End<'_>, plan: Plan) -> io::Result<Vec<Datagram>> {
    let bytes = plan.bytes.clamp(NUMBER_BYTES, BYTES_MAX);
    std::thread::scope(|scope| {
        let (address_there, address_here) = std::sync::mpsc::channel();
        let receiver = scope.spawn(move || -> io::Result<Vec<(u32, Instant)>> {
            let socket = bound(to.namespace, (to.address, 0).into())?;
            address_there.send(socket.local_addr()?).map_err(io::Error::other)?;
            receive(&socket, plan)
        });
        let sender = scope.spawn(move || -> io::Result<Vec<Instant>> {
            let address = address_here.recv().map_err(io::Error::other)?;
            let socket = bound(from.namespace, (from.address, 0).into())?;
            if plan.is_whole {
                never_fragment(&socket)?;
            }
            if plan.interval.is_zero() {
                send_burst(&socket, address, plan.count, bytes)
            } else {
                send_paced(&socket, address, plan, bytes)
            }
        });
        let panicked = || io::Error::other("the probe panicked");
        let sent = sender.join().unwrap_or_else(|_| Err(panicked()));
        let arrived = receiver.join().unwrap_or_else(|_| Err(panicked()));
        let mut datagrams: Vec<Datagram> =
            sent?.into_iter().map(|sent| Datagram { sent, arrivals: Vec::new() }).collect();
        for (number, arrival) in arrived? {
            if let Some(datagram) = datagrams.get_mut(number as usize) {
                datagram.arrivals.push(arrival);
            }
        }
        Ok(datagrams)
    })
}

fn bound(namespace: &OwnedFd, address: SocketAddr) -> io::Result<UdpSocket> {
    enter(namespace)?;
    let socket = UdpSocket::bind(address)?;
    // Root may have more than the machine's limit; an ordinary user takes what it allows.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
    }
    Ok(socket)
}

/// As path MTU probes are sent: whole or not at all, whatever the kernel has learnt of the way (ip(7), IP_PMTUDISC_PROBE;
/// ipv6(7)).
fn never_fragment(socket: &UdpSocket) -> io::Result<()> {
    let (level, option) = if socket.local_addr()?.is_ipv6() {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
    };
    let how: libc::c_int = libc::IP_PMTUDISC_PROBE;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is the socket's own, and `how` is a live local of the length given.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const how).cast(), length) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends at fixed moments, so that a late one does not delay those after it.
fn send_paced(socket: &UdpSocket, to: SocketAddr, plan: Plan, bytes: usize) -> io::Result<Vec<Instant>> {
    let begun = Instant::now();
    let mut buffer = vec![0; bytes];
    (0..plan.count)
        .map(|number| {
            let due = begun + plan.interval * number;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            buffer[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
            let sent = Instant::now();
            // An error may belong to an earlier datagram (an ICMP answer); twice in a row it is this one's, and what was
            // never sent must not pass for lost.
            socket.send_to(&buffer, to).or_else(|_| socket.send_to(&buffer, to))?;
            Ok(sent)
        })
        .collect()
}

/// Sends as fast as the kernel takes it: many datagrams with each call where it knows how.
fn send_burst(socket: &UdpSocket, to: SocketAddr, count: u32, bytes: usize) -> io::Result<Vec<Instant>> {
    let segment = i32::try_from(bytes).map_err(io::Error::other)?;
    let segments = setsockopt(socket, sockopt::UdpGsoSegment, &segment).is_ok();
    let mut per_call = if segments { BATCH_MAX.min(60_000 / bytes).max(1) } else { 1 };
    let mut sent = Vec::with_capacity(count as usize);
    let mut buffer = vec![0; per_call * bytes];
    while sent.len() < count as usize {
        let batch = per_call.min(count as usize - sent.len());
        for (index, datagram) in buffer.chunks_exact_mut(bytes).take(batch).enumerate() {
            let number = u32::try_from(sent.len() + index).map_err(io::Error::other)?;
            datagram[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
        }
        let now = Instant::now();
        if let Err(error) = socket.send_to(&buffer[..batch * bytes], to) {
            if per_call == 1 {
                return Err(error);
            }
            // The kernel cuts no datagram that is longer than the way's packets, as far as it has learnt of them.
            setsockopt(socket, sockopt::UdpGsoSegment, &0)?;
            per_call = 1;
            continue;
        }
        sent.extend(std::iter::repeat_n(now, batch));
    }
    Ok(sent)
}

fn receive(socket: &UdpSocket, plan: Plan) -> io::Result<Vec<(u32, Instant)>> {
    let mut deadline = Instant::now() + plan.interval * plan.count + plan.patience;
    let mut arrived: Vec<(u32, Instant)> = Vec::with_capacity(plan.count as usize);
    let mut is_seen = vec![false; plan.count as usize];
    let mut unseen = plan.count;
    let mut buffer = [0; 2048];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || (unseen == 0 && !plan.wants_copies) {
            return Ok(arrived);
        }
        socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match socket.recv(&mut buffer) {
            Ok(length) if length >= NUMBER_BYTES => {
                let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                let Some(seen) = is_seen.get_mut(number as usize) else { continue };
                arrived.push((number, Instant::now()));
                if !std::mem::replace(seen, true) {
                    unseen -= 1;
                    if unseen == 0 {
                        deadline = deadline.min(Instant::now() + plan.patience);
                    }
                }
            }
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(arrived);
            }
            Err(error) => return Err(error),
        }
    }
}
