//! Disks: how many each host has, and what a sync costs on them. Which of them a volume lies on is the lab's business.

use std::time::Duration;

use crate::decode::Decoder;
use crate::language::{DISKS, MOST_DISKS, MOST_SYNCS_AT_ONCE, SYNC, SYNCS};
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{DiskSync, Disks};
use crate::tree::{Node, Value};
use crate::units::{format_duration, format_size};

/// Most that a described medium takes for a sync; what takes longer is a fault.
const MOST_SYNC_LATENCY: Duration = Duration::from_secs(1);
/// Slowest described medium, in bytes a second.
const LEAST_SYNC_RATE: u64 = 64 << 10;

/// Reads `site.disks`; beside it, where it says what a sync costs.
pub(crate) fn decode_disks(node: &Node, decoder: &mut Decoder) -> Option<(Disks, Option<Spot>)> {
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
        sync: match record.get("sync") {
            None => DiskSync::Machine,
            Some(node) => decode_sync(node, decoder)?,
        },
    };
    let disks_and_place = (disks, record.key_at("sync"));
    let Some(groups_at) = record.key_at("groups") else { return Some(disks_and_place) };
    if !disks.cache {
        decoder.findings.add(
            "missing-key",
            groups_at,
            "`groups` needs `cache: true`: a disk group is one cache disk with its capacity disks",
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
    Some(disks_and_place)
}

fn decode_sync(node: &Node, decoder: &mut Decoder) -> Option<DiskSync> {
    let Value::Map(_) = node.value else {
        return Some(match decoder.word(node, "cost of a sync", SYNCS)?.value {
            "machine" => DiskSync::Machine,
            _ => DiskSync::Modelled {
                latency: Duration::ZERO,
                at_once: DiskSync::AT_ONCE,
                bytes_per_second: None,
            },
        });
    };
    let record = decoder.record(node, &SYNC)?;
    let at_once = record
        .get("at-once")
        .map(|node| decoder.count(node, "the number of syncs at the same time", 1, MOST_SYNCS_AT_ONCE));
    let rate = record.get("per-second").map(|node| decoder.size(node, "`per-second`", "MiB"));
    let latency = decoder.duration(record.get("latency")?, "`latency`", "us")?;
    if latency.value > MOST_SYNC_LATENCY {
        let message = format!("a disk that takes {} for a sync", format_duration(latency.value));
        decoder.findings.add("too-large", latency.at, message, "too much", "write 1s or less");
    }
    let rate = match rate {
        None => None,
        Some(rate) => Some(rate?),
    };
    if let Some(rate) = rate.as_ref().filter(|rate| rate.value < LEAST_SYNC_RATE) {
        let message = format!("a disk that takes {} a second", format_size(rate.value));
        decoder.findings.add("too-small", rate.at, message, "too slow", "write 64KiB or more");
    }
    Some(DiskSync::Modelled {
        latency: latency.value,
        at_once: match at_once {
            None => DiskSync::AT_ONCE,
            // Within bounds that any u32 holds.
            Some(count) => count?.value as u32,
        },
        bytes_per_second: rate.map(|rate| rate.value),
    })
}

/// A disk as `site.disks` says it, in the form in which it is written there; `None` where nothing is to be said.
pub(crate) fn disks_written(disks: Disks) -> Option<String> {
    if disks == Disks::default() {
        return None;
    }
    let mut keys = vec![format!("capacity: {}", disks.capacity)];
    if disks.cache {
        keys.push(format!("groups: {}, cache: true", disks.groups));
    }
    if let DiskSync::Modelled { latency, at_once, bytes_per_second } = disks.sync {
        let rate = bytes_per_second.map(|rate| format!(", per-second: {}", format_size(rate)));
        let latency = format_duration(latency);
        keys.push(format!("sync: {{ latency: {latency}, at-once: {at_once}{} }}", rate.unwrap_or_default()));
    }
    Some(format!("disks: {{ {} }}", keys.join(", ")))
}

/// A medium is described, and volumes that know nothing of it lie in plain directories.
pub(crate) fn refuse_without_disks(sync_at: Option<Spot>, volumes_on_disks: bool, findings: &mut Findings) {
    if let Some(at) = sync_at.filter(|_| !volumes_on_disks) {
        findings.add(
            "no-disks",
            at,
            "`sync` of a database whose volumes are plain directories",
            "there is no disk under them",
            "write `volumes: virtual` in `database`, or leave `volumes` out",
        );
    }
}
