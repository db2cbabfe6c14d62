//! The `matrix` section: axes of settings, of which every combination is a cell, and every cell a scenario.
//!
//! Owns reading the section and putting the cells together. A value of an axis goes into the tree where a `--set` would
//! put it, with its place in the file kept: what is wrong with it is told with the caret under it.

use std::collections::BTreeSet;

use crate::decode::Decoder;
use crate::language::{MATRIX, MOST_REPETITIONS};
use crate::overrides::{self, Step};
use crate::rejection::{Finding, Findings, Spot};
use crate::scenario::Scenario;
use crate::tree::{Node, Value};
use crate::wording::shortened;

/// Most runs of a matrix, repetitions included.
const MOST_RUNS: usize = 1_000;
/// What every run of a matrix has in common, or what the matrix itself decides.
const NOT_AN_AXIS: &[&str] = &["name", "seed", "matrix", "target"];

/// A scenario over a matrix of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The axes in the file's order.
    pub axes: Vec<Axis>,
    /// How often each cell is run.
    pub repeat: u32,
    /// Every combination: the last axis changes fastest.
    pub cells: Vec<Cell>,
}

/// One thing that a matrix varies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The path of the setting, or the name of sets of settings.
    pub name: String,
    /// Its values as they are called.
    pub values: Vec<String>,
}

impl Matrix {
    /// One cell and no axes: a scenario run several times.
    #[must_use]
    pub fn of_repetitions(scenario: Scenario, repeat: u32) -> Matrix {
        let label = scenario.name.clone();
        let cell = Cell { label, values: Vec::new(), settings: Vec::new(), scenario };
        Matrix { axes: Vec::new(), repeat, cells: vec![cell] }
    }

    /// Whether every cell sets this path, or what it lies in: a `--set` of it then reaches none.
    #[must_use]
    pub fn replaces(&self, path: &str) -> bool {
        let covers = |(setting, _): &(String, String)| {
            let below = path.strip_prefix(setting.as_str());
            below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        };
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.settings.iter().any(covers))
    }
}

/// One combination.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What it is called: `synchronous = off, clients = 8`.
    pub label: String,
    /// The value of each axis, by the axis's name, in the axes' order.
    pub values: Vec<(String, String)>,
    /// Every setting by its path, as written, in the order they are set.
    pub settings: Vec<(String, String)>,
    /// The scenario with these settings.
    pub scenario: Scenario,
}

/// The section as written.
pub(crate) struct MatrixDocument {
    axes: Vec<AxisDocument>,
    repeat: u32,
}

struct AxisDocument {
    name: String,
    choices: Vec<Choice>,
}

/// One value of an axis.
struct Choice {
    name: String,
    at: Spot,
    settings: Vec<Setting>,
}

struct Setting {
    path: String,
    at: Spot,
    steps: Vec<Step>,
    value: Node,
}

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<MatrixDocument> {
    let record = decoder.record(node, &MATRIX)?;
    let repeat = record.get("repeat").map_or(Some(1), |node| {
        let count = decoder.count(node, "the number of repetitions", 1, MOST_REPETITIONS)?;
        u32::try_from(count.value).ok()
    });
    let node = record.get("axes")?;
    let entries = decoder.entries(node, "`axes`")?;
    if entries.is_empty() {
        let help = "name at least one, such as `loads.0.clients: [1, 8]`";
        decoder.findings.add("empty", node.at, "a matrix without axes", "nothing in it", help);
        return None;
    }
    let before = decoder.findings.len();
    let axes: Vec<AxisDocument> =
        entries.iter().filter_map(|entry| axis(&entry.key, entry.key_at, &entry.value, decoder)).collect();
    if decoder.findings.len() > before {
        return None;
    }
    overlaps(&axes, decoder);
    let document = MatrixDocument { axes, repeat: repeat? };
    let cells: usize =
        document.axes.iter().fold(1, |cells: usize, axis| cells.saturating_mul(axis.choices.len()));
    let runs = cells.saturating_mul(document.repeat as usize);
    if runs > MOST_RUNS {
        decoder.findings.add(
            "too-large",
            node.head,
            format!(
                "{cells} combinations, {} times each, are {runs} runs; at most {MOST_RUNS} are made",
                document.repeat
            ),
            "too many combinations",
            "take values or repetitions away, or write several scenarios",
        );
    }
    (decoder.findings.len() == before).then_some(document)
}

fn axis(name: &str, at: Spot, node: &Node, decoder: &mut Decoder) -> Option<AxisDocument> {
    let choices = match &node.value {
        Value::List(_) => values_of_a_path(name, at, node, decoder)?,
        Value::Map(_) => sets_of_settings(node, decoder)?,
        Value::Scalar { .. } => {
            decoder.findings.add(
                "wrong-kind",
                node.at,
                format!("the axis `{}` is a list of values or a map of named settings, not a single value", shortened(name)),
                "a single value",
                "write `loads.0.clients: [1, 8]`, or `storage: { one: { database.volumes: virtual }, other: ... }`",
            );
            return None;
        }
    };
    if choices.len() < 2 {
        decoder.findings.add(
            "empty",
            node.at,
            format!("the axis `{}` has {} value; an axis needs at least 2", shortened(name), choices.len()),
            "too few",
            "add a value, or set it in the scenario itself",
        );
        return None;
    }
    let mut seen = BTreeSet::new();
    for choice in &choices {
        if !seen.insert(choice.name.as_str()) {
            let message =
                format!("`{}` appears twice in the axis `{}`", shortened(&choice.name), shortened(name));
            let help = "keep one; to run each combination several times write `repeat: 3` beside `axes`";
            decoder.findings.add("duplicate-value", choice.at, message, "again here", help);
            return None;
        }
    }
    Some(AxisDocument { name: name.to_owned(), choices })
}

fn values_of_a_path(path: &str, at: Spot, node: &Node, decoder: &mut Decoder) -> Option<Vec<Choice>> {
    let items = decoder.list(node, "an axis", 2)?;
    let mut choices = Vec::new();
    for value in items {
        // What is wrong with the path is wrong once: the first value tells it.
        let settings = vec![setting(path, at, value, decoder)?];
        choices.push(Choice { name: written(value), at: value.at, settings });
    }
    Some(choices)
}

fn sets_of_settings(node: &Node, decoder: &mut Decoder) -> Option<Vec<Choice>> {
    let mut choices = Vec::new();
    for (name, node) in decoder.named(node, "an axis of named settings")? {
        let entries = decoder.entries(node, "a set of settings")?;
        let mut settings = Vec::new();
        for entry in entries {
            settings.push(setting(&entry.key, entry.key_at, &entry.value, decoder)?);
        }
        choices.push(Choice { name: name.value, at: name.at, settings });
    }
    Some(choices)
}

fn setting(path: &str, at: Spot, value: &Node, decoder: &mut Decoder) -> Option<Setting> {
    // Quotes around the key are no part of the path.
    let quote = usize::from(at.end.saturating_sub(at.start) == path.len() + 2);
    let steps = match overrides::steps(path, Spot { start: at.start + quote, ..at }) {
        Ok(steps) => steps,
        Err(finding) => {
            decoder.findings.push(*finding);
            return None;
        }
    };
    if let Some(first) = steps.first().filter(|step| NOT_AN_AXIS.contains(&step.key.as_str())) {
        decoder.findings.add(
            "bad-axis",
            at,
            format!("a matrix cannot vary `{}`", first.key),
            "not for an axis",
            match first.key.as_str() {
                "seed" => "leave it out: every repetition gets its own seed, derived from the scenario's",
                _ => {
                    "write the path of a setting, such as loads.0.clients or database.replication.synchronous"
                }
            },
        );
        return None;
    }
    Some(Setting { path: path.to_owned(), at, steps, value: value.clone() })
}

/// Two axes that set the same would undo each other's work.
fn overlaps(axes: &[AxisDocument], decoder: &mut Decoder) {
    let keys =
        |setting: &Setting| -> Vec<String> { setting.steps.iter().map(|step| step.key.clone()).collect() };
    for (index, axis) in axes.iter().enumerate() {
        for earlier in &axes[..index] {
            let settings = |axis: &'_ AxisDocument| -> Vec<(Vec<String>, Spot)> {
                let all = axis.choices.iter().flat_map(|choice| &choice.settings);
                all.map(|setting| (keys(setting), setting.at)).collect()
            };
            let clash = settings(axis).into_iter().find_map(|(keys, at)| {
                let same =
                    |(other, _): &(Vec<String>, Spot)| keys.starts_with(other) || other.starts_with(&keys);
                settings(earlier).into_iter().find(same).map(|(_, other_at)| (keys.join("."), at, other_at))
            });
            if let Some((path, at, other_at)) = clash {
                decoder.findings.push(Finding {
                    code: "overlapping-axes",
                    message: format!("two axes set `{}`", shortened(&path)),
                    at,
                    label: "set here too".to_owned(),
                    help: "put both into one axis of named settings, or take one away".to_owned(),
                    also: Some((other_at, "set here".to_owned())),
                });
            }
        }
    }
}

impl MatrixDocument {
    /// Every cell, read by `read` from the tree with its settings in place. `root` is the scenario without its matrix.
    pub(crate) fn resolve(
        &self,
        root: &Node,
        read: impl Fn(&Node, &mut Findings) -> Option<Scenario>,
        findings: &mut Findings,
    ) -> Option<Matrix> {
        let names = short_names(&self.axes);
        let mut told: BTreeSet<(&'static str, Spot, String)> = BTreeSet::new();
        let mut cells = Vec::new();
        for choices in self.combinations() {
            let named: Vec<String> = names
                .iter()
                .zip(&choices)
                .map(|(name, choice)| format!("{name} = {}", choice.name))
                .collect();
            let label = named.join(", ");
            let mut wrong = Findings::default();
            let scenario = cell(root, &choices, &read, &mut wrong);
            for mut finding in wrong.into_all() {
                // What one value breaks, it breaks in every cell it is part of.
                if !told.insert((finding.code, finding.at, finding.message.clone())) {
                    continue;
                }
                let is_in_the_matrix = choices.iter().flat_map(|choice| &choice.settings).any(|setting| {
                    let (from, to) = (setting.at.start.min(setting.value.at.start), setting.value.at.end);
                    finding.at.text == setting.at.text && (from..=to).contains(&finding.at.start)
                });
                if !is_in_the_matrix {
                    finding.message = format!("{} (with {label})", finding.message);
                }
                findings.push(finding);
            }
            if findings.is_full() {
                return None;
            }
            let values = self.axes.iter().zip(&choices);
            let settings = choices.iter().flat_map(|choice| &choice.settings);
            cells.extend(scenario.map(|scenario| Cell {
                label,
                values: values.map(|(axis, choice)| (axis.name.clone(), choice.name.clone())).collect(),
                settings: settings.map(|setting| (setting.path.clone(), written(&setting.value))).collect(),
                scenario,
            }));
        }
        let axis = |axis: &AxisDocument| Axis {
            name: axis.name.clone(),
            values: axis.choices.iter().map(|choice| choice.name.clone()).collect(),
        };
        findings.is_empty().then(|| Matrix {
            axes: self.axes.iter().map(axis).collect(),
            repeat: self.repeat,
            cells,
        })
    }

    /// One choice of each axis; the last axis changes fastest.
    fn combinations(&self) -> Vec<Vec<&Choice>> {
        let mut cells: Vec<Vec<&Choice>> = vec![Vec::new()];
        for axis in &self.axes {
            let mut longer = Vec::with_capacity(cells.len() * axis.choices.len());
            for cell in &cells {
                longer.extend(axis.choices.iter().map(|choice| [cell.as_slice(), &[choice]].concat()));
            }
            cells = longer;
        }
        cells
    }
}

fn cell(
    root: &Node,
    choices: &[&Choice],
    read: &impl Fn(&Node, &mut Findings) -> Option<Scenario>,
    findings: &mut Findings,
) -> Option<Scenario> {
    let mut root = root.clone();
    for setting in choices.iter().flat_map(|choice| &choice.settings) {
        if let Err(finding) = overrides::set(&mut root, &setting.steps, setting.value.clone()) {
            findings.push(*finding);
            return None;
        }
    }
    read(&root, findings)
}

/// What axes are called in labels: the last word of a path, or as much of it as tells it from the others.
fn short_names(axes: &[AxisDocument]) -> Vec<String> {
    let last = |axis: &AxisDocument| axis.name.rsplit('.').next().unwrap_or_default().to_owned();
    let all: Vec<String> = axes.iter().map(last).collect();
    let is_telling = |name: &String| {
        name.chars().any(|c| c.is_ascii_alphabetic())
            && all.iter().filter(|other| *other == name).count() == 1
    };
    axes.iter()
        .zip(&all)
        .map(|(axis, name)| if is_telling(name) { name.clone() } else { axis.name.clone() })
        .collect()
}

/// A value as one would write it on one line.
fn written(node: &Node) -> String {
    match &node.value {
        Value::Scalar { text, .. } => text.clone(),
        Value::List(items) => format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| format!("{}: {}", entry.key, written(&entry.value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}
