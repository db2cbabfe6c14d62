//! Convergence: when all is healed and quiet, every replica holds the same; and on the way no client saw a register go
//! back in time.
//!
//! For stores that promise no more than that (Terry and others, "Session guarantees for weakly consistent replicated
//! data", 1994). Which of two versions is the newer one nobody says, so it is inferred from what the promises allow: a
//! client that read one value and then another says that the second is newer (monotonic reads), one that wrote a value
//! and then read another, the same (read your writes). A circle of such statements cannot be kept by any order. What the
//! replicas agree on in the end must be the newest of all. A write without a definite answer that no client has read may
//! reach one replica before that is read and another after: where replicas differ by such a write alone, nothing is known.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use history::{Action, Key, Operation, Outcome, Verdict};

use crate::Check;
use crate::components::{Components, Walk, cyclic};
use crate::names::{Keys, Sessions, numbered};
use crate::report::Report;
use crate::soundness::{Contradiction, check_times};
use crate::story::{Story, counted, with_examples};

/// The check's name.
pub const NAME: &str = "convergence";

/// Judges a whole history.
#[must_use]
pub fn check<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Report {
    let mut convergence = Box::<Convergence>::default();
    for operation in operations {
        convergence.observe(operation);
    }
    convergence.conclude()
}

/// Something a client wrote or read.
#[derive(Debug, Clone, Copy)]
struct Touch {
    key: u32,
    session: u32,
    invoked_s: f64,
    completed_s: f64,
    /// Nothing, for a read of a register that holds nothing.
    value: Option<i64>,
    is_write: bool,
    outcome: Outcome,
}

/// What one replica held in the end.
#[derive(Debug, Default, Clone)]
struct Replica {
    began_s: f64,
    values: BTreeMap<Key, i64>,
    is_begun: bool,
    is_complete: bool,
}

/// The convergence check, to be fed operation by operation.
#[derive(Debug, Default)]
pub struct Convergence {
    touches: Vec<Touch>,
    replicas: BTreeMap<String, Replica>,
    keys: Keys,
    sessions: Sessions,
    contradiction: Option<Contradiction>,
}

impl Check for Convergence {
    fn observe(&mut self, operation: &Operation) {
        let (key, value, is_write) = match &operation.action {
            Action::RegisterRead { key, value } => (key, *value, false),
            Action::RegisterWrite { key, value } => (key, Some(*value), true),
            Action::RegisterCompareAndSet { key, new, .. } => (key, Some(*new), true),
            Action::ReplicaRead { replica, values, complete } => {
                return self.observe_replica(operation, replica, values, *complete);
            }
            _ => return,
        };
        if let Err(contradiction) = check_times(operation) {
            self.contradiction.get_or_insert(contradiction);
            return;
        }
        if !is_write && operation.outcome != Outcome::Ok {
            return;
        }
        let touch = Touch {
            key: self.keys.number_of(key),
            session: self.sessions.number_of(operation),
            invoked_s: operation.invoked_s,
            completed_s: operation.completed_s,
            value,
            is_write,
            outcome: operation.outcome,
        };
        self.touches.push(touch);
    }

    fn conclude(mut self: Box<Self>) -> Report {
        let ranks = self.sessions.ranks();
        self.touches.sort_by(|one, other| {
            (self.keys.key(one.key).cmp(self.keys.key(other.key)))
                .then(ranks[one.session as usize].cmp(&ranks[other.session as usize]))
                .then(one.invoked_s.total_cmp(&other.invoked_s))
                .then(one.completed_s.total_cmp(&other.completed_s))
        });
        let writes =
            |outcome| self.touches.iter().filter(|touch| touch.is_write && touch.outcome == outcome).count();
        let mut report = Report::new(NAME);
        report.acknowledged = Some(writes(Outcome::Ok) as u64);
        report.indeterminate = Some(writes(Outcome::Unknown) as u64);
        report.count("refused", writes(Outcome::Fail));
        report.count("keys", self.keys.len());
        report.count("replicas", self.replicas.len());
        (report.verdict, report.explanation) = self.judge(&mut report);
        report
    }
}

/// The versions of all registers, and which of them are said to be newer than which.
#[derive(Debug, Default)]
struct Ages {
    /// By key and value.
    versions: HashMap<(u32, i64), u32>,
    /// For each version what is newer, with the touches that say so.
    newer: Vec<Vec<(u32, usize, usize)>>,
    /// Keys to which a value was written more than once.
    reused: BTreeSet<u32>,
    invented: Vec<usize>,
    /// A value seen or written, then nothing.
    vanished: Vec<(usize, usize)>,
}

impl Walk for Ages {
    fn nodes(&self) -> u32 {
        numbered(self.newer.len())
    }

    fn next(&self, node: u32, cursor: &mut u32) -> Option<u32> {
        let found = self.newer[node as usize].get(*cursor as usize).map(|(newer, ..)| *newer);
        *cursor += 1;
        found
    }
}

impl Convergence {
    fn observe_replica(&mut self, operation: &Operation, name: &str, values: &[(Key, i64)], complete: bool) {
        if let Err(contradiction) = check_times(operation) {
            self.contradiction.get_or_insert(contradiction);
            return;
        }
        let replica = self.replicas.entry(name.to_owned()).or_default();
        if operation.outcome != Outcome::Ok {
            // What was read before it broke off is not everything, and whoever reads again begins anew.
            if !replica.is_complete {
                *replica = Replica::default();
            }
            return;
        }
        if replica.is_complete || !replica.is_begun {
            *replica = Replica { began_s: operation.invoked_s, is_begun: true, ..Replica::default() };
        }
        replica.values.extend(values.iter().cloned());
        replica.is_complete = complete;
    }

    fn judge(&self, report: &mut Report) -> (Verdict, String) {
        let mut story = Story::default();
        if let Some(contradiction) = &self.contradiction {
            story.doubt(format!("the history contradicts itself, so it proves nothing: {contradiction}"));
            return story.conclude(String::new());
        }
        let ages = self.ages();
        self.judge_sessions(&ages, report, &mut story);
        self.judge_replicas(&ages, report, &mut story);
        if !ages.reused.is_empty() {
            let reused: Vec<u32> = ages.reused.iter().copied().collect();
            let claim = "values were written more than once, so their order is unknown, for key";
            story.doubt(with_examples(claim, &reused, |key| self.keys.key(*key).to_string()));
        }
        if report.acknowledged == Some(0) {
            story.doubt("no write was acknowledged, so there was nothing to agree on".into());
        }
        story.conclude(format!(
            "{} hold the same in the end, and no client saw any of {} go back in time",
            counted(self.replicas.len(), "replica"),
            counted(self.keys.len(), "register")
        ))
    }

    /// Goes through what every client did to every register.
    fn ages(&self) -> Ages {
        let mut ages = Ages::default();
        for touch in self.touches.iter().filter(|touch| touch.is_write && touch.outcome != Outcome::Fail) {
            let Some(value) = touch.value else { continue };
            let next = numbered(ages.versions.len());
            match ages.versions.entry((touch.key, value)) {
                Entry::Vacant(version) => drop(version.insert(next)),
                // Nothing is said of the order of such a key's values.
                Entry::Occupied(_) => drop(ages.reused.insert(touch.key)),
            }
        }
        ages.newer = vec![Vec::new(); ages.versions.len()];
        let same = |one: &Touch, other: &Touch| (one.key, one.session) == (other.key, other.session);
        let mut first = 0;
        for of_client in self.touches.chunk_by(same) {
            self.follow(first, of_client, &mut ages);
            first += of_client.len();
        }
        ages
    }

    /// What one client says about one register.
    fn follow(&self, first: usize, touches: &[Touch], ages: &mut Ages) {
        // What is certainly not newer than what is read next: the last read, and own writes since.
        let mut before: Vec<usize> = Vec::new();
        for (touch, at) in touches.iter().zip(first..) {
            match (touch.is_write, touch.outcome) {
                (true, Outcome::Ok) => before.push(at),
                (true, _) => {}
                (false, _) => {
                    // A client that has two at once keeps no order between them.
                    before.retain(|seen| self.touches[*seen].completed_s <= touch.invoked_s);
                    let Some(value) = touch.value else {
                        ages.vanished.extend(before.last().map(|seen| (*seen, at)));
                        continue;
                    };
                    let Some(newer) = ages.versions.get(&(touch.key, value)).copied() else {
                        ages.invented.push(at);
                        continue;
                    };
                    for older in before.drain(..) {
                        let version = self.touches[older].value.map(|value| (touch.key, value));
                        let version = version.and_then(|version| ages.versions.get(&version).copied());
                        if let Some(version) = version.filter(|version| *version != newer)
                            && !ages.reused.contains(&touch.key)
                        {
                            ages.newer[version as usize].push((newer, older, at));
                        }
                    }
                    before.push(at);
                }
            }
        }
    }

    fn told(&self, at: usize) -> String {
        let touch = &self.touches[at];
        let client = self.sessions.told(touch.session);
        let value = touch.value.map_or("nothing".to_owned(), |value| value.to_string());
        let verb = if touch.is_write { "wrote" } else { "read" };
        format!("{client} {verb} {value} ({:.3} s to {:.3} s)", touch.invoked_s, touch.completed_s)
    }

    fn judge_sessions(&self, ages: &Ages, report: &mut Report, story: &mut Story) {
        report.count("invented", ages.invented.len());
        if !ages.invented.is_empty() {
            let claim =
                format!("{} found a value that no client wrote", counted(ages.invented.len(), "read"));
            story.fail(with_examples(&claim, &ages.invented, |at| {
                format!("key {}: {}", self.keys.key(self.touches[*at].key), self.told(*at))
            }));
        }
        report.count("vanished", ages.vanished.len());
        if !ages.vanished.is_empty() {
            let claim =
                format!("{} found nothing where a value was written", counted(ages.vanished.len(), "read"));
            story.fail(with_examples(&claim, &ages.vanished, |(seen, at)| {
                let key = self.keys.key(self.touches[*at].key);
                format!("key {key}: {}, then {}", self.told(*seen), self.told(*at))
            }));
        }
        let circles = cyclic(ages);
        report.count("circles", circles.as_ref().map_or(0, |found| found.count as usize));
        if let Some(found) = circles {
            let claim =
                format!("in {} clients saw registers go back in time", counted(found.count as usize, "case"));
            let told: Vec<String> =
                (0..found.count.min(6)).map(|of| self.tell_circle(ages, &found, of)).collect();
            story.fail(with_examples(&claim, &told, String::clone));
        }
    }

    /// The shortest circle through the first version of a component.
    fn tell_circle(&self, ages: &Ages, components: &Components, component: u32) -> String {
        let is_member = |node: u32| components.of[node as usize] == component;
        let Some(start) = (0..ages.nodes()).find(|node| is_member(*node)) else { return String::new() };
        let mut came_from: BTreeMap<u32, (u32, usize, usize)> = BTreeMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            for (newer, older, at) in ages.newer[node as usize].iter().filter(|edge| is_member(edge.0)) {
                if !came_from.contains_key(newer) {
                    came_from.insert(*newer, (node, *older, *at));
                    waiting.push_back(*newer);
                }
            }
            if came_from.contains_key(&start) {
                break;
            }
        }
        let mut told = Vec::new();
        let mut key = 0;
        let mut at = start;
        while let Some((from, older, newer)) = came_from.get(&at) {
            told.push(format!("{}, then {}", self.told(*older), self.told(*newer)));
            (at, key) = (*from, self.touches[*newer].key);
            if at == start {
                break;
            }
        }
        told.reverse();
        format!("key {}: {}: no order of the values explains this", self.keys.key(key), told.join("; "))
    }

    fn judge_replicas(&self, ages: &Ages, report: &mut Report, story: &mut Story) {
        let complete: Vec<(&String, &Replica)> =
            self.replicas.iter().filter(|(_, replica)| replica.is_complete).collect();
        if complete.len() < 2 || complete.len() < self.replicas.len() {
            story.doubt(format!(
                "{} of {} read to the end, so it is not known whether all agree",
                complete.len(),
                counted(self.replicas.len(), "replica")
            ));
        }
        let writes = || self.touches.iter().filter(|touch| touch.is_write && touch.outcome == Outcome::Ok);
        let began_s = complete.iter().map(|(_, replica)| replica.began_s).fold(f64::INFINITY, f64::min);
        let late = writes().filter(|touch| touch.completed_s > began_s).count();
        if late > 0 {
            let claim = counted(late, "write");
            story.doubt(format!(
                "{claim} ended after the replicas were first read, so they need not agree yet"
            ));
            return;
        }
        let keys: BTreeSet<&Key> = complete.iter().flat_map(|(_, replica)| replica.values.keys()).collect();
        let value_in = |key: &Key, replica: &Replica| replica.values.get(key).copied();
        let differs =
            |key: &&Key| complete.windows(2).any(|pair| value_in(key, pair[0].1) != value_in(key, pair[1].1));
        let on_their_way = self.on_their_way();
        let differs_for_certain = |key: &&Key| {
            let open = on_their_way.get(*key);
            let held = complete.iter().map(|(_, replica)| value_in(key, replica));
            let is_settled =
                |held: &Option<i64>| held.is_none_or(|value| open.is_none_or(|open| !open.contains(&value)));
            held.filter(is_settled).collect::<BTreeSet<Option<i64>>>().len() > 1
        };
        let (diverged, open): (Vec<&Key>, Vec<&Key>) =
            keys.into_iter().filter(differs).partition(differs_for_certain);
        report.count("diverged", diverged.len());
        if !diverged.is_empty() {
            let claim = format!("replicas differ in {}", counted(diverged.len(), "register"));
            story.fail(with_examples(&claim, &diverged, |key| told_of_replicas(key, &complete)));
        }
        if !open.is_empty() {
            let claim = format!(
                "replicas differ in {}, but only by writes without a definite answer, which may be on their way",
                counted(open.len(), "register")
            );
            story.doubt(with_examples(&claim, &open, |key| told_of_replicas(key, &complete)));
        }
        if let Some((name, replica)) = complete.first() {
            self.judge_end(ages, name, replica, report, story);
        }
    }

    /// Values written without a definite answer that no client has read, by key.
    fn on_their_way(&self) -> BTreeMap<&Key, BTreeSet<i64>> {
        let mut values: BTreeMap<&Key, BTreeSet<i64>> = BTreeMap::new();
        let is_open = |touch: &&Touch| touch.is_write && touch.outcome == Outcome::Unknown;
        for touch in self.touches.iter().filter(is_open) {
            values.entry(self.keys.key(touch.key)).or_default().extend(touch.value);
        }
        for read in self.touches.iter().filter(|touch| !touch.is_write) {
            if let (Some(value), Some(of_key)) = (read.value, values.get_mut(self.keys.key(read.key))) {
                of_key.remove(&value);
            }
        }
        values
    }

    /// Whether what a replica holds in the end is there by right, and is the newest.
    fn judge_end(&self, ages: &Ages, name: &str, replica: &Replica, report: &mut Report, story: &mut Story) {
        let mut wrong: Vec<String> = Vec::new();
        for touches in self.touches.chunk_by(|one, other| one.key == other.key) {
            let key = self.keys.key(touches[0].key);
            let acknowledged = touches.iter().find(|touch| touch.is_write && touch.outcome == Outcome::Ok);
            let Some(held) = replica.values.get(key) else {
                wrong.extend(acknowledged.map(|write| {
                    let client = self.sessions.told(write.session);
                    format!("key {key} holds nothing, although a write by {client} was acknowledged")
                }));
                continue;
            };
            match ages.versions.get(&(touches[0].key, *held)) {
                None => wrong.push(format!("key {key} holds {held}, which no client wrote")),
                Some(version) => {
                    wrong.extend(ages.newer[*version as usize].first().map(|(_, older, newer)| {
                        let (older, newer) = (self.told(*older), self.told(*newer));
                        format!("key {key} holds {held}, which is not the newest: {older}, then {newer}")
                    }))
                }
            }
        }
        let invented = replica.values.keys().filter(|key| !self.keys.knows(key));
        wrong.extend(invented.map(|key| format!("key {key} is there, to which no client wrote")));
        report.count("wrong_at_the_end", wrong.len());
        if !wrong.is_empty() {
            let claim = format!("in the end {name} is wrong in {}", counted(wrong.len(), "register"));
            story.fail(with_examples(&claim, &wrong, String::clone));
        }
    }
}

/// `key x is 2 on n1, nothing on n2`.
fn told_of_replicas(key: &Key, replicas: &[(&String, &Replica)]) -> String {
    let told = replicas.iter().map(|(name, replica)| match replica.values.get(key) {
        Some(value) => format!("{value} on {name}"),
        None => format!("nothing on {name}"),
    });
    format!("key {key} is {}", told.collect::<Vec<_>>().join(", "))
}
