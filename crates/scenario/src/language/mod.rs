//! The scenario language as tables: every key, what it holds and what it means, and the shapes that only scenarios have.
//!
//! Owns words and shapes only; which values make sense together is for the sections.

mod database;
mod disks;
mod loads;
mod network;
mod pressure;
mod processes;
mod schema;
mod shapes;
mod site;
pub(crate) mod storage;

use serde_json::Value;
use yaml::language::Language;
use yaml::schema::of_file;

pub(crate) use database::*;
pub(crate) use disks::*;
pub(crate) use loads::*;
pub(crate) use network::*;
pub(crate) use pressure::*;
pub(crate) use processes::*;
pub(crate) use shapes::*;
pub(crate) use site::*;

/// What the language calls itself.
pub(crate) static LANGUAGE: Language = Language {
    family: "scenario",
    noun: "scenario",
    begin: "begin with `name: my-scenario`, or copy one of the shipped scenarios",
    shorten: "write `hosts: 1000` instead of a list of names, and leave generated parts out",
    example,
};

/// Values that make more sense at some keys than what their shape gives.
fn example(field: &Field) -> Option<String> {
    let name = field.name;
    let value = match &field.shape {
        Shape::Name if name == "name" => "my-scenario",
        Shape::Name => "baseline",
        Shape::Duration if name == "delay" => "5ms",
        Shape::Own(own) if std::ptr::eq(*own, &raw const shapes::SYNCHRONOUS_SHAPE) => "any 1",
        Shape::Own(own) if std::ptr::eq(*own, &raw const shapes::ENGINE_SHAPE) => "postgres",
        _ if matches!(name, "isolate" | "bridge") => "leader",
        Shape::Own(own) if std::ptr::eq(*own, &raw const NODE_SHAPE) => "leader",
        Shape::Own(_) if name == "from" => "dc1",
        Shape::Own(_) if name == "to" => "dc2",
        Shape::List { of: Shape::Own(_), .. } => "[dc1, dc2]",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The whole file.
pub(crate) static SCENARIO: Fields = plain(
    "a scenario",
    &[
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
            "the seed of every random choice; drawn when absent",
        ),
        optional(
            "target",
            Shape::Word(&["lab", "external"]),
            "what it runs against; this version has only the lab",
        ),
        required("site", Shape::Map(&SITE), "the pretend datacentre"),
        required("database", Shape::Map(&DATABASE), "the database and how it is laid out"),
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
);

/// `reproduces`.
pub(crate) static REPRODUCES: Fields = plain(
    "a reproduction",
    &[
        required("report", Shape::Text, "the report's id"),
        optional("figures", FIGURES, "its figures, by name with the unit last"),
    ],
);

/// Most repetitions of one combination.
pub(crate) const MOST_REPETITIONS: u64 = 100;

/// `matrix`.
pub(crate) static MATRIX: Fields = plain(
    "a matrix",
    &[
        required(
            "axes",
            AXES,
            "what differs: every combination of one value of each axis is run; the order is drawn from the seed",
        ),
        optional(
            "repeat",
            Shape::Count { least: 1, most: MOST_REPETITIONS },
            "how often each combination is run; 1 when absent; from 2 on differences can be distinguished from noise between runs, 5 are better",
        ),
    ],
);

/// An element of `schedule`.
pub(crate) static PHASE: Fields = plain(
    "a phase",
    &[
        required(
            "phase",
            Shape::Name,
            "its name; warm-up is left out of totals, recovery is compared with baseline",
        ),
        required("for", Shape::Duration, "how long it lasts, in whole seconds"),
        optional(
            "faults",
            Shape::List { of: &Shape::Map(&FAULT), least: 0, most: None },
            "faults that begin in it",
        ),
    ],
);

/// An element of `faults`.
pub(crate) static FAULT: Fields = choice(
    "a fault",
    &[
        optional("power-off", Shape::Map(&TARGET), "every host of the target loses power"),
        optional(
            "network",
            Shape::Map(&NETWORK),
            "between two places the network becomes as given; what is not given stays as the links have it",
        ),
        optional("partition", Shape::Map(&PARTITION), "nothing gets through"),
        optional("disk", Shape::Map(&DISK), "a disk under a node's volume goes wrong"),
        optional(
            "process",
            Shape::Map(&PROCESS),
            "the database's processes on a node are killed, stopped or restarted",
        ),
        optional("pressure", Shape::Map(&PRESSURE), "a node is left a part of its processors"),
        optional("at", Shape::Duration, "when it strikes, from the start of its phase; 0s when absent"),
        optional(
            "for",
            Shape::Duration,
            "how long until it is healed; until the end of its phase when absent. Not of a kill or a restart of processes",
        ),
        optional(
            "every",
            Shape::Duration,
            "strikes again so often until its phase ends, each time for `for`; a role such as random is chosen anew each time",
        ),
        optional(
            "flap",
            Shape::Map(&FLAP),
            "the fault comes and goes until it is healed; of network faults and partitions only",
        ),
    ],
    &["power-off", "network", "partition", "disk", "process", "pressure"],
);

/// What a fault is aimed at.
pub(crate) static TARGET: Fields = choice(
    "a fault's target",
    &[
        optional("host", PLACE, "a host by name, or of a role: leader, a-follower, coordinator, random"),
        optional("rack", PLACE, "a rack by name, or of a role"),
        optional("zone", PLACE, "a zone by name, or of a role"),
        optional("region", PLACE, "a region by name, or of a role"),
    ],
    &["host", "rack", "zone", "region"],
);

/// The JSON Schema of a scenario file.
#[must_use]
pub fn json_schema() -> Value {
    of_file(&SCENARIO, "Holdfast scenario")
}
