//! Keys of `cluster`: a database that exists, in place of a site and a database that the lab makes.

use super::shapes::{ENGINE, Fields, Shape, choice, optional, plain, required};

/// `cluster`.
pub(crate) static CLUSTER: Fields = plain(
    "a cluster",
    &[
        required("engine", ENGINE, "which database it is"),
        required(
            "members",
            Shape::Named(&Shape::Map(&MEMBER)),
            "its nodes, each under a name of your choice; n1 is the first",
        ),
        optional(
            "may-break",
            Shape::List { of: &Shape::Name, least: 1, most: None },
            "members that faults may strike; default none. `holdfast run` also needs `--yes-break NAME` with the \
             scenario's name",
        ),
        optional(
            "agents",
            Shape::Named(&Shape::Map(&AGENT)),
            "machines on which loads may stand, each under a name of your choice",
        ),
        optional(
            "agent-lost",
            Shape::Word(AGENT_LOST),
            "what becomes of a load that has lost an agent: `unknown` (default), it ends and the run is unknown, or \
             `go-on`, its other agents go on",
        ),
        optional(
            "database",
            Shape::Text,
            "name of the database that loads use; default the one that servers of the engine's protocol usually have, \
             required if there is none",
        ),
        optional(
            "user",
            Shape::Text,
            "user that clients connect as; default the one that servers of the engine's protocol usually have. The \
             password is read from the environment variable PGPASSWORD",
        ),
        optional(
            "ssh-config",
            Shape::Text,
            "absolute path of a configuration file that ssh uses in place of yours",
        ),
    ],
);

/// A member of a cluster.
pub(crate) static MEMBER: Fields = plain(
    "a member",
    &[
        required(
            "endpoint",
            Shape::Text,
            "address and port that clients use (10.0.0.1:5432, db1.example.org:5432)",
        ),
        optional("reach", Shape::Map(&REACH), "how commands reach its machine; needed for faults"),
        optional(
            "facts",
            Shape::Settings(&Shape::Setting),
            "values for parameters of command files, such as the name of its unit or its address",
        ),
    ],
);

/// What becomes of a load that has lost an agent.
pub(crate) static AGENT_LOST: &[&str] = &["unknown", "go-on"];

/// A machine on which loads may stand.
pub(crate) static AGENT: Fields = plain(
    "an agent",
    &[
        required("reach", Shape::Map(&REACH), "how the machine is reached"),
        optional(
            "program",
            Shape::Text,
            "holdfast on that machine, in the same version; default `holdfast`, and on this machine the program that runs",
        ),
    ],
);

/// How commands reach a machine.
pub(crate) static REACH: Fields = choice(
    "a reach",
    &[
        optional(
            "ssh",
            Shape::Text,
            "the machine, as the program `ssh` takes it: a name of its configuration, or user@host",
        ),
        optional(
            "local",
            Shape::List { of: &Shape::Text, least: 0, most: None },
            "this machine: a program and its arguments that start a shell where the member runs ([nsenter, \
             --net=/run/netns/db1]), or `[]` for a plain shell",
        ),
    ],
    &["ssh", "local"],
);
