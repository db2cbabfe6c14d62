//! What goes over the wire from the component that serves to one of the others: connecting again and again, messages out,
//! answers in.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use disk::mirror::{Answer, Differences, Frame, Mirror, Next};
use disk::{FolderStore, OnDisk};

use super::component::Component;
use super::threads::Threads;
use crate::host_place::{self, HostPlace};

/// Bytes of messages sent with one call, about.
const SEND_BYTES: usize = 256 << 10;
/// Answers between two looks at the shortest round trip.
const ANSWERS_PER_LOOK: u32 = 256;
/// Between two attempts to connect, and how often a sender with nothing to send looks around.
const PAUSE: Duration = Duration::from_millis(200);

/// One conversation. Dropping it ends it, without waiting: whoever is speaking to a host without power is told so by the
/// mirror's end, and says nothing more that arrives.
#[derive(Debug)]
pub struct Conversation {
    is_over: Arc<AtomicBool>,
    round_trip_us: Arc<AtomicU64>,
}

/// Who speaks to whom.
pub struct Speaker {
    /// The mirror that serves.
    pub mirror: Arc<Mirror<OnDisk<FolderStore>>>,
    /// The other component's number there.
    pub peer: usize,
    /// From where.
    pub from: Arc<HostPlace>,
    /// To whom.
    pub to: Arc<Component>,
    /// How long a sign is waited for.
    pub timeout: Duration,
    /// What the components' power-offs took back, of which nobody has been told yet.
    pub differences: Arc<Mutex<Differences>>,
    /// The other component's number among them.
    pub number: usize,
    /// The volume's.
    pub threads: Arc<Threads>,
    /// The shortest round trip that was seen goes here; zero before the first.
    pub round_trip_us: Arc<AtomicU64>,
}

impl Conversation {
    /// Begins to speak.
    ///
    /// # Errors
    /// When no thread is to be had.
    pub fn begin(speaker: Speaker) -> std::io::Result<Conversation> {
        let (is_over, round_trip_us) = (Arc::<AtomicBool>::default(), speaker.round_trip_us.clone());
        let over = is_over.clone();
        let threads = speaker.threads.clone();
        threads.start("mirror", move || speaker.speak(&over))?;
        Ok(Conversation { is_over, round_trip_us })
    }
}

impl Conversation {
    /// The shortest round trip that was seen between the two hosts, in microseconds; none before the first.
    pub fn round_trip_us(&self) -> Option<u64> {
        Some(self.round_trip_us.load(Ordering::Relaxed)).filter(|us| *us > 0)
    }

    /// Ends it.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Speaker {
    fn differences(&self) -> MutexGuard<'_, Differences> {
        self.differences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn speak(&self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            if let Ok(stream) = self.from.connect(self.to.address(), self.timeout) {
                // Service may have ended while it was tried.
                if !is_over.load(Ordering::Acquire) {
                    self.converse(&stream);
                }
                let _ = stream.shutdown(Shutdown::Both);
            }
            self.threads.cpu().count();
            std::thread::sleep(PAUSE);
        }
    }

    fn converse(&self, stream: &TcpStream) {
        // The component keeps this in its log and its bitmap, and would send it here. Whoever serves next must not find
        // nothing to be told while one whose service is over has it in its hands.
        let mut differences = self.differences();
        let lost = differences.take_lost(self.number);
        let Some(connection) = self.mirror.connect(self.peer, &lost) else {
            differences.untold(self.number, &lost);
            return;
        };
        drop(differences);
        std::thread::scope(|scope| {
            let hear = || self.hear(stream, connection);
            let listener = std::thread::Builder::new().name("mirror".to_owned()).spawn_scoped(scope, hear);
            if listener.is_ok() {
                self.send(stream, connection);
            }
            self.mirror.connection_broke(self.peer, connection);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }

    fn send(&self, mut stream: &TcpStream, connection: u64) {
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            let work = self.threads.work();
            let first: Frame = match self.mirror.next(self.peer, connection, PAUSE) {
                Next::Over => return,
                Next::Wait => continue,
                Next::Send(frame) => frame,
            };
            bytes.clear();
            bytes.extend_from_slice(&first);
            while bytes.len() < SEND_BYTES
                && let Next::Send(frame) = self.mirror.next(self.peer, connection, Duration::ZERO)
            {
                bytes.extend_from_slice(&frame);
            }
            drop(work);
            if stream.write_all(&bytes).is_err() {
                return;
            }
            self.threads.cpu().count();
        }
    }

    fn hear(&self, mut stream: &TcpStream, connection: u64) {
        let _living = self.threads.under_way().living();
        let mut bytes = [0; Answer::BYTES];
        for answers in 0.. {
            if stream.read_exact(&mut bytes).is_err() {
                break;
            }
            let _work = self.threads.work();
            if answers % ANSWERS_PER_LOOK == 0
                && let Some(shortest) = host_place::round_trip(stream)
            {
                // It changes rarely, and asking costs a system call.
                self.round_trip_us.store(shortest.as_micros() as u64, Ordering::Relaxed);
            }
            self.mirror.answered(self.peer, connection, Answer::from_bytes(bytes));
            self.threads.cpu().count();
        }
        self.mirror.connection_broke(self.peer, connection);
    }
}
