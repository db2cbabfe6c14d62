//! Disks: how many each host has, and the faults they may get.
//!
//! Owns reading both and finding a disk by its name; when a fault strikes is in `schedule`, which disk a volume lies on
//! the lab's business.

use std::time::Duration;

use crate::decode::{Decoder, Record};
use crate::language::{CORRUPT, DISK, DISKS, HOW, MOST_DISKS, MOST_OPERATIONS, PLAIN_DEFECTS, WHOSE_DISKS};
use crate::places::Places;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{DiskDefect, Disks, Level, Place};
use crate::tree::{Entry, Node, Value};
use crate::units::{format_duration, format_percent};
use crate::wording::{listed, nearest, shortened};

/// Least and most that a slow disk adds: less is not told from a busy machine, more is a disk that stalls.
const LEAST_SLOW: Duration = Duration::from_millis(1);
const MOST_SLOW: Duration = Duration::from_secs(10);
/// What is rarer than this cannot be shown to happen.
const LEAST_CORRUPT: f64 = 0.001;

/// Reads `site.disks`.
pub(crate) fn decode_disks(node: &Node, decoder: &mut Decoder) -> Option<Disks> {
    let record = decoder.record(node, &DISKS)?;
    let mut count = |name: &'static str, what: &str| {
        let count = record.get(name).map(|node| decoder.count(node, what, 1, MOST_DISKS));
        // Within bounds that any u32 holds.
        count.map(|count| count.map(|count| Spanned { value: count.value as u32, at: count.at }))
    };
    let capacity = count("capacity", "the number of capacity disks");
    let groups = count("groups", "the number of disk groups");
    let cache = record.get("cache").map(|node| decoder.flag(node, "`cache`"));
    let one = |given: Option<Option<Spanned<u32>>>| match given {
        None => Some(1),
        Some(given) => given.map(|given| given.value),
    };
    let disks = Disks {
        capacity: one(capacity)?,
        groups: one(groups)?,
        cache: match cache {
            None => false,
            Some(cache) => cache?.value,
        },
    };
    let Some(groups_at) = record.key_at("groups") else { return Some(disks) };
    if !disks.cache {
        decoder.findings.add(
            "missing-key",
            groups_at,
            "`groups` needs `cache: true`: a disk group is what stands behind one cache disk",
            "without cache disks",
            "add `cache: true`, or remove `groups`",
        );
    } else if disks.groups > disks.capacity {
        decoder.findings.add(
            "too-large",
            groups_at,
            format!("{} disk groups of {} capacity disks: a group needs one", disks.groups, disks.capacity),
            "too many groups",
            format!("write {} or less, or add capacity disks", disks.capacity),
        );
    }
    Some(disks)
}

/// A disk fault as written.
pub(crate) struct DiskFaultDocument {
    target: TargetDocument,
    defect: DiskDefect,
}

enum TargetDocument {
    Named(Spanned<String>),
    Of { role: Spanned<&'static str>, cache: bool, key_at: Spot },
}

/// Reads a disk fault.
pub(crate) fn decode_fault(entry: &Entry, decoder: &mut Decoder) -> Option<DiskFaultDocument> {
    let record = decoder.record(&entry.value, &DISK)?;
    let defect = record.get("how").and_then(|node| decode_how(node, decoder));
    let (name, aim) = record.first_of(DISK.exactly_one_of)?;
    let target = match name {
        "disk" => TargetDocument::Named(decoder.text(&aim.value, "a disk's name")?),
        _ => TargetDocument::Of {
            role: decoder.word(&aim.value, "role", WHOSE_DISKS)?,
            cache: name == "cache-of",
            key_at: aim.key_at,
        },
    };
    Some(DiskFaultDocument { target, defect: defect? })
}

fn decode_how(node: &Node, decoder: &mut Decoder) -> Option<DiskDefect> {
    let Value::Map(_) = node.value else {
        let text = decoder.text(node, "what goes wrong")?;
        if let Some(figure) = HOW.exactly_one_of.iter().find(|name| **name == text.value) {
            decoder.findings.add(
                "no-value",
                text.at,
                format!("`{figure}` takes a figure"),
                "without one",
                format!("write `how: {{ {} }}`", example(figure)),
            );
            return None;
        }
        return Some(match decoder.word(node, "way for a disk to go wrong", PLAIN_DEFECTS)?.value {
            "stall" => DiskDefect::Stall,
            "full" => DiskDefect::Full,
            "lose-flush" => DiskDefect::LoseFlush,
            "read-only" => DiskDefect::ReadOnly,
            _ => DiskDefect::Fail,
        });
    };
    let record = decoder.record(node, &HOW)?;
    let (name, entry) = record.first_of(HOW.exactly_one_of)?;
    match name {
        "fail-after" => {
            let count = decoder.count(&entry.value, "the number of operations", 1, MOST_OPERATIONS)?;
            Some(DiskDefect::FailAfter { operations: count.value })
        }
        "slow" => decode_slow(&entry.value, decoder),
        _ => decode_corrupt(&decoder.record(&entry.value, &CORRUPT)?, decoder),
    }
}

fn example(figure: &str) -> &'static str {
    match figure {
        "slow" => "slow: 20ms",
        "corrupt" => "corrupt: { reads: 1% }",
        _ => "fail-after: 1000",
    }
}

fn decode_slow(node: &Node, decoder: &mut Decoder) -> Option<DiskDefect> {
    let by = decoder.duration(node, "`slow`", "ms")?;
    if by.value < LEAST_SLOW {
        let message = format!("a disk that is {} slower is no slow disk", format_duration(by.value));
        decoder.findings.add("too-small", by.at, message, "too little", "write 1ms or more");
    } else if by.value > MOST_SLOW {
        let message = format!("a disk that takes {} for every operation", format_duration(by.value));
        decoder.findings.add("too-large", by.at, message, "too much", "write 10s or less, or `how: stall`");
    }
    Some(DiskDefect::Slow { by: by.value })
}

fn decode_corrupt(record: &Record<'_>, decoder: &mut Decoder) -> Option<DiskDefect> {
    let checksums = record.get("checksums").map(|node| decoder.flag(node, "`checksums`"));
    let reads = decoder.percent(record.get("reads")?, "`reads`")?;
    if reads.value > 1.0 {
        let message = format!("`reads` of {}: more blocks than are read", format_percent(reads.value));
        decoder.findings.add("too-large", reads.at, message, "more than all", "write 100% or less");
    } else if reads.value < LEAST_CORRUPT {
        let message = format!("`reads` of {}: too rare to be shown to happen", format_percent(reads.value));
        decoder.findings.add("too-small", reads.at, message, "too rare", "write 0.1% or more");
    }
    let checksums = match checksums {
        None => false,
        Some(given) => given?.value,
    };
    Some(DiskDefect::Corrupt { share: reads.value, checksums })
}

/// What disk faults are held against.
pub(crate) struct DiskSurroundings<'s> {
    /// Every place of the site.
    pub(crate) places: &'s Places,
    /// Every host's disks.
    pub(crate) disks: Disks,
    /// Whether volumes lie on them, and not in plain directories.
    pub(crate) volumes_on_disks: bool,
}

/// Which disk is meant.
pub(crate) enum FoundDisk {
    /// This one, of a host.
    Named(Place, String),
    /// That of a role.
    Of { role: Spanned<String>, cache: bool },
}

impl DiskSurroundings<'_> {
    /// The disk that is meant and what goes wrong with it; `None` when something is wrong with the fault.
    pub(crate) fn resolve(
        &self,
        fault: &DiskFaultDocument,
        kind_at: Spot,
        findings: &mut Findings,
    ) -> Option<(FoundDisk, DiskDefect)> {
        if !self.volumes_on_disks {
            findings.add(
                "no-disks",
                kind_at,
                "a disk fault of a database whose volumes are plain directories",
                "there is no disk under them",
                "write `volumes: virtual` in `database`, or leave `volumes` out",
            );
            return None;
        }
        let found = match &fault.target {
            TargetDocument::Named(written) => self.named(written, findings)?,
            TargetDocument::Of { cache: true, key_at, .. } if !self.disks.cache => {
                findings.add(
                    "no-cache-disk",
                    *key_at,
                    "the site's hosts have no cache disks",
                    "there is none",
                    "write `site: { disks: { cache: true } }`, or aim at the capacity disk with `of`",
                );
                return None;
            }
            TargetDocument::Of { role, cache, .. } => {
                let role = Spanned { value: role.value.to_owned(), at: role.at };
                FoundDisk::Of { role, cache: *cache }
            }
        };
        Some((found, fault.defect.clone()))
    }

    fn named(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<FoundDisk> {
        let has = listed(&self.disks.names());
        let Some((host, disk)) = written.value.rsplit_once('/') else {
            findings.add(
                "unknown-disk",
                written.at,
                format!("`{}` names no host", shortened(&written.value)),
                "which host's?",
                format!("write the host before it, such as r1/h2/d1; every host has {has}"),
            );
            return None;
        };
        let names = self.disks.names();
        if !names.iter().any(|name| name == disk) {
            let near = nearest(disk, names.iter().map(String::as_str));
            let near = near.map(|near| format!("did you mean `{host}/{near}`? ")).unwrap_or_default();
            findings.add(
                "unknown-disk",
                written.at,
                format!("there is no disk `{}`", shortened(&written.value)),
                "unknown",
                format!("{near}every host has {has}"),
            );
            return None;
        }
        let host = Spanned { value: host.to_owned(), at: written.at };
        let place = self.places.find(&host, Some(Level::Host), findings)?;
        Some(FoundDisk::Named(place, disk.to_owned()))
    }
}

/// How a disk goes wrong, as it is written.
pub(crate) fn written(defect: &DiskDefect) -> String {
    match defect {
        DiskDefect::Fail => "fail".to_owned(),
        DiskDefect::Stall => "stall".to_owned(),
        DiskDefect::Full => "full".to_owned(),
        DiskDefect::LoseFlush => "lose-flush".to_owned(),
        DiskDefect::ReadOnly => "read-only".to_owned(),
        DiskDefect::FailAfter { operations } => format!("{{ fail-after: {operations} }}"),
        DiskDefect::Slow { by } => format!("{{ slow: {} }}", format_duration(*by)),
        DiskDefect::Corrupt { share, checksums } => {
            format!("{{ corrupt: {{ reads: {}, checksums: {checksums} }} }}", format_percent(*share))
        }
    }
}
