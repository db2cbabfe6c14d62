//! The component that serves: every change is made on its volume and recorded for the others in the same order; syncs wait
//! for them.
//!
//! One lock makes the order; it is held while a change is made and recorded, not while anybody waits. Beside `fuse` the
//! only file that reads a clock, because waiting has an end; what follows from the time is decided in `peers`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::files::Files;
use crate::mirror::dirt::{Dirt, Piece};
use crate::mirror::extents::ExtentLog;
use crate::mirror::incoming::Answer;
use crate::mirror::operation::{Message, New, Operation, framed};
use crate::mirror::peers::{Mark, Occurrence, PeerState, Peers, PieceFor, Policy};
use crate::store::{Seek, Space, Store};
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope, Volume, refusal};

/// Bytes copied at once to a component that is catching up: the serving volume is locked while they are read.
const PIECE_BYTES: u64 = 128 << 10;
/// Bytes that a change takes beside its content, for the buffer's account.
const CHANGE_BYTES: u64 = 64;
/// How often somebody who waits looks whether a component has been silent for too long.
const LOOK: Duration = Duration::from_millis(50);

/// Objects are numbered in each generation from so many bits on.
const GENERATION_SHIFT: u32 = 40;

/// A message as it goes over the wire.
pub type Frame = Arc<[u8]>;

/// What a sender is to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Send this.
    Send(Frame),
    /// Nothing to send for the moment.
    Wait,
    /// The connection is given up.
    Over,
}

/// A volume that serves, and tells the other components.
pub struct Mirror<S: Store> {
    volume: Arc<Volume<S>>,
    extents: Option<Arc<ExtentLog>>,
    order: Mutex<Order>,
    /// There is something to send.
    to_send: Condvar,
    /// Somebody answered, or is not waited for any more.
    answered: Condvar,
    began: Instant,
}

#[derive(Debug)]
struct Order {
    peers: Peers,
    /// Nobody waits any more: what would have to is refused.
    is_over: bool,
}

fn frame_of(operation: Operation<'_>) -> impl FnOnce(u64) -> Frame {
    move |sequence| {
        let room = operation.payload_bytes();
        // Only running out of memory could keep numbers and bytes from being encoded.
        framed(&Message { sequence, operation }, room).map(Arc::from).unwrap_or_default()
    }
}

fn begin(sequence: u64) -> Frame {
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
        let order = Mutex::new(Order { peers: Peers::new(policy, lacking), is_over: false });
        let (to_send, answered) = (Condvar::new(), Condvar::new());
        Mirror { volume, extents, order, to_send, answered, began: Instant::now() }
    }

    fn order(&self) -> MutexGuard<'_, Order> {
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
    /// number.
    pub fn connect(&self, peer: usize, lost: &Dirt) -> u64 {
        let now = self.now();
        let connection = self.order().peers.connect(peer, lost, (now, begin));
        self.to_send.notify_all();
        connection
    }

    /// A connection broke.
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
        loop {
            if order.is_over || !order.peers.is_current(peer, connection) {
                return Next::Over;
            }
            self.copy_a_piece(&mut order, peer);
            if let Some(frame) = order.peers.pop(peer) {
                return Next::Send(frame);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Wait;
            }
            order = self.to_send.wait_timeout(order, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Queues the next piece of what a component lacks, where it is its turn.
    fn copy_a_piece(&self, order: &mut Order, peer: usize) {
        let now = self.now();
        loop {
            match order.peers.piece_for(peer, PIECE_BYTES, |number| self.volume.size_of(number)) {
                PieceFor::Nothing => return,
                PieceFor::AllIsSent => return order.peers.finish(peer, now, frame_of(Operation::End)),
                PieceFor::This(piece @ Piece::Object(number)) => {
                    // What is gone leaves with its name.
                    let Some(image) = self.volume.image(number) else {
                        order.peers.skip(peer, number);
                        continue;
                    };
                    return order.peers.copy(peer, piece, (256, now), frame_of(Operation::Object(image)));
                }
                PieceFor::This(piece @ Piece::Content { number, from, to }) => {
                    let mut content = vec![0; usize::try_from(to - from).unwrap_or(0)];
                    let read = match self.volume.read(number, from, &mut content) {
                        Ok(read) => read,
                        // What is no file here any more is not for this component to have.
                        Err(Refusal::ESTALE | Refusal::EISDIR | Refusal::EINVAL) => continue,
                        // What cannot be read now is still lacking there: without it the component is not live.
                        Err(_) => return order.peers.put_back(peer, piece),
                    };
                    content.truncate(read);
                    let bytes = read as u64;
                    let operation = Operation::Content { number, from, content: &content };
                    return order.peers.copy(peer, piece, (bytes, now), frame_of(operation));
                }
            }
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

    /// How long a component has been away; `None` while it is connected.
    #[must_use]
    pub fn away_for(&self, peer: usize) -> Option<Duration> {
        let now = self.now();
        self.order().peers.away_since(peer).map(|since| now.saturating_sub(since))
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

    /// The order, as soon as there is room in every component's buffer.
    fn with_room(&self) -> Result<MutexGuard<'_, Order>, Refusal> {
        self.wait_until(|peers| peers.has_room())
    }

    fn wait_until(&self, done: impl Fn(&Peers) -> bool) -> Result<MutexGuard<'_, Order>, Refusal> {
        let mut order = self.order();
        loop {
            if order.is_over {
                return Err(Refusal::EIO);
            }
            if done(&order.peers) {
                return Ok(order);
            }
            order = self.answered.wait_timeout(order, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if order.peers.give_up_the_silent(self.now()) {
                self.answered.notify_all();
                self.to_send.notify_all();
            }
        }
    }

    /// Makes a change here and records it. What may be half done is in doubt.
    fn change_and_record<'a, T>(
        &self,
        marks: impl FnOnce(&Volume<S>) -> Vec<Mark>,
        change: impl FnOnce(&Volume<S>) -> Result<T, Refusal>,
        (operation, may_be_half_done): (impl FnOnce(&T) -> (Operation<'a>, Vec<Mark>), bool),
    ) -> Result<T, Refusal> {
        let mut order = self.with_room()?;
        let mut marks = marks(&self.volume);
        let now = self.now();
        match change(&self.volume) {
            Ok(done) => {
                let (operation, further) = operation(&done);
                marks.extend(further);
                let bytes = match &operation {
                    Operation::Write { content, .. } => CHANGE_BYTES + content.len() as u64,
                    _ => CHANGE_BYTES,
                };
                order.peers.record(&marks, (bytes, now), frame_of(operation));
                let anybody = order.peers.any_connected();
                drop(order);
                if anybody {
                    self.to_send.notify_all();
                }
                Ok(done)
            }
            Err(refusal) => {
                if may_be_half_done {
                    order.peers.doubt(&marks, now, begin);
                }
                Err(refusal)
            }
        }
    }

    /// Records a sync without waiting. Returns its number.
    fn record_sync(&self, number: u64, scope: Scope) -> u64 {
        let now = self.now();
        let operation = Operation::Sync { number, scope };
        let sequence = self.order().peers.record(&[], (CHANGE_BYTES, now), frame_of(operation));
        self.to_send.notify_all();
        sequence
    }
}

impl<S: Store> std::fmt::Debug for Mirror<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mirror").field("order", &self.order).finish_non_exhaustive()
    }
}

/// The range by which a file's size changes.
fn stretch(number: u64, old: Option<u64>, new: u64) -> Mark {
    let old = old.unwrap_or(new);
    Mark::Content(number, old.min(new), old.max(new))
}

/// An object that may lose its last name, and with it its content, which another that comes to serve may still have.
fn whole(number: u64) -> Mark {
    Mark::Content(number, 0, u64::MAX)
}

/// The range that a write changes: beyond the file's end, what lies between becomes zeros, and another may hold there what
/// was before the file was cut.
fn reach<S: Store>(volume: &Volume<S>, number: u64, offset: u64, end: u64) -> Mark {
    Mark::Content(number, volume.size_of(number).map_or(offset, |size| offset.min(size)), end)
}

impl<S: Store> Files for Mirror<S> {
    fn look_up(&self, directory: u64, name: &OsStr) -> Result<Status, Refusal> {
        self.volume.look_up(directory, name)
    }

    fn forget(&self, number: u64, times: u64) {
        self.volume.forget(number, times);
    }

    fn status(&self, number: u64) -> Result<Status, Refusal> {
        self.volume.status(number)
    }

    fn change(&self, number: u64, change: &Change, now: SystemTime) -> Result<Status, Refusal> {
        self.change_and_record(
            |volume| match change.size {
                Some(size) => vec![stretch(number, volume.size_of(number), size)],
                None => vec![Mark::Object(number)],
            },
            |volume| volume.change(number, change, now),
            (|_| (Operation::Change { number, change: *change, now }, Vec::new()), change.size.is_some()),
        )
    }

    fn make(
        &self,
        directory: u64,
        name: &OsStr,
        new: &NewInode,
        attributes: Attributes,
    ) -> Result<Status, Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(directory)],
            |volume| volume.make(directory, name, new, attributes),
            (
                |made: &Status| {
                    let (number, name, new) = (made.inode, name.as_bytes(), New::of(new));
                    let operation = Operation::Make { directory, name, number, new, attributes };
                    (operation, vec![Mark::Object(number)])
                },
                false,
            ),
        )
    }

    fn link(&self, number: u64, directory: u64, name: &OsStr, now: SystemTime) -> Result<Status, Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(directory), Mark::Object(number)],
            |volume| volume.link(number, directory, name, now),
            (|_| (Operation::Link { number, directory, name: name.as_bytes(), now }, Vec::new()), false),
        )
    }

    fn remove(
        &self,
        directory: u64,
        name: &OsStr,
        is_directory: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |volume| {
                let removed = volume.number_of(directory, name).map(whole);
                [Some(Mark::Object(directory)), removed].into_iter().flatten().collect()
            },
            |volume| volume.remove(directory, name, is_directory, now),
            (
                |()| {
                    let name = name.as_bytes();
                    (Operation::Remove { directory, name, is_directory, now }, Vec::new())
                },
                false,
            ),
        )
    }

    fn rename(
        &self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        kind: RenameKind,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |volume| {
                let moved = volume.number_of(from.0, from.1);
                let replaced = volume.number_of(to.0, to.1).map(whole);
                let objects = [Some(from.0), Some(to.0), moved].into_iter().flatten().map(Mark::Object);
                objects.chain(replaced).collect()
            },
            |volume| volume.rename(from, to, kind, now),
            (
                |()| {
                    let (directory, name) = (from.0, from.1.as_bytes());
                    let (new_directory, new_name) = (to.0, to.1.as_bytes());
                    let operation = Operation::Rename { directory, name, new_directory, new_name, kind, now };
                    (operation, Vec::new())
                },
                false,
            ),
        )
    }

    fn target(&self, number: u64) -> Result<OsString, Refusal> {
        self.volume.target(number)
    }

    fn list(&self, directory: u64) -> Result<Vec<(OsString, u64, Kind)>, Refusal> {
        self.volume.list(directory)
    }

    fn extended(&self, number: u64, name: &OsStr) -> Result<Vec<u8>, Refusal> {
        self.volume.extended(number, name)
    }

    fn list_extended(&self, number: u64) -> Result<Vec<OsString>, Refusal> {
        self.volume.list_extended(number)
    }

    fn set_extended(
        &self,
        number: u64,
        name: &OsStr,
        value: Option<&[u8]>,
        must_exist: Option<bool>,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.change_and_record(
            |_| vec![Mark::Object(number)],
            |volume| volume.set_extended(number, name, value, must_exist, now),
            (
                |()| {
                    let name = name.as_bytes();
                    (Operation::SetExtended { number, name, value, now }, Vec::new())
                },
                false,
            ),
        )
    }

    fn space(&self) -> Result<Space, Refusal> {
        self.volume.space()
    }

    fn open(&self, number: u64) -> Result<(), Refusal> {
        self.volume.open(number)
    }

    fn release(&self, number: u64) {
        self.volume.release(number);
    }

    fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal> {
        self.volume.read(number, offset, buffer)
    }

    fn write(
        &self,
        number: u64,
        offset: u64,
        content: &[u8],
        through: Option<Scope>,
        by_unprivileged: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(content.len() as u64).ok_or(Refusal::EFBIG)?;
        if let Some(log) = &self.extents {
            log.note(number, offset, content.len() as u64).map_err(|error| refusal(&error))?;
        }
        self.change_and_record(
            |volume| vec![reach(volume, number, offset, end)],
            |volume| volume.write(number, offset, content, None, by_unprivileged, now),
            (
                |()| {
                    let operation = Operation::Write { number, offset, content, by_unprivileged, now };
                    (operation, Vec::new())
                },
                true,
            ),
        )?;
        through.map_or(Ok(()), |scope| self.sync(number, scope))
    }

    fn allocate(
        &self,
        number: u64,
        mode: i32,
        offset: u64,
        bytes: u64,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes).ok_or(Refusal::EFBIG)?;
        self.change_and_record(
            |volume| vec![reach(volume, number, offset, end)],
            |volume| volume.allocate(number, mode, offset, bytes, now),
            (|()| (Operation::Allocate { number, mode, offset, bytes, now }, Vec::new()), true),
        )
    }

    fn seek(&self, number: u64, offset: u64, to: Seek) -> Result<u64, Refusal> {
        self.volume.seek(number, offset, to)
    }

    fn sync(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        // Said before it is done here, so that both happen at once; what comes in between is covered here as well.
        let sequence = self.record_sync(number, scope);
        self.volume.sync(number, scope)?;
        self.wait_until(|peers| peers.is_acknowledged(sequence)).map(drop)
    }

    fn interrupt(&self, interrupted: bool) {
        self.volume.interrupt(interrupted);
        if interrupted {
            self.stop_waiting();
        }
    }
}
