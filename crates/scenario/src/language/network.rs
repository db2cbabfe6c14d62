//! The scenario language's tables of what a network does: links, and what network faults and partitions share with them.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Field, Fields, PLACE, Shape, choice, optional, required};

/// A link.
pub(crate) static LINK: Fields = Fields {
    what: "a link",
    fields: ENDS_AND_CONDITIONS,
    exactly_one_of: &["between", "from"],
    at_least_one_of: CONDITIONS,
    pair: Some(("from", "to")),
};

/// What can be said of a network, besides where.
pub(crate) const CONDITIONS: &[&str] =
    &["delay", "jitter", "loss", "duplicate", "reorder", "corrupt", "rate", "queue", "mtu"];

pub(crate) const BETWEEN: Field = optional(
    "between",
    Shape::List { of: &PLACE, least: 2, most: Some(2) },
    "two places, both ways; in a fault also leader, a-follower, coordinator, random: the host of that role",
);
pub(crate) const FROM: Field = optional("from", PLACE, "where packets leave; one way only");
pub(crate) const TO: Field = optional("to", PLACE, "where they arrive");

const JITTERS: &[Shape] = &[Shape::Duration, Shape::Map(&JITTER)];

pub(crate) const ENDS_AND_CONDITIONS: &[Field] = &[
    BETWEEN,
    FROM,
    TO,
    optional("delay", Shape::Duration, "how long a packet takes one way, at most 10s"),
    optional(
        "jitter",
        Shape::Either(JITTERS),
        "how much the delay varies from packet to packet: a duration (uniform, plus or minus), or a distribution",
    ),
    optional("loss", Shape::Percent, "share of packets that are lost"),
    optional("duplicate", Shape::Percent, "share of packets that arrive twice"),
    optional("reorder", Shape::Percent, "share of packets that skip the delay and overtake earlier ones"),
    optional("corrupt", Shape::Percent, "share of packets that arrive with a bit flipped"),
    optional("rate", Shape::BitRate, "bandwidth of each direction, shared by all traffic"),
    QUEUE,
    optional("mtu", Shape::Size, "largest IP packet that passes; default 1500B"),
];

const QUEUE: Field = optional(
    "queue",
    Shape::Either(&[Shape::Size, Shape::Packets]),
    "queue in front of the rate limit, before packets are dropped: 64KiB, or 100 packets",
);

/// An edge.
pub(crate) static EDGE: Fields = Fields {
    what: "an edge",
    fields: &[
        optional("name", Shape::Name, "its name in the report; default `edge of` and its place"),
        required("around", PLACE, "the place: all traffic that enters or leaves it crosses the edge"),
        required("rate", Shape::BitRate, "what it carries each way"),
        QUEUE,
    ],
    exactly_one_of: &[],
    at_least_one_of: &[],
    pair: None,
};

/// Jitter that is not uniform by default.
pub(crate) static JITTER: Fields = choice(
    "a jitter",
    &[
        optional("uniform", Shape::Duration, "uniform distribution, plus or minus this much"),
        optional("normal", Shape::Duration, "a normal distribution with this standard deviation"),
        optional(
            "exponential",
            Shape::Duration,
            "exponential distribution with this mean, added to the delay",
        ),
        optional("pareto", Shape::Duration, "heavy tail: netem's pareto table with this spread"),
    ],
    &["uniform", "normal", "exponential", "pareto"],
);
