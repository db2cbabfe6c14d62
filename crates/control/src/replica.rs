//! One replica: its term, its vote, its role, and what it does when something happens or time passes.
//!
//! Owns elections and the taking of requests; `replication` owns the log's way to the others and what is committed. Pure:
//! time and chance come from outside, and what is to be kept, sent and answered is handed out, in this order of duty:
//! records are safely kept before any message or answer made with them goes out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Flaw;
use crate::chance::Chance;
use crate::log::{Entry, Log};
use crate::message::Message;
use crate::state::{Command, State};
use crate::transaction::{Answer, OPERATIONS_MAX, Operation};

/// How often a leader says that it leads, microseconds.
pub const HEARTBEAT_US: u64 = 100_000;
/// The least time without a word from a leader after which a node wants to lead itself, microseconds. Chance adds up to
/// as much again. Wide, because all nodes of a lab share a machine's cores.
pub const ELECTION_US: u64 = 600_000;
/// How many entries at the end of its log a new leader repeats in any case, where retries duplicate.
const REPEATED: u64 = 16;
/// How old the copy may be that stale reads are answered from, microseconds.
const STALE_COPY_US: u64 = 200_000;
/// How long the rest of a transaction waits behind its beginning where reads are dirty, microseconds.
const HALFWAY_US: u64 = 5_000;
/// For how long a silent node counts as in reach where brains are split, microseconds. Less than an election takes to
/// begin, more than a few heartbeats.
const REACH_US: u64 = 400_000;

/// Who must have a transaction before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgements {
    /// The leader alone.
    Leader,
    /// A majority of the nodes, and at least so many followers.
    Followers(u32),
    /// Every node.
    All,
}

/// What a replica is told once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its own name.
    pub node: String,
    /// The names of the others.
    pub peers: BTreeSet<String>,
    /// Who must have a transaction before it is acknowledged.
    pub acknowledgements: Acknowledgements,
    /// The flaw that is switched on.
    pub flaw: Option<Flaw>,
}

/// What is kept over a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// The term this node is in and whom it voted for.
    Term { term: u64, vote: Option<String> },
    /// A log entry; it replaces what stood at its place and all beyond.
    Entry {
        /// Its number, from 1.
        index: u64,
        entry: Entry,
    },
}

/// What was kept, read back.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// The last term.
    pub term: u64,
    /// The vote in it.
    pub vote: Option<String>,
    pub log: Log,
}

/// A request's number, given by whoever passes it in.
pub type RequestId = u64;

/// Something that happens to a replica.
#[derive(Debug, Clone)]
pub enum Event {
    /// A message came.
    Message {
        /// From this node.
        from: String,
        /// It says this.
        message: Message,
    },
    /// A client asks a transaction.
    Request {
        /// Its number.
        request: RequestId,
        /// Its steps.
        operations: Vec<Operation>,
        /// The wall clock, microseconds since 1970.
        stamp_us: u64,
    },
    /// Somebody asks this node to stand for election now.
    Campaign,
}

/// What a replica wants done. Records first.
#[derive(Debug, Default)]
pub struct Output {
    /// To be kept, in this order.
    pub records: Vec<Record>,
    /// To be sent, once the records are kept; may be lost.
    pub messages: Vec<(String, Message)>,
    /// To be answered, once the records are kept.
    pub answers: Vec<(RequestId, Answer)>,
}

/// How far a follower is, as its leader knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) matched: u64,
    pub(crate) next: u64,
    /// `matched` at the last heartbeat: no progress since means that something was lost.
    pub(crate) matched_at_heartbeat: u64,
    /// Nothing is known to have arrived lately: it is sent heartbeats alone until it answers.
    pub(crate) silent: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Role {
    Follower,
    Candidate { votes: BTreeSet<String>, rehearsal: bool },
    Leader { progress: BTreeMap<String, Progress> },
}

/// The rest of a transaction whose beginning was carried out, by the entry that began it.
#[derive(Debug)]
pub(crate) struct SplitTransaction {
    pub(crate) request: RequestId,
    pub(crate) operations: Vec<Operation>,
    /// When it goes on; nothing before its beginning was carried out.
    pub(crate) due_us: Option<u64>,
}

/// How a replica sees itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub node: String,
    /// Whether it leads and takes transactions.
    pub leads: bool,
    pub term: u64,
    /// The leader it knows of.
    pub leader: Option<String>,
    /// The term of its last log entry.
    pub last_term: u64,
    /// The number of its last log entry.
    pub last_index: u64,
    /// The number of the last entry it knows to be committed.
    pub commit: u64,
}

/// See the module.
pub struct Replica {
    pub(crate) settings: Settings,
    chance: Chance,
    pub(crate) now_us: u64,
    pub(crate) term: u64,
    vote: Option<String>,
    pub(crate) log: Log,
    pub(crate) commit: u64,
    pub(crate) applied: u64,
    pub(crate) state: State,
    pub(crate) role: Role,
    leader: Option<String>,
    election_due_us: u64,
    pub(crate) heartbeat_due_us: u64,
    /// When each other node was last heard.
    heard_us: BTreeMap<String, u64>,
    pub(crate) pending: BTreeMap<u64, RequestId>,
    pub(crate) held: BTreeMap<u64, SplitTransaction>,
    /// What stale reads are answered from, and since when.
    copy: (u64, State),
    pub(crate) output: Output,
}

impl Replica {
    /// A replica that starts, or starts again with what it kept. `now_us` is any clock that never goes back.
    #[must_use]
    pub fn new(settings: Settings, kept: Kept, chance: Chance, now_us: u64) -> Self {
        let kept = if settings.flaw == Some(Flaw::ForgetOnRestart) { Kept::default() } else { kept };
        let state = State::new(settings.flaw);
        let mut replica = Replica {
            chance,
            now_us,
            term: kept.term,
            vote: kept.vote,
            log: kept.log,
            commit: 0,
            applied: 0,
            copy: (now_us, state.clone()),
            state,
            role: Role::Follower,
            leader: None,
            election_due_us: 0,
            heartbeat_due_us: 0,
            heard_us: BTreeMap::new(),
            pending: BTreeMap::new(),
            held: BTreeMap::new(),
            output: Output::default(),
            settings,
        };
        replica.postpone_election();
        replica
    }

    /// Lets time pass up to `now_us`.
    pub fn tick(&mut self, now_us: u64) {
        self.now_us = self.now_us.max(now_us);
        match self.role {
            Role::Leader { .. } => {
                if self.settings.flaw == Some(Flaw::StaleReads) && self.now_us >= self.copy.0 + STALE_COPY_US
                {
                    self.copy = (self.now_us, self.state.clone());
                }
                self.finish_held();
                if self.now_us >= self.election_due_us {
                    if self.hears_a_quorum() {
                        self.postpone_election();
                    } else {
                        // Somebody else may lead by now; whoever asks here is better sent away.
                        self.follow(None);
                        return;
                    }
                }
                if self.now_us >= self.heartbeat_due_us {
                    self.heartbeat();
                }
            }
            _ if self.now_us >= self.election_due_us => self.stand(true),
            _ => {}
        }
    }

    /// When time next matters, microseconds; the same clock as [`Replica::tick`]'s.
    #[must_use]
    pub fn next_due_us(&self) -> u64 {
        let mut due = self.election_due_us;
        if matches!(self.role, Role::Leader { .. }) {
            due = due.min(self.heartbeat_due_us);
            due = self.held.values().filter_map(|held| held.due_us).fold(due, u64::min);
        }
        due
    }

    /// Something happens now. What comes of it is handed out by [`Replica::take_output`].
    pub fn step(&mut self, now_us: u64, event: Event) {
        self.now_us = self.now_us.max(now_us);
        match event {
            Event::Message { from, message } if self.settings.peers.contains(&from) => {
                self.heard_us.insert(from.clone(), self.now_us);
                self.hear(from, message);
            }
            // Of a node that is none of ours.
            Event::Message { .. } => {}
            Event::Request { request, operations, stamp_us } => self.take(request, operations, stamp_us),
            Event::Campaign => {
                if !matches!(self.role, Role::Leader { .. }) {
                    self.stand(false);
                }
            }
        }
    }

    /// Sends on what is new, and hands out all there is to do. Called after one event or several.
    pub fn take_output(&mut self) -> Output {
        self.send_new_entries();
        self.advance_commit();
        std::mem::take(&mut self.output)
    }

    /// How it sees itself.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            node: self.settings.node.clone(),
            leads: matches!(self.role, Role::Leader { .. }),
            term: self.term,
            leader: self.leader.clone(),
            last_term: self.log.last_term(),
            last_index: self.log.last_index(),
            commit: self.commit,
        }
    }

    fn hear(&mut self, from: String, message: Message) {
        match message {
            Message::AskVote { term, last_index, last_term, rehearsal } => {
                self.answer_candidate(from, term, (last_term, last_index), rehearsal);
            }
            Message::Vote { term, granted, rehearsal } => self.count_vote(from, term, granted, rehearsal),
            Message::Append { term, previous_index, previous_term, entries, commit } => {
                if term < self.term {
                    return self.refuse_append(from);
                }
                self.enter(term);
                // Nobody else can lead this term: a candidate gives up, and what was heard postpones the next election.
                self.follow(Some(from.clone()));
                self.append(from, (previous_index, previous_term), entries, commit);
            }
            Message::Appended { term, agreed, index } => {
                self.enter(term);
                if term == self.term {
                    self.note_progress(&from, agreed, index);
                }
            }
        }
    }

    /// Enters a later term as a follower; does nothing in an earlier or the same one.
    fn enter(&mut self, term: u64) {
        if term > self.term {
            self.term = term;
            self.vote = None;
            self.keep_term();
            self.follow(None);
        }
    }

    /// Becomes or stays a follower. What was asked of a leader that leads no more is left open.
    fn follow(&mut self, leader: Option<String>) {
        let led = matches!(self.role, Role::Leader { .. });
        self.role = Role::Follower;
        self.leader = leader;
        self.postpone_election();
        if led {
            let held = std::mem::take(&mut self.held).into_values().map(|held| held.request);
            let left: BTreeSet<RequestId> =
                std::mem::take(&mut self.pending).into_values().chain(held).collect();
            self.output.answers.extend(left.into_iter().map(|request| (request, Answer::Unknown)));
        }
    }

    fn postpone_election(&mut self) {
        self.election_due_us = self.now_us + ELECTION_US + self.chance.below(ELECTION_US);
    }

    fn keep_term(&mut self) {
        self.output.records.push(Record::Term { term: self.term, vote: self.vote.clone() });
    }

    /// Stands for election; in a rehearsal without any change that lasts.
    fn stand(&mut self, rehearsal: bool) {
        self.postpone_election();
        self.leader = None;
        if !rehearsal {
            self.term += 1;
            self.vote = Some(self.settings.node.clone());
            self.keep_term();
        }
        self.role = Role::Candidate { votes: BTreeSet::from([self.settings.node.clone()]), rehearsal };
        let term = if rehearsal { self.term + 1 } else { self.term };
        let (last_index, last_term) = (self.log.last_index(), self.log.last_term());
        for peer in &self.settings.peers {
            let ask = Message::AskVote { term, last_index, last_term, rehearsal };
            self.output.messages.push((peer.clone(), ask));
        }
        self.count_votes();
    }

    fn answer_candidate(&mut self, from: String, term: u64, last: (u64, u64), rehearsal: bool) {
        let up_to_date = last >= (self.log.last_term(), self.log.last_index());
        let granted = if rehearsal {
            // A leader that is heard is a leader that is well; so is one that has just been elected here.
            let well = match self.role {
                Role::Leader { .. } => true,
                _ => self.leader.as_ref().is_some_and(|leader| self.was_heard(leader, ELECTION_US)),
            };
            term > self.term && up_to_date && !well
        } else {
            self.enter(term);
            let free = self.vote.is_none() || self.vote.as_ref() == Some(&from);
            term == self.term && free && up_to_date
        };
        if granted && !rehearsal {
            if self.vote.is_none() {
                self.vote = Some(from.clone());
                self.keep_term();
            }
            self.postpone_election();
        }
        let term = if granted { term } else { self.term };
        self.output.messages.push((from, Message::Vote { term, granted, rehearsal }));
    }

    fn count_vote(&mut self, from: String, term: u64, granted: bool, rehearsal: bool) {
        if !granted {
            return self.enter(term);
        }
        let sought = if rehearsal { self.term + 1 } else { self.term };
        if let Role::Candidate { votes, rehearsal: rehearses } = &mut self.role
            && *rehearses == rehearsal
            && term == sought
        {
            votes.insert(from);
            self.count_votes();
        }
    }

    fn count_votes(&mut self) {
        let Role::Candidate { votes, rehearsal } = &self.role else { return };
        if votes.len() < self.quorum() {
            return;
        }
        if *rehearsal { self.stand(false) } else { self.lead() }
    }

    fn lead(&mut self) {
        let next = self.log.last_index() + 1;
        let progress = Progress { matched: 0, next, matched_at_heartbeat: 0, silent: false };
        let progress = self.settings.peers.iter().map(|peer| (peer.clone(), progress)).collect();
        self.role = Role::Leader { progress };
        self.leader = Some(self.settings.node.clone());
        // Those who voted were heard just now; the others have the time of an election to be heard.
        self.postpone_election();
        let repeated_from = (self.commit + 1).min(self.log.last_index().saturating_sub(REPEATED)).max(1);
        let unheard_of = self.log.from(repeated_from, usize::MAX).to_vec();
        self.propose(Command::Nothing);
        if self.settings.flaw == Some(Flaw::DuplicateOnRetry) {
            let again = unheard_of.into_iter().map(|entry| entry.command);
            for command in again.filter(|command| *command != Command::Nothing) {
                self.propose(command);
            }
        }
        self.heartbeat();
    }

    /// Takes a client's transaction.
    fn take(&mut self, request: RequestId, operations: Vec<Operation>, stamp_us: u64) {
        if !matches!(self.role, Role::Leader { .. }) {
            return self.output.answers.push((request, Answer::NotLeader { leader: self.leader.clone() }));
        }
        if operations.len() > OPERATIONS_MAX {
            let step = u32::try_from(OPERATIONS_MAX).unwrap_or(u32::MAX);
            let reason = format!("a transaction has at most {OPERATIONS_MAX} steps");
            return self.output.answers.push((request, Answer::Refused { step, reason }));
        }
        let writes = operations.iter().filter(|operation| operation.writes()).count();
        let command = match self.settings.flaw {
            Some(Flaw::StaleReads) if writes == 0 => {
                let answer = self.copy.1.read(&operations);
                return self.output.answers.push((request, answer));
            }
            Some(flaw @ (Flaw::LostUpdate | Flaw::WriteSkew)) => match self.state.foresee(&operations) {
                Ok(Command::Outcome { writes, found, .. }) if flaw == Flaw::LostUpdate => {
                    Command::Outcome { writes, versions: BTreeMap::new(), found }
                }
                Ok(command) => command,
                Err(refused) => return self.output.answers.push((request, refused)),
            },
            Some(Flaw::DirtyRead) if writes > 1 => return self.begin(request, operations),
            _ => Command::Transaction { operations, stamp_us },
        };
        let index = self.propose(command);
        self.pending.insert(index, request);
    }

    /// Where reads are dirty: a transaction up to its first write goes ahead of the rest.
    fn begin(&mut self, request: RequestId, mut operations: Vec<Operation>) {
        let first = operations.iter().position(Operation::writes).map_or(operations.len(), |place| place + 1);
        let rest = operations.split_off(first);
        let index = self.propose(Command::Begin { operations });
        self.held.insert(index, SplitTransaction { request, operations: rest, due_us: None });
    }

    fn finish_held(&mut self) {
        let now_us = self.now_us;
        let is_due = |held: &SplitTransaction| held.due_us.is_some_and(|due| due <= now_us);
        let due: Vec<u64> =
            self.held.iter().filter(|(_, held)| is_due(held)).map(|(begun, _)| *begun).collect();
        for begun in due {
            if let Some(held) = self.held.remove(&begun) {
                let index = self.propose(Command::Finish { begun, operations: held.operations });
                self.pending.insert(index, held.request);
            }
        }
    }

    /// When the rest of a transaction goes on whose beginning is carried out now.
    pub(crate) fn halfway_due_us(&self) -> u64 {
        self.now_us + HALFWAY_US
    }

    /// Puts a command at the end of the leader's log.
    fn propose(&mut self, command: Command) -> u64 {
        let entry = Entry { term: self.term, command };
        let index = self.log.push(entry.clone());
        self.output.records.push(Record::Entry { index, entry });
        index
    }

    fn was_heard(&self, node: &str, within_us: u64) -> bool {
        self.heard_us.get(node).is_some_and(|at| self.now_us.saturating_sub(*at) < within_us)
    }

    /// The others that count for a quorum: all; where brains are split, those in reach.
    pub(crate) fn counted_peers(&self) -> Vec<&String> {
        let split = self.settings.flaw == Some(Flaw::SplitBrain);
        self.settings.peers.iter().filter(|peer| !split || self.was_heard(peer, REACH_US)).collect()
    }

    /// How many nodes make a majority, this one among them.
    pub(crate) fn quorum(&self) -> usize {
        self.counted_peers().len().div_ceil(2) + 1
    }

    fn hears_a_quorum(&self) -> bool {
        let heard = self.settings.peers.iter().filter(|peer| self.was_heard(peer, ELECTION_US)).count();
        heard + 1 >= self.quorum()
    }
}
