//! A new leader: who is furthest, made to take writes, followed by the rest.
//!
//! Owns the choice and the order of the steps. That the old leader is dead is the caller's to know.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::configuration::acknowledgements;
use super::lsn::{Position, most_advanced};
use super::{Postgres, unexpected};
use crate::node::at_once;
use crate::{EngineError, Node, Promotion, Synchronous};

/// How long a candidate's answer is waited for.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// How long the chosen one may take to replay what it has and take over.
const PROMOTION_PATIENCE: Duration = Duration::from_secs(60);
/// How often it is asked.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Role and position in one answer. The log is flushed up to the greater of what was received and what was replayed
/// (after a restart nothing has been received yet); the newest time line is in the names of the log's files.
const POSITION: &str = "SELECT pg_is_in_recovery(), coalesce(pg_last_wal_receive_lsn(), '0/0'), \
     coalesce(pg_last_wal_replay_lsn(), '0/0'), \
     (SELECT max(substr(name, 1, 8)) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$')";

/// What candidates answered.
#[derive(Debug, Default)]
struct Answers {
    /// How far each has got that answered.
    positions: BTreeMap<String, Position>,
    /// Who leads already because an attempt before chose it.
    leads: Option<String>,
    /// Why others did not answer.
    notes: Vec<String>,
}

impl Postgres {
    pub(super) fn promote_one_of(&self, candidates: &[Arc<dyn Node>]) -> Result<Promotion, EngineError> {
        let strangers = {
            let state = self.state();
            candidates
                .iter()
                .find(|node| !state.members.contains_key(node.name()))
                .map(|node| node.name().to_owned())
        };
        if let Some(node) = strangers {
            return Err(EngineError::Stranger { node });
        }
        let Answers { positions, leads, mut notes } = self.positions(candidates)?;
        // In the order given: the platform puts those first that it prefers among equals.
        let in_order = candidates.iter().map(|node| node.name());
        let answered = in_order.filter_map(|name| Some((name, *positions.get(name)?)));
        let name = leads.as_deref().or_else(|| most_advanced(answered));
        let chosen = name.and_then(|name| candidates.iter().find(|node| node.name() == name));
        let Some(chosen) = chosen else {
            return Err(EngineError::NoCandidate { reasons: notes.join("; ") });
        };
        notes.extend(self.unheard_of(&positions));

        if leads.is_some() {
            notes.push(format!(
                "{} leads since an attempt before, which did not come to its end",
                chosen.name()
            ));
            let present = positions.keys().cloned().chain([chosen.name().to_owned()]);
            self.state().present = present.collect();
        } else {
            self.take_over(chosen.as_ref(), positions.keys())?;
        }
        self.complete(chosen.as_ref())?;
        notes.extend(self.acknowledgements_note());
        let others: Vec<Arc<dyn Node>> = candidates
            .iter()
            .filter(|node| node.name() != chosen.name() && positions.contains_key(node.name()))
            .cloned()
            .collect();
        let mut followers = Vec::new();
        for (node, answer) in others.iter().zip(at_once(&others, |node| self.follow(node, chosen.as_ref()))) {
            match answer {
                Ok(()) => followers.push(node.name().to_owned()),
                Err(error) => {
                    // It follows nobody who is there: it has to rejoin before it may start again.
                    self.state().present.remove(node.name());
                    notes.push(format!("{} was not made to follow {}: {error}", node.name(), chosen.name()));
                }
            }
        }
        Ok(Promotion {
            leader: chosen.name().to_owned(),
            positions: positions
                .iter()
                .map(|(name, position)| (name.clone(), position.to_string()))
                .collect(),
            followers,
            notes,
        })
    }

    fn positions(&self, candidates: &[Arc<dyn Node>]) -> Result<Answers, EngineError> {
        let Answers { mut positions, mut leads, mut notes } = Answers::default();
        let half_promoted = self.state().half_promoted.clone();
        for (node, answer) in candidates.iter().zip(at_once(candidates, |node| self.position(node))) {
            match answer {
                Ok(position) => drop(positions.insert(node.name().to_owned(), position)),
                Err(EngineError::AlreadyLeads { node }) if half_promoted.as_ref() == Some(&node) => {
                    leads = Some(node);
                }
                Err(error @ EngineError::AlreadyLeads { .. }) => return Err(error),
                Err(error) => notes.push(error.to_string()),
            }
        }
        Ok(Answers { positions, leads, notes })
    }

    /// How far a standby has got.
    fn position(&self, node: &dyn Node) -> Result<Position, EngineError> {
        let rows = self.admin.query_within(node, POSITION, ANSWER_PATIENCE)?;
        let columns: Vec<Option<&str>> = match rows.as_slice() {
            [row] => row.iter().map(Option::as_deref).collect(),
            _ => Vec::new(),
        };
        let [Some(in_recovery), Some(received), Some(replayed), Some(time_line)] = columns.as_slice() else {
            return Err(unexpected(node, POSITION, &rows));
        };
        if *in_recovery != "t" {
            return Err(EngineError::AlreadyLeads { node: node.name().to_owned() });
        }
        match (received.parse(), replayed.parse(), u32::from_str_radix(time_line, 16)) {
            (Ok(received), Ok(replayed), Ok(time_line)) => {
                Ok(Position { time_line, flushed: std::cmp::max(received, replayed) })
            }
            _ => Err(unexpected(node, POSITION, &rows)),
        }
    }

    /// Has the chosen one become the leader. What is remembered changes first: from here on the old leader is fenced,
    /// whatever becomes of the rest.
    fn take_over<'a>(
        &self,
        chosen: &dyn Node,
        present: impl Iterator<Item = &'a String>,
    ) -> Result<(), EngineError> {
        {
            let mut state = self.state();
            state.leader = Some(chosen.name().to_owned());
            state.half_promoted = Some(chosen.name().to_owned());
            state.upstream.remove(chosen.name());
            state.present = present.cloned().collect::<BTreeSet<String>>();
        }
        self.write_configuration(chosen)?;
        self.reload(chosen)?;
        // Not waited for by the server, which would wait for a minute without saying anything.
        self.value(chosen, "SELECT pg_promote(false)").map(drop)
    }

    /// Waits until the chosen one takes writes, and makes what its standbys need of it.
    fn complete(&self, chosen: &dyn Node) -> Result<(), EngineError> {
        let deadline = Instant::now() + PROMOTION_PATIENCE;
        while !self.takes_writes(chosen, PROMOTION_PATIENCE)? {
            if Instant::now() >= deadline {
                return Err(self.not_ready(
                    chosen,
                    "the promoted standby does not take writes",
                    PROMOTION_PATIENCE,
                ));
            }
            std::thread::sleep(ASK_AGAIN);
        }
        self.make_slots(chosen)?;
        self.state().half_promoted = None;
        Ok(())
    }

    /// Makes a running standby follow another leader.
    fn follow(&self, standby: &dyn Node, leader: &dyn Node) -> Result<(), EngineError> {
        self.state().upstream.insert(standby.name().to_owned(), leader.name().to_owned());
        self.write_configuration(standby)?;
        self.reload(standby)
    }

    /// A warning when somebody who may have had acknowledged writes was not heard.
    fn unheard_of(&self, positions: &BTreeMap<String, Position>) -> Option<String> {
        let state = self.state();
        let old_leader = state.leader.as_deref();
        // A node that was lost before and is not back cannot have what was acknowledged since.
        let unheard: Vec<&str> = state
            .present
            .iter()
            .map(String::as_str)
            .filter(|name| Some(*name) != old_leader && !positions.contains_key(*name))
            .collect();
        let standbys = state.present.len().saturating_sub(1);
        let wanted = acknowledgements(self.configuration.synchronous, standbys);
        // Every acknowledged write is on `wanted` standbys; so many must have been missed for it to be missed.
        let at_risk = wanted == 0 || unheard.len() >= wanted;
        (at_risk && !unheard.is_empty()).then(|| {
            format!(
                "promoted without an answer from {}, which may hold acknowledged writes that no other node has",
                unheard.join(", ")
            )
        })
    }

    /// How many acknowledgements the leader now waits for, when that is fewer than asked for.
    pub(super) fn acknowledgements_note(&self) -> Option<String> {
        let state = self.state();
        let synchronous = self.configuration.synchronous;
        let wanted = acknowledgements(synchronous, state.members.len().saturating_sub(1));
        let now = acknowledgements(synchronous, state.present.len().saturating_sub(1));
        (synchronous != Synchronous::Off && now < wanted).then(|| {
            format!(
                "commits wait for {now} acknowledgements instead of {wanted} until the lost nodes are back"
            )
        })
    }
}
