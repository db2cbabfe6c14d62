//! Keys of `database`.

use super::platform::PLATFORM;
use super::shapes::{
    ENGINE, Fields, MOST_NODES, PLACE, SYNCHRONOUS, Shape, choice, optional, plain, required,
};
use super::storage::STORAGE;

/// What volumes may be.
pub(crate) static VOLUMES: &[&str] = &["virtual", "torn", "directory"];

/// What somebody outside the schedule who stops or kills nodes' processes may be.
pub(crate) static INTERFERENCE: &[&str] = &["unexpected", EXPECTED];

/// The run is judged all the same.
pub(crate) const EXPECTED: &str = "expected";

/// `database`.
pub(crate) static DATABASE: Fields = plain(
    "a database",
    &[
        required("engine", ENGINE, "which database"),
        optional(
            "path",
            Shape::Text,
            "absolute path of the folder with the database's programs; searched for when absent",
        ),
        required(
            "nodes",
            Shape::Either(&[
                Shape::Count { least: 1, most: MOST_NODES },
                Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) },
            ]),
            "how many, spread over the site; or a list of places, the leader's first",
        ),
        optional("leader", PLACE, "where the first leader stands; only with a number of nodes"),
        optional("replication", Shape::Map(&REPLICATION), "what a commit waits for"),
        optional(
            "failover",
            Shape::Either(&[Shape::Word(&["none"]), Shape::Map(&FAILOVER)]),
            "what the platform does when a node's host is gone; none when absent",
        ),
        optional(
            "settings",
            Shape::Settings(&Shape::Setting),
            "further settings for the database's own configuration",
        ),
        optional("cpus", Shape::Positive, "CPUs each node may use; no limit when absent"),
        optional(
            "volumes",
            Shape::Word(VOLUMES),
            "what nodes keep their data on: virtual disks that lose at a power-off what was not synced; such that also tear the last write; or plain directories, which lose nothing. virtual when absent",
        ),
        optional(
            "storage",
            Shape::Map(&STORAGE),
            "how each node's volume is mirrored; when absent it is not, and outlives its host",
        ),
        optional(
            "platform",
            Shape::Map(&PLATFORM),
            "what hosts can run and which rules the placement of nodes keeps; when absent nothing is short and nothing is ruled",
        ),
        optional(
            "interference",
            Shape::Word(INTERFERENCE),
            "what it means when somebody outside the schedule stops or kills a node's process, such as a script of yours: unexpected, and the verdict is unknown; or expected, and it is only told. unexpected when absent",
        ),
    ],
);

/// `replication`.
pub(crate) static REPLICATION: Fields = plain(
    "a replication",
    &[
        optional("synchronous", SYNCHRONOUS, "which standbys a commit waits for: any N, all or off"),
        optional(
            "copies",
            Shape::Count { least: 1, most: MOST_NODES },
            "on an engine whose loads choose their consistency: how many nodes of each region hold each row; 3, or as many as \
             there are nodes, when absent",
        ),
    ],
);

/// `failover`.
pub(crate) static FAILOVER: Fields = choice(
    "a failover",
    &[
        optional("ha-restart", Shape::Map(&AFTER), "the node's VM is started on another host"),
        optional("promote", Shape::Map(&AFTER), "the most advanced standby becomes the leader"),
    ],
    &["ha-restart", "promote"],
);

/// When failover acts.
pub(crate) static AFTER: Fields =
    plain("a failover", &[required("after", Shape::Duration, "time from the loss until the platform acts")]);
