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
            "absolute path of the folder with the database's programs; by default Holdfast searches for it",
        ),
        optional(
            "version",
            Shape::Text,
            "the numbers that the database's version begins with, such as 3.4: the newest found that has them, or else \
             installed; not with `path`",
        ),
        required(
            "nodes",
            Shape::Either(&[
                Shape::Count { least: 1, most: MOST_NODES },
                Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) },
            ]),
            "how many, spread over the site; or a list of places, the leader's first",
        ),
        optional("leader", PLACE, "place of the first leader; only if `nodes` is a number"),
        optional("replication", Shape::Map(&REPLICATION), "what a commit waits for"),
        optional(
            "failover",
            Shape::Either(&[Shape::Word(&["none"]), Shape::Map(&FAILOVER)]),
            "what the platform does when a node's host fails; default none",
        ),
        optional(
            "settings",
            Shape::Settings(&Shape::Setting),
            "further settings for the database's own configuration",
        ),
        optional(
            "on",
            Shape::Either(&[Shape::Word(&["nodes", "kubernetes"]), Shape::Map(&ON)]),
            "what starts the database's processes. `nodes` (default): the engine, on the nodes themselves; \
             `kubernetes`: a Kubernetes cluster of the nodes, in pods",
        ),
        optional("cpus", Shape::Positive, "CPUs each node may use; default no limit"),
        optional(
            "volumes",
            Shape::Word(VOLUMES),
            "where nodes store data. `virtual` (default): virtual disks that lose unsynced data at a power-off; \
             `torn`: like `virtual`, and the last write may be partial; `directory`: plain directories, which lose \
             nothing",
        ),
        optional(
            "storage",
            Shape::Map(&STORAGE),
            "how each node's volume is mirrored; by default it is not mirrored and survives the loss of its host",
        ),
        optional(
            "platform",
            Shape::Map(&PLATFORM),
            "capacity of the hosts and placement rules; by default capacity is unlimited and there are no rules",
        ),
        optional(
            "interference",
            Shape::Word(INTERFERENCE),
            "what to do if something outside the schedule, such as your own script, stops or kills a process of a \
             node. `unexpected` (default): the verdict is unknown; `expected`: the report mentions it",
        ),
    ],
);

/// `on`, where it is more than a word.
pub(crate) static ON: Fields = choice(
    "a place of a database",
    &[optional("kubernetes", Shape::Map(&ON_KUBERNETES), "a Kubernetes cluster of the nodes, in pods")],
    &["kubernetes"],
);

/// How long parts of a cluster wait for each other.
pub(crate) const KUBERNETES_TIMES: &[&str] = &["shipped", "short"];

/// A cluster in the lab.
pub(crate) static ON_KUBERNETES: Fields = plain(
    "a cluster in the lab",
    &[optional(
        "times",
        Shape::Word(KUBERNETES_TIMES),
        "how long its parts wait for each other. `shipped` (default): a silent node is lost after 50 s, its pods are \
         deleted 5 minutes later; `short`: after 8 s, 5 s later",
    )],
);

/// `replication`.
pub(crate) static REPLICATION: Fields = plain(
    "a replication",
    &[
        optional("synchronous", SYNCHRONOUS, "which standbys a commit waits for: any N, all or off"),
        optional(
            "copies",
            Shape::Count { least: 1, most: MOST_NODES },
            "for engines whose loads choose a consistency: how many nodes of each region hold each row; default 3, \
             or all nodes if there are fewer",
        ),
    ],
);

/// `failover`.
pub(crate) static FAILOVER: Fields = choice(
    "a failover",
    &[
        optional("ha-restart", Shape::Map(&AFTER), "restart the node's VM on another host"),
        optional("promote", Shape::Map(&AFTER), "the most advanced standby becomes the leader"),
    ],
    &["ha-restart", "promote"],
);

/// When failover acts.
pub(crate) static AFTER: Fields =
    plain("a failover", &[required("after", Shape::Duration, "time from the loss until the platform acts")]);
