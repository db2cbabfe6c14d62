//! Keys of `platform`.

use super::shapes::{Fields, MOST_NODES, PLACE, Shape, choice, optional, plain, required};

pub(crate) const GROUPS: &[&str] = &["hosts", "racks", "zones"];
pub(crate) const STRENGTHS: &[&str] = &["must", "should"];
pub(crate) const ADMISSIONS: &[&str] = &["off", "one-host-failure"];
pub(crate) const DRS: &[&str] = &["off", "conservative", "eager"];
pub(crate) const ISOLATIONS: &[&str] = &["leave-running", "power-off"];
pub(crate) const CORRECTIONS: &[&str] = &["step", "slew"];
/// Most rules.
pub(crate) const MOST_RULES: usize = 100;

const NODES: Shape = Shape::List { of: &Shape::Text, least: 1, most: Some(MOST_NODES as usize) };
const PLACES: Shape = Shape::List { of: &PLACE, least: 1, most: Some(MOST_NODES as usize) };

/// `database.platform`.
pub(crate) static PLATFORM: Fields = plain(
    "a platform",
    &[
        optional("host_memory", Shape::Size, "memory that each host has for VMs; default unlimited"),
        optional(
            "node_memory",
            Shape::Size,
            "memory that each node's VM reserves on its host; needs `host_memory`",
        ),
        optional(
            "host_nodes",
            Shape::Count { least: 1, most: MOST_NODES },
            "most nodes that a host may run; default unlimited",
        ),
        optional("priority", NODES, "restart order when several nodes are lost; default n1, n2 ..."),
        optional(
            "rules",
            Shape::List { of: &Shape::Map(&RULE), least: 1, most: Some(MOST_RULES) },
            "placement rules: keep VMs apart from each other, or within places",
        ),
        optional(
            "admission",
            Shape::Word(ADMISSIONS),
            "admission control: with `one-host-failure` the scenario is refused if the loss of one host would leave \
             a node that no other host can run; default off. `check` reports such hosts either way",
        ),
        optional(
            "drs",
            Shape::Word(DRS),
            "whether running nodes are moved to other hosts automatically: out of a broken rule and back to the host where \
             they began (conservative), also from full hosts to emptier ones (eager); default off",
        ),
        optional(
            "isolation",
            Shape::Word(ISOLATIONS),
            "what is done with the nodes of a host that has reached no other host for as long as `failover` waits: they run on \
             (leave-running), or are switched off and then restarted elsewhere or replaced by a promoted standby (power-off); by \
             default nobody looks",
        ),
        optional(
            "time_service",
            Shape::Map(&TIME_SERVICE),
            "what corrects the wall clock of each node; by default nothing: a clock stays wrong until its fault is healed",
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
        optional("poll", Shape::Duration, "how often the clock is compared, at least 100ms; default 16s"),
        optional("notice", Shape::Duration, "how long a clock is wrong before it is corrected; default 0s"),
    ],
);

/// An element of `rules`.
pub(crate) static RULE: Fields = choice(
    "a rule",
    &[
        optional("apart", Shape::Word(GROUPS), "what two of the nodes must not share: hosts, racks or zones"),
        optional("within", PLACES, "places on whose hosts the nodes run"),
        optional("nodes", NODES, "which nodes, by name; default all"),
        optional(
            "strength",
            Shape::Word(STRENGTHS),
            "`must`: a node stays off if it would break the rule; `should`: the rule may be broken if no other host \
             is free; default must",
        ),
    ],
    &["apart", "within"],
);
