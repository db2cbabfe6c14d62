//! YCSB's keys: how they are named, which there are, and which one is asked for next.
//!
//! Owns the counters that inserts move on. Source: `CoreWorkload.buildKeyName`, `AcknowledgedCounterGenerator` and the
//! generators of YCSB. As there, a key is asked for only when its insert has ended and all before it have.

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, RngExt};

use super::settings::{Choice, Settings};
use crate::distribution::zipfian::YCSB_THETA;
use crate::distribution::{Hotspot, ScrambledZipfian, Zipfian, hash};

/// YCSB's exponential choice: this share of all draws falls into this share of the keys.
const EXPONENTIAL_DRAWS: f64 = 0.95;
const EXPONENTIAL_KEYS: f64 = 0.857_142_857_1;

/// A key's name.
pub(super) fn name_of(number: u64, ordered: bool) -> String {
    if ordered { format!("user{number:019}") } else { format!("user{}", hash::fnv64(number)) }
}

enum Chooser {
    Uniform,
    Scrambled(ScrambledZipfian),
    Latest(Zipfian),
    Hotspot(Hotspot),
    Sequential(u64),
    Exponential,
}

/// See the module.
pub(super) struct Keys {
    chooser: Chooser,
    /// Number of the next insert.
    next: u64,
    /// All inserts below this number have ended.
    ended: u64,
    /// Inserts above `ended` that have ended.
    ended_early: BTreeSet<u64>,
    /// Inserts that were refused: there are no such keys.
    refused: BTreeSet<u64>,
}

impl Keys {
    pub(super) fn new(settings: &Settings) -> Self {
        let records = settings.records;
        let chooser = match settings.choice {
            Choice::Uniform => Chooser::Uniform,
            // Popular keys are chosen among those that may still come as well, so that they stay the same ones. YCSB's
            // range ends behind the last record, one that is never asked for, and which keys are popular depends on it.
            Choice::Zipfian => {
                Chooser::Scrambled(ScrambledZipfian::new(if settings.shares[super::INSERT] > 0.0 {
                    records.saturating_mul(2)
                } else {
                    records.saturating_add(1)
                }))
            }
            Choice::Latest => Chooser::Latest(Zipfian::new(records, YCSB_THETA)),
            Choice::Hotspot => {
                Chooser::Hotspot(Hotspot::new(records, settings.hotspot_keys, settings.hotspot_operations))
            }
            Choice::Sequential => Chooser::Sequential(0),
            Choice::Exponential => Chooser::Exponential,
        };
        Keys {
            chooser,
            next: records,
            ended: records,
            ended_early: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// The number of a key to insert.
    pub(super) fn next_insert(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// An insert has ended, and the key may be `there` or certainly is not.
    pub(super) fn inserted(&mut self, number: u64, there: bool) {
        if !there {
            self.refused.insert(number);
        }
        self.ended_early.insert(number);
        while self.ended_early.remove(&self.ended) {
            self.ended += 1;
        }
    }

    /// The number of a key to ask for.
    pub(super) fn draw(&mut self, rng: &mut impl Rng) -> u64 {
        loop {
            let number = self.draw_any(rng);
            if number < self.ended && !self.refused.contains(&number) {
                return number;
            }
        }
    }

    fn draw_any(&mut self, rng: &mut impl Rng) -> u64 {
        match &mut self.chooser {
            Chooser::Uniform => rng.random_range(0..self.ended),
            Chooser::Scrambled(zipfian) => zipfian.draw(rng),
            Chooser::Latest(zipfian) => {
                zipfian.grow(self.ended);
                self.ended - 1 - zipfian.draw(rng).min(self.ended - 1)
            }
            Chooser::Hotspot(hotspot) => hotspot.draw(rng),
            Chooser::Sequential(next) => {
                *next = (*next + 1) % self.ended;
                *next
            }
            Chooser::Exponential => {
                let gamma = -(1.0 - EXPONENTIAL_DRAWS).ln() / (self.ended as f64 * EXPONENTIAL_KEYS);
                let back = -(1.0 - rng.random::<f64>()).ln() / gamma;
                // Beyond the oldest there is nothing: drawn again.
                self.ended.checked_sub(1 + back as u64).unwrap_or(u64::MAX)
            }
        }
    }

    /// The numbers of all keys that may be there.
    pub(super) fn numbers_by_name(&self, ordered: bool) -> BTreeMap<String, u64> {
        (0..self.next).map(|number| (name_of(number, ordered), number)).collect()
    }
}
