//! Disk faults: a disk under a node's volume goes wrong.

use std::time::Duration;

use serde::Serialize;

use super::targets::{ElectedRole, FaultTarget, Surroundings, end};
use super::{Aim, Clause, Facts, FaultAction, FaultKind, Form, Nodes, Story, Takes, Written};
use crate::decode::{Decoder, Record};
use crate::language::{Fields, PLACE, Shape, choice, optional, plain, required};
use crate::quoted::quoted;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{Level, Place};
use crate::tree::{Entry, Node, Value};
use crate::units::{format_duration, format_percent};
use crate::wording::{listed, nearest, shortened};

/// Most operations after which a disk fails.
const MOST_OPERATIONS: u64 = 1_000_000_000;
/// Least and most that a slow disk adds: less is not told from a busy machine, more is a disk that stalls.
const LEAST_SLOW: Duration = Duration::from_millis(1);
const MOST_SLOW: Duration = Duration::from_secs(10);
/// What is rarer than this cannot be shown to happen.
const LEAST_CORRUPT: f64 = 0.001;

pub(super) const KIND: FaultKind = FaultKind {
    name: "disk",
    noun: "disk fault",
    summary: "a disk fails, stalls, slows down, fills up, returns wrong data, loses flushes or becomes read-only; a cache disk takes its group with it",
    meaning: "a disk under a node's volume fails, stalls, slows down, fills up, returns wrong data, loses flushes or becomes read-only, until the fault is healed; a cache disk takes its group with it",
    examples: &[
        "- { disk: { of: leader, how: fail }, for: 20s }",
        "- { disk: { cache-of: leader, how: stall }, for: 5s }",
        "- { disk: { disk: r1/h2/d1, how: { slow: 20ms } } }",
        "- { disk: { of: a-follower, how: { fail-after: 1000 } } }",
        "- { disk: { of: leader, how: { corrupt: { reads: 1%, checksums: true } } } }",
        "- { disk: { of: leader, how: lose-flush }, for: 10s }",
    ],
    story: Story { clause: Clause::Target("a disk went wrong"), nodes: Nodes::With },
    keys: &DISK,
    key_meaning: "a disk under a node's volume goes wrong",
    comes_and_goes: false,
    is_external: false,
    in_pods: true,
    read: |entry, decoder| decode(entry, decoder),
};

/// What may go wrong and needs no figure.
static PLAIN_DEFECTS: &[&str] = &["fail", "stall", "full", "lose-flush", "read-only"];

/// A disk fault.
static DISK: Fields = Fields {
    what: "a disk fault",
    fields: &[
        optional("disk", PLACE, "a disk by name: r1/h2/d1, or a cache disk, r1/h2/c1"),
        optional(
            "of",
            Shape::Word(WHOSE_DISKS),
            "the capacity disk under the volume of the node in this role",
        ),
        optional(
            "cache-of",
            Shape::Word(WHOSE_DISKS),
            "the cache disk of that disk's group; all disks of the group fail with it",
        ),
        required(
            "how",
            Shape::Either(&[Shape::Word(PLAIN_DEFECTS), Shape::Map(&HOW)]),
            "the defect: fail (I/O errors), stall (no answer until healed), full (no space left), lose-flush (syncs \
             are acknowledged and nothing becomes durable), read-only; or one with a figure",
        ),
    ],
    exactly_one_of: &["disk", "of", "cache-of"],
    at_least_one_of: &[],
    pair: None,
};

/// Roles whose disk may be meant.
static WHOSE_DISKS: &[&str] = &["leader", "a-follower", "coordinator", "random"];

/// What may go wrong and takes a figure.
static HOW: Fields = choice(
    "a way for a disk to go wrong",
    &[
        optional(
            "fail-after",
            Shape::Count { least: 1, most: MOST_OPERATIONS },
            "I/O errors after this many more reads, writes and syncs",
        ),
        optional("slow", Shape::Duration, "extra time of every operation, 1ms to 10s"),
        optional("corrupt", Shape::Map(&CORRUPT), "some reads return wrong data"),
    ],
    &["fail-after", "slow", "corrupt"],
);

/// Wrong reads.
static CORRUPT: Fields = plain(
    "a corruption",
    &[
        required("reads", Shape::Percent, "share of 4 KiB blocks that return wrong data, 0.1% to 100%"),
        optional(
            "checksums",
            Shape::Flag,
            "whether the disk detects it by a checksum and returns an I/O error instead; default false",
        ),
    ],
);

/// A disk goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskFault {
    /// Which.
    pub target: DiskTarget,
    /// How.
    pub defect: DiskDefect,
}

/// Which disk goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskTarget {
    /// This one.
    Named {
        host: Place,
        /// Its name there: `d1`, `c1`.
        disk: String,
    },
    /// The one under the volume of the node in a role.
    Of {
        /// The role; never a place.
        node: FaultTarget,
        /// The cache disk before it instead, and with it the whole group.
        cache: bool,
    },
}

/// How a disk goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskDefect {
    /// Every operation is refused: an I/O error.
    Fail,
    /// The same, after so many operations more.
    FailAfter {
        /// Reads, writes and syncs.
        operations: u64,
    },
    /// Every operation takes longer.
    Slow { by: Duration },
    /// No operation is answered until the fault is healed.
    Stall,
    /// There is no more room.
    Full,
    /// Some of what is read is wrong.
    Corrupt {
        /// Share of the blocks of 4 KiB read, 0 to 1.
        share: f64,
        /// Whether the disk notices, and refuses the read instead.
        checksums: bool,
    },
    /// Syncs are answered and nothing becomes durable.
    LoseFlush,
    /// Nothing may be changed.
    ReadOnly,
}

impl DiskDefect {
    /// Whether what was synced may be gone or look otherwise by it.
    #[must_use]
    pub fn may_lose_synced(&self) -> bool {
        match self {
            DiskDefect::LoseFlush | DiskDefect::Corrupt { .. } => true,
            DiskDefect::Fail
            | DiskDefect::FailAfter { .. }
            | DiskDefect::Slow { .. }
            | DiskDefect::Stall
            | DiskDefect::Full
            | DiskDefect::ReadOnly => false,
        }
    }
}

impl Facts for DiskFault {
    fn elected_roles(&self) -> Vec<ElectedRole> {
        match &self.target {
            DiskTarget::Named { .. } => Vec::new(),
            DiskTarget::Of { node, .. } => node.elected().into_iter().collect(),
        }
    }

    fn takes(&self) -> Takes<'_> {
        Takes::Disk(self)
    }

    fn form(&self) -> Option<Form<'_>> {
        let aim = match &self.target {
            DiskTarget::Named { host, .. } => Aim::Host(host),
            DiskTarget::Of { node, .. } => Aim::Target(node),
        };
        Some(Form::new(self.defect.form(), aim))
    }

    fn written(&self) -> String {
        let target = match &self.target {
            DiskTarget::Named { host, disk } => format!("disk: {}", quoted(&format!("{host}/{disk}"))),
            DiskTarget::Of { node, cache: false } => format!("of: {}", end(node)),
            DiskTarget::Of { node, cache: true } => format!("cache-of: {}", end(node)),
        };
        format!("{target}, how: {}", self.defect.written())
    }
}

impl DiskDefect {
    /// Its word, whatever its strength and whenever it begins.
    fn form(&self) -> &'static str {
        match self {
            DiskDefect::Fail | DiskDefect::FailAfter { .. } => "fail",
            DiskDefect::Slow { .. } => "slow",
            DiskDefect::Stall => "stall",
            DiskDefect::Full => "full",
            DiskDefect::Corrupt { .. } => "corrupt",
            DiskDefect::LoseFlush => "lose-flush",
            DiskDefect::ReadOnly => "read-only",
        }
    }

    fn written(&self) -> String {
        match self {
            DiskDefect::Fail
            | DiskDefect::Stall
            | DiskDefect::Full
            | DiskDefect::LoseFlush
            | DiskDefect::ReadOnly => self.form().to_owned(),
            DiskDefect::FailAfter { operations } => format!("{{ fail-after: {operations} }}"),
            DiskDefect::Slow { by } => format!("{{ slow: {} }}", format_duration(*by)),
            DiskDefect::Corrupt { share, checksums } => {
                format!("{{ corrupt: {{ reads: {}, checksums: {checksums} }} }}", format_percent(*share))
            }
        }
    }
}

struct Document {
    target: TargetDocument,
    defect: DiskDefect,
}

enum TargetDocument {
    Named(Spanned<String>),
    Of { role: Spanned<&'static str>, cache: bool, key_at: Spot },
}

fn decode(entry: &Entry, decoder: &mut Decoder) -> Option<Box<dyn Written>> {
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
    Some(Box::new(Document { target, defect: defect? }))
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
        let message = format!("a delay of {} is too short for a slow disk", format_duration(by.value));
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
        let message = format!("`reads` of {} is more than all reads", format_percent(reads.value));
        decoder.findings.add("too-large", reads.at, message, "more than all", "write 100% or less");
    } else if reads.value < LEAST_CORRUPT {
        let message = format!("`reads` of {} is too rare for evidence", format_percent(reads.value));
        decoder.findings.add("too-small", reads.at, message, "too rare", "write 0.1% or more");
    }
    let checksums = match checksums {
        None => false,
        Some(given) => given?.value,
    };
    Some(DiskDefect::Corrupt { share: reads.value, checksums })
}

impl Written for Document {
    fn resolve(
        &self,
        kind_at: Spot,
        around: &Surroundings<'_>,
        findings: &mut Findings,
    ) -> Option<FaultAction> {
        if !around.volumes_on_disks {
            findings.add(
                "no-disks",
                kind_at,
                "a disk fault of a database whose volumes are plain directories",
                "there is no disk under them",
                "write `volumes: virtual` in `database`, or leave `volumes` out",
            );
            return None;
        }
        let target = match &self.target {
            TargetDocument::Named(written) => around.disk(written, findings)?,
            TargetDocument::Of { cache: true, key_at, .. } if !around.disks.cache => {
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
                DiskTarget::Of { node: around.end(&role, findings)?, cache: *cache }
            }
        };
        Some(FaultAction::Disk(DiskFault { target, defect: self.defect.clone() }))
    }
}

impl Surroundings<'_> {
    fn disk(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<DiskTarget> {
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
        Some(DiskTarget::Named { host: place, disk: disk.to_owned() })
    }
}
