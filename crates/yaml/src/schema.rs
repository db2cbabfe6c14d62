//! A language's tables as a JSON Schema (2020-12), for editors.
//!
//! Describes shapes; what only makes sense together is found by decoding.

use serde_json::{Map, Value, json};

use crate::language::{Fields, MOST_FREE_NAME_BYTES, MOST_NAME_BYTES, Shape};

const DURATION: &str = r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$";
const BIT_RATE: &str = r"^[0-9]+(\.[0-9]+)?[kMGT]?bit/s$";

const RATE: &str = r"^[0-9]+(\.[0-9]+)?/s$";
const SIZE: &str = r"^[0-9]+(\.[0-9]+)?([KMGT]iB|[kMGT]?B)$";
const PACKETS: &str = r"^[0-9]+ packets$";
const PERCENT: &str = r"^[0-9]+(\.[0-9]+)?%$";

/// The JSON Schema of a file whose keys are those of a table.
#[must_use]
pub fn of_file(table: &Fields, title: &str) -> Value {
    let mut schema = fields(table);
    if let Some(object) = schema.as_object_mut() {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".to_owned(), json!(title));
    }
    schema
}

/// The schema of a map.
#[must_use]
pub fn fields(fields: &Fields) -> Value {
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
        Shape::Word(words) => json!({ "type": "string", "enum": words }),
        Shape::Version(versions) => {
            let numbers = versions.iter().filter_map(|version| version.parse::<u64>().ok());
            json!({ "enum": numbers.map(Value::from).chain(versions.iter().map(|text| json!(text))).collect::<Vec<_>>() })
        }
        Shape::Count { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Shape::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Shape::Duration => json!({ "type": "string", "pattern": DURATION }),
        Shape::BitRate => json!({ "type": "string", "pattern": BIT_RATE }),
        Shape::Rate => json!({ "type": "string", "pattern": RATE }),
        Shape::Size => json!({ "type": "string", "pattern": SIZE }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Packets => json!({ "type": "string", "pattern": PACKETS }),
        Shape::Percent => json!({ "type": "string", "pattern": PERCENT }),
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
        Shape::Own(own) => (own.schema)(),
        Shape::Either(shapes) => json!({ "anyOf": shapes.iter().map(shape).collect::<Vec<_>>() }),
    }
}
