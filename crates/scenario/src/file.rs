//! The scenario language's outermost tables: the whole file, and its phases with their faults.

use serde_json::Value;
use yaml::schema::of_file;

use crate::faults::FAULT;
use crate::language::{
    CLUSTER, DATABASE, EXPECTATIONS, Fields, LOAD, MATRIX, REPRODUCES, SITE, Shape, optional, plain, required,
};

/// The whole file.
pub(crate) static SCENARIO: Fields = Fields {
    what: "a scenario",
    exactly_one_of: &["site", "cluster"],
    at_least_one_of: &[],
    pair: Some(("site", "database")),
    fields: &[
        required("name", Shape::Name, "the scenario's name, also of its folder under runs/"),
        optional("description", Shape::Text, "what it shows"),
        optional(
            "reproduces",
            Shape::Map(&REPRODUCES),
            "the published report it reproduces, and that report's figures",
        ),
        optional(
            "seed",
            Shape::Count { least: 0, most: u64::MAX },
            "seed of all random choices; by default it is drawn at random",
        ),
        optional(
            "target",
            Shape::Word(&["lab", "external"]),
            "what it runs against: `lab` (default), a datacentre that Holdfast makes and that `site` and `database` \
             describe; or `external`, a cluster that exists and that `cluster` describes",
        ),
        optional("site", Shape::Map(&SITE), "the pretend datacentre"),
        optional("database", Shape::Map(&DATABASE), "the database and its layout"),
        optional(
            "cluster",
            Shape::Map(&CLUSTER),
            "a database that exists, in place of `site` and `database`",
        ),
        required(
            "loads",
            Shape::List { of: &Shape::Map(&LOAD), least: 1, most: None },
            "what the clients do",
        ),
        required(
            "schedule",
            Shape::List { of: &Shape::Map(&PHASE), least: 1, most: None },
            "phases in order, with their faults",
        ),
        optional("expect", EXPECTATIONS, "what must hold for the verdict pass"),
        optional("matrix", Shape::Map(&MATRIX), "settings to run the scenario over, and how often"),
    ],
};

/// An element of `schedule`.
pub(crate) static PHASE: Fields = plain(
    "a phase",
    &[
        required(
            "phase",
            Shape::Name,
            "its name; `warm-up` does not count in totals, `baseline` is the reference for recovery",
        ),
        required("for", Shape::Duration, "how long it lasts, in whole seconds"),
        optional(
            "faults",
            Shape::List { of: &Shape::Map(&FAULT), least: 0, most: None },
            "faults that begin in it",
        ),
    ],
);

/// The JSON Schema of a scenario file.
#[must_use]
pub fn json_schema() -> Value {
    of_file(&SCENARIO, "Holdfast scenario")
}
