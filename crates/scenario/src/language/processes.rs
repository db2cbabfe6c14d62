//! The scenario language's tables of what may be done to a node's processes.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Fields, NODE, Shape, optional, plain, required};

/// What may be done to processes.
pub(crate) static DEEDS: &[&str] = &["kill", "stop", "restart"];

/// A process fault.
pub(crate) static PROCESS: Fields = plain(
    "a process fault",
    &[
        required(
            "of",
            NODE,
            "the node whose processes are meant: by name (n1), or in a role: leader, a-follower, random",
        ),
        required(
            "how",
            Shape::Word(DEEDS),
            "kill (SIGKILL; the node, its volume and its memory stay), stop (SIGSTOP, then SIGCONT when it is healed), \
             restart (stopped in order, then started)",
        ),
        optional(
            "restart",
            Shape::Either(&[Shape::Word(&["never"]), Shape::Map(&RESTART)]),
            "after a kill: when the node's service manager starts the processes again, or never; { after: 1s } when absent",
        ),
        optional(
            "only",
            Shape::Text,
            "one program of several that the node runs, as the engine's file calls it (Patroni: etcd, patroni, postgres); all \
             when absent",
        ),
    ],
);

/// When processes are started again.
pub(crate) static RESTART: Fields =
    plain("a restart", &[required("after", Shape::Duration, "how long after the kill, 100ms or more")]);
