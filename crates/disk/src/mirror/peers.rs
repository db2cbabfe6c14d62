//! What is under way to each of the other components, what each lacks, and whom an acknowledgement waits for.
//!
//! Pure: told the time, touches no volume and sends nothing.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::dirt::{Dirt, Piece};
use crate::mirror::incoming::Answer;

/// When a sync is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    /// When every live component has made it durable.
    Sync,
    /// When every live component has received it.
    Semi,
    /// When the serving component has made it durable.
    Async,
}

/// How components are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// When a sync is acknowledged.
    pub acknowledge: Acknowledge,
    /// Bytes under way to a component before changes wait.
    pub buffer_bytes: u64,
    /// How long a sign of a component is waited for while something is under way to it.
    pub timeout: Duration,
}

/// How a component stands to the one that serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Not connected; what changes is marked.
    Away,
    /// Being sent what it lacks.
    CatchingUp,
    /// Has been sent all; its answer to this message is awaited, as are those to syncs.
    Finishing(u64),
    /// Has all that was acknowledged, or is waited for.
    Live,
}

/// What a component lacks and what is under way to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeerState {
    /// How it stands.
    pub standing: Standing,
    /// Bytes sent or to be sent and not known to be carried out.
    pub lag_bytes: u64,
    /// Age of the oldest of them.
    pub lag: Duration,
    /// Bytes that are marked, or were and are under way.
    pub bytes_left: u64,
    /// Bytes sent to it as changes.
    pub bytes_replicated: u64,
    /// Bytes sent to it to catch up.
    pub bytes_copied: u64,
}

/// Something that happened to a component.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// When.
    pub at: Duration,
    /// Which of the others.
    pub peer: usize,
    /// How it stands since.
    pub standing: Standing,
    /// Why, where there is more to say.
    pub why: Option<Reason>,
}

/// Why a component is no longer served as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It has connected anew.
    NewConnection,
    ConnectionBroke,
    /// A change failed and may have been made in part.
    ChangeHalfDone,
    /// It gave no sign for too long.
    Silent,
    /// The serving component serves no more.
    ServiceEnded,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NewConnection => "a new connection",
            Reason::ConnectionBroke => "its connection broke",
            Reason::ChangeHalfDone => "a change failed half done",
            Reason::Silent => "it stopped answering",
            Reason::ServiceEnded => "service ended",
        })
    }
}

/// What a change touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    Object(u64),
    Content(u64, u64, u64),
    /// A range of a file that was sent for itself.
    ContentAlone(u64, u64, u64),
}

impl Mark {
    fn number(&self) -> u64 {
        match self {
            Mark::Object(number) | Mark::Content(number, ..) | Mark::ContentAlone(number, ..) => *number,
        }
    }

    pub(crate) fn mark_in(&self, dirt: &mut Dirt) {
        match *self {
            Mark::Object(number) => dirt.mark_object(number),
            Mark::Content(number, from, to) => dirt.mark_content(number, from, to),
            Mark::ContentAlone(number, from, to) => dirt.mark_content_alone(number, from, to),
        }
    }
}

#[derive(Debug)]
struct UnderWay {
    sequence: u64,
    at: Duration,
    bytes: u64,
    marks: Vec<Mark>,
    is_copy: bool,
}

#[derive(Debug)]
struct Peer {
    standing: Standing,
    /// Counts connections, so that what an earlier one says is not taken for the present one's.
    connection: u64,
    /// Frames to be sent, and whether each is a copy.
    queue: VecDeque<(Arc<[u8]>, bool)>,
    copies_queued: usize,
    under_way: VecDeque<UnderWay>,
    under_way_bytes: u64,
    copying_bytes: u64,
    answer: Answer,
    sign_at: Duration,
    /// Since when it has not been live: one that is reached and reports an error is missed like one that is not.
    missed_since: Duration,
    dirt: Dirt,
    /// What was marked and is settled by the end of catching up alone: gone on the serving component, or beyond a file's
    /// end.
    unsettled: Dirt,
    bytes_replicated: u64,
    bytes_copied: u64,
}

impl Peer {
    /// Whether it has given a sign on this connection. One whose disk does not answer takes a connection as any other does;
    /// were it sent changes, its buffer would fill and everybody wait for it, again with each connection.
    fn has_answered(&self) -> bool {
        self.answer.applied > 0
    }
}

/// All other components of a volume.
#[derive(Debug)]
pub(crate) struct Peers {
    policy: Policy,
    next: u64,
    peers: Vec<Peer>,
    occurrences: Vec<Occurrence>,
}

impl Peers {
    /// Each lacks what is marked for it, and none is connected.
    pub(crate) fn new(policy: Policy, lacking: Vec<Dirt>) -> Peers {
        let peer = |dirt| Peer {
            standing: Standing::Away,
            connection: 0,
            queue: VecDeque::new(),
            copies_queued: 0,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            copying_bytes: 0,
            answer: Answer::default(),
            sign_at: Duration::ZERO,
            missed_since: Duration::ZERO,
            dirt,
            unsettled: Dirt::new(),
            bytes_replicated: 0,
            bytes_copied: 0,
        };
        Peers { policy, next: 1, peers: lacking.into_iter().map(peer).collect(), occurrences: Vec::new() }
    }

    /// A further component, which lacks what is marked. Returns its number.
    pub(crate) fn add(&mut self, lacking: Dirt) -> usize {
        let mut other = Peers::new(self.policy, vec![lacking]);
        self.peers.append(&mut other.peers);
        self.peers.len() - 1
    }

    /// Whether anybody hears of changes at all.
    pub(crate) fn any_connected(&self) -> bool {
        self.peers.iter().any(|peer| peer.standing != Standing::Away)
    }

    fn occur(&mut self, at: Duration, peer: usize, why: Option<Reason>) {
        let standing = self.peers[peer].standing;
        self.occurrences.push(Occurrence { at, peer, standing, why });
    }

    /// What has happened since this was last asked.
    pub(crate) fn take_occurrences(&mut self) -> Vec<Occurrence> {
        std::mem::take(&mut self.occurrences)
    }

    /// A connection to a component stands. `lost` is marked in addition. Returns the connection's number.
    pub(crate) fn connect(
        &mut self,
        peer: usize,
        lost: &Dirt,
        (now, begin): (Duration, impl Fn(u64) -> Arc<[u8]>),
    ) -> u64 {
        self.part(peer, now, Reason::NewConnection);
        let sequence = self.sequence();
        let state = &mut self.peers[peer];
        state.dirt.add(lost);
        state.standing = Standing::CatchingUp;
        state.connection += 1;
        state.answer = Answer::default();
        state.sign_at = now;
        state.queue.push_back((begin(sequence), false));
        state.under_way.push_back(UnderWay { sequence, at: now, bytes: 0, marks: Vec::new(), is_copy: true });
        let connection = state.connection;
        self.occur(now, peer, None);
        connection
    }

    /// The connection is broken, or given up. What was under way may or may not have arrived.
    pub(crate) fn part(&mut self, peer: usize, now: Duration, why: Reason) {
        let state = &mut self.peers[peer];
        if state.standing == Standing::Away {
            return;
        }
        state.connection += 1;
        if state.standing == Standing::Live {
            state.missed_since = now;
        }
        state.standing = Standing::Away;
        state.queue.clear();
        state.copies_queued = 0;
        (state.under_way_bytes, state.copying_bytes) = (0, 0);
        state.dirt.add(&std::mem::take(&mut state.unsettled));
        for under_way in state.under_way.drain(..) {
            under_way.marks.iter().for_each(|mark| mark.mark_in(&mut state.dirt));
        }
        self.occur(now, peer, Some(why));
    }

    /// Parts with a component if this is still its connection.
    pub(crate) fn connection_broke(&mut self, peer: usize, connection: u64, now: Duration) {
        if self.is_current(peer, connection) {
            self.part(peer, now, Reason::ConnectionBroke);
        }
    }

    pub(crate) fn is_current(&self, peer: usize, connection: u64) -> bool {
        self.peers[peer].connection == connection && self.peers[peer].standing != Standing::Away
    }

    fn sequence(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A change has been made on the serving component: it goes to those who can understand it and is marked for the
    /// others. Returns its number.
    pub(crate) fn record(
        &mut self,
        marks: &[Mark],
        (bytes, now): (u64, Duration),
        frame: impl FnOnce(u64) -> Arc<[u8]>,
    ) -> u64 {
        let sequence = self.sequence();
        let mut frame = Some(frame);
        let mut made: Option<Arc<[u8]>> = None;
        for peer in &mut self.peers {
            let understands = match peer.standing {
                Standing::Away => false,
                Standing::CatchingUp if !peer.has_answered() => false,
                Standing::CatchingUp => !marks.iter().any(|mark| peer.dirt.holds_object(mark.number())),
                Standing::Finishing(_) | Standing::Live => true,
            };
            if !understands {
                marks.iter().for_each(|mark| mark.mark_in(&mut peer.dirt));
                continue;
            }
            if let Some(frame) = frame.take() {
                made = Some(frame(sequence));
            }
            let Some(made) = &made else { continue };
            peer.queue.push_back((made.clone(), false));
            let marks = marks.to_vec();
            peer.under_way.push_back(UnderWay { sequence, at: now, bytes, marks, is_copy: false });
            peer.under_way_bytes += bytes;
            peer.bytes_replicated += bytes;
        }
        sequence
    }

    /// Something went wrong on the serving component, which may have changed part: whoever is connected is sent it anew.
    pub(crate) fn doubt(&mut self, marks: &[Mark], now: Duration, begin: impl Fn(u64) -> Arc<[u8]>) {
        for number in 0..self.peers.len() {
            let sequence = self.sequence();
            let peer = &mut self.peers[number];
            marks.iter().for_each(|mark| mark.mark_in(&mut peer.dirt));
            if matches!(peer.standing, Standing::Live | Standing::Finishing(_)) {
                if peer.standing == Standing::Live {
                    peer.missed_since = now;
                }
                peer.standing = Standing::CatchingUp;
                peer.queue.push_back((begin(sequence), false));
                let marks = Vec::new();
                peer.under_way.push_back(UnderWay { sequence, at: now, bytes: 0, marks, is_copy: true });
                self.occur(now, number, Some(Reason::ChangeHalfDone));
            }
        }
    }

    /// What to copy next to a component that is catching up, where it is its turn. Copies take half of its buffer at most: if
    /// they filled it, each write would wait behind them for as long as there is anything to copy.
    pub(crate) fn piece_for(
        &mut self,
        peer: usize,
        most: u64,
        size: impl Fn(u64) -> Option<u64>,
    ) -> PieceFor {
        let share = self.policy.buffer_bytes / 2;
        let state = &mut self.peers[peer];
        let is_ready = state.standing == Standing::CatchingUp && state.has_answered();
        if !is_ready || state.copies_queued > 0 || state.under_way_bytes >= share {
            return PieceFor::Nothing;
        }
        let piece = state.dirt.take(most.min(share), size, &mut state.unsettled);
        piece.map_or(PieceFor::AllIsSent, PieceFor::This)
    }

    /// An object that was to be copied is gone: its names say so, and in the end it is gone there too.
    pub(crate) fn skip(&mut self, peer: usize, number: u64) {
        self.peers[peer].unsettled.mark_object(number);
    }

    /// A piece could not be had: it is still to be sent.
    pub(crate) fn put_back(&mut self, peer: usize, piece: Piece) {
        let dirt = &mut self.peers[peer].dirt;
        match piece {
            Piece::Object(number) => dirt.mark_object(number),
            Piece::Content { number, from, to } => dirt.mark_content_alone(number, from, to),
        }
    }

    /// A piece goes out: `frame` says it.
    pub(crate) fn copy(
        &mut self,
        peer: usize,
        piece: Piece,
        (bytes, now): (u64, Duration),
        frame: impl FnOnce(u64) -> Arc<[u8]>,
    ) {
        let mark = match piece {
            Piece::Object(number) => Mark::Object(number),
            Piece::Content { number, from, to } => Mark::ContentAlone(number, from, to),
        };
        self.push_copy(peer, vec![mark], (bytes, now), frame);
    }

    /// All is sent: `frame` says so.
    pub(crate) fn finish(&mut self, peer: usize, now: Duration, frame: impl FnOnce(u64) -> Arc<[u8]>) {
        let sequence = self.push_copy(peer, Vec::new(), (0, now), frame);
        self.peers[peer].standing = Standing::Finishing(sequence);
    }

    fn push_copy(
        &mut self,
        peer: usize,
        marks: Vec<Mark>,
        (bytes, now): (u64, Duration),
        frame: impl FnOnce(u64) -> Arc<[u8]>,
    ) -> u64 {
        let sequence = self.sequence();
        let state = &mut self.peers[peer];
        state.queue.push_back((frame(sequence), true));
        state.copies_queued += 1;
        state.under_way_bytes += bytes;
        state.copying_bytes += bytes;
        state.bytes_copied += bytes;
        state.under_way.push_back(UnderWay { sequence, at: now, bytes, marks, is_copy: true });
        sequence
    }

    /// Since when a component that is away has been missed.
    pub(crate) fn missed_since(&self, peer: usize) -> Option<Duration> {
        let state = &self.peers[peer];
        (state.standing == Standing::Away).then_some(state.missed_since)
    }

    /// Whether a component is live.
    pub(crate) fn is_live(&self, peer: usize) -> bool {
        self.peers[peer].standing == Standing::Live
    }

    /// Whether a component is live and has carried out everything.
    pub(crate) fn has_all(&self, peer: usize) -> bool {
        self.is_live(peer) && self.peers[peer].under_way.is_empty()
    }

    /// What goes out next to a component.
    pub(crate) fn pop(&mut self, peer: usize) -> Option<Arc<[u8]>> {
        let state = &mut self.peers[peer];
        let (frame, is_copy) = state.queue.pop_front()?;
        state.copies_queued -= usize::from(is_copy);
        Some(frame)
    }

    /// A component's answer.
    pub(crate) fn answered(&mut self, peer: usize, connection: u64, answer: Answer, now: Duration) {
        if !self.is_current(peer, connection) {
            return;
        }
        let state = &mut self.peers[peer];
        state.sign_at = now;
        state.answer.received = state.answer.received.max(answer.received).max(answer.applied);
        state.answer.applied = state.answer.applied.max(answer.applied);
        while let Some(first) = state.under_way.front().filter(|first| first.sequence <= state.answer.applied)
        {
            state.under_way_bytes = state.under_way_bytes.saturating_sub(first.bytes);
            if first.is_copy {
                state.copying_bytes = state.copying_bytes.saturating_sub(first.bytes);
            }
            state.under_way.pop_front();
        }
        if matches!(state.standing, Standing::Finishing(last) if state.answer.applied >= last) {
            state.standing = Standing::Live;
            state.unsettled = Dirt::new();
            self.occur(now, peer, None);
        }
    }

    /// A component's last answer, whichever connection it came by.
    pub(crate) fn heard_last(&mut self, peer: usize, answer: Answer, now: Duration) {
        let connection = self.peers[peer].connection;
        self.answered(peer, connection, answer, now);
    }

    /// Gives up components that give no sign. True when there was one.
    pub(crate) fn give_up_the_silent(&mut self, now: Duration) -> bool {
        let silent = |peer: &Peer, timeout: Duration| {
            let waits_since = peer.under_way.front().map(|first| first.at.max(peer.sign_at));
            peer.standing != Standing::Away && waits_since.is_some_and(|since| now >= since + timeout)
        };
        let timeout = self.policy.timeout;
        let given_up: Vec<usize> =
            (0..self.peers.len()).filter(|peer| silent(&self.peers[*peer], timeout)).collect();
        for peer in &given_up {
            self.part(*peer, now, Reason::Silent);
        }
        !given_up.is_empty()
    }

    /// Whether a sync with this number may be acknowledged, as far as the others are concerned.
    pub(crate) fn is_acknowledged(&self, sequence: u64) -> bool {
        self.peers.iter().all(|peer| match (peer.standing, self.policy.acknowledge) {
            (Standing::Away | Standing::CatchingUp, _) | (_, Acknowledge::Async) => true,
            (_, Acknowledge::Sync) => peer.answer.applied >= sequence,
            (_, Acknowledge::Semi) => peer.answer.received >= sequence,
        })
    }

    /// Whether there is room in every component's buffer.
    pub(crate) fn has_room(&self) -> bool {
        let full =
            |peer: &Peer| peer.standing != Standing::Away && peer.under_way_bytes > self.policy.buffer_bytes;
        !self.peers.iter().any(full)
    }

    pub(crate) fn state(&self, peer: usize, now: Duration, size: impl Fn(u64) -> Option<u64>) -> PeerState {
        let state = &self.peers[peer];
        let oldest = state.under_way.iter().find(|of| !of.is_copy);
        PeerState {
            standing: state.standing,
            lag_bytes: state.under_way_bytes - state.copying_bytes,
            lag: oldest.map(|of| now.saturating_sub(of.at)).unwrap_or_default(),
            bytes_left: state.dirt.bytes(size) + state.copying_bytes,
            bytes_replicated: state.bytes_replicated,
            bytes_copied: state.bytes_copied,
        }
    }

    /// What each lacks, when service ends here.
    pub(crate) fn lacking(&mut self, now: Duration) -> Vec<Dirt> {
        (0..self.peers.len())
            .map(|peer| {
                self.part(peer, now, Reason::ServiceEnded);
                std::mem::take(&mut self.peers[peer].dirt)
            })
            .collect()
    }
}

/// What can be copied to a component now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PieceFor {
    /// Not its turn.
    Nothing,
    /// This.
    This(Piece),
    /// There is nothing left.
    AllIsSent,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn frame(_: u64) -> Arc<[u8]> {
        Arc::from([])
    }

    #[test]
    fn a_component_that_has_not_answered_yet_is_sent_nothing_and_nobody_waits_for_it() {
        let policy = Policy { acknowledge: Acknowledge::Sync, buffer_bytes: 100, timeout: NOW };
        let mut peers = Peers::new(policy, vec![Dirt::new()]);
        let connection = peers.connect(0, &Dirt::new(), (NOW, frame));
        let change = |peers: &mut Peers| peers.record(&[Mark::Content(7, 0, 1)], (60, NOW), frame);
        for _ in 0..5 {
            change(&mut peers);
        }
        let size = |_| Some(1);
        assert!(peers.has_room() && peers.is_acknowledged(9));
        assert_eq!(peers.piece_for(0, 1, size), PieceFor::Nothing);
        assert_eq!(
            (peers.pop(0).is_some(), peers.pop(0).is_some()),
            (true, false),
            "the first message alone"
        );
        // It answers, and what was marked meanwhile is sent.
        peers.answered(0, connection, Answer { received: 1, applied: 1 }, NOW);
        assert_eq!(peers.piece_for(0, 1, size), PieceFor::This(Piece::Object(7)));
        peers.copy(0, Piece::Object(7), (60, NOW), frame);
        for _ in 0..3 {
            peers.record(&[Mark::Object(8)], (60, NOW), frame);
        }
        assert!(!peers.has_room(), "what is under way to one that answers is waited for");
    }

    #[test]
    fn one_that_never_answers_is_given_up_and_lacks_what_changed_meanwhile() {
        let policy = Policy { acknowledge: Acknowledge::Async, buffer_bytes: 100, timeout: NOW };
        let mut peers = Peers::new(policy, vec![Dirt::new()]);
        peers.connect(0, &Dirt::new(), (NOW, frame));
        peers.record(&[Mark::Object(7)], (60, NOW), frame);
        assert!(!peers.give_up_the_silent(NOW) && peers.give_up_the_silent(NOW * 2));
        assert_eq!(peers.state(0, NOW * 2, |_| None).standing, Standing::Away);
        assert!(peers.lacking(NOW * 2)[0].holds_object(7));
    }

    #[test]
    fn copies_leave_room_for_changes_however_much_there_is_to_copy_and_however_small_the_buffer() {
        for buffer_bytes in [64 << 10, 1 << 20] {
            let timeout = Duration::from_secs(1);
            let mut lacking = Dirt::new();
            lacking.mark_content_alone(1, 0, 64 << 20);
            let policy = Policy { acknowledge: Acknowledge::Sync, buffer_bytes, timeout };
            let mut peers = Peers::new(policy, vec![lacking]);
            let frame = |_| Arc::from([0_u8; 4]);
            let now = Duration::ZERO;
            let connection = peers.connect(0, &Dirt::new(), (now, frame));
            peers.answered(0, connection, Answer { received: 1, applied: 1 }, now);
            let mut copied = 0;
            while let PieceFor::This(piece) = peers.piece_for(0, 128 << 10, |_| Some(64 << 20)) {
                let Piece::Content { from, to, .. } = piece else { panic!("{piece:?}") };
                copied += to - from;
                peers.copy(0, piece, (to - from, now), frame);
                while peers.pop(0).is_some() {}
            }
            assert!(copied >= buffer_bytes / 2, "{copied}");
            peers.record(&[], (buffer_bytes / 2, now), frame);
            assert!(peers.has_room(), "{copied} of {buffer_bytes} bytes are copies");
        }
    }
}
