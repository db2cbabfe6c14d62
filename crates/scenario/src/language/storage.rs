//! Keys of `storage` and of storage classes.

use super::shapes::{Fields, MOST_NODES, PLACE, Shape, optional, plain, required};

/// Most components of a volume.
pub(crate) const MOST_REPLICAS: u64 = 3;
pub(crate) const ACKNOWLEDGES: &[&str] = &["sync", "semi", "async"];
pub(crate) const APARTS: &[&str] = &["hosts", "racks"];
pub(crate) const PROMOTIONS: &[&str] = &["up-to-date", "forced"];
pub(crate) const METADATA: &[&str] = &["with-data", "own-device"];
pub(crate) const FLUSHES: &[&str] = &["each-sync", "never"];

/// `database.storage`.
pub(crate) static STORAGE: Fields = plain(
    "a storage",
    &[
        required(
            "replicas",
            Shape::Count { least: 1, most: MOST_REPLICAS },
            "components (copies) of each node's volume, the first on the node's own host; with 1 the volume is not \
             mirrored but survives the loss of its host",
        ),
        optional(
            "acknowledge",
            Shape::Word(ACKNOWLEDGES),
            "when a sync is acknowledged: `sync` (default): it is durable on every live component; `semi`: it is \
             durable on the node's own component and received by the others; `async`: it is durable on the node's \
             own component",
        ),
        optional(
            "apart",
            Shape::Word(APARTS),
            "what two components of a volume must not share: hosts (default) or racks",
        ),
        optional(
            "rebuild_after",
            Shape::Duration,
            "how long a component may be missing before it is rebuilt on another host; default 60s",
        ),
        optional(
            "timeout",
            Shape::Duration,
            "how long a write waits for a component's answer before the volume continues without that component; \
             default 2s",
        ),
        optional(
            "unreachable_after",
            Shape::Duration,
            "how long a node waits for the host that serves its volume over the network. After that the node's I/O \
             fails, and the platform switches the node off and, with `ha-restart`, starts it on a host that can \
             reach the data; default 30s, at least `timeout`",
        ),
        optional(
            "promote",
            Shape::Word(PROMOTIONS),
            "which component a node may start from on another host: `up-to-date` (default): only one that has every \
             acknowledged write; `forced`: any, and the writes that it lacks are lost",
        ),
        optional(
            "hosts",
            Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) },
            "places whose hosts may hold components; a node on any other host opens its volume over the network. \
             Default: every host, the node's own first. Hosts listed here that have no node at the start are storage \
             hosts: the platform starts nodes there last",
        ),
        optional(
            "class",
            Shape::Name,
            "storage class: `basic` (default), `tuned`, or one of `storage_classes`",
        ),
    ],
);

/// An element of `site.storage_classes`.
pub(crate) static STORAGE_CLASS: Fields = plain(
    "a storage class",
    &[
        optional(
            "metadata",
            Shape::Word(METADATA),
            "where a component records which extents are being written: `with-data` (default): on the data device, \
             with one extra flush for each new extent; `own-device`: on a separate device, without a flush",
        ),
        optional(
            "flush",
            Shape::Word(FLUSHES),
            "when components flush the machine's disk: `each-sync` (default), or `never`, as with a battery-backed \
             cache",
        ),
        optional(
            "buffer",
            Shape::Size,
            "most bytes in flight to a component before writes wait; default 1MiB",
        ),
    ],
);
