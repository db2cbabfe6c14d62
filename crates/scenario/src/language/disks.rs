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
            "capacity disks of each host (d1, d2 ...), on which volumes lie; default 1",
        ),
        optional(
            "groups",
            Shape::Count { least: 1, most: MOST_DISKS },
            "disk groups of each host, each with a cache disk (c1, c2 ...) before its capacity disks; default 1",
        ),
        optional("cache", Shape::Flag, "whether there are cache disks; default false"),
        optional(
            "sync",
            Shape::Either(&[Shape::Word(SYNCS), Shape::Map(&SYNC)]),
            "how long a sync takes: `machine` (default): as long as on this machine's disk; `modelled`: no time; or \
             a map that describes a medium. Unsynced data is lost at a power-off in all cases",
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
            "syncs that a disk serves at the same time; default 32",
        ),
        optional(
            "per-second",
            Shape::Size,
            "bytes per second that reach the medium, such as 500MiB; default unlimited",
        ),
    ],
);
