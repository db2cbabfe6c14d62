//! One register whose values may be written more than once: a search over all orders, in time bounded by a budget.
//!
//! After Wing and Gong, "Testing and verifying concurrent objects" (1993), and Lowe, "Testing for linearizability"
//! (2017): goes along the beginnings and ends of the operations and keeps every state of affairs that is possible: what
//! the register holds, and which of the operations under way have already taken effect. An operation takes effect only
//! when the end of some operation cannot be passed otherwise. A read changes nothing, so it takes effect as soon as the
//! register holds what it found; that is never worse than later.
//!
//! Operations without an answer stay under way for ever, and each of them doubles what is possible. Three things keep
//! that small:
//! - of those with the same effect it does not matter which were used, only how many;
//! - a state that used fewer of them, and is the same otherwise, can do all that the other can: the other is dropped. States
//!   are therefore gone through by the number used;
//! - one takes effect only where somebody under way finds it at once. If nobody ever finds it, it can be left out; if the
//!   first to find it begins later, it can take effect then, because nothing happens in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};

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
#[derive(Debug, Clone)]
struct Situation {
    held: Option<i64>,
    /// Answered operations under way that have taken effect, sorted.
    done: Vec<u32>,
    /// Effects of unanswered operations that were used, sorted; one used twice stands here twice.
    used: Vec<u32>,
}

/// Whether all of `fewer` is in `more`; both sorted.
fn is_within(fewer: &[u32], more: &[u32]) -> bool {
    let mut more = more.iter();
    fewer.len() <= more.len() && fewer.iter().all(|wanted| more.any(|one| one == wanted))
}

fn add(sorted: &mut Vec<u32>, one: u32) {
    let place = sorted.partition_point(|other| *other < one);
    sorted.insert(place, one);
}

/// What is held, and the operations done.
type HeldAndDone = (Option<i64>, Vec<u32>);

/// Situations of which none can do all that another can: for what is held and done, the sets used.
#[derive(Debug, Default)]
struct Best(HashMap<HeldAndDone, Vec<Vec<u32>>>);

impl Best {
    /// Takes one in; false if another can do all that it can. Must be given those that used fewer first.
    fn take_in(&mut self, situation: &Situation) -> bool {
        let others = self.0.entry((situation.held, situation.done.clone())).or_default();
        let is_new = !others.iter().any(|other| is_within(other, &situation.used));
        if is_new {
            others.push(situation.used.clone());
        }
        is_new
    }
}

/// Operations without an answer that all do the same.
#[derive(Debug)]
struct Unanswered {
    expected: Option<Option<i64>>,
    new: i64,
    /// How many have begun.
    begun: usize,
}

struct Search<'a> {
    entries: &'a [Entry],
    /// Answered operations under way.
    open: BTreeSet<u32>,
    unanswered: Vec<Unanswered>,
    situations: Vec<Situation>,
    steps_left: u64,
}

/// Judges the entries of one key.
pub(super) fn judge(entries: &[Entry], steps_max: u64) -> Result<(), Failure> {
    let effects = useful_effects(entries);
    let unanswered =
        effects.keys().map(|(new, expected)| Unanswered { expected: *expected, new: *new, begun: 0 });
    let mut search = Search {
        entries,
        open: BTreeSet::new(),
        unanswered: unanswered.collect(),
        situations: vec![Situation { held: None, done: Vec::new(), used: Vec::new() }],
        steps_left: steps_max,
    };
    for (at, is_end) in moments(entries) {
        let entry = &entries[at as usize];
        if is_end {
            search.end(at)?;
        } else if entry.is_certain() {
            search.begin(at)?;
        } else if let Some(kind) = effects.get(&told_effect(entry)) {
            search.unanswered[*kind as usize].begun += 1;
        }
    }
    Ok(())
}

/// What an operation without an answer does: the value it writes, and what it must find if it is a change.
type EffectKey = (i64, Option<Option<i64>>);

fn told_effect(entry: &Entry) -> EffectKey {
    match entry.effect {
        Effect::CompareAndSet { expected, new } => (new, Some(expected)),
        Effect::Write(value) => (value, None),
        Effect::Read(found) => (found.unwrap_or_default(), Some(found)),
    }
}

/// The effects of unanswered operations, by number, that somebody might find: of the others it does not matter whether
/// they happened.
fn useful_effects(entries: &[Entry]) -> BTreeMap<EffectKey, u32> {
    let found = |entry: &Entry| match entry.effect {
        Effect::Read(found) => found,
        Effect::CompareAndSet { expected, .. } => expected,
        Effect::Write(_) => None,
    };
    let mut wanted: BTreeSet<i64> =
        entries.iter().filter(|entry| entry.is_certain()).filter_map(found).collect();
    let mut effects = BTreeSet::new();
    loop {
        let before = effects.len();
        for entry in entries.iter().filter(|entry| !entry.is_certain()) {
            let effect = told_effect(entry);
            let changes = effect.1 != Some(Some(effect.0));
            if changes && wanted.contains(&effect.0) && effects.insert(effect) {
                wanted.extend(effect.1.flatten());
            }
        }
        if effects.len() == before {
            return effects.into_iter().zip(0..).collect();
        }
    }
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
            for situation in self.situations.iter_mut().filter(|situation| situation.held == found) {
                add(&mut situation.done, at);
            }
        }
        Ok(())
    }

    fn end(&mut self, at: u32) -> Result<(), Failure> {
        let before: BTreeSet<Option<i64>> = self.situations.iter().map(|situation| situation.held).collect();
        let mut passed = Vec::new();
        let (mut seen, mut best) = (Best::default(), Best::default());
        let mut waiting: BTreeMap<usize, Vec<Situation>> = BTreeMap::new();
        for situation in self.situations.drain(..) {
            waiting.entry(situation.used.len()).or_default().push(situation);
        }
        while let Some(mut with_fewest) = waiting.first_entry() {
            let Some(mut situation) = with_fewest.get_mut().pop() else {
                with_fewest.remove();
                continue;
            };
            self.spend(1)?;
            if !seen.take_in(&situation) {
                continue;
            }
            if situation.done.binary_search(&at).is_ok() {
                situation.done.retain(|done| *done != at);
                if best.take_in(&situation) {
                    passed.push(situation);
                }
                continue;
            }
            self.spend(self.open.len() + self.unanswered.len())?;
            for next in self.next(&situation) {
                waiting.entry(next.used.len()).or_default().push(next);
            }
        }
        self.open.remove(&at);
        if passed.is_empty() {
            return Err(Failure::DeadEnd(DeadEnd { entry: at as usize, held: before }));
        }
        self.situations = passed;
        Ok(())
    }

    /// What can be after one more operation has taken effect.
    fn next<'s>(&'s self, situation: &'s Situation) -> impl Iterator<Item = Situation> + 's {
        let answered = self.open.iter().filter_map(|open| self.after(situation, *open));
        let kinds = 0..self.unanswered.len() as u32;
        answered.chain(kinds.filter_map(|kind| self.after_unanswered(situation, kind)))
    }

    /// The situation after operation `at` has taken effect; `None` where it cannot.
    fn after(&self, situation: &Situation, at: u32) -> Option<Situation> {
        let held = match self.entries[at as usize].effect {
            Effect::Write(value) => value,
            Effect::CompareAndSet { expected, new } if situation.held == expected => new,
            Effect::CompareAndSet { .. } | Effect::Read(_) => return None,
        };
        if situation.done.binary_search(&at).is_ok() {
            return None;
        }
        let mut next = Situation { held: Some(held), ..situation.clone() };
        add(&mut next.done, at);
        self.let_read(&mut next);
        Some(next)
    }

    /// The same for one of the unanswered; `None` also where nobody under way would find its value.
    fn after_unanswered(&self, situation: &Situation, kind: u32) -> Option<Situation> {
        let of_kind = &self.unanswered[kind as usize];
        let held = Some(of_kind.new);
        let fits = of_kind.expected.is_none_or(|expected| expected == situation.held);
        if !fits || situation.held == held || !self.is_left(situation, kind) {
            return None;
        }
        let mut next = Situation { held, ..situation.clone() };
        add(&mut next.used, kind);
        let is_read = self.let_read(&mut next);
        let is_open_change = |open: &u32| {
            matches!(self.entries[*open as usize].effect, Effect::CompareAndSet { expected, .. } if expected == held)
                && next.done.binary_search(open).is_err()
        };
        let is_found = is_read
            || self.open.iter().any(is_open_change)
            || (0u32..)
                .zip(&self.unanswered)
                .any(|(other, of_other)| of_other.expected == Some(held) && self.is_left(&next, other));
        is_found.then_some(next)
    }

    /// Whether there is an unanswered operation of a kind that was not used yet.
    fn is_left(&self, situation: &Situation, kind: u32) -> bool {
        let used = situation.used.iter().filter(|used| **used == kind).count();
        used < self.unanswered[kind as usize].begun
    }

    /// Lets all reads that find what is held take effect; says whether there is one.
    fn let_read(&self, situation: &mut Situation) -> bool {
        let mut is_read = false;
        for open in &self.open {
            if self.entries[*open as usize].effect == Effect::Read(situation.held)
                && situation.done.binary_search(open).is_err()
            {
                add(&mut situation.done, *open);
                is_read = true;
            }
        }
        is_read
    }
}
