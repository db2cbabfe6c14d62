//! The scenario language's outermost tables: the whole file, and its phases with their faults.
//!
//! Owns also what a scenario says of itself, which changes nothing of what is done: how it is read and written
//! back. A key of that kind stands in this file alone.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use yaml::schema::of_file;

use crate::decode::{Decoder, Record};
use crate::faults::FAULT;
use crate::figures;
use crate::language::{
    CLUSTER, DATABASE, EXPECTATIONS, Fields, LOAD, MATRIX, REPORTED_STEP, REPRODUCES, SITE, Shape, optional,
    plain, required,
};
use crate::quoted::quoted;
use crate::rejection::Spot;
use crate::resolved::{ReportedStep, Reproduces};
use crate::tree::Node;

/// The largest seed: every reader of JSON reads it exactly (RFC 8259, 6).
pub const MOST_SEED: u64 = (1 << 53) - 1;
/// What a scenario may run against.
pub(crate) static TARGETS: &[&str] = &["lab", EXTERNAL, KUBERNETES_TARGET];
/// On machines that exist.
pub(crate) const EXTERNAL: &str = "external";
/// In pods that exist.
pub(crate) const KUBERNETES_TARGET: &str = "kubernetes";

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
            Shape::Count { least: 0, most: MOST_SEED },
            "seed of all random choices; by default it is drawn at random",
        ),
        optional(
            "target",
            Shape::Word(TARGETS),
            "what it runs against: `lab` (default), a datacentre that Holdfast makes and that `site` and `database` \
             describe; or a cluster that exists and that `cluster` describes: `external`, on machines, or \
             `kubernetes`, in pods",
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

/// What a scenario says of itself: it changes nothing of what is done, and stands in results and reports.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// What it shows; empty where it does not say.
    pub description: String,
    /// The published report it reproduces.
    pub reproduces: Option<Reproduces>,
}

impl About {
    /// Reads it from the whole file; `workloads` are those of its loads.
    pub(crate) fn decode(record: &Record<'_>, workloads: &[&str], decoder: &mut Decoder) -> About {
        let description = record.get("description").and_then(|node| decoder.text(node, "the description"));
        let reproduces = record.get("reproduces");
        About {
            description: description.map(|text| text.value).unwrap_or_default(),
            reproduces: reproduces.and_then(|node| decode_reproduces(node, workloads, decoder)),
        }
    }

    /// Its lines in a scenario file.
    pub(crate) fn written(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.description.is_empty() {
            lines.push(format!("description: {}", quoted(&self.description)));
        }
        if let Some(reproduces) = &self.reproduces {
            let (report, figures) = (quoted(&reproduces.report), map_written(&reproduces.figures));
            let baseline = map_written(&reproduces.baseline);
            let step = |step: &ReportedStep| {
                format!("{{ step: {}, figures: {} }}", quoted(&step.step), map_written(&step.figures))
            };
            let steps: Vec<String> = reproduces.steps.iter().map(step).collect();
            let steps =
                if steps.is_empty() { String::new() } else { format!(", steps: [{}]", steps.join(", ")) };
            lines.push(format!(
                "reproduces: {{ report: {report}, figures: {figures}, baseline: {baseline}{steps} }}"
            ));
        }
        lines
    }
}

fn map_written(figures: &BTreeMap<String, f64>) -> String {
    let written: Vec<String> =
        figures.iter().map(|(name, value)| format!("{}: {value}", quoted(name))).collect();
    format!("{{ {} }}", written.join(", "))
}

fn decode_reproduces(node: &Node, workloads: &[&str], decoder: &mut Decoder) -> Option<Reproduces> {
    let record = decoder.record(node, &REPRODUCES)?;
    let report = record.get("report").and_then(|node| decoder.text(node, "the report's id"));
    let (figures, named) = decode_figures(&record, "figures", workloads, decoder)?;
    let (baseline, in_baseline) = decode_figures(&record, "baseline", workloads, decoder)?;
    for (name, at) in in_baseline.into_iter().filter(|(name, _)| !named.contains_key(name)) {
        figures::refuse_baseline_alone(&name, at, &mut decoder.findings);
    }
    let steps = record.get("steps").map(|node| decoder.list(node, "`steps`", 1)).unwrap_or_default();
    let step = |node: &Node| decode_step(node, workloads, decoder);
    let steps = steps.into_iter().flatten().filter_map(step).collect();
    Some(Reproduces { report: report?.value, figures, baseline, steps })
}

fn decode_step(node: &Node, workloads: &[&str], decoder: &mut Decoder) -> Option<ReportedStep> {
    let record = decoder.record(node, &REPORTED_STEP)?;
    let step = record.get("step").and_then(|node| decoder.text(node, "the step's name"));
    let (figures, _) = decode_figures(&record, "figures", workloads, decoder)?;
    Some(ReportedStep { step: step?.value, figures })
}

/// The figures under a key, none where it is missing, and the places of those that a run can measure.
fn decode_figures(
    record: &Record<'_>,
    key: &'static str,
    workloads: &[&str],
    decoder: &mut Decoder,
) -> Option<(BTreeMap<String, f64>, BTreeMap<String, Spot>)> {
    let (mut figures, mut places) = (BTreeMap::new(), BTreeMap::new());
    let Some(node) = record.get(key) else { return Some((figures, places)) };
    for entry in decoder.entries(node, &format!("`{key}`"))? {
        let known = figures::check(&entry.key, entry.key_at, workloads, &mut decoder.findings);
        let number = decoder.number(&entry.value, &format!("`{}`", entry.key));
        if known.is_some() {
            places.insert(entry.key.clone(), entry.key_at);
            figures.extend(number.map(|number| (entry.key.clone(), number.value)));
        }
    }
    Some((figures, places))
}
