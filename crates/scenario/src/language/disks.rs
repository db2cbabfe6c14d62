//! The scenario language's tables of what disks there are.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Fields, Shape, optional, plain, required};

/// Most capacity disks of a host.
pub(crate) const MOST_DISKS: u64 = 64;

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
        optional(
            "sync",
            Shape::Either(&[Shape::Word(SYNCS), Shape::Map(&SYNC)]),
            "what a sync costs: what the machine's own disk takes (machine, as without it), nothing (modelled), or what a medium takes \
             that is described here. Unsynced data is lost at a power-off either way",
        ),
    ],
);

/// Whose time a sync takes.
pub(crate) static SYNCS: &[&str] = &["machine", "modelled"];

/// Most syncs that a disk serves at once.
pub(crate) const MOST_SYNCS_AT_ONCE: u64 = 1024;

/// A medium of each capacity disk.
pub(crate) static SYNC: Fields = plain(
    "a medium",
    &[
        required("latency", Shape::Duration, "how long a sync takes, at most 1s"),
        optional(
            "at-once",
            Shape::Count { least: 1, most: MOST_SYNCS_AT_ONCE },
            "syncs that a disk serves at the same time; 32 when absent",
        ),
        optional(
            "per-second",
            Shape::Size,
            "how many bytes a second reach the medium, as 500MiB; at once when absent",
        ),
    ],
);
