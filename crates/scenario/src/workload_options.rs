//! The `options` of a load, read into plain text by dotted name and written back.
//!
//! What there is to set stands in [`capabilities::workloads`]; what a workload makes of it is the workload's.

use std::collections::BTreeMap;

use capabilities::workloads::{option, table, workload};

use crate::decode::Decoder;
use crate::language::{Fields, Shape};
use crate::rejection::Spanned;
use crate::tree::Node;
use crate::units::format_percent;

/// Reads a load's options, if there are any, and fills in what is absent.
pub(crate) fn decode(
    node: Option<&Node>,
    workload: &Spanned<&'static str>,
    decoder: &mut Decoder,
) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    match (table(workload.value), node) {
        (None, Some(node)) => decoder.findings.add(
            "no-options",
            node.head,
            format!("the workload `{}` has no options", workload.value),
            "options",
            "remove them; `scale` and `clients` are keys of the load, beside `workload`",
        ),
        (None, None) => {}
        (Some(table), node) => {
            if let Some(node) = node {
                read_map(node, table.fields, "", decoder, &mut options);
            }
            for (name, value) in table.defaults {
                options.entry((*name).to_owned()).or_insert_with(|| (*value).to_owned());
            }
        }
    }
    options
}

fn read_map(
    node: &Node,
    fields: &'static Fields,
    prefix: &str,
    decoder: &mut Decoder,
    options: &mut BTreeMap<String, String>,
) {
    let Some(record) = decoder.record(node, fields) else { return };
    for field in fields.fields {
        if let Some(value) = record.get(field.name) {
            read_value(value, &field.shape, &format!("{prefix}{}", field.name), decoder, options);
        }
    }
}

/// Reads one value under its dotted name; lists count from 0.
fn read_value(
    node: &Node,
    shape: &'static Shape,
    name: &str,
    decoder: &mut Decoder,
    options: &mut BTreeMap<String, String>,
) {
    let what = format!("the option `{name}`");
    let value = match shape {
        Shape::Count { least, most } => {
            decoder.count(node, &what, *least, *most).map(|count| count.value.to_string())
        }
        Shape::Percent => decoder.percent(node, &what).map(|share| format_percent(share.value)),
        Shape::Positive => positive(node, &what, decoder).map(|number| number.to_string()),
        Shape::PathWithin => decoder.file(node, &what).map(|path| path.value),
        Shape::Word(words) => decoder.word(node, &what, words).map(|word| word.value.to_owned()),
        Shape::Name => decoder.name(node, &what).map(|name| name.value),
        Shape::Map(fields) => {
            read_map(node, fields, &format!("{name}."), decoder, options);
            None
        }
        Shape::List { of, least, .. } => {
            let items = decoder.list(node, &what, *least).unwrap_or_default();
            for (place, item) in items.iter().enumerate() {
                read_value(item, of, &format!("{name}.{place}"), decoder, options);
            }
            None
        }
        Shape::Named(each) => {
            for (key, value) in decoder.named(node, "conditions").unwrap_or_default() {
                read_value(value, each, &format!("{name}.{}", key.value), decoder, options);
            }
            None
        }
        _ => decoder.text(node, &what).map(|text| text.value),
    };
    if let Some(value) = value {
        options.insert(name.to_owned(), value);
    }
}

fn positive(node: &Node, what: &str, decoder: &mut Decoder) -> Option<f64> {
    let number = decoder.number(node, what)?;
    if number.value > 0.0 {
        return Some(number.value);
    }
    decoder.findings.add(
        "too-small",
        number.at,
        format!("{what} cannot be {}", number.value),
        "too small",
        "write a number above 0",
    );
    None
}

/// An option as a line of a file needs it: its key path and its value, quoted where a number would be taken for text.
pub(crate) fn is_number(workload: &str, name: &str) -> bool {
    option(workload, name).is_some_and(|field| matches!(field.shape, Shape::Count { .. } | Shape::Positive))
}

/// Whether a load's clients count together the rows that they make: of a workload with a share of inserts, only with inserts.
pub(crate) fn counts_rows(name: &str, options: &BTreeMap<String, String>) -> bool {
    workload(name).is_some_and(|facts| facts.counts_rows)
        && (option(name, "insert").is_none() || inserts(options))
}

/// Whether YCSB's shares, or else its core workload, have inserts.
fn inserts(options: &BTreeMap<String, String>) -> bool {
    const SHARES: [&str; 5] = ["read", "update", "insert", "scan", "read_modify_write"];
    let is_some = |share: &String| share.trim_end_matches('%').parse::<f64>().is_ok_and(|share| share > 0.0);
    if SHARES.iter().any(|share| options.contains_key(*share)) {
        return options.get("insert").is_some_and(is_some);
    }
    matches!(options.get("workload").map(String::as_str), Some("d" | "e"))
}
