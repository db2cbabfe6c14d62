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
            "links between places; if several entries set the same condition for a pair of places, the one with the \
             narrowest places counts, then the last one",
        ),
        optional(
            "ip",
            Shape::Version(IP_VERSIONS),
            "IP version that the database and its clients use: 4 (default) or 6; every place has an address of each",
        ),
        optional(
            "edges",
            Shape::List { of: &Shape::Map(&EDGE), least: 0, most: None },
            "edges: all traffic that enters or leaves a place shares one, such as an edge router or a host's network \
             card",
        ),
        optional("disks", Shape::Map(&DISKS), "disks of every host; default one capacity disk"),
        optional("network", Shape::Map(&NETWORK), "how the lab carries packets"),
        optional(
            "busy-poll",
            Shape::Duration,
            "how long the network polls for packets before it sleeps, at most 1ms: round trips get shorter, and one \
             processor is never idle",
        ),
        optional(
            "storage_classes",
            Shape::Named(&Shape::Map(&STORAGE_CLASS)),
            "storage classes by name; `basic` and `tuned` always exist",
        ),
    ],
);

/// `site.network`.
pub(crate) static NETWORK: Fields = plain(
    "how packets are carried",
    &[required(
        "path",
        Shape::Word(PATHS),
        "way of the packets: `fabric` (default): all of them through the lab's own network, which counts each one; \
         `kernel`: past it, by the kernel's forwarding, while nothing is asked of a pair of places: no link, edge, \
         fault, capture or count. For at most 24 hosts and nodes together",
    )],
);

/// Ways of packets, the first one when nothing is said.
pub(crate) static PATHS: &[&str] = &["fabric", "kernel"];

/// Most hosts and nodes of a site whose packets may take the kernel's own path: each has a route to every other, all of them
/// may change at once, and the lab's own network carries nothing while they do.
pub(crate) const MOST_ON_KERNEL_PATH: usize = 24;

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
        optional("hosts", HOSTS, "hosts directly in the zone: how many (h1, h2 ...), or their names"),
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
