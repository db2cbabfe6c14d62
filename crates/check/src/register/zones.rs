//! One register whose values are each written once, judged in the time of sorting.
//!
//! After Gibbons and Korach, "Testing shared memories" (1997): a write and the reads of its value make a cluster. Take
//! the first moment at which one of them had ended and the last at which one of them began. If the former comes first,
//! the register held the value all the time between them (a forward zone): no two of these may overlap. Otherwise one
//! moment is enough, anywhere between (a backward zone): it must not lie inside a forward zone.
//!
//! Extended here to compare-and-set: a change from a to b ends a's time and begins b's at once, so the two clusters
//! stand next to each other in every order, and chains of changes make one block of clusters. Two things must hold of a
//! block. It must be possible in itself: going along it, taking each operation as early as those before it allow, none
//! comes after its own end. And its zone, taken over all its operations, must fit between the others' zones. This is
//! enough: let the block be possible with some moments for its operations, and let its zone be forward, from f to s.
//! Every operation begins at s or before and ends at f or later; so a moment before f can be moved to f, and one after
//! s to s, which keeps all in order, and the block needs the time from f to s only. If its zone is backward, all its
//! operations share the time between, and any one moment of it does for all of them, in the order of the chain.
//!
//! And to operations without an answer: they end at infinity. One whose value nobody saw is left out, which can only
//! make room; one whose value was seen has happened.
//!
//! Moments at the same time can be put in any order, so zones may touch: one operation precedes another only if it ended
//! strictly before the other began.

use super::{Effect, Entry};

/// Why not.
#[derive(Debug)]
pub(super) enum Failure {
    /// The history is not linearizable.
    Violation(Violation),
    /// A value is written more than once: not for this file to judge.
    ValueWrittenTwice,
}

/// A reason why a history is not linearizable. Entries by their place in the slice.
#[derive(Debug)]
pub(super) enum Violation {
    NeverWritten {
        reader: usize,
    },
    TwoSuccessors {
        one: usize,
        other: usize,
    },
    Circle {
        member: usize,
    },
    /// `later` must come after `earlier`, and had ended before it began.
    TooLate {
        earlier: usize,
        later: usize,
    },
    /// Two forward zones.
    Overlap {
        one: Zone,
        other: Zone,
    },
    /// A backward zone inside a forward one.
    Within {
        held: Zone,
        within: Zone,
    },
}

/// The time of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zone {
    /// The entry that ended first.
    pub(super) first_to_end: usize,
    /// The entry that began last.
    pub(super) last_to_begin: usize,
    first_end_s: f64,
    last_begin_s: f64,
}

impl Zone {
    const EMPTY: Zone = Zone {
        first_to_end: usize::MAX,
        last_to_begin: usize::MAX,
        first_end_s: f64::INFINITY,
        last_begin_s: f64::NEG_INFINITY,
    };

    fn take_in(&mut self, entries: &[Entry], at: usize) {
        let Entry { invoked_s, completed_s, .. } = entries[at];
        if completed_s < self.first_end_s || self.first_to_end == usize::MAX {
            (self.first_to_end, self.first_end_s) = (at, completed_s);
        }
        if invoked_s > self.last_begin_s || self.last_to_begin == usize::MAX {
            (self.last_to_begin, self.last_begin_s) = (at, invoked_s);
        }
    }

    fn is_forward(&self) -> bool {
        self.first_end_s < self.last_begin_s
    }

    /// Whether it is that of the register before it was written.
    pub(super) fn is_from_the_start(&self) -> bool {
        self.first_end_s == f64::NEG_INFINITY
    }

    /// `3`, or `3 and then, by changes, 5`: what the register held in the zone.
    pub(super) fn told_values(&self, entries: &[Entry]) -> String {
        let value = |at: usize, after: bool| {
            let value = match entries[at].effect {
                Effect::Read(value) => value,
                Effect::Write(value) => Some(value),
                Effect::CompareAndSet { expected, new } => {
                    if after {
                        Some(new)
                    } else {
                        expected
                    }
                }
            };
            value.map_or("nothing".to_owned(), |value| value.to_string())
        };
        let first = match self.is_from_the_start() {
            true => "nothing".to_owned(),
            false => value(self.first_to_end, true),
        };
        let last = value(self.last_to_begin, false);
        if first == last { first } else { format!("{first} and then, by changes alone, {last}") }
    }
}

/// One value of the register, with who wrote and who read it.
#[derive(Debug, Clone, Copy)]
struct Cluster {
    value: i64,
    /// None for the value that a register has before it is written.
    writer: Option<u32>,
    /// The read that ended first.
    first_read_to_end: Option<u32>,
    /// The read that began last.
    last_read_to_begin: Option<u32>,
    /// The change that took this value away, and the cluster it led to.
    change: Option<(u32, u32)>,
    has_happened: bool,
    is_placed: bool,
}

impl Cluster {
    fn of(value: i64, writer: Option<u32>, has_happened: bool) -> Cluster {
        Cluster {
            value,
            writer,
            first_read_to_end: None,
            last_read_to_begin: None,
            change: None,
            has_happened,
            is_placed: false,
        }
    }
}

/// All clusters: those of written values in order of the value, then that of the empty register.
struct Clusters<'a> {
    entries: &'a [Entry],
    clusters: Vec<Cluster>,
}

/// Judges the entries of one key.
pub(super) fn judge(entries: &[Entry]) -> Result<(), Failure> {
    let mut clusters = Clusters::of_writes(entries)?;
    clusters.take_in_readers().map_err(Failure::Violation)?;
    let zones = clusters.place_blocks().map_err(Failure::Violation)?;
    fit(zones).map_err(Failure::Violation)
}

impl<'a> Clusters<'a> {
    fn of_writes(entries: &'a [Entry]) -> Result<Self, Failure> {
        let mut clusters: Vec<Cluster> = entries
            .iter()
            .zip(0u32..)
            .filter_map(|(entry, at)| {
                entry.written().map(|value| Cluster::of(value, Some(at), entry.is_certain()))
            })
            .collect();
        clusters.sort_unstable_by_key(|cluster| (cluster.value, cluster.writer));
        if clusters.windows(2).any(|pair| pair[0].value == pair[1].value) {
            return Err(Failure::ValueWrittenTwice);
        }
        clusters.push(Cluster::of(0, None, true));
        Ok(Clusters { entries, clusters })
    }

    fn find(&self, value: Option<i64>) -> Option<u32> {
        let written = &self.clusters[..self.clusters.len() - 1];
        let at = match value {
            Some(value) => written.binary_search_by_key(&value, |cluster| cluster.value).ok()?,
            None => written.len(),
        };
        u32::try_from(at).ok()
    }

    /// Tells every cluster who read it and who changed it; finds which operations without an answer have happened.
    fn take_in_readers(&mut self) -> Result<(), Violation> {
        let mut happened = Vec::new();
        for (entry, at) in self.entries.iter().zip(0u32..) {
            if !entry.is_certain() {
                continue;
            }
            match entry.effect {
                Effect::Read(value) => {
                    let cluster = self.seen(value, at, &mut happened)?;
                    self.read_by(cluster, at);
                }
                Effect::CompareAndSet { expected, .. } => self.changed_by(expected, at, &mut happened)?,
                Effect::Write(_) => {}
            }
        }
        // What was seen of an operation without an answer may itself rest on another one.
        while let Some(at) = happened.pop() {
            if let Effect::CompareAndSet { expected, .. } = self.entries[at as usize].effect {
                self.changed_by(expected, at, &mut happened)?;
            }
        }
        Ok(())
    }

    /// The cluster of a value that entry `at` saw.
    fn seen(&mut self, value: Option<i64>, at: u32, happened: &mut Vec<u32>) -> Result<u32, Violation> {
        let found = self.find(value).ok_or(Violation::NeverWritten { reader: at as usize })?;
        let cluster = &mut self.clusters[found as usize];
        if !cluster.has_happened {
            cluster.has_happened = true;
            happened.extend(cluster.writer);
        }
        Ok(found)
    }

    fn read_by(&mut self, cluster: u32, at: u32) {
        let entries = self.entries;
        let cluster = &mut self.clusters[cluster as usize];
        let entry = |at: u32| &entries[at as usize];
        if cluster.first_read_to_end.is_none_or(|first| entry(at).completed_s < entry(first).completed_s) {
            cluster.first_read_to_end = Some(at);
        }
        if cluster.last_read_to_begin.is_none_or(|last| entry(at).invoked_s > entry(last).invoked_s) {
            cluster.last_read_to_begin = Some(at);
        }
    }

    fn changed_by(
        &mut self,
        expected: Option<i64>,
        at: u32,
        happened: &mut Vec<u32>,
    ) -> Result<(), Violation> {
        let from = self.seen(expected, at, happened)?;
        let to = self.find(self.entries[at as usize].written());
        let to = to.ok_or(Violation::NeverWritten { reader: at as usize })?;
        if let Some((other, _)) = self.clusters[from as usize].change {
            return Err(Violation::TwoSuccessors { one: other as usize, other: at as usize });
        }
        self.clusters[from as usize].change = Some((at, to));
        Ok(())
    }

    /// Goes along every block, and gives its zone.
    fn place_blocks(&mut self) -> Result<Vec<Zone>, Violation> {
        let mut zones = Vec::new();
        for first in 0..self.clusters.len() {
            let Cluster { writer, has_happened, .. } = self.clusters[first];
            let begins_a_block = match writer {
                None => true,
                Some(writer) => matches!(self.entries[writer as usize].effect, Effect::Write(_)),
            };
            if has_happened && begins_a_block {
                zones.push(self.place_block(first)?);
            }
        }
        // Whatever has happened and is in no block rests on changes that rest on it.
        let left = self.clusters.iter().find(|cluster| cluster.has_happened && !cluster.is_placed);
        match left.and_then(|cluster| cluster.writer) {
            Some(member) => Err(Violation::Circle { member: member as usize }),
            None => Ok(zones),
        }
    }

    fn place_block(&mut self, first: usize) -> Result<Zone, Violation> {
        let entries = self.entries;
        let mut zone = Zone::EMPTY;
        // The moment reached, and the entry whose beginning it is.
        let mut reached = (f64::NEG_INFINITY, None::<u32>);
        let mut place = |at: u32, moves_on: bool| {
            let entry = &entries[at as usize];
            zone.take_in(entries, at as usize);
            match reached {
                (reached_s, Some(earlier)) if reached_s > entry.completed_s => {
                    return Err(Violation::TooLate { earlier: earlier as usize, later: at as usize });
                }
                (reached_s, _) if moves_on && entry.invoked_s > reached_s => {
                    reached = (entry.invoked_s, Some(at));
                }
                _ => {}
            }
            Ok(())
        };
        let mut is_empty_register = false;
        let mut next = Some(first);
        while let Some(at) = next {
            let cluster = &mut self.clusters[at];
            cluster.is_placed = true;
            match cluster.writer {
                Some(writer) => place(writer, true)?,
                None => is_empty_register = true,
            }
            // The read that ends first must come after the write; the one that begins last is the one to wait for.
            cluster.first_read_to_end.map_or(Ok(()), |read| place(read, false))?;
            cluster.last_read_to_begin.map_or(Ok(()), |read| place(read, true))?;
            next = cluster.change.map(|(_, to)| to as usize);
        }
        if is_empty_register {
            // The register was empty before anything began.
            zone.first_end_s = f64::NEG_INFINITY;
        }
        Ok(zone)
    }
}

/// Whether the zones fit beside each other.
fn fit(zones: Vec<Zone>) -> Result<(), Violation> {
    let (mut forward, backward): (Vec<Zone>, Vec<Zone>) = zones.into_iter().partition(Zone::is_forward);
    forward.sort_unstable_by(|one, other| one.first_end_s.total_cmp(&other.first_end_s));
    for pair in forward.windows(2) {
        if pair[1].first_end_s < pair[0].last_begin_s {
            return Err(Violation::Overlap { one: pair[0], other: pair[1] });
        }
    }
    for within in backward {
        let after = forward.partition_point(|zone| zone.first_end_s < within.last_begin_s);
        if let Some(held) = after.checked_sub(1).map(|at| forward[at])
            && within.first_end_s < held.last_begin_s
        {
            return Err(Violation::Within { held, within });
        }
    }
    Ok(())
}
