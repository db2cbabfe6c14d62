//! The host of the component that serves, answering a node on another host: what comes over the network is carried out as if it
//! came from its own kernel, each request once.
//!
//! Owns the listener, its connections and the answers kept until they are known to have arrived. The other end is `initiator`.
//!
//! A request is its length, the number of the slot's request, and what `disk::mirror` makes of it; whoever connects names its
//! slot first. A slot has one request under way at a time, and its last answer is kept: sent again after a connection broke,
//! it is answered again and not carried out again, as in the sessions of NFS (RFC 8881, 2.10.6).

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use disk::Files;
use disk::mirror::{answer, read_frame};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::threads::Threads;
use crate::host_place::{self, HostPlace};

/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;
/// How often the listener looks whether it is to end.
const LOOK_MS: u16 = 100;
/// Bytes before a request that number it, and of the slot that a connection is for.
pub(super) const NUMBER_BYTES: usize = 8;
/// Bytes before an answer that say how long it is.
const LENGTH_BYTES: usize = 4;

/// A volume that is served to another host. Dropping it ends that.
pub struct Target {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared {
    files: Arc<dyn Files>,
    timeout: Duration,
    threads: Arc<Threads>,
    is_over: AtomicBool,
    connections: Mutex<Vec<(TcpStream, JoinHandle<()>)>>,
    slots: Mutex<BTreeMap<u64, Arc<Mutex<Slot>>>>,
}

/// The last request of a slot, and its answer, with its length before it.
#[derive(Default)]
struct Slot {
    number: u64,
    answer: Vec<u8>,
}

/// What was carried out last for each slot, and how it was answered: for those whom no answer could reach.
#[derive(Debug, Default)]
pub struct KeptAnswers(BTreeMap<u64, (u64, Vec<u8>)>);

impl KeptAnswers {
    /// The answer to a slot's request of that number; nothing where it was not carried out.
    #[must_use]
    pub fn answer_to(&self, slot: u64, number: u64) -> Option<&[u8]> {
        self.0.get(&slot).filter(|(last, _)| *last == number).map(|(_, answer)| answer.as_slice())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target {
    /// Serves from a host, at whichever port is free: the one before may not be closed yet.
    ///
    /// # Errors
    /// When the host cannot be listened on.
    pub fn open(
        place: &HostPlace,
        files: Arc<dyn Files>,
        timeout: Duration,
        threads: Arc<Threads>,
    ) -> io::Result<Target> {
        let listener = place.listen(0)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            files,
            timeout,
            threads,
            is_over: AtomicBool::new(false),
            connections: Mutex::default(),
            slots: Mutex::default(),
        });
        let served = shared.clone();
        let thread = shared.threads.start("target", move || served.listen(&listener))?;
        Ok(Target { address, shared, thread: Some(thread) })
    }

    /// Where it is reached.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: afterwards nothing is carried out any more. What is being carried out must not wait for anything.
    pub fn close(&mut self) {
        self.end(Shutdown::Both);
    }

    /// Ends it after what is being carried out was answered, and returns the last answers: a connection that broke brought
    /// none. Not for a thread that carries something out.
    pub fn retire(&mut self) -> KeptAnswers {
        self.end(Shutdown::Read);
        let slots = std::mem::take(&mut *lock(&self.shared.slots));
        let kept = slots.into_iter().map(|(name, slot)| {
            let slot = lock(&slot);
            (name, (slot.number, slot.answer.get(LENGTH_BYTES..).unwrap_or_default().to_owned()))
        });
        KeptAnswers(kept.collect())
    }

    fn end(&mut self, how: Shutdown) {
        self.shared.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there has ended it as well.
            let _ = thread.join();
        }
        let connections = std::mem::take(&mut *lock(&self.shared.connections));
        for (stream, _) in &connections {
            // One that is broken already needs no end.
            let _ = stream.shutdown(how);
        }
        for (_, thread) in connections {
            let _ = thread.join();
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        while !self.is_over.load(Ordering::Acquire) {
            let mut waiting = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut waiting, PollTimeout::from(LOOK_MS)), Ok(1..)) {
                continue;
            }
            // Whoever gave up meanwhile connects again.
            if let Ok(stream) = host_place::accept(listener) {
                // One that cannot be served is closed, and its other end tries again.
                let _ = self.begin(stream);
            }
        }
    }

    fn begin(self: &Arc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        host_place::prepare(&stream, self.timeout)?;
        host_place::keep_alive(&stream)?;
        let (copy, served) = (stream.try_clone()?, self.clone());
        let serve = move || {
            served.serve(&stream);
            let _ = stream.shutdown(Shutdown::Both);
        };
        let thread = self.threads.start("target", serve)?;
        let mut connections = lock(&self.connections);
        connections.retain(|(_, thread)| !thread.is_finished());
        connections.push((copy, thread));
        Ok(())
    }

    /// Answers one connection until it breaks, or says what it must not.
    fn serve(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::with_capacity(READ_BYTES, stream);
        let mut name = [0; NUMBER_BYTES];
        if reader.read_exact(&mut name).is_err() {
            return;
        }
        let slot = lock(&self.slots).entry(u64::from_le_bytes(name)).or_default().clone();
        let mut buffer = Vec::new();
        while read_frame(&mut reader, &mut buffer).unwrap_or(false) {
            let Some((number, request)) = buffer.split_first_chunk() else { return };
            let number = u64::from_le_bytes(*number);
            // Held while it is carried out: sent again meanwhile on another connection, it is waited for.
            let mut slot = lock(&slot);
            if self.is_over.load(Ordering::Acquire) {
                return;
            }
            if number == slot.number + 1 {
                // Nothing is asked by a beat, which must not wait for a disk.
                let nothing = request.is_empty();
                let work = self.threads.work();
                let said = if nothing { Vec::new() } else { answer(self.files.as_ref(), request) };
                drop(work);
                // Far below four gigabytes.
                slot.answer = [&(said.len() as u32).to_le_bytes()[..], &said].concat();
                slot.number = number;
            } else if number != slot.number {
                return;
            }
            let sent = stream.write_all(&slot.answer);
            self.threads.cpu().count();
            if sent.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use disk::mirror::Remote;
    use disk::{Attributes, Flush, FolderStore, Limits, NewInode, ROOT, Refusal, Volume};

    use super::*;
    use crate::mirrored::initiator::Initiator;

    const TIMEOUT: Duration = Duration::from_secs(5);

    fn test_mirror(folder: &std::path::Path) -> Option<(Arc<HostPlace>, Target)> {
        let here = host_place::here("here")?;
        let store = FolderStore::new(folder, Flush::Pretended);
        let volume = Arc::new(Volume::new(store, Limits::default(), 0, 0, SystemTime::UNIX_EPOCH));
        let target = Target::open(&here, volume, TIMEOUT, Arc::default()).expect("a target");
        Some((here, target))
    }

    fn make(files: &dyn Files, name: &str) -> Result<(), Refusal> {
        let attributes = Attributes::new(0o644, 0, 0, SystemTime::UNIX_EPOCH);
        files.make(ROOT, name.as_ref(), &NewInode::File, attributes).map(drop)
    }

    #[test]
    fn what_is_asked_over_connections_that_break_is_done_once_and_ends_with_the_power() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some((here, mut target)) = test_mirror(folder.path()) else {
            return eprintln!("skipped: what_is_asked_over_connections: no network namespace may be entered");
        };
        let remote = Remote::new(Initiator::new(here, target.address(), (TIMEOUT, TIMEOUT)));
        for number in 0..20 {
            assert_eq!(make(&remote, &format!("f{number}")), Ok(()));
            for (stream, _) in lock(&target.shared.connections).iter() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        // A connection that is listed only after its first answer escapes.
        assert!(remote.carrier().broken() > 0);
        assert_eq!(make(&remote, "f7"), Err(Refusal::EEXIST));
        assert_eq!(remote.carrier().request_figures()[0].count, 21);
        target.close();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| make(&remote, "late"));
            std::thread::sleep(Duration::from_millis(50));
            remote.interrupt(true);
            assert_eq!(waiting.join().expect("no panic"), Err(Refusal::EIO));
        });
    }

    #[test]
    fn what_was_carried_out_while_its_connection_broke_is_answered_when_service_has_moved_away() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some((here, mut target)) = test_mirror(folder.path()) else {
            return eprintln!("skipped: what_was_carried_out_while: no network namespace may be entered");
        };
        let remote = Remote::new(Initiator::new(here, target.address(), (TIMEOUT, TIMEOUT)));
        assert_eq!(make(&remote, "before"), Ok(()));
        let slot = lock(&target.shared.slots).values().next().expect("a slot").clone();
        std::thread::scope(|scope| {
            // As if the disk took its time.
            let busy = lock(&slot);
            let asked = scope.spawn(|| make(&remote, "meanwhile"));
            std::thread::sleep(Duration::from_millis(50));
            for (stream, _) in lock(&target.shared.connections).iter() {
                let _ = stream.shutdown(Shutdown::Write);
            }
            drop(busy);
            while lock(&slot).number < 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
            remote.carrier().retire();
            remote.carrier().answered_by(target.retire());
            assert_eq!(
                asked.join().expect("no panic"),
                Ok(()),
                "asked of the next it would be there already"
            );
        });
        assert_eq!(make(&remote, "after"), Err(Refusal::EIO), "nobody carried it out");
    }

    #[test]
    fn a_host_that_is_not_reached_in_time_is_lost_and_whoever_waits_for_it_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some((here, mut target)) = test_mirror(folder.path()) else {
            return eprintln!(
                "skipped: a_host_that_is_not_reached_in_time: no network namespace may be entered"
            );
        };
        let limit = Duration::from_millis(300);
        let remote = Arc::new(Remote::new(Initiator::new(here, target.address(), (TIMEOUT, limit))));
        Initiator::begin_to_beat(&remote, &Arc::default()).expect("a thread");
        assert_eq!(make(remote.as_ref(), "early"), Ok(()));
        assert_eq!(remote.carrier().lost_after(), None);
        target.close();
        // Nobody asks for anything meanwhile.
        while remote.carrier().lost_after().is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(remote.carrier().lost_after() >= Some(limit), "{:?}", remote.carrier().lost_after());
        assert_eq!(make(remote.as_ref(), "later"), Err(Refusal::EIO));
    }

    #[test]
    fn a_request_that_waits_for_a_disk_is_waited_for_however_long_while_its_host_answers_beats() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = host_place::here("here");
        let Some(here) = here else {
            return eprintln!(
                "skipped: a_request_that_waits_for_a_disk: no network namespace may be entered"
            );
        };
        let store = disk::OnDisk::new(FolderStore::new(folder.path(), Flush::Pretended), here.disk.clone());
        let volume = Arc::new(Volume::new(store, Limits::default(), 0, 0, SystemTime::UNIX_EPOCH));
        let target = Target::open(&here, volume, TIMEOUT, Arc::default()).expect("a target");
        let (disk, limit) = (here.disk.clone(), Duration::from_millis(300));
        let remote = Arc::new(Remote::new(Initiator::new(here, target.address(), (TIMEOUT, limit))));
        Initiator::begin_to_beat(&remote, &Arc::default()).expect("a thread");
        let made = Attributes::new(0o644, 0, 0, SystemTime::UNIX_EPOCH);
        let made = remote.make(ROOT, "f".as_ref(), &NewInode::File, made).expect("made");
        remote.open(made.inode).expect("opened");
        let write = || {
            let (through, now) = (Some(disk::Scope::Data), SystemTime::UNIX_EPOCH);
            remote.write(made.inode, 0, b"content", through, false, now)
        };
        let stall = disk.impose(disk::Defect::Stall);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(write);
            std::thread::sleep(limit * 5);
            assert!(!waiting.is_finished(), "it waits for the disk");
            assert_eq!(remote.carrier().lost_after(), None);
            drop(stall);
            assert_eq!(waiting.join().expect("no panic"), Ok(()));
        });
        remote.interrupt(true);
    }

    #[test]
    fn a_request_sent_again_gets_its_answer_again_and_one_out_of_turn_gets_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some((here, target)) = test_mirror(folder.path()) else {
            return eprintln!("skipped: a_request_sent_again: no network namespace may be entered");
        };
        // Whatever a carrier is given is what would be sent.
        struct Kept(Mutex<Vec<u8>>);
        impl disk::mirror::Carrier for Kept {
            fn carry(&self, _: disk::mirror::Work, request: &[u8]) -> Result<Vec<u8>, Refusal> {
                *lock(&self.0) = request.to_owned();
                Err(Refusal::EIO)
            }
            fn interrupt(&self) {}
        }
        let kept = Remote::new(Kept(Mutex::default()));
        let _ = make(&kept, "once");
        let request = lock(&kept.carrier().0).clone();
        let ask = |number: u64| {
            let mut stream = here.connect(target.address(), TIMEOUT).expect("connected");
            stream.write_all(&9_u64.to_le_bytes()).expect("sent");
            let length = (NUMBER_BYTES + request.len()) as u32;
            let frame = [&length.to_le_bytes()[..], &number.to_le_bytes(), &request].concat();
            stream.write_all(&frame).expect("sent");
            let mut answer = Vec::new();
            read_frame(&mut stream, &mut answer).ok().filter(|whole| *whole).map(|_| answer)
        };
        let first = ask(1).expect("an answer");
        assert_eq!(ask(1).as_ref(), Some(&first), "carried out twice it would be refused");
        assert_ne!(ask(2).expect("an answer"), first, "asked a second time it is refused");
        assert_eq!(ask(1), None);
        assert_eq!(ask(7), None);
    }
}
