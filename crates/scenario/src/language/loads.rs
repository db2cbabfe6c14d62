//! Keys of a load.

use capabilities::workloads;

use super::shapes::{Fields, PLACE, Shape, WORKLOAD_OPTIONS, choice, optional, plain, required};

/// An element of `loads`.
pub(crate) static LOAD: Fields = plain(
    "a load",
    &[
        required("workload", Shape::Word(workloads::NAMES), "what is asked of the database"),
        optional("name", Shape::Name, "the load's name; the workload's when absent"),
        required(
            "clients",
            Shape::Count { least: 1, most: 100_000 },
            "connections that work at the same time",
        ),
        optional("scale", Shape::Count { least: 1, most: 100_000 }, "scale factor; 1 when absent"),
        optional("from", PLACE, "where the clients stand; the first leader's region when absent"),
        optional(
            "reads",
            Shape::Word(READS),
            "where reads go: to the leader (as without it), to replicas only, or to any node, each client at one of its own; \
             PostgreSQL, and workloads whose reads no check takes for the latest",
        ),
        optional(
            "consistency",
            Shape::Either(&[Shape::Word(CONSISTENCY_LEVELS), Shape::Map(&CONSISTENCY)]),
            "where clients choose it: by how many of the nodes that hold a row a read or a write must be answered; quorum when \
             absent, and for reads of the workload register serial",
        ),
        optional("timeout", Shape::Duration, "how long a client waits for an answer; 2s when absent"),
        optional("options", WORKLOAD_OPTIONS, "options of the workload"),
        optional(
            "rate",
            Shape::Rate,
            "open loop: transactions due a second, whatever becomes of those before; `clients` is then the most \
             connections at once",
        ),
        optional("arrival", Shape::Word(ARRIVALS), "open loop: how they are spread; constant when absent"),
        optional(
            "think_time",
            Shape::Either(&[Shape::Duration, Shape::Map(&THINK_TIME)]),
            "closed loop: how long a client waits between an answer and its next transaction",
        ),
        optional(
            "sweep",
            Shape::Map(&SWEEP),
            "one value for each phase beside warm-up, which takes the first",
        ),
        optional(
            "ramp",
            Shape::Map(&RAMP),
            "clients or a rate that rise or fall evenly once the warm-up has ended, and stay",
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
        optional("writes", Shape::Word(CONSISTENCY_LEVELS), "of writes, which have no serial"),
        optional(
            "timestamps",
            Shape::Word(TIMESTAMPS),
            "whose clock says which of two plain writes is the later one, where the last one wins: the client's, or that of the \
             node it asks (coordinator); client when absent",
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
            "numbers of clients",
        ),
        optional("rate", Shape::List { of: &Shape::Rate, least: 2, most: None }, "rates"),
    ],
    &["clients", "rate"],
);

/// `ramp` of a load.
pub(crate) static RAMP: Fields = plain(
    "a ramp",
    &[
        required("from", RAMP_END, "clients or a rate at first, and in the warm-up"),
        required("to", RAMP_END, "clients or a rate at last, and for the rest of the run"),
        required("over", Shape::Duration, "how long it takes from the one to the other"),
    ],
);

/// Where a ramp begins or ends.
const RAMP_END: Shape = Shape::Either(&[Shape::Count { least: 1, most: 100_000 }, Shape::Rate]);
