//! The scenario language's table of what a node may be short of.
//!
//! Owns words and shapes, as `language` does for the rest.

use super::shapes::{Fields, NODE, Shape, plain, required};

/// Pressure on a node.
pub(crate) static PRESSURE: Fields = plain(
    "a pressure fault",
    &[
        required("of", NODE, "the node: by name (n1), or in a role: leader, a-follower, random"),
        required(
            "processor",
            Shape::Percent,
            "share of the processors that the node may use (`database.cpus`, or the whole machine's) which a noisy neighbour \
             takes, 10% to 99%: the node is held to the rest by its control group",
        ),
    ],
);
