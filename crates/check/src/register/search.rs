//! One register whose values may be written more than once: a search over all orders, in time bounded by a budget.
//!
//! After Wing and Gong, "Testing and verifying concurrent objects" (1993), and Lowe, "Testing for linearizability"
//! (2017): goes along the beginnings and ends of the operations and keeps every state of affairs that is possible: what
//! the register holds, and which of the operations under way have already taken effect. An operation takes effect only
//! when the end of some operation cannot be passed otherwise. A read changes nothing, so it takes effect as soon as the
//! register holds what it found; that is never worse than later.

use std::collections::{BTreeSet, HashSet};

use super::{Effect, Entry};

/// Why not.
#[derive(Debug)]
pub(super) enum Failure {
    DeadEnd(DeadEnd),
    OutOfBudget,
}

/// The end of an operation that no order leads past.
#[derive(Debug)]
pub(super) struct DeadEnd {
    /// The operation, by its place in the slice.
    pub(super) entry: usize,
    /// What the register could hold just before, in any order.
    pub(super) held: BTreeSet<Option<i64>>,
}

/// A possible state of affairs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Situation {
    held: Option<i64>,
    /// Operations under way that have taken effect, sorted.
    done: Vec<u32>,
}

impl Situation {
    fn is_done(&self, at: u32) -> bool {
        self.done.binary_search(&at).is_ok()
    }

    fn mark(&mut self, at: u32) {
        if let Err(place) = self.done.binary_search(&at) {
            self.done.insert(place, at);
        }
    }
}

struct Search<'a> {
    entries: &'a [Entry],
    /// Operations under way.
    open: BTreeSet<u32>,
    situations: HashSet<Situation>,
    steps_left: u64,
}

/// Judges the entries of one key.
pub(super) fn judge(entries: &[Entry], steps_max: u64) -> Result<(), Failure> {
    let mut search = Search {
        entries,
        open: BTreeSet::new(),
        situations: HashSet::from([Situation { held: None, done: Vec::new() }]),
        steps_left: steps_max,
    };
    for (at, is_end) in moments(entries) {
        if is_end { search.end(at)? } else { search.begin(at)? }
    }
    Ok(())
}

/// Beginnings and ends in order of time; at the same time the beginnings come first, so that both operations are under
/// way together.
fn moments(entries: &[Entry]) -> Vec<(u32, bool)> {
    let mut moments: Vec<(f64, bool, u32)> = Vec::with_capacity(entries.len() * 2);
    for (entry, at) in entries.iter().zip(0u32..) {
        moments.push((entry.invoked_s, false, at));
        if entry.is_certain() {
            moments.push((entry.completed_s, true, at));
        }
    }
    moments.sort_unstable_by(|one, other| {
        one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)).then(one.2.cmp(&other.2))
    });
    moments.into_iter().map(|(_, is_end, at)| (at, is_end)).collect()
}

impl Search<'_> {
    fn spend(&mut self, steps: usize) -> Result<(), Failure> {
        self.steps_left = self.steps_left.checked_sub(steps as u64).ok_or(Failure::OutOfBudget)?;
        Ok(())
    }

    fn begin(&mut self, at: u32) -> Result<(), Failure> {
        self.open.insert(at);
        if let Effect::Read(found) = self.entries[at as usize].effect {
            self.spend(self.situations.len())?;
            let situations = std::mem::take(&mut self.situations);
            let marked = situations.into_iter().map(|mut situation| {
                if situation.held == found {
                    situation.mark(at);
                }
                situation
            });
            self.situations = marked.collect();
        }
        Ok(())
    }

    fn end(&mut self, at: u32) -> Result<(), Failure> {
        let held = || self.situations.iter().map(|situation| situation.held).collect();
        let before: BTreeSet<Option<i64>> = held();
        let mut passed = HashSet::new();
        let mut seen = HashSet::new();
        let mut waiting: Vec<Situation> = self.situations.drain().collect();
        while let Some(mut situation) = waiting.pop() {
            self.spend(self.open.len())?;
            if situation.is_done(at) {
                situation.done.retain(|done| *done != at);
                passed.insert(situation);
                continue;
            }
            for next in self.open.iter().filter_map(|open| self.after(&situation, *open)) {
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        self.open.remove(&at);
        if passed.is_empty() {
            return Err(Failure::DeadEnd(DeadEnd { entry: at as usize, held: before }));
        }
        self.situations = passed;
        Ok(())
    }

    /// The situation after operation `at` has taken effect, with all reads that then can; `None` where it cannot.
    fn after(&self, situation: &Situation, at: u32) -> Option<Situation> {
        if situation.is_done(at) {
            return None;
        }
        let held = match self.entries[at as usize].effect {
            Effect::Read(_) => return None,
            Effect::Write(value) => Some(value),
            Effect::CompareAndSet { expected, new } if situation.held == expected => Some(new),
            Effect::CompareAndSet { .. } => return None,
        };
        let mut next = Situation { held, done: situation.done.clone() };
        next.mark(at);
        for open in &self.open {
            if self.entries[*open as usize].effect == Effect::Read(held) {
                next.mark(*open);
            }
        }
        Some(next)
    }
}
