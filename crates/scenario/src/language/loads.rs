//! Keys of a load.

use capabilities::workloads;

use super::shapes::{Fields, PLACE, Shape, WORKLOAD_OPTIONS, choice, optional, plain, required};

/// An element of `loads`.
pub(crate) static LOAD: Fields = plain(
    "a load",
    &[
        required("workload", Shape::Word(workloads::NAMES), "what the clients do"),
        optional("name", Shape::Name, "the load's name; default the workload's"),
        required(
            "clients",
            Shape::Count { least: 1, most: 100_000 },
            "number of concurrent clients, each with its own connection; also needed beside a `sweep` or \
             `ramp` of clients, which replaces it",
        ),
        optional("scale", Shape::Count { least: 1, most: 100_000 }, "scale factor; default 1"),
        optional("from", PLACE, "place of the clients; default the first leader's region"),
        optional(
            "agents",
            Shape::List { of: &Shape::Name, least: 1, most: None },
            "agents of the cluster that the clients are spread over; default none, the clients are in the process that \
             conducts the run",
        ),
        optional(
            "reads",
            Shape::Word(READS),
            "where reads go: `leader` (default), `replicas` only, or `any` node; each client keeps to one node. Only \
             on engines whose replicas serve reads, and only for workloads whose checks accept stale reads",
        ),
        optional(
            "consistency",
            Shape::Either(&[Shape::Word(CONSISTENCY_LEVELS), Shape::Map(&CONSISTENCY)]),
            "for engines where clients choose it: how many replicas of a row must answer a read or a write; default \
             quorum, and serial for reads of the workload `register`",
        ),
        optional("timeout", Shape::Duration, "how long a client waits for an answer; default 2s"),
        optional("options", WORKLOAD_OPTIONS, "options of the workload"),
        optional(
            "rate",
            Shape::Rate,
            "open loop: transactions due per second, whether or not earlier ones have ended; `clients` then limits \
             the connections",
        ),
        optional("arrival", Shape::Word(ARRIVALS), "open loop: how arrivals are spread; default constant"),
        optional(
            "think_time",
            Shape::Either(&[Shape::Duration, Shape::Map(&THINK_TIME)]),
            "closed loop: how long a client waits between an answer and its next transaction; before its first one it waits a part of that",
        ),
        optional(
            "sweep",
            Shape::Map(&SWEEP),
            "one value for each phase after the warm-up, which uses the first one",
        ),
        optional(
            "ramp",
            Shape::Map(&RAMP),
            "a number of clients or a rate that changes linearly after the warm-up and then stays",
        ),
    ],
);

/// Where reads may go.
pub(crate) static READS: &[&str] = &["leader", "replicas", "any"];

/// By how many of the nodes that hold a row a request may be answered; the last of reads only.
pub(crate) static CONSISTENCY_LEVELS: &[&str] =
    &["one", "local-one", "quorum", "local-quorum", "all", "serial"];

/// `consistency` of a load whose reads and writes differ in it.
pub(crate) static CONSISTENCY: Fields = plain(
    "a consistency",
    &[
        optional("reads", Shape::Word(CONSISTENCY_LEVELS), "of reads"),
        optional("writes", Shape::Word(CONSISTENCY_LEVELS), "of writes; `serial` is for reads only"),
        optional(
            "timestamps",
            Shape::Word(TIMESTAMPS),
            "whose clock orders plain writes, where the last write wins: the client's, or that of the node it \
             contacts (coordinator); default client",
        ),
    ],
);

/// Whose clock orders plain writes.
pub(crate) static TIMESTAMPS: &[&str] = &["client", "coordinator"];

/// How operations of an open loop are spread.
pub(crate) static ARRIVALS: &[&str] = &["constant", "poisson"];

/// `think_time` of a load that is not always the same.
pub(crate) static THINK_TIME: Fields = plain(
    "a think time",
    &[required("exponential", Shape::Duration, "the mean of an exponential think time")],
);

/// `sweep` of a load.
pub(crate) static SWEEP: Fields = choice(
    "a sweep",
    &[
        optional(
            "clients",
            Shape::List { of: &Shape::Count { least: 1, most: 100_000 }, least: 2, most: None },
            "numbers of clients, in place of the load's `clients`",
        ),
        optional("rate", Shape::List { of: &Shape::Rate, least: 2, most: None }, "rates"),
    ],
    &["clients", "rate"],
);

/// `ramp` of a load.
pub(crate) static RAMP: Fields = plain(
    "a ramp",
    &[
        required("from", RAMP_END, "clients or rate at the start and during the warm-up"),
        required("to", RAMP_END, "clients or rate at the end and for the rest of the run"),
        required("over", Shape::Duration, "how long the change takes"),
    ],
);

/// Where a ramp begins or ends.
const RAMP_END: Shape = Shape::Either(&[Shape::Count { least: 1, most: 100_000 }, Shape::Rate]);
