//! Disks: how many each host has. Which of them a volume lies on is the lab's business.

use crate::decode::Decoder;
use crate::language::{DISKS, MOST_DISKS};
use crate::rejection::Spanned;
use crate::resolved::Disks;
use crate::tree::Node;

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
