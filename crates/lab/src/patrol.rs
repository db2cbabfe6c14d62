//! Numbered datagrams in several directions at once, for as long as they are wanted: when each left, and when and how each
//! copy of it arrived.
//!
//! Both ends are in this process, so one clock times them and a direction is seen by itself. They carry no checksum, so a
//! flipped bit arrives and is counted apart from a loss. One thread sends for all directions and one receives.
//! Sources: udp(7), ip(7), socket(7); `UDP_NO_CHECK6_TX` and `UDP_NO_CHECK6_RX` in the kernel's `linux/udp.h`.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};

use crate::attachment::{enter, on_own_thread};
use crate::round_trip::End;

/// Bytes of a datagram: its number three times, so that it is known though a bit is flipped, and zeros.
pub const PAYLOAD_BYTES: usize = 32;
const NUMBER_BYTES: usize = 4;
const RECEIVE_BUFFER_BYTES: usize = 1 << 20;
/// How soon the threads hear that they are to stop.
const STOP_WITHIN: Duration = Duration::from_millis(20);
/// A sender that was late sends at once what was due within this.
const MADE_UP: Duration = Duration::from_millis(5);
const NO_CHECK6_TX: libc::c_int = 101;
const NO_CHECK6_RX: libc::c_int = 102;

/// One copy of a datagram, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it was read.
    pub at: Instant,
    /// Whether a bit of it was flipped.
    pub is_corrupted: bool,
}

/// One datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Just before it was handed to the kernel.
    pub sent: Instant,
    /// Its copies, in the order they came.
    pub arrivals: Vec<Arrival>,
}

#[derive(Debug, Default)]
struct Log {
    probes: Vec<Probe>,
    /// When the sender was told that nobody takes its datagrams.
    refused: Vec<Instant>,
}

#[derive(Debug)]
struct Way {
    interval_ns: AtomicU64,
    log: Mutex<Log>,
}

#[derive(Debug)]
struct Shared {
    is_over: AtomicBool,
    /// Held while datagrams are sent.
    is_paused: Mutex<bool>,
    ways: Vec<Way>,
}

impl Shared {
    fn log(&self, way: usize) -> MutexGuard<'_, Log> {
        self.ways[way].log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pause(&self) -> MutexGuard<'_, bool> {
        self.is_paused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Datagrams under way. Dropping it ends them.
#[derive(Debug)]
pub struct Patrol {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Patrol {
    /// Begins, with so long between two datagrams of each direction.
    ///
    /// # Errors
    /// When a namespace cannot be entered, or a socket or a thread cannot be had.
    pub fn start(ways: &[(End<'_>, End<'_>, Duration)]) -> io::Result<Patrol> {
        let sockets = on_own_thread(|| ways.iter().map(sockets_of).collect::<io::Result<Vec<_>>>())
            .map_err(io::Error::other)??;
        let (senders, receivers): (Vec<UdpSocket>, Vec<UdpSocket>) = sockets.into_iter().unzip();
        let way = |(_, _, interval): &(End<'_>, End<'_>, Duration)| Way {
            interval_ns: AtomicU64::new(nanos(*interval)),
            log: Mutex::default(),
        };
        let shared = Arc::new(Shared {
            is_over: AtomicBool::new(false),
            is_paused: Mutex::new(false),
            ways: ways.iter().map(way).collect(),
        });
        let mut patrol = Patrol { shared: shared.clone(), threads: Vec::new() };
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let sending = shared.clone();
        patrol.threads.push(named("probes-out").spawn(move || send(&sending, &senders))?);
        patrol.threads.push(named("probes-in").spawn(move || receive(&shared, &receivers))?);
        Ok(patrol)
    }

    /// Changes the time between two datagrams of a direction.
    pub fn pace(&self, way: usize, interval: Duration) {
        self.shared.ways[way].interval_ns.store(nanos(interval), Ordering::Relaxed);
    }

    /// Sends nothing more until it is resumed; when this returns, nothing is being sent.
    pub fn pause(&self) {
        *self.shared.pause() = true;
    }

    /// Sends again.
    pub fn resume(&self) {
        *self.shared.pause() = false;
    }

    /// The datagrams of a direction that were sent from one moment until before another.
    #[must_use]
    pub fn probes(&self, way: usize, from: Instant, to: Instant) -> Vec<Probe> {
        let log = self.shared.log(way);
        let begin = log.probes.partition_point(|probe| probe.sent < from);
        let end = log.probes.partition_point(|probe| probe.sent < to).max(begin);
        log.probes[begin..end].to_vec()
    }

    /// How often, from one moment until before another, a sender was told that nobody takes its datagrams.
    #[must_use]
    pub fn refusals(&self, way: usize, from: Instant, to: Instant) -> usize {
        self.shared.log(way).refused.iter().filter(|at| **at >= from && **at < to).count()
    }
}

impl Drop for Patrol {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic there ended the datagrams, which is all that is wanted now.
            let _ = thread.join();
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1)
}

/// The sender's and the receiver's socket, each in its namespace.
fn sockets_of((from, to, _): &(End<'_>, End<'_>, Duration)) -> io::Result<(UdpSocket, UdpSocket)> {
    let receiver = bound(to)?;
    let sender = bound(from)?;
    sender.connect(receiver.local_addr()?)?;
    if from.address.is_ipv4() {
        set(&sender, libc::SOL_SOCKET, libc::SO_NO_CHECK)?;
    } else {
        set(&sender, libc::IPPROTO_UDP, NO_CHECK6_TX)?;
        set(&receiver, libc::IPPROTO_UDP, NO_CHECK6_RX)?;
    }
    Ok((sender, receiver))
}

fn bound(end: &End<'_>) -> io::Result<UdpSocket> {
    enter(end.namespace)?;
    let socket = UdpSocket::bind(SocketAddr::new(end.address, 0))?;
    socket.set_nonblocking(true)?;
    // Root may have more than the machine's limit; an ordinary user takes what it allows.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
    }
    Ok(socket)
}

fn set(socket: &UdpSocket, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is the socket's own, and `on` is a live local of the length given.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const on).cast(), length) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends each way's datagrams when they are due. After a wait for a processor, what was missed is made up for, but only that of
/// [`MADE_UP`]: a longer burst would be felt on a narrow link.
fn send(shared: &Shared, sockets: &[UdpSocket]) {
    let begun = Instant::now();
    // Directions take turns, so that their datagrams do not come all at once.
    let mut due: Vec<Instant> = (0..sockets.len() as u64)
        .map(|way| {
            begun + Duration::from_nanos(interval_ns(shared, way as usize) * way / sockets.len() as u64)
        })
        .collect();
    while !shared.is_over.load(Ordering::Acquire) {
        let Some((way, next)) = due.iter().copied().enumerate().min_by_key(|(_, at)| *at) else { return };
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left.min(STOP_WITHIN));
            continue;
        }
        let paused = shared.pause();
        if *paused {
            drop(paused);
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        send_one(shared, way, &sockets[way]);
        drop(paused);
        let interval = Duration::from_nanos(interval_ns(shared, way));
        let now = Instant::now();
        due[way] = (next + interval).max(now.checked_sub(MADE_UP).unwrap_or(now));
    }
}

fn interval_ns(shared: &Shared, way: usize) -> u64 {
    shared.ways[way].interval_ns.load(Ordering::Relaxed)
}

fn send_one(shared: &Shared, way: usize, socket: &UdpSocket) {
    let mut log = shared.log(way);
    let Ok(number) = u32::try_from(log.probes.len()) else { return };
    let mut payload = [0; PAYLOAD_BYTES];
    for copy in payload.chunks_exact_mut(NUMBER_BYTES).take(3) {
        copy.copy_from_slice(&number.to_be_bytes());
    }
    // Entered before it is sent: its arrival is looked up by its number.
    log.probes.push(Probe { sent: Instant::now(), arrivals: Vec::new() });
    drop(log);
    let mut is_sent = false;
    for _ in 0..2 {
        match socket.send(&payload) {
            Ok(_) => {
                is_sent = true;
                break;
            }
            // An answer to an earlier one; this one has not been sent.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                shared.log(way).refused.push(Instant::now());
            }
            Err(_) => break,
        }
    }
    if !is_sent {
        // What was never sent must not pass for lost. Only this thread adds to the log.
        shared.log(way).probes.pop();
    }
}

fn receive(shared: &Shared, sockets: &[UdpSocket]) {
    let mut buffer = [0; 256];
    while !shared.is_over.load(Ordering::Acquire) {
        let mut waiting: Vec<PollFd<'_>> =
            sockets.iter().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN)).collect();
        let timeout = PollTimeout::try_from(STOP_WITHIN).unwrap_or(PollTimeout::ZERO);
        if poll(&mut waiting, timeout).is_err() {
            continue;
        }
        for (way, (socket, polled)) in sockets.iter().zip(&waiting).enumerate() {
            if polled.any() != Some(true) {
                continue;
            }
            while let Ok(length) = socket.recv(&mut buffer) {
                let at = Instant::now();
                if let Some((number, is_corrupted)) = read(&buffer[..length]) {
                    let mut log = shared.log(way);
                    if let Some(probe) = log.probes.get_mut(number as usize) {
                        probe.arrivals.push(Arrival { at, is_corrupted });
                    }
                }
            }
        }
    }
}

/// The number of a datagram, and whether it arrived otherwise than it was sent.
fn read(payload: &[u8]) -> Option<(u32, bool)> {
    if payload.len() != PAYLOAD_BYTES {
        return None;
    }
    let copy = |index: usize| {
        let bytes: [u8; NUMBER_BYTES] =
            payload[index * NUMBER_BYTES..(index + 1) * NUMBER_BYTES].try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let (one, two, three) = (copy(0)?, copy(1)?, copy(2)?);
    let number = if one == two || one == three { one } else { two };
    let is_whole = one == two && two == three && payload[3 * NUMBER_BYTES..].iter().all(|byte| *byte == 0);
    Some((number, !is_whole))
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_flipped_bit_is_noticed_wherever_it_is_and_the_number_is_known_all_the_same() {
        let mut sound = [0; PAYLOAD_BYTES];
        for copy in sound.chunks_exact_mut(NUMBER_BYTES).take(3) {
            copy.copy_from_slice(&1_234_567_u32.to_be_bytes());
        }
        assert_eq!(read(&sound), Some((1_234_567, false)));
        for bit in 0..PAYLOAD_BYTES * 8 {
            let mut flipped = sound;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped), Some((1_234_567, true)), "bit {bit}");
        }
        assert_eq!(read(&sound[1..]), None);
    }

    #[test]
    fn every_datagram_arrives_once_where_nothing_is_in_the_way() {
        let namespace = std::fs::File::open("/proc/self/ns/net").expect("our own namespace").into();
        let namespace: OwnedFd = namespace;
        if enter(&namespace).is_err() {
            eprintln!(
                "skipped: every_datagram_arrives_once: a thread may not enter a network namespace here"
            );
            return;
        }
        let end = End { namespace: &namespace, address: [127, 0, 0, 1].into() };
        let interval = Duration::from_micros(500);
        let patrol = Patrol::start(&[(end, end, interval), (end, end, interval)]).expect("a patrol");
        let begun = Instant::now();
        while patrol.probes(1, begun, Instant::now()).len() < 50 {
            std::thread::sleep(Duration::from_millis(5));
        }
        patrol.pause();
        let paused = Instant::now();
        std::thread::sleep(Duration::from_millis(50));
        for way in [0, 1] {
            let probes = patrol.probes(way, begun, paused);
            assert!(probes.len() >= 40, "{}", probes.len());
            assert!(probes.iter().all(|probe| probe.arrivals.len() == 1 && !probe.arrivals[0].is_corrupted));
            assert!(patrol.probes(way, paused, Instant::now()).is_empty());
            assert_eq!(patrol.refusals(way, begun, Instant::now()), 0);
        }
    }
}
