//! A node's host asking another for the node's volume, of which it has no component itself.
//!
//! Owns the connections, made in the host's namespace so that they cross the fabric, sending again after one broke, and how long
//! each request took. A host that cannot be reached is waited for, because a volume that fails for a while would end a database
//! that a moment's patience keeps; how long is `silence`'s judgement, and after it every request fails. Beside the requests goes
//! a beat, as iSCSI's pings do (RFC 7143, 4.2.5.1): a node that asks for nothing notices as well, and a disk that has a request
//! wait is not taken for a host that is gone. The other end is `target`.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use disk::Refusal;
use disk::mirror::{Carrier, Remote, Work, read_frame};
use measure::interval::{new_histogram, record_latency};
use measure::{Histogram, LatencyFigures};

use super::silence::Silence;
use super::target::{KeptAnswers, NUMBER_BYTES};
use super::threads::Threads;
use crate::host_place::{self, HostPlace};

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// How long one attempt takes at most: a power-off waits for it.
const ATTEMPT: Duration = Duration::from_millis(500);
/// Between two beats.
const BEAT: Duration = Duration::from_millis(500);
/// What is measured, in the order in which it is shown.
const WORKS: [(Work, &str); 4] =
    [(Work::Read, "read"), (Work::Write, "write"), (Work::Sync, "sync"), (Work::Names, "names")];

/// How long requests of one kind took, there and back and being carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestFigures {
    /// What they did: `read`, `write`, `sync`, `names`.
    pub work: &'static str,
    /// How many were answered.
    pub count: u64,
    /// How long they took.
    pub latency: LatencyFigures,
}

/// The way from a host to the one that serves.
pub struct Initiator {
    from: Arc<HostPlace>,
    to: SocketAddr,
    timeout: Duration,
    silence: Mutex<Silence>,
    end: Mutex<End>,
    ended: Condvar,
    idle: Mutex<Vec<Slot>>,
    slots: AtomicU64,
    /// Copies of the connections in use, by slot, so that they can be ended.
    streams: Mutex<BTreeMap<u64, TcpStream>>,
    broken: AtomicU64,
    times: Mutex<BTreeMap<Work, Histogram<u64>>>,
}

/// What becomes of requests whose connection ended without an answer once no other is made.
#[derive(Default)]
enum End {
    /// Connections are made.
    #[default]
    None,
    /// The other end is still carrying out what had reached it.
    Retiring,
    /// It does nothing any more, and answered these.
    Over(KeptAnswers),
}

/// One request under way at a time.
struct Slot {
    name: u64,
    number: u64,
    stream: Option<TcpStream>,
}

impl std::fmt::Debug for Initiator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Initiator")
            .field("from", &self.from.name)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Initiator {
    /// The way from a host to an address, where a sign is waited for for the first of these times, and the host for the
    /// second. Nothing is sent yet.
    #[must_use]
    pub fn new(
        from: Arc<HostPlace>,
        to: SocketAddr,
        (timeout, unreachable_after): (Duration, Duration),
    ) -> Initiator {
        Initiator {
            from,
            to,
            timeout,
            silence: Mutex::new(Silence::new(unreachable_after)),
            end: Mutex::default(),
            ended: Condvar::new(),
            idle: Mutex::default(),
            slots: AtomicU64::new(0),
            streams: Mutex::default(),
            broken: AtomicU64::new(0),
            times: Mutex::default(),
        }
    }

    /// How often a connection broke, or could not be had.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken.load(Ordering::Relaxed)
    }

    /// What was asked so far, by kind; kinds of which nothing was asked are left out.
    #[must_use]
    pub fn request_figures(&self) -> Vec<RequestFigures> {
        let times = lock(&self.times);
        let asked = WORKS.iter().filter_map(|(work, name)| {
            let histogram = times.get(work)?;
            let (count, latency) = (histogram.len(), LatencyFigures::of(histogram));
            Some(RequestFigures { work: name, count, latency })
        });
        asked.collect()
    }

    /// No connection is made any more: a request whose connection ends without an answer waits for [`Initiator::answered_by`].
    pub fn retire(&self) {
        let mut end = lock(&self.end);
        if matches!(*end, End::None) {
            *end = End::Retiring;
        }
    }

    /// The other end carries out nothing any more. What it carried out is answered, everything else is given up, as is every
    /// later request.
    pub fn answered_by(&self, kept: KeptAnswers) {
        *lock(&self.end) = End::Over(kept);
        self.ended.notify_all();
    }

    /// What became of a request of which its connection brought no answer.
    fn late_answer(&self, slot: &Slot) -> Option<Vec<u8>> {
        let retiring = |end: &mut End| matches!(end, End::Retiring);
        let end = self.ended.wait_while(lock(&self.end), retiring).unwrap_or_else(PoisonError::into_inner);
        let End::Over(kept) = &*end else { return None };
        kept.answer_to(slot.name, slot.number).map(ToOwned::to_owned)
    }

    /// How long nothing was heard from there when it was given up; nothing while it is not.
    #[must_use]
    pub fn lost_after(&self) -> Option<Duration> {
        lock(&self.silence).lost_after()
    }

    fn is_over(&self) -> bool {
        !matches!(*lock(&self.end), End::None)
    }

    fn slot(&self) -> Slot {
        lock(&self.idle).pop().unwrap_or_else(|| {
            let name = self.slots.fetch_add(1, Ordering::Relaxed);
            Slot { name, number: 0, stream: None }
        })
    }

    fn connect(&self, slot: u64) -> io::Result<TcpStream> {
        let mut stream = self.from.connect(self.to, self.timeout.min(ATTEMPT))?;
        host_place::prepare(&stream, self.timeout)?;
        host_place::keep_alive(&stream)?;
        lock(&self.streams).insert(slot, stream.try_clone()?);
        if self.is_over() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        stream.write_all(&slot.to_le_bytes())?;
        Ok(stream)
    }

    /// Begins to beat, until the volume is closed or the host at the other end is lost.
    ///
    /// # Errors
    /// When no thread is to be had.
    pub fn begin_to_beat(remote: &Arc<Remote<Initiator>>, threads: &Arc<Threads>) -> io::Result<()> {
        let beating = Arc::downgrade(remote);
        let mut slot = remote.carrier().slot();
        let beat = move || {
            while let Some(remote) = beating.upgrade()
                && !remote.carrier().is_over()
            {
                remote.carrier().beat(&mut slot);
                drop(remote);
                std::thread::sleep(BEAT);
            }
        };
        threads.start("initiator", beat).map(drop)
    }

    fn beat(&self, slot: &mut Slot) {
        let began = Instant::now();
        let frame = [&(NUMBER_BYTES as u32).to_le_bytes()[..], &(slot.number + 1).to_le_bytes()].concat();
        match self.exchange(slot, &frame, Some(self.timeout)) {
            Ok(_) => {
                slot.number += 1;
                lock(&self.silence).heard();
            }
            Err(_) => {
                slot.stream = None;
                let is_lost = lock(&self.silence).failed(Instant::now(), began.elapsed());
                if is_lost {
                    self.interrupt();
                }
            }
        }
    }

    fn exchange(&self, slot: &mut Slot, frame: &[u8], patience: Option<Duration>) -> io::Result<Vec<u8>> {
        let stream = match &mut slot.stream {
            Some(stream) => stream,
            none => {
                let stream = self.connect(slot.name)?;
                stream.set_read_timeout(patience)?;
                lock(&self.silence).heard();
                none.insert(stream)
            }
        };
        stream.write_all(frame)?;
        let mut answer = Vec::new();
        if read_frame(stream, &mut answer)? { Ok(answer) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn record(&self, work: Work, took: Duration) {
        let mut times = lock(&self.times);
        record_latency(times.entry(work).or_insert_with(new_histogram), took);
    }
}

impl Carrier for Initiator {
    fn carry(&self, work: Work, request: &[u8]) -> Result<Vec<u8>, Refusal> {
        let began = Instant::now();
        let mut slot = self.slot();
        slot.number += 1;
        let number = slot.number.to_le_bytes();
        // A request has little more than a megabyte.
        let length = (number.len() + request.len()) as u32;
        let frame = [&length.to_le_bytes()[..], &number, request].concat();
        while !self.is_over() {
            match self.exchange(&mut slot, &frame, None) {
                Ok(answer) => {
                    lock(&self.silence).heard();
                    self.record(work, began.elapsed());
                    lock(&self.idle).push(slot);
                    return Ok(answer);
                }
                Err(_) => {
                    slot.stream = None;
                    self.broken.fetch_add(1, Ordering::Relaxed);
                    if !self.is_over() {
                        std::thread::sleep(PAUSE);
                    }
                }
            }
        }
        self.late_answer(&slot).ok_or(Refusal::EIO)
    }

    fn interrupt(&self) {
        self.answered_by(KeptAnswers::default());
        for stream in lock(&self.streams).values() {
            // One that is broken already needs no end.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
