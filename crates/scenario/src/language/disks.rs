//! The scenario language's tables of what disks there are and what may go wrong with them.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Fields, PLACE, Shape, choice, optional, plain, required};

/// Most capacity disks of a host.
pub(crate) const MOST_DISKS: u64 = 64;
/// Most operations after which a disk fails.
pub(crate) const MOST_OPERATIONS: u64 = 1_000_000_000;

/// `site.disks`.
pub(crate) static DISKS: Fields = plain(
    "a set of disks",
    &[
        optional(
            "capacity",
            Shape::Count { least: 1, most: MOST_DISKS },
            "capacity disks of each host (d1, d2 ...), on which volumes lie; 1 when absent",
        ),
        optional(
            "groups",
            Shape::Count { least: 1, most: MOST_DISKS },
            "disk groups of each host, each with a cache disk (c1, c2 ...) before its capacity disks; 1 when absent",
        ),
        optional("cache", Shape::Flag, "whether there are cache disks; not when absent"),
    ],
);

/// What may go wrong and needs no figure.
pub(crate) static PLAIN_DEFECTS: &[&str] = &["fail", "stall", "full", "lose-flush", "read-only"];

/// A disk fault.
pub(crate) static DISK: Fields = Fields {
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
            "the cache disk before that one, with which all disks of its group go",
        ),
        required(
            "how",
            Shape::Either(&[Shape::Word(PLAIN_DEFECTS), Shape::Map(&HOW)]),
            "what goes wrong: fail (I/O errors), stall (no answer until it is healed), full (no more room), lose-flush \
             (syncs are answered and nothing becomes durable), read-only; or one that takes a figure",
        ),
    ],
    exactly_one_of: &["disk", "of", "cache-of"],
    at_least_one_of: &[],
    pair: None,
};

/// Roles whose disk may be meant.
pub(crate) static WHOSE_DISKS: &[&str] = &["leader", "a-follower", "coordinator", "random"];

/// What may go wrong and takes a figure.
pub(crate) static HOW: Fields = choice(
    "a way for a disk to go wrong",
    &[
        optional(
            "fail-after",
            Shape::Count { least: 1, most: MOST_OPERATIONS },
            "I/O errors after so many more reads, writes and syncs",
        ),
        optional("slow", Shape::Duration, "every operation takes so much longer, 1ms to 10s"),
        optional("corrupt", Shape::Map(&CORRUPT), "some of what is read is wrong"),
    ],
    &["fail-after", "slow", "corrupt"],
);

/// Wrong reads.
pub(crate) static CORRUPT: Fields = plain(
    "a corruption",
    &[
        required("reads", Shape::Percent, "share of the blocks of 4 KiB that are read wrongly, 0.1% to 100%"),
        optional(
            "checksums",
            Shape::Flag,
            "whether the disk notices by a checksum, and answers with an I/O error instead; not when absent",
        ),
    ],
);
