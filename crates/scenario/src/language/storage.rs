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
            "components of each node's volume, the first on the node's own host; 1 is a volume that outlives its host",
        ),
        optional(
            "acknowledge",
            Shape::Word(ACKNOWLEDGES),
            "when a sync is acknowledged: durable on every live component (sync, as without it), received by each \
             (semi), or durable on the node's own (async)",
        ),
        optional(
            "apart",
            Shape::Word(APARTS),
            "what components of a volume do not share: hosts, as without it, or racks",
        ),
        optional(
            "rebuild_after",
            Shape::Duration,
            "how long a component is missed before it is rebuilt on another host; 60s when absent",
        ),
        optional(
            "timeout",
            Shape::Duration,
            "how long service waits for a component's answer before it goes on without it; 2s when absent",
        ),
        optional(
            "unreachable_after",
            Shape::Duration,
            "how long a node waits for the host that serves its volume over the network before the volume counts as lost \
             there: its operations fail, and the platform switches the node off and, with `ha-restart`, starts it where the \
             data can be reached; 30s when absent, and no less than `timeout`",
        ),
        optional(
            "promote",
            Shape::Word(PROMOTIONS),
            "from which component a node may be started on another host: only from one that is up to date, as without \
             it, or by force from any, at the price of what that one lacks",
        ),
        optional(
            "hosts",
            Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) },
            "places whose hosts may hold components; a node on any other host opens its volume over the network. When absent \
             every host may, each node's own first. Those of them without a node at the start are for storage: the platform \
             starts nodes there last",
        ),
        optional(
            "class",
            Shape::Name,
            "storage class: basic, as without it, tuned, or one of `storage_classes`",
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
            "where a component notes which extents are being written: on the data's device, at the price of a flush for \
             each that is new (with-data, as without it), or on a device of its own that needs none (own-device)",
        ),
        optional(
            "flush",
            Shape::Word(FLUSHES),
            "whether components flush the machine's disk: at each sync, as without it, or never, as behind a cache with \
             a battery",
        ),
        optional(
            "buffer",
            Shape::Size,
            "bytes under way to a component before writes wait; 1MiB when absent",
        ),
    ],
);
