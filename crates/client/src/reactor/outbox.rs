//! Questions of many sessions on one thread, sent together at the end of a round instead of one by one.
//!
//! Owns when small messages leave, not what they say. Each send wakes a server process, and on a machine that carries
//! the servers as well the sender is then often put aside for it, once per send. Sent together by one call into the
//! kernel (io_uring, where the machine allows it; one after another where not) the whole round leaves first, and the
//! answers are read in rounds too: docs/performance.md has the figures.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::rc::Rc;
use std::task::Waker;

use bytes::BytesMut;
use io_uring::{IoUring, opcode, types};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

/// Letters that one call into the kernel takes.
const RING_ENTRIES: u32 = 128;

/// Larger messages go straight to their socket: a socket whose last question has been answered takes this much at once.
pub(crate) const LARGEST_LETTER_BYTES: usize = 16 << 10;

thread_local! {
    static OUTBOX: RefCell<Option<Outbox>> = const { RefCell::new(None) };
}

/// What became of a message handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Nothing was handed over, or all of it has left.
    Gone,
    /// It waits for the next [`flush`].
    Waiting,
    /// Only so many bytes have left; the rest is still in the letter.
    Stuck(usize),
    /// It could not be sent; part of it may have left.
    Failed(Errno),
}

/// One socket's message on its way. Shared between the socket's owner and the outbox.
#[derive(Debug)]
pub(crate) struct Letter {
    /// Negative once the owner has gone: a closed descriptor's number may be another's by the time of the flush.
    socket: Cell<RawFd>,
    pub(crate) bytes: RefCell<BytesMut>,
    pub(crate) fate: Cell<Fate>,
    /// Woken only when something went wrong: a good end is told by the answer.
    owner: RefCell<Option<Waker>>,
}

impl Letter {
    pub(crate) fn of(socket: RawFd) -> Rc<Self> {
        Rc::new(Letter {
            socket: Cell::new(socket),
            bytes: RefCell::new(BytesMut::new()),
            fate: Cell::new(Fate::Gone),
            owner: RefCell::new(None),
        })
    }

    /// The owner closes its socket: what still waits is not sent any more.
    pub(crate) fn withdraw(&self) {
        self.socket.set(-1);
    }

    fn settle(&self, outcome: Result<usize, Errno>) {
        let length = self.bytes.borrow().len();
        match outcome {
            Ok(sent) if sent >= length => {
                self.fate.set(Fate::Gone);
                return;
            }
            Ok(sent) => self.fate.set(Fate::Stuck(sent)),
            Err(Errno::AGAIN) => self.fate.set(Fate::Stuck(0)),
            Err(errno) => self.fate.set(Fate::Failed(errno)),
        }
        if let Some(owner) = self.owner.borrow_mut().take() {
            owner.wake();
        }
    }

    fn send_alone(&self) {
        // SAFETY: the number is that of the owner's open socket: before it closes it, it withdraws the letter, and a
        // withdrawn letter is not sent.
        let socket = unsafe { BorrowedFd::borrow_raw(self.socket.get()) };
        let outcome = send(socket, &self.bytes.borrow(), flags());
        self.settle(outcome);
    }
}

struct Outbox {
    letters: Vec<Rc<Letter>>,
    ring: Option<IoUring>,
}

/// Makes this thread's sessions send together, until [`remove`].
pub(super) fn install() {
    let outbox = Outbox { letters: Vec::new(), ring: ring().ok() };
    OUTBOX.with_borrow_mut(|place| place.replace(outbox));
}

/// Sends what still waits; from now on every session sends for itself.
pub(super) fn remove() {
    flush();
    OUTBOX.with_borrow_mut(Option::take);
}

/// The flags spare the kernel an interrupt of ours for each completion; kernels before 5.19 do not know them.
fn ring() -> io::Result<IoUring> {
    let quiet = IoUring::builder().setup_coop_taskrun().build(RING_ENTRIES);
    quiet.or_else(|_| IoUring::new(RING_ENTRIES))
}

/// Hands a message over: `bytes` is swapped with the letter's old, empty buffer. False, and nothing is changed, where
/// this thread has no outbox.
pub(crate) fn post(letter: &Rc<Letter>, bytes: &mut BytesMut, owner: &Waker) -> bool {
    OUTBOX.with_borrow_mut(|outbox| {
        let Some(outbox) = outbox else { return false };
        let mut place = letter.bytes.borrow_mut();
        place.clear();
        std::mem::swap(&mut *place, bytes);
        letter.fate.set(Fate::Waiting);
        let mut known = letter.owner.borrow_mut();
        if !known.as_ref().is_some_and(|known| known.will_wake(owner)) {
            *known = Some(owner.clone());
        }
        outbox.letters.push(Rc::clone(letter));
        true
    })
}

/// Sends everything handed over on this thread since the last call. To be called whenever the thread is about to wait.
pub(super) fn flush() {
    OUTBOX.with_borrow_mut(|outbox| {
        if let Some(outbox) = outbox.as_mut().filter(|outbox| !outbox.letters.is_empty()) {
            outbox.flush();
        }
    });
}

impl Outbox {
    fn flush(&mut self) {
        self.letters.retain(|letter| letter.socket.get() >= 0);
        match &mut self.ring {
            Some(ring) if self.letters.len() > 1 => {
                if let Err(errno) = send_through(ring, &self.letters) {
                    // Whether those without an answer have left cannot be known, and the ring is good for nothing any
                    // more.
                    let lost = self.letters.iter().filter(|letter| letter.fate.get() == Fate::Waiting);
                    lost.for_each(|letter| letter.settle(Err(errno)));
                    self.ring = None;
                }
            }
            _ => self.letters.iter().for_each(|letter| letter.send_alone()),
        }
        self.letters.clear();
    }
}

fn flags() -> SendFlags {
    SendFlags::NOSIGNAL | SendFlags::DONTWAIT
}

fn send_through(ring: &mut IoUring, letters: &[Rc<Letter>]) -> Result<(), Errno> {
    for round in letters.chunks(RING_ENTRIES as usize) {
        for (place, letter) in round.iter().enumerate() {
            let bytes = letter.bytes.borrow();
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fd(letter.socket.get()), bytes.as_ptr(), length)
                .flags(flags().bits().cast_signed())
                .build()
                .user_data(place as u64);
            // SAFETY: the bytes stay where they are until their completion has been seen below: `letters` holds each
            // letter, and a letter's buffer is only touched by its owner once its fate is told.
            if unsafe { ring.submission().push(&entry) }.is_err() {
                return Err(Errno::BUSY);
            }
        }
        let mut open = round.len();
        while open > 0 {
            // The sockets do not block, so that every send is over when the call returns.
            match ring.submit_and_wait(open) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
            for completion in ring.completion() {
                let place = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
                let result = completion.result();
                let outcome =
                    usize::try_from(result).map_err(|_| Errno::from_raw_os_error(result.saturating_neg()));
                if let Some(letter) = round.get(place) {
                    letter.settle(outcome);
                }
                open = open.saturating_sub(1);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// Posts one message to each of `count` sockets and reads what came out at the other ends.
    fn round_trip(count: usize, without_ring: bool) {
        install();
        if without_ring {
            OUTBOX.with_borrow_mut(|outbox| outbox.as_mut().expect("installed").ring = None);
        }
        let pairs: Vec<_> = (0..count).map(|_| UnixStream::pair().expect("sockets")).collect();
        let letters: Vec<_> = pairs.iter().map(|(ours, _)| Letter::of(ours.as_raw_fd())).collect();
        for round in 0..3 {
            for (place, letter) in letters.iter().enumerate() {
                let mut bytes = BytesMut::from(format!("{round} {place:3}").as_bytes());
                assert!(post(letter, &mut bytes, Waker::noop()));
                assert_eq!(letter.fate.get(), Fate::Waiting);
            }
            flush();
            for (place, (_, theirs)) in pairs.iter().enumerate() {
                let mut seen = [0; 5];
                (&mut &*theirs).read_exact(&mut seen).expect("message");
                assert_eq!(seen, format!("{round} {place:3}").as_bytes());
                assert_eq!(letters[place].fate.get(), Fate::Gone);
            }
        }
        remove();
        assert!(!post(&letters[0], &mut BytesMut::new(), Waker::noop()), "no outbox is left");
    }

    #[test]
    fn every_message_arrives_once_whether_alone_in_a_round_or_more_than_a_ring_holds() {
        for count in [1, 2, 300] {
            round_trip(count, false);
            round_trip(count, true);
        }
    }

    #[test]
    fn what_cannot_leave_is_told_and_what_was_withdrawn_is_not_sent() {
        install();
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("non-blocking");
        let check = |letters: &[&Rc<Letter>], length: usize| {
            for letter in letters {
                assert!(post(letter, &mut BytesMut::zeroed(length), Waker::noop()));
            }
            flush();
            letters.iter().map(|letter| letter.fate.get()).collect::<Vec<_>>()
        };
        let (full, nowhere) = (Letter::of(ours.as_raw_fd()), Letter::of(i32::MAX));
        let fates = check(&[&full, &nowhere], 8 << 20);
        assert!(matches!(fates[0], Fate::Stuck(sent) if sent < 8 << 20), "{fates:?}");
        assert_eq!(fates[1], Fate::Failed(Errno::BADF));
        assert_eq!(check(&[&full], 1), [Fate::Stuck(0)]);
        drop(theirs);
        assert_eq!(check(&[&full], 1), [Fate::Failed(Errno::PIPE)]);
        full.withdraw();
        assert_eq!(check(&[&full], 1), [Fate::Waiting]);
        remove();
    }
}
