//! The scenario language's tables of what disks there are.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Fields, Shape, optional, plain};

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
    ],
);
