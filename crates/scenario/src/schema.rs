//! The language's tables as a JSON Schema (2020-12), for editors.
//!
//! Describes shapes; what only makes sense together (nodes and hosts, faults and phases) is found by parsing.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::figures;
use crate::language::{Fields, MOST_FREE_NAME_BYTES, MOST_NAME_BYTES, SCENARIO, Shape};
use crate::quantity::{Measured, QUANTITIES, Unit};
use crate::workload_options::OPTIONS;

const DURATION: &str = r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$";
const BIT_RATE: &str = r"^[0-9]+(\.[0-9]+)?[kMGT]?bit/s$";

const RATE: &str = r"^[0-9]+(\.[0-9]+)?/s$";
const SIZE: &str = r"^[0-9]+(\.[0-9]+)?([KMGT]iB|[kMGT]?B)$";
const PACKETS: &str = r"^[0-9]+ packets$";
const PERCENT: &str = r"^[0-9]+(\.[0-9]+)?%$";

/// The JSON Schema of a scenario file.
#[must_use]
pub fn json_schema() -> Value {
    let mut schema = fields(&SCENARIO);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".to_owned(), json!("Holdfast scenario"));
    }
    schema
}

fn fields(fields: &Fields) -> Value {
    let mut properties = Map::new();
    for field in fields.fields {
        let mut property = shape(&field.shape);
        if let Some(object) = property.as_object_mut() {
            object.insert("description".to_owned(), json!(field.meaning));
        }
        properties.insert(field.name.to_owned(), property);
    }
    let required: Vec<_> =
        fields.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let Some(object) = schema.as_object_mut() else { return schema };
    if !fields.exactly_one_of.is_empty() {
        let choices: Vec<_> =
            fields.exactly_one_of.iter().map(|name| json!({ "required": [name] })).collect();
        object.insert("oneOf".to_owned(), json!(choices));
    }
    if !fields.at_least_one_of.is_empty() {
        let choices: Vec<_> =
            fields.at_least_one_of.iter().map(|name| json!({ "required": [name] })).collect();
        object.insert("anyOf".to_owned(), json!(choices));
    }
    if let Some((one, other)) = fields.pair {
        object.insert("dependentRequired".to_owned(), json!({ one: [other], other: [one] }));
    }
    schema
}

fn shape(of: &Shape) -> Value {
    match of {
        // An unquoted number is text to us and a number to YAML's own types.
        Shape::Text | Shape::PathWithin | Shape::Setting => {
            json!({ "type": ["string", "number", "boolean"] })
        }
        Shape::Name => {
            json!({ "type": ["string", "integer", "boolean"], "pattern": "^[a-z0-9-]+$", "maxLength": MOST_NAME_BYTES })
        }
        Shape::Place => json!({ "type": ["string", "integer"] }),
        Shape::Word(words) => json!({ "type": "string", "enum": words }),
        Shape::Version(versions) => {
            let numbers = versions.iter().filter_map(|version| version.parse::<u64>().ok());
            json!({ "enum": numbers.map(Value::from).chain(versions.iter().map(|text| json!(text))).collect::<Vec<_>>() })
        }
        Shape::Count { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Figures => figures(),
        Shape::Duration => json!({ "type": "string", "pattern": DURATION }),
        Shape::BitRate => json!({ "type": "string", "pattern": BIT_RATE }),
        Shape::Rate => json!({ "type": "string", "pattern": RATE }),
        Shape::Size => json!({ "type": "string", "pattern": SIZE }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Packets => json!({ "type": "string", "pattern": PACKETS }),
        Shape::Percent => json!({ "type": "string", "pattern": PERCENT }),
        Shape::Synchronous => json!({ "type": "string", "pattern": "^(off|all|any [0-9]+)$" }),
        Shape::Expectations => expectations(),
        // Which of them, only the workload beside it tells: found by parsing.
        Shape::Options => {
            json!({ "anyOf": OPTIONS.iter().map(|table| fields(table.fields)).collect::<Vec<_>>() })
        }
        Shape::Map(map) => fields(map),
        Shape::Named(each) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z0-9-]+$", "maxLength": MOST_NAME_BYTES },
            "minProperties": 1,
            "additionalProperties": shape(each),
        }),
        Shape::Settings(each) => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[a-z][a-z0-9_.-]*$", "maxLength": MOST_FREE_NAME_BYTES },
            "additionalProperties": shape(each),
        }),
        Shape::List { of, least, most } => {
            let mut list = json!({ "type": "array", "items": shape(of), "minItems": least });
            if let (Some(object), Some(most)) = (list.as_object_mut(), most) {
                object.insert("maxItems".to_owned(), json!(most));
            }
            list
        }
        Shape::Axes => json!({
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
        }),
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<_>>() }),
    }
}

/// Names without a scope one by one; with a scope one pattern for all quantities whose bounds are written alike.
fn figures() -> Value {
    let plain: Vec<&str> = figures::PLAIN.iter().map(|figure| figure.name).collect();
    let (units, statistics) = (figures::UNITS.join("|"), figures::STATISTICS.join("|"));
    let name = format!("^({}|[a-z0-9_]+_({units})_({statistics}))$", plain.join("|"));
    json!({ "type": "object", "propertyNames": { "pattern": name }, "additionalProperties": { "type": "number" } })
}

fn expectations() -> Value {
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
            Measured::OfLoad => Some("{1}"),
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
