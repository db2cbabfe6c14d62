//! The JSON Schema of the shapes that only scenarios have.
//!
//! Describes shapes; what only makes sense together (nodes and hosts, faults and phases) is found by parsing.

use std::collections::BTreeMap;

use capabilities::workloads;
use serde_json::{Map, Value, json};
use yaml::schema::fields;

use super::shapes::{ENGINE_IN_FULL, MOST_NAME_BYTES};
use crate::figures;
use crate::quantity::{Measured, QUANTITIES, Unit};

/// Which of them, only the workload beside it tells: found by parsing.
pub(crate) fn options() -> Value {
    json!({ "anyOf": workloads::OPTIONS.iter().map(|table| fields(table.fields)).collect::<Vec<_>>() })
}

/// A name, a path, or a file in full.
pub(crate) fn engine() -> Value {
    json!({ "anyOf": [
        { "type": "string", "enum": capabilities::names() },
        { "type": "string", "pattern": r"(/|\.ya?ml$)" },
        fields(&ENGINE_IN_FULL),
    ] })
}

pub(crate) fn place() -> Value {
    json!({ "type": ["string", "integer"] })
}

pub(crate) fn node() -> Value {
    json!({ "type": "string" })
}

pub(crate) fn synchronous() -> Value {
    json!({ "type": "string", "pattern": "^(off|all|any [0-9]+)$" })
}

pub(crate) fn axes() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": { "anyOf": [
            { "type": "array", "minItems": 2 },
            {
                "type": "object",
                "propertyNames": { "pattern": "^[a-z0-9-]+$", "maxLength": MOST_NAME_BYTES },
                "minProperties": 2,
                "additionalProperties": { "type": "object" },
            },
        ] },
    })
}

/// Names without a scope one by one; with a scope one pattern for all quantities whose bounds are written alike.
pub(crate) fn figures() -> Value {
    let plain: Vec<&str> = figures::plain().map(|(figure, _)| figure).collect();
    let (units, statistics) = (figures::UNITS.join("|"), figures::STATISTICS.join("|"));
    let name = format!("^({}|[a-z0-9_]+_({units})_({statistics}))$", plain.join("|"));
    json!({ "type": "object", "propertyNames": { "pattern": name }, "additionalProperties": { "type": "number" } })
}

pub(crate) fn expectations() -> Value {
    let bound = |unit: Unit| {
        let number = r"[0-9]+(\.[0-9]+)?";
        let quantity = match unit {
            Unit::Count => "[0-9]+".to_owned(),
            Unit::Number => number.to_owned(),
            Unit::Seconds | Unit::Microseconds => format!("{number}(us|ms|s|m|h)"),
            Unit::PerSecond => format!("{number}/s"),
            Unit::Ratio | Unit::Share => format!("({number}%|0(\\.[0-9]+)?|1(\\.0+)?)"),
        };
        let operator = if unit == Unit::Count { "(<|<=|>|>=|=)?" } else { "(<|<=|>|>=)" };
        let kind = if unit == Unit::Count { json!(["string", "integer"]) } else { json!("string") };
        json!({ "type": kind, "pattern": format!("^{operator} *{quantity}$") })
    };
    let mut properties = Map::new();
    let mut scoped: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for entry in QUANTITIES {
        let mut property = bound(entry.unit);
        let parts = match entry.measured {
            Measured::OfRun => None,
            Measured::OfRunLoadOrFault | Measured::OfRunOrLoad | Measured::OfLoad => Some("{1}"),
            Measured::InPhase | Measured::AfterFault => Some("{1,2}"),
        };
        if let Some(parts) = parts {
            scoped.entry((property.to_string(), parts)).or_default().push(entry.name);
        }
        if let Some(object) = property.as_object_mut() {
            object.insert("description".to_owned(), json!(entry.meaning));
            object.insert("examples".to_owned(), json!([entry.example]));
        }
        properties.insert(entry.name.to_owned(), property);
    }
    let patterns: Map<String, Value> = scoped
        .into_iter()
        .map(|((bound, parts), names)| {
            let bound = bound.parse().unwrap_or_default();
            (format!("^(([a-z0-9-]+|\\*)\\.){parts}({})$", names.join("|")), bound)
        })
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": false,
    })
}
