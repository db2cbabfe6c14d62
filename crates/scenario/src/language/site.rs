//! Keys of `site` down to its hosts.

use super::disks::DISKS;
use super::network::{EDGE, LINK};
use super::shapes::{Fields, MOST_HOSTS, Shape, choice, optional, plain, required};
use super::storage::STORAGE_CLASS;

/// `site`.
pub(crate) static SITE: Fields = plain(
    "a site",
    &[
        required("regions", Shape::Named(&Shape::Map(&REGION)), "regions by name"),
        optional(
            "links",
            Shape::List { of: &Shape::Map(&LINK), least: 0, most: None },
            "what lies between places; of several that speak of the same pair and condition the narrowest places count, then the last",
        ),
        optional(
            "ip",
            Shape::Version(IP_VERSIONS),
            "the version of IP that the database and its clients speak: 4 (as without it) or 6; every place has an address of both",
        ),
        optional(
            "edges",
            Shape::List { of: &Shape::Map(&EDGE), least: 0, most: None },
            "what all that leaves or enters a place shares: an edge router, a host's network card",
        ),
        optional("disks", Shape::Map(&DISKS), "the disks of every host; one capacity disk when absent"),
        optional(
            "busy-poll",
            Shape::Duration,
            "how long the network looks for packets without sleeping, at most 1ms: shorter round trips for a processor that is never idle",
        ),
        optional(
            "storage_classes",
            Shape::Named(&Shape::Map(&STORAGE_CLASS)),
            "storage classes by name, beside basic and tuned, which are always there",
        ),
    ],
);

/// Versions of the internet protocol, the first one when nothing is said.
pub(crate) static IP_VERSIONS: &[&str] = &["4", "6"];

/// A region.
pub(crate) static REGION: Fields =
    plain("a region", &[required("zones", Shape::Named(&Shape::Map(&ZONE)), "zones by name")]);

/// A zone.
pub(crate) static ZONE: Fields = choice(
    "a zone",
    &[
        optional("racks", Shape::Named(&Shape::Map(&RACK)), "racks by name"),
        optional("hosts", HOSTS, "hosts straight in the zone: how many (h1, h2 ...), or their names"),
    ],
    &["racks", "hosts"],
);

/// A rack.
pub(crate) static RACK: Fields =
    plain("a rack", &[required("hosts", HOSTS, "its hosts: how many (h1, h2 ...), or their names")]);

const HOSTS: Shape = Shape::Either(&[
    Shape::Count { least: 1, most: MOST_HOSTS },
    Shape::List { of: &Shape::Name, least: 1, most: None },
]);
