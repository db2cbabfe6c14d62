//! The log's way from the leader to the others, what is committed, and its carrying out.
//!
//! Owns these for `replica`, whose elections it knows nothing of.

use crate::Flaw;
use crate::log::Entry;
use crate::message::Message;
use crate::replica::{Acknowledgements, HEARTBEAT_US, Progress, Record, Replica, Role};
use crate::state::{Command, State};
use crate::transaction::Answer;

/// The most entries in one message.
const ENTRIES_MAX: usize = 256;

impl Replica {
    /// Whether followers hear of new entries with heartbeats only.
    fn replicates_late(&self) -> bool {
        self.settings.flaw == Some(Flaw::AckBeforeReplication)
    }

    pub(crate) fn heartbeat(&mut self) {
        let late = self.replicates_late();
        self.heartbeat_due_us = self.now_us + if late { 2 * HEARTBEAT_US } else { HEARTBEAT_US };
        let Role::Leader { progress } = &mut self.role else { return };
        for follower in progress.values_mut() {
            if follower.matched == follower.matched_at_heartbeat && follower.next > follower.matched + 1 {
                // What was sent since is lost, or its answer is.
                follower.next = follower.matched + 1;
                follower.silent = true;
            }
            follower.matched_at_heartbeat = follower.matched;
        }
        let peers: Vec<String> = progress.keys().cloned().collect();
        for peer in peers {
            self.send_one(&peer);
        }
    }

    /// Sends every follower what it was not sent yet.
    pub(crate) fn send_new_entries(&mut self) {
        if !self.replicates_late() {
            self.send();
        }
    }

    fn send(&mut self) {
        let Role::Leader { progress } = &self.role else { return };
        let last = self.log.last_index();
        let behind = progress.iter().filter(|(_, one)| !one.silent && one.next <= last);
        let behind: Vec<String> = behind.map(|(peer, _)| peer.clone()).collect();
        for peer in behind {
            while self.send_one(&peer) <= last {}
        }
    }

    /// Sends a follower the next entries, none when it was sent all. Answers where the next ones begin.
    fn send_one(&mut self, peer: &str) -> u64 {
        let Role::Leader { progress } = &mut self.role else { return u64::MAX };
        let Some(follower) = progress.get_mut(peer) else { return u64::MAX };
        let previous_index = follower.next - 1;
        let Some(previous_term) = self.log.term_at(previous_index) else { return u64::MAX };
        let entries = self.log.from(follower.next, ENTRIES_MAX).to_vec();
        follower.next += entries.len() as u64;
        let next = follower.next;
        let (term, commit) = (self.term, self.commit);
        let message = Message::Append { term, previous_index, previous_term, entries, commit };
        self.output.messages.push((peer.to_owned(), message));
        next
    }

    /// Tells a leader of an earlier term that there is a later one.
    pub(crate) fn refuse_append(&mut self, leader: String) {
        let message = Message::Appended { term: self.term, agreed: false, index: self.log.last_index() };
        self.output.messages.push((leader, message));
    }

    /// A leader's entries, put behind the one they belong behind.
    pub(crate) fn append(&mut self, leader: String, previous: (u64, u64), entries: Vec<Entry>, commit: u64) {
        let (previous_index, previous_term) = previous;
        if self.log.term_at(previous_index) != Some(previous_term) {
            let index = self.agreed_at_most(previous_index);
            let message = Message::Appended { term: self.term, agreed: false, index };
            return self.output.messages.push((leader, message));
        }
        let mut index = previous_index;
        for entry in entries {
            index += 1;
            // An entry that is there already may have others behind it that this message, delayed, knows nothing of.
            if self.log.term_at(index) == Some(entry.term) {
                continue;
            }
            if index <= self.applied {
                self.start_over(index);
            }
            self.output.records.push(Record::Entry { index, entry: entry.clone() });
            self.log.put(index, entry);
        }
        self.commit = self.commit.max(commit.min(index));
        self.carry_out_committed();
        let message = Message::Appended { term: self.term, agreed: true, index };
        self.output.messages.push((leader, message));
    }

    /// Where this log and that of a leader may agree who has another entry at `index`: before all entries of the term
    /// that stands there, so that a leader asks once a term and not once an entry.
    fn agreed_at_most(&self, index: u64) -> u64 {
        let Some(term) = self.log.term_at(index) else { return self.log.last_index() };
        let mut before = index;
        while before > 0 && self.log.term_at(before) == Some(term) {
            before -= 1;
        }
        before
    }

    /// What was carried out from entry `index` on turns out not to be what happened: only where a leader acknowledges
    /// alone, by its settings or by a flaw. The state is made anew from what remains.
    fn start_over(&mut self, index: u64) {
        self.state = State::new(self.settings.flaw);
        self.applied = 0;
        self.commit = index - 1;
        self.carry_out_committed();
    }

    pub(crate) fn note_progress(&mut self, follower: &str, agreed: bool, index: u64) {
        let last = self.log.last_index();
        let Role::Leader { progress } = &mut self.role else { return };
        let Some(Progress { matched, next, silent, .. }) = progress.get_mut(follower) else { return };
        if agreed {
            *matched = index.min(last).max(*matched);
            *next = (*matched + 1).max(*next);
            *silent = false;
        } else if index + 1 < *next && *next > *matched + 1 {
            // One try at a time until it agrees: were all the rest sent with each, every refusal would bring forth many.
            *next = (index + 1).max(*matched + 1);
            *silent = true;
            self.send_one(follower);
        }
    }

    /// Notes what enough nodes have by now, and carries it out.
    pub(crate) fn advance_commit(&mut self) {
        let Role::Leader { progress } = &self.role else { return };
        let alone = self.settings.acknowledgements == Acknowledgements::Leader || self.replicates_late();
        let reached = if alone {
            self.log.last_index()
        } else {
            let counted = self.counted_peers();
            let wanted = match self.settings.acknowledgements {
                Acknowledgements::Leader => 1,
                Acknowledgements::Followers(count) => {
                    let asked = usize::try_from(count).unwrap_or(usize::MAX).saturating_add(1);
                    asked.min(counted.len() + 1).max(self.quorum())
                }
                Acknowledgements::All => counted.len() + 1,
            };
            let mut held: Vec<u64> =
                counted.into_iter().filter_map(|peer| progress.get(peer)).map(|one| one.matched).collect();
            held.push(self.log.last_index());
            held.sort_unstable_by(|one, other| other.cmp(one));
            held.get(wanted - 1).copied().unwrap_or(0)
        };
        // An entry of an earlier term may still be replaced although a majority has it (Raft, section 5.4.2).
        if reached > self.commit && self.log.term_at(reached) == Some(self.term) {
            self.commit = reached;
            self.carry_out_committed();
        }
    }

    fn carry_out_committed(&mut self) {
        while self.applied < self.commit {
            let index = self.applied + 1;
            let Some(entry) = self.log.get(index) else { return };
            let answer = self.state.apply(index, &entry.command);
            self.applied = index;
            if matches!(entry.command, Command::Begin { .. }) {
                self.went_halfway(index, answer);
            } else if let Some(request) = self.pending.remove(&index) {
                self.output.answers.push((request, answer));
            }
        }
    }

    fn went_halfway(&mut self, index: u64, answer: Answer) {
        let due_us = self.halfway_due_us();
        if matches!(answer, Answer::Committed { .. }) {
            if let Some(held) = self.held.get_mut(&index) {
                held.due_us = Some(due_us);
            }
        } else if let Some(held) = self.held.remove(&index) {
            self.output.answers.push((held.request, answer));
        }
    }
}
