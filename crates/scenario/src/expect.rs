//! The `expect` section: `recovery: < 30s` to a quantity, a comparison and a bound in the quantity's base unit.
//!
//! Owns reading it, and refusing what could never be measured or never fail.

use crate::catalogue::{self, EXPECTATIONS, ExpectationEntry, Needs, Unit};
use crate::decode::Decoder;
use crate::rejection::{Findings, Spot};
use crate::resolved::{Comparison, Expectation, Load, Phase};
use crate::tree::Node;
use crate::units::{self, UnitError};
use crate::wording::{either, listed, nearest, shortened};

/// An expectation and the place of its name.
pub(crate) struct ExpectationDocument {
    expectation: Expectation,
    entry: &'static ExpectationEntry,
    name_at: Spot,
}

/// Operators, longest first.
const OPERATORS: &[(&str, Comparison)] = &[
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// Reads the section.
pub(crate) fn decode(node: &Node, decoder: &mut Decoder) -> Option<Vec<ExpectationDocument>> {
    let entries = decoder.entries(node, "`expect`")?;
    let mut documents = Vec::new();
    for written in entries {
        let Some(entry) = catalogue::expectation(&written.key) else {
            let names: Vec<&str> = EXPECTATIONS.iter().map(|entry| entry.name).collect();
            let help = match nearest(&written.key, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("what can be expected: {}", listed(&names)),
            };
            let message = format!("there is no quantity `{}` to expect", shortened(&written.key));
            decoder.findings.add("unknown-key", written.key_at, message, "unknown quantity", help);
            continue;
        };
        if let Some(expectation) = decode_bound(&written.value, entry, decoder) {
            documents.push(ExpectationDocument { expectation, entry, name_at: written.key_at });
        }
    }
    Some(documents)
}

fn decode_bound(node: &Node, entry: &'static ExpectationEntry, decoder: &mut Decoder) -> Option<Expectation> {
    let text = decoder.text(node, &format!("`{}`", entry.name))?;
    let written = text.value.trim();
    let (comparison, quantity) = OPERATORS
        .iter()
        .find_map(|(operator, comparison)| {
            written.strip_prefix(operator).map(|rest| (*comparison, rest.trim_start()))
        })
        .unwrap_or((Comparison::Equal, written));
    let bound = match read_bound(quantity, entry.unit) {
        Ok(bound) => bound,
        Err(error) => {
            let operator = written.strip_suffix(quantity).unwrap_or_default();
            let (code, help) = match &error {
                UnitError::NoUnit { write, .. } => ("no-unit", format!("write `{operator}{write}`")),
                _ => {
                    ("bad-unit", format!("{}; for example `{}: {}`", error.help(), entry.name, entry.example))
                }
            };
            let message = format!("`{}` is {}: {error}", entry.name, entry.unit.written());
            decoder.findings.add(code, text.at, message, "this bound", help);
            return None;
        }
    };
    if comparison == Comparison::Equal && entry.unit != Unit::Count {
        decoder.findings.add(
            "exact-quantity",
            text.at,
            format!("`{}` would have to be exactly {quantity}, which no measurement ever is", entry.name),
            "no comparison",
            format!("write `<`, `<=`, `>` or `>=` in front, such as `{}: \"{}\"`", entry.name, entry.example),
        );
        return None;
    }
    if always_holds(comparison, bound, entry.unit) {
        decoder.findings.add(
            "always-holds",
            text.at,
            format!("`{}: {written}` holds whatever happens", entry.name),
            "cannot fail",
            format!("write a bound that can be missed, such as `{}: \"{}\"`", entry.name, entry.example),
        );
        return None;
    }
    Some(Expectation { name: entry.name.to_owned(), wanted: written.to_owned(), comparison, bound })
}

/// Whether no run could miss it: nothing measured here is negative, and shares end at 1.
fn always_holds(comparison: Comparison, bound: f64, unit: Unit) -> bool {
    match comparison {
        Comparison::AtLeast => bound <= 0.0,
        Comparison::AtMost => unit == Unit::Share && bound >= 1.0,
        Comparison::Less => unit == Unit::Share && bound > 1.0,
        Comparison::Equal | Comparison::Greater => false,
    }
}

fn read_bound(text: &str, unit: Unit) -> Result<f64, UnitError> {
    match unit {
        Unit::Count => read_count(text),
        Unit::Seconds => units::duration(text, "s").map(|duration| duration.as_secs_f64()),
        Unit::Microseconds => units::duration(text, "ms").map(|duration| duration.as_secs_f64() * 1e6),
        Unit::PerSecond => units::rate_per_s(text),
        Unit::Ratio | Unit::Share => units::ratio(text),
    }
}

fn read_count(text: &str) -> Result<f64, UnitError> {
    match text.parse::<u32>() {
        Ok(count) if text.chars().all(|c| c.is_ascii_digit()) => Ok(f64::from(count)),
        _ => Err(UnitError::NotAQuantity { text: text.to_owned(), kind: "a plain number", example: "0" }),
    }
}

/// Holds the section against the loads and the schedule: what nothing in the scenario can measure is refused.
pub(crate) fn resolve(
    documents: Vec<ExpectationDocument>,
    loads: &[Load],
    schedule: &[Phase],
    findings: &mut Findings,
) -> Vec<Expectation> {
    let has_fault = schedule.iter().any(|phase| !phase.faults.is_empty());
    let has_load = |workloads: &[&str]| loads.iter().any(|load| workloads.contains(&load.workload.as_str()));
    for document in &documents {
        let name = document.entry.name;
        match document.entry.needs {
            Needs::Fault if !has_fault => findings.add(
                "needs-fault",
                document.name_at,
                format!("`{name}` is expected, but the schedule has no fault"),
                "nothing to measure it by",
                "add `faults:` to a phase after `baseline`, or remove the expectation",
            ),
            Needs::Load(workloads) if !has_load(workloads) => findings.add(
                "needs-load",
                document.name_at,
                format!("`{name}` is expected, but no load has the workload {}", either(workloads)),
                "nothing to measure it by",
                format!(
                    "add `- {{ workload: {}, clients: 2 }}` to `loads`",
                    workloads.first().copied().unwrap_or_default()
                ),
            ),
            _ => {}
        }
    }
    documents.into_iter().map(|document| document.expectation).collect()
}
