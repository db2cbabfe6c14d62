//! The component that serves: its connections to the others, what goes out to each next, and waiting for them. The changes
//! themselves are in `changes`.
//!
//! One lock makes the order; it is held while a change is made and recorded, not while anybody waits. Beside `fuse` the
//! only file that reads a clock, because waiting has an end; what follows from the time is decided in `peers`.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Refusal;
use crate::admission::{self, Turn};
use crate::dirt::{Dirt, Piece};
use crate::medium::Access;
use crate::mirror::extents::ExtentLog;
use crate::mirror::handing_over::Mover;
use crate::mirror::incoming::Answer;
use crate::mirror::operation::{Message, Operation, framed};
use crate::mirror::peers::{Mark, Occurrence, PeerState, Peers, PieceFor, Policy};
use crate::mirror::sync_times::{SyncTime, SyncTimes};
use crate::store::Store;
use crate::succession::{MOVED, Succession};
use crate::volume::Volume;
use crate::waits::elsewhere;

/// Bytes copied at once to a component that is catching up: the serving volume is locked while they are read.
const PIECE_BYTES: u64 = 128 << 10;
/// How often somebody who waits looks whether a component has been silent for too long.
const LOOK: Duration = Duration::from_millis(50);

/// Objects are numbered in each generation from so many bits on.
const GENERATION_SHIFT: u32 = 40;

/// A message as it goes over the wire.
pub type Frame = Arc<[u8]>;

/// What a sender is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Send(Frame),
    /// Nothing to send for the moment.
    Wait,
    /// The connection is given up.
    Over,
}

/// A volume that serves, and tells the other components.
pub struct Mirror<S: Store> {
    pub(crate) volume: Arc<Volume<S>>,
    pub(crate) extents: Option<Arc<ExtentLog>>,
    order: Mutex<Order>,
    /// There is something to send.
    pub(crate) to_send: Condvar,
    /// Somebody answered, or is not waited for any more.
    pub(crate) answered: Condvar,
    began: Instant,
    /// Finds another to serve, when the disk of this component refuses.
    pub(crate) mover: Mutex<Option<Mover>>,
    pub(crate) succession: Succession,
    pub(crate) sync_times: SyncTimes,
}

#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) peers: Peers,
    /// Nobody waits any more: what would have to is refused.
    pub(crate) is_over: bool,
    /// Another is about to serve: changes wait until that is decided.
    pub(crate) is_handing_over: bool,
    /// Nothing is said to the others any more.
    pub(crate) is_silent: bool,
    /// Changes that the disk refused, of which it is not decided who does them: what they may have left here of which the
    /// others know nothing, and that of those which may be half done.
    pub(crate) refused: (Dirt, Vec<Mark>),
}

pub(crate) fn frame_of(operation: Operation<'_>) -> impl FnOnce(u64) -> Frame {
    move |sequence| {
        let room = operation.payload_bytes();
        // Only running out of memory could keep numbers and bytes from being encoded.
        framed(&Message { sequence, operation }, room).map(Arc::from).unwrap_or_default()
    }
}

pub(crate) fn begin(sequence: u64) -> Frame {
    frame_of(Operation::Begin)(sequence)
}

impl<S: Store> Mirror<S> {
    /// Serves from a volume; of the other components each lacks what is marked for it, and none is connected. `generation`
    /// counts how often another component has begun to serve: one that did not know of all objects there were must not give
    /// their numbers to others. What is written is noted in `extents`.
    #[must_use]
    pub fn new(
        volume: Arc<Volume<S>>,
        policy: Policy,
        lacking: Vec<Dirt>,
        generation: u64,
        extents: Option<Arc<ExtentLog>>,
    ) -> Mirror<S> {
        volume.lock().tree.number_from(generation << GENERATION_SHIFT);
        let order = Mutex::new(Order {
            peers: Peers::new(policy, lacking),
            is_over: false,
            is_handing_over: false,
            is_silent: false,
            refused: (Dirt::new(), Vec::new()),
        });
        Mirror {
            volume,
            extents,
            order,
            to_send: Condvar::new(),
            answered: Condvar::new(),
            began: Instant::now(),
            mover: Mutex::default(),
            succession: Succession::default(),
            sync_times: SyncTimes::default(),
        }
    }

    pub(crate) fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since it began to serve.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A further component that lacks everything. Returns its number.
    pub fn add_empty(&self) -> usize {
        let mut order = self.order();
        order.peers.add(self.volume.everything())
    }

    /// A connection to a component stands; its power-offs took back what is marked in `lost`. Returns the connection's
    /// number; `None` when nothing is said from here any more, and then nobody knows of what is lost.
    pub fn connect(&self, peer: usize, lost: &Dirt) -> Option<u64> {
        let now = self.now();
        let mut order = self.order();
        if order.is_over || order.is_silent {
            return None;
        }
        let connection = order.peers.connect(peer, lost, (now, begin));
        drop(order);
        self.to_send.notify_all();
        Some(connection)
    }

    /// Forgets what a peer had asked by a connection that is no more.
    pub fn connection_broke(&self, peer: usize, connection: u64) {
        let now = self.now();
        let mut order = self.order();
        if order.is_over {
            // What had been reached when service ended is for the end to tell.
            return;
        }
        order.peers.connection_broke(peer, connection, now);
        drop(order);
        self.to_send.notify_all();
        self.answered.notify_all();
    }

    /// A component answered on a connection.
    pub fn answered(&self, peer: usize, connection: u64, answer: Answer) {
        let now = self.now();
        self.order().peers.answered(peer, connection, answer, now);
        self.answered.notify_all();
        // There may be room for more.
        self.to_send.notify_all();
    }

    /// What to send on a connection, waiting for it for `patience` at most.
    #[must_use]
    pub fn next(&self, peer: usize, connection: u64, patience: Duration) -> Next {
        let mut order = self.order();
        let deadline = Instant::now() + patience;
        let mut was_asked = false;
        loop {
            if order.is_over || order.is_silent || !order.peers.is_current(peer, connection) {
                return Next::Over;
            }
            if let Some(access) = self.copy_a_piece(&mut order, peer, was_asked) {
                drop(order);
                // One that is refused is missed below as well: what it lacks stays marked.
                was_asked = elsewhere(|| self.volume.store().admit(access)).is_ok();
                order = self.order();
                if was_asked {
                    continue;
                }
            }
            was_asked = false;
            if let Some(frame) = order.peers.pop(peer) {
                return Next::Send(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Wait;
            }
            let waited = elsewhere(|| self.to_send.wait_timeout(order, left));
            order = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Queues the next piece of what a component lacks, where it is its turn; or says what its disk must be asked first, which
    /// takes as long as the disk takes.
    fn copy_a_piece(&self, order: &mut Order, peer: usize, was_asked: bool) -> Option<Access> {
        let now = self.now();
        loop {
            match order.peers.piece_for(peer, PIECE_BYTES, |number| self.volume.size_of(number)) {
                PieceFor::Nothing => return None,
                PieceFor::AllIsSent => order.peers.finish(peer, now, frame_of(Operation::End)),
                PieceFor::This(piece @ Piece::Object(number)) => {
                    // What is gone leaves with its name.
                    let Some(image) = self.volume.image(number) else {
                        order.peers.skip(peer, number);
                        continue;
                    };
                    order.peers.copy(peer, piece, (256, now), frame_of(Operation::Object(image)));
                }
                PieceFor::This(piece @ Piece::Content { number, from, to }) => {
                    let mut content = vec![0; usize::try_from(to - from).unwrap_or(0)];
                    let read = || self.volume.read(number, from, &mut content);
                    let read = match admission::in_turn(was_asked, read) {
                        Turn::Asks(access) => {
                            order.peers.put_back(peer, piece);
                            return Some(access);
                        }
                        Turn::Over(Ok(read)) => read,
                        // What is no file here any more is not for this component to have.
                        Turn::Over(Err(Refusal::ESTALE | Refusal::EISDIR | Refusal::EINVAL)) => continue,
                        // What cannot be read now is still lacking there: without it the component is not live.
                        Turn::Over(Err(_)) => {
                            order.peers.put_back(peer, piece);
                            return None;
                        }
                    };
                    content.truncate(read);
                    let operation = Operation::Content { number, from, content: &content };
                    order.peers.copy(peer, piece, (read as u64, now), frame_of(operation));
                }
            }
            return None;
        }
    }

    /// Gives up components that have been silent for too long.
    pub fn give_up_the_silent(&self) {
        let now = self.now();
        if self.order().peers.give_up_the_silent(now) {
            self.answered.notify_all();
            self.to_send.notify_all();
        }
    }

    /// How a component stands.
    #[must_use]
    pub fn state(&self, peer: usize) -> PeerState {
        let now = self.now();
        self.order().peers.state(peer, now, |number| self.volume.size_of(number))
    }

    /// How long a component that is away has not been live; `None` while it is connected.
    #[must_use]
    pub fn missed_for(&self, peer: usize) -> Option<Duration> {
        let now = self.now();
        self.order().peers.missed_since(peer).map(|since| now.saturating_sub(since))
    }

    /// How long the syncs took that were acknowledged since this was last asked.
    #[must_use]
    pub fn take_sync_times(&self) -> Vec<SyncTime> {
        self.sync_times.take()
    }

    /// What has happened since this was last asked.
    #[must_use]
    pub fn take_occurrences(&self) -> Vec<Occurrence> {
        self.order().peers.take_occurrences()
    }

    /// From here on whoever waits is refused, and so is what would have to wait: first of a power-off, because a process
    /// that waits cannot be killed.
    pub fn stop_waiting(&self) {
        self.order().is_over = true;
        self.answered.notify_all();
        self.to_send.notify_all();
    }

    /// What a component has carried out when no more can reach it, after [`Mirror::stop_waiting`]: only what is beyond that is
    /// lacking. Zero when nothing of the present connection has.
    pub fn heard_last(&self, peer: usize, applied: u64) {
        let now = self.now();
        self.order().peers.heard_last(peer, Answer { received: applied, applied }, now);
    }

    /// Ends service: nothing is sent any more. Returns what each of the others lacks, or may lack.
    #[must_use]
    pub fn end(&self) -> Vec<Dirt> {
        self.stop_waiting();
        let now = self.now();
        self.order().peers.lacking(now)
    }

    /// The order, as soon as there is room in every component's buffer, and as long as service stays here.
    pub(crate) fn with_room(&self) -> Result<MutexGuard<'_, Order>, Refusal> {
        self.wait_until(|order| !order.is_handing_over && order.peers.has_room())
    }

    /// Waits for something.
    ///
    /// # Errors
    /// `EIO` when service ends, [`MOVED`] when it has moved.
    pub(crate) fn wait_until(&self, done: impl Fn(&Order) -> bool) -> Result<MutexGuard<'_, Order>, Refusal> {
        let mut order = self.order();
        loop {
            if self.succession.next().is_some() {
                return Err(MOVED);
            }
            if order.is_over {
                return Err(Refusal::EIO);
            }
            if done(&order) {
                return Ok(order);
            }
            let waited = elsewhere(|| self.answered.wait_timeout(order, LOOK));
            order = waited.unwrap_or_else(PoisonError::into_inner).0;
            if order.peers.give_up_the_silent(self.now()) {
                self.answered.notify_all();
                self.to_send.notify_all();
            }
        }
    }
}

impl<S: Store> std::fmt::Debug for Mirror<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").field("order", &self.order).finish_non_exhaustive()
    }
}
