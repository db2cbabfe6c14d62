//! Keys of `platform`.

use super::shapes::{Fields, MOST_NODES, PLACE, Shape, choice, optional, plain, required};

pub(crate) const GROUPS: &[&str] = &["hosts", "racks", "zones"];
pub(crate) const STRENGTHS: &[&str] = &["must", "should"];
pub(crate) const ADMISSIONS: &[&str] = &["off", "one-host-failure"];
pub(crate) const DRS: &[&str] = &["off", "conservative", "eager"];
pub(crate) const CORRECTIONS: &[&str] = &["step", "slew"];
/// Most rules.
pub(crate) const MOST_RULES: usize = 100;

const NODES: Shape = Shape::List { of: &Shape::Text, least: 1, most: Some(MOST_NODES as usize) };
const PLACES: Shape = Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) };

/// `database.platform`.
pub(crate) static PLATFORM: Fields = plain(
    "a platform",
    &[
        optional("host_memory", Shape::Size, "memory that each host has for VMs; no bound when absent"),
        optional(
            "node_memory",
            Shape::Size,
            "memory that each node's VM takes of its host; needs `host_memory`",
        ),
        optional(
            "host_nodes",
            Shape::Count { least: 1, most: MOST_NODES },
            "nodes that a host may run at most; no bound when absent",
        ),
        optional(
            "priority",
            NODES,
            "nodes that are started before the others when several are lost, the first first; n1, n2 ... when absent",
        ),
        optional(
            "rules",
            Shape::List { of: &Shape::Map(&RULE), least: 1, most: Some(MOST_RULES) },
            "where VMs may run: apart from each other, or within places",
        ),
        optional(
            "admission",
            Shape::Word(ADMISSIONS),
            "whether the scenario is refused when a node would stay off after the loss of one host, because no other may have \
             it (one-host-failure); off when absent. `check` tells in any case",
        ),
        optional(
            "drs",
            Shape::Word(DRS),
            "whether running nodes are moved to other hosts without anybody asking: out of a broken rule and back to the host where \
             they began (conservative), also from full hosts to emptier ones (eager); off when absent",
        ),
        optional(
            "time_service",
            Shape::Map(&TIME_SERVICE),
            "what corrects the wall clock of each node; nothing when absent: a clock stays wrong until its fault is healed",
        ),
    ],
);

/// `database.platform.time_service`.
pub(crate) static TIME_SERVICE: Fields = plain(
    "a time service",
    &[
        required(
            "how",
            Shape::Word(CORRECTIONS),
            "in one step (step), or by running 8.3 % faster or slower until the clock is right (slew)",
        ),
        optional("poll", Shape::Duration, "how often the clock is compared, at least 100ms; 16s when absent"),
        optional(
            "notice",
            Shape::Duration,
            "how long a clock is seen wrong before it is corrected; 0s when absent",
        ),
    ],
);

/// An element of `rules`.
pub(crate) static RULE: Fields = choice(
    "a rule",
    &[
        optional("apart", Shape::Word(GROUPS), "what no two of the nodes share: hosts, racks or zones"),
        optional("within", PLACES, "places on whose hosts the nodes run"),
        optional("nodes", NODES, "which nodes, by name; all when absent"),
        optional(
            "strength",
            Shape::Word(STRENGTHS),
            "a node stays off rather than break the rule (must), or breaks it where nothing else is to be had (should); must \
             when absent",
        ),
    ],
    &["apart", "within"],
);
