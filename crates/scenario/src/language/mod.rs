//! The scenario language as tables: every key, what it holds and what it means, and the shapes that only scenarios have.
//!
//! Owns words and shapes only; which values make sense together is for the sections.

mod cluster;
mod database;
mod disks;
mod loads;
mod network;
mod platform;
mod schema;
mod shapes;
mod site;
pub(crate) mod storage;

use yaml::language::Language;

pub(crate) use cluster::*;
pub(crate) use database::*;
pub(crate) use disks::*;
pub(crate) use loads::*;
pub(crate) use network::*;
pub(crate) use platform::*;
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
        Shape::Name if name == "stateful-set" => "my-database",
        Shape::Name => "baseline",
        Shape::Duration if name == "delay" => "5ms",
        Shape::Size if name == "mtu" => "1400B",
        Shape::Own(own) if std::ptr::eq(*own, &raw const shapes::SYNCHRONOUS_SHAPE) => "any 1",
        Shape::Own(own) if std::ptr::eq(*own, &raw const shapes::ENGINE_SHAPE) => {
            capabilities::names().first().copied().unwrap_or_default()
        }
        _ if matches!(name, "isolate" | "bridge") => "leader",
        Shape::Own(own) if std::ptr::eq(*own, &raw const NODE_SHAPE) => "leader",
        Shape::Own(_) if name == "from" => "dc1",
        Shape::Own(_) if name == "to" => "dc2",
        Shape::List { of: Shape::Own(_), .. } => "[dc1, dc2]",
        _ => return None,
    };
    Some(value.to_owned())
}

/// `reproduces`.
pub(crate) static REPRODUCES: Fields = plain(
    "a reproduction",
    &[
        required("report", Shape::Text, "the report's id"),
        optional("figures", FIGURES, "its figures, by name with the unit last"),
        optional("baseline", FIGURES, "those of `figures` that the report states for its baseline too"),
        optional(
            "steps",
            Shape::List { of: &Shape::Map(&REPORTED_STEP), least: 1, most: None },
            "the rows of its table, where it raised its load step by step; the run's phases stand below them",
        ),
    ],
);

/// An element of `steps`.
pub(crate) static REPORTED_STEP: Fields = plain(
    "a step of a report",
    &[
        required("step", Shape::Text, "what the report calls it: `150 threads`"),
        required("figures", FIGURES, "its figures, by name with the unit last"),
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
            "the settings to vary: every combination of one value per axis is run, in an order drawn from the seed",
        ),
        optional(
            "repeat",
            Shape::Count { least: 1, most: MOST_REPETITIONS },
            "how often each combination is run; default 1. Two or more are needed to tell a difference from \
             run-to-run noise; five are better",
        ),
    ],
);
