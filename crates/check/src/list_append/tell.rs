//! Telling what was found, in sentences that name transactions and can be verified by hand.

use super::cycles::{Cycle, Link};
use super::graph::Edge;
use super::lost::Lost;
use super::record::{Did, Disagreement, Kind, NONE, Record, Transaction};
use super::versions::{LostUpdate, Seen, Versions};

/// Values of a list that are told; of a longer one, the last.
const VALUES_MAX: usize = 6;
/// Steps of a transaction that are told.
const STEPS_MAX: usize = 12;
/// Transactions of a cycle that are told.
const CYCLE_MAX: usize = 12;

/// Tells about one history.
pub(super) struct Teller<'h> {
    pub(super) record: &'h Record,
    pub(super) versions: &'h Versions,
    /// Places of transactions by their arrival.
    pub(super) places: &'h [u32],
}

/// `[1 2 3]`, or `[... 7 8 9]`.
pub(super) fn told_values(values: &[i64]) -> String {
    let told: Vec<String> =
        values[values.len().saturating_sub(VALUES_MAX)..].iter().map(i64::to_string).collect();
    let before = if values.len() > VALUES_MAX { "... " } else { "" };
    format!("[{before}{}]", told.join(" "))
}

impl Teller<'_> {
    fn transaction(&self, place: u32) -> &Transaction {
        &self.record.transactions[place as usize]
    }

    fn place_of(&self, arrival: u32) -> u32 {
        self.places[arrival as usize]
    }

    fn key(&self, key: u32) -> String {
        format!("key {}", self.record.keys.key(key))
    }

    fn list(&self, did: &Did) -> &[i64] {
        &self.record.lists[did.key as usize].branch(did.branch())[..did.length()]
    }

    /// `client 3's transaction (0.100 s to 0.200 s: append 1 to x, read y as [2])`.
    pub(super) fn told(&self, place: u32) -> String {
        let transaction = self.transaction(place);
        let steps = self.record.steps_of(transaction);
        let mut told: Vec<String> = steps.iter().take(STEPS_MAX).map(|did| self.told_step(did)).collect();
        if steps.len() > STEPS_MAX {
            told.push("and so on".to_owned());
        }
        let until = match transaction.completed_s.is_finite() {
            true => format!("to {:.3} s", transaction.completed_s),
            false => "on, without an answer".to_owned(),
        };
        let client = self.record.sessions.told(transaction.session);
        format!("{client}'s transaction ({:.3} s {until}: {})", transaction.invoked_s, told.join(", "))
    }

    fn told_step(&self, did: &Did) -> String {
        let key = self.key(did.key);
        match did.kind {
            Kind::Append | Kind::AppendSuperseded => format!("append {} to {key}", did.value),
            Kind::Read => format!("read {key} as {}", told_values(self.list(did))),
        }
    }

    /// `Let T1 be ..., T2 be .... T1 comes before T2, because ...; but T2 comes before T1, because ...: a contradiction`.
    pub(super) fn told_cycle(&self, cycle: &Cycle) -> String {
        let length = cycle.links.len();
        let name = |at: usize| format!("T{}", at % length + 1);
        let mut told: Vec<String> = Vec::new();
        for (link, at) in cycle.links.iter().take(CYCLE_MAX).zip(0..) {
            told.push(format!("{} be {}", name(at), self.told(link.from)));
        }
        let mut because: Vec<String> = Vec::new();
        for (link, at) in cycle.links.iter().take(CYCLE_MAX).zip(0..) {
            let (from, to) = (name(at), name(at + 1));
            because.push(format!("{from} comes before {to}, because {}", self.told_link(link, &from, &to)));
        }
        let rest = match length.saturating_sub(CYCLE_MAX) {
            0 => String::new(),
            more => format!("; and so on over {more} more, back to T1"),
        };
        let last = because.pop().unwrap_or_default();
        let before = because.join("; ");
        let but = if before.is_empty() { "" } else { "; but " };
        format!("let {}. {before}{but}{last}{rest}: a contradiction", told.join(", "))
    }

    fn told_link(&self, link: &Link, from: &str, to: &str) -> String {
        let Link { edge, .. } = *link;
        match edge {
            Edge::Write => self.told_write(link, from, to),
            Edge::Read => self.told_read(link, from, to),
            Edge::Anti => self.told_anti(link, from, to),
            Edge::Session => {
                let client = self.record.sessions.told(self.transaction(link.from).session);
                format!("{client} made {from} and then {to}")
            }
            Edge::Time | Edge::Further => format!(
                "{from} had ended at {:.3} s and {to} began at {:.3} s",
                self.transaction(link.from).completed_s,
                self.transaction(link.to).invoked_s
            ),
        }
    }

    fn appends(&self, place: u32) -> impl Iterator<Item = &Did> {
        let steps = self.record.steps_of(self.transaction(place)).iter();
        steps.filter(|did| matches!(did.kind, Kind::Append | Kind::AppendSuperseded))
    }

    fn reads(&self, place: u32) -> impl Iterator<Item = &Did> {
        self.record.steps_of(self.transaction(place)).iter().filter(|did| did.kind == Kind::Read)
    }

    /// An append to a list that is in no read of it.
    fn unseen_append(&self, place: u32, key: u32) -> Option<i64> {
        self.versions.unseen.binary_search(&(key, place)).ok()?;
        let values = &self.record.lists[key as usize].values;
        let of_list = self.appends(place).filter(|did| did.key == key);
        of_list.map(|did| did.value).find(|value| !values.contains(value))
    }

    fn told_write(&self, link: &Link, from: &str, to: &str) -> String {
        for key in self.appends(link.from).map(|did| did.key) {
            let values = &self.record.lists[key as usize].values;
            let writers = self.versions.writers(key, 0).iter();
            let known: Vec<(&u32, &i64)> =
                writers.zip(values).filter(|(writer, _)| **writer != NONE).collect();
            let follows = |pair: &&[(&u32, &i64)]| (*pair[0].0, *pair[1].0) == (link.from, link.to);
            let key_name = self.key(key);
            if let Some([(_, one), (_, other)]) = known.windows(2).find(follows) {
                return format!("{from} appended {one} to {key_name} and {to} appended {other} after it");
            }
            if let (Some((writer, last)), Some(value)) = (known.last(), self.unseen_append(link.to, key))
                && **writer == link.from
            {
                return format!(
                    "{from} appended {last} to {key_name}, the last value that any read of it shows, and {to} \
                     appended {value}, which no read shows"
                );
            }
        }
        format!("{from} wrote what {to} wrote over")
    }

    fn told_read(&self, link: &Link, from: &str, to: &str) -> String {
        for did in self.reads(link.to) {
            let list = self.list(did);
            // Where reads contradict each other, a list may be longer than the order that is known of it.
            if let Some(last) = list.last()
                && self.appends(link.from).any(|own| own.key == did.key && own.value == *last)
            {
                let key = self.key(did.key);
                return format!("{to} read {key} as {}, of which {from} appended {last}", told_values(list));
            }
        }
        format!("{to} read what {from} wrote")
    }

    fn told_anti(&self, link: &Link, from: &str, to: &str) -> String {
        for did in self.reads(link.from) {
            let (list, key) = (self.list(did), self.key(did.key));
            let next = self.versions.writers(did.key, 0).get(list.len());
            let missed = match next {
                Some(next) if *next == link.to => {
                    self.record.lists[did.key as usize].values.get(list.len()).copied()
                }
                Some(_) => None,
                None => self.unseen_append(link.to, did.key),
            };
            if let Some(value) = missed {
                return format!(
                    "{from} read {key} as {} and did not see {value}, which {to} appended",
                    told_values(list)
                );
            }
        }
        format!("{from} did not see what {to} wrote")
    }

    pub(super) fn told_aborted(&self, seen: &Seen) -> String {
        format!(
            "{} read {} of {}, although {} was refused",
            self.told(seen.reader),
            seen.value,
            self.key(seen.key),
            self.told(seen.writer)
        )
    }

    pub(super) fn told_intermediate(&self, seen: &Seen) -> String {
        format!(
            "{} read {} up to {}, a state in the middle of {}",
            self.told(seen.reader),
            self.key(seen.key),
            seen.value,
            self.told(seen.writer)
        )
    }

    pub(super) fn told_invented(&self, seen: &Seen) -> String {
        format!(
            "{} read {} of {}, which no client appended",
            self.told(seen.reader),
            seen.value,
            self.key(seen.key)
        )
    }

    pub(super) fn told_dirty_update(&self, seen: &Seen) -> String {
        format!(
            "{} appended to {} on top of {}, which was appended by {}, which was refused",
            self.told(seen.reader),
            self.key(seen.key),
            seen.value,
            self.told(seen.writer)
        )
    }

    pub(super) fn told_future(&self, seen: &Seen) -> String {
        format!(
            "{} read {} of {} before it appended it",
            self.told(seen.reader),
            seen.value,
            self.key(seen.key)
        )
    }

    pub(super) fn told_out_of_order(&self, seen: &Seen) -> String {
        format!(
            "{} is in {} without what {} had appended before it",
            seen.value,
            self.key(seen.key),
            self.told(seen.writer)
        )
    }

    pub(super) fn told_lost_update(&self, LostUpdate { read, one, other }: &LostUpdate) -> String {
        format!(
            "both {} and {} read {} as {} and then appended to it, so neither knew of the other's",
            self.told(*one),
            self.told(*other),
            self.key(read.key),
            told_values(self.list(read))
        )
    }

    pub(super) fn told_lost(&self, lost: &Lost) -> String {
        format!("{} of {}, appended by {}", lost.value, self.key(lost.key), self.told(lost.writer))
    }

    pub(super) fn told_duplicate(&self, (key, value): &(u32, i64)) -> String {
        format!("{value} is in {} more often than it was appended", self.key(*key))
    }

    pub(super) fn told_disagreement(&self, one: &Disagreement) -> String {
        format!(
            "{} read {} as {}, although by what it had done itself it must {} {}",
            self.told(self.place_of(one.transaction)),
            self.key(one.key),
            told_values(&one.found),
            if one.is_end_only { "end with" } else { "be" },
            told_values(&one.expected)
        )
    }

    pub(super) fn told_incompatible(&self, key: u32) -> String {
        let list = &self.record.lists[key as usize];
        let Some(other) = list.others.first() else { return self.key(key) };
        let same = list.values.iter().zip(other).take_while(|(one, other)| one == other).count();
        let mut told: Vec<(u32, String)> = [(0, &list.values), (1, other)]
            .into_iter()
            .filter_map(|(branch, values)| {
                let is_all = |did: &Did| (did.key, did.branch(), did.length()) == (key, branch, values.len());
                let place = (0..).zip(&self.record.transactions).find_map(|(place, transaction)| {
                    let mut reads = self.record.steps_of(transaction).iter();
                    reads.any(|did| did.kind == Kind::Read && is_all(did)).then_some(place)
                })?;
                let client = self.record.sessions.told(self.transaction(place).session);
                let start = told_values(&values[..values.len().min(same + 2)]);
                let at_s = self.transaction(place).completed_s;
                Some((place, format!("{client} at {at_s:.3} s as beginning {start}")))
            })
            .collect();
        told.sort();
        let told: Vec<String> = told.into_iter().map(|(_, told)| told).collect();
        format!("{} was read by {}", self.key(key), told.join(" and by "))
    }
}
