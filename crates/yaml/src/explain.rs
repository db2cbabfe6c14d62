//! Every key of a language in words: what it means, what it holds, where it stands.
//!
//! Reads the language's own tables, so that it cannot say what the decoder does not read.

pub use crate::key::Key;
use crate::language::{Field, Fields, Shape};

/// What there is to say of a word of a language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Where it stands: `site.links[].delay`.
    pub path: String,
    /// What it means, one sentence.
    pub meaning: String,
    /// What it holds: `a duration (50ms, 2s)`.
    pub holds: String,
    /// The keys it has, with what each holds and means; empty where it is a single value.
    pub keys: Vec<Key>,
    /// Examples as written in a file.
    pub examples: Vec<String>,
}

/// Every key of a table and of the tables within it, as they stand.
pub fn words(table: &'static Fields, found: &mut Vec<&'static str>) {
    for field in table.fields {
        found.push(field.name);
        maps(&field.shape, &mut |inner, _| words(inner, found));
    }
}

/// Every place at which a key of that name stands, without examples. `path` is where the table stands.
pub fn search(table: &'static Fields, path: &str, word: &str, found: &mut Vec<Explanation>) {
    visit(table, path, &mut |field, here| {
        if field.name != word {
            return;
        }
        let said = explained(field, here);
        // The same table stands in several places, such as a pair of ends in links and faults.
        let is_same = |other: &Explanation| (&other.meaning, &other.holds) == (&said.meaning, &said.holds);
        if !found.iter().any(is_same) {
            found.push(said);
        }
    });
}

/// Whether a path of the language, `site.regions.NAME.zones`, ends with these keys; a name may be any.
#[must_use]
pub fn ends_with(path: &str, keys: &[&str]) -> bool {
    let of_path: Vec<&str> = path.split('.').map(|key| key.trim_end_matches("[]")).collect();
    let is_same = |(one, other): (&&str, &&str)| *one == "NAME" || one == other;
    of_path.len() >= keys.len() && of_path.iter().rev().zip(keys.iter().rev()).all(is_same)
}

/// Every key of a table that holds keys itself, with the place where it stands, in the table's order.
#[must_use]
pub fn sections(table: &'static Fields) -> Vec<Explanation> {
    let mut found = Vec::new();
    visit(table, "", &mut |field, here| {
        let said = explained(field, here);
        if !said.keys.is_empty() {
            found.push(said);
        }
    });
    found
}

fn visit(table: &'static Fields, path: &str, told: &mut dyn FnMut(&'static Field, &str)) {
    for field in table.fields {
        let here = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        told(field, &here);
        maps(&field.shape, &mut |map, suffix| visit(map, &format!("{here}{suffix}"), told));
    }
}

fn explained(field: &'static Field, path: &str) -> Explanation {
    let mut inner = Vec::new();
    maps(&field.shape, &mut |map, _| inner.extend(keys(map)));
    if let Shape::Own(own) = &field.shape {
        inner.extend((own.keys)());
    }
    Explanation {
        path: path.to_owned(),
        meaning: field.meaning.to_owned(),
        holds: holds(&field.shape),
        keys: inner,
        examples: Vec::new(),
    }
}

/// The keys of a table.
#[must_use]
pub fn keys(fields: &'static Fields) -> Vec<Key> {
    let key = |field: &'static Field| Key {
        name: field.name,
        required: field.required,
        holds: holds(&field.shape),
        meaning: field.meaning,
    };
    fields.fields.iter().map(key).collect()
}

/// Every map within a shape, with what stands between the key and the map's own keys in a path.
fn maps(shape: &'static Shape, visit: &mut dyn FnMut(&'static Fields, &str)) {
    match shape {
        Shape::Map(map) => visit(map, ""),
        Shape::Named(of) => maps(of, &mut |map, suffix| visit(map, &format!(".NAME{suffix}"))),
        Shape::List { of, .. } => maps(of, &mut |map, suffix| visit(map, &format!("[]{suffix}"))),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| maps(shape, visit)),
        Shape::Own(own) => (own.tables)().into_iter().for_each(|(table, suffix)| visit(table, &suffix)),
        _ => {}
    }
}

/// What a shape holds, in words.
#[must_use]
pub fn holds(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::PathWithin => "a path within the scenario's folder (scripts/move.sql)".to_owned(),
        Shape::Version(versions) => {
            format!("one of {}", versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        Shape::Name => "a name: small letters, digits and hyphens".to_owned(),
        Shape::Word(words) => format!("one of {}", words.join(", ")),
        Shape::Count { least, most } if *most == u64::MAX => format!("a whole number, {least} or more"),
        Shape::Count { least, most } => format!("a whole number, {least} to {most}"),
        Shape::Positive => "a number above zero".to_owned(),
        Shape::Duration => "a duration (50ms, 2s, 5m)".to_owned(),
        Shape::BitRate => "a bit rate (10Mbit/s)".to_owned(),
        Shape::Size => "a size (64KiB, 1500B)".to_owned(),
        Shape::Flag => "true or false".to_owned(),
        Shape::Packets => "a number of packets (100 packets)".to_owned(),
        Shape::Percent => "a percentage (0.5%)".to_owned(),
        Shape::Setting => "text, a number or a boolean, passed on unchanged".to_owned(),
        Shape::Map(_) => "a map".to_owned(),
        Shape::Named(_) => "a map by names of your choice".to_owned(),
        Shape::Rate => "a rate (2000/s)".to_owned(),
        Shape::Settings(_) => "a map of the database's own settings".to_owned(),
        Shape::List { of, .. } => format!("a list; each element {}", holds(of)),
        Shape::Either(shapes) => shapes.iter().map(holds).collect::<Vec<_>>().join("; or "),
        Shape::Own(own) => (own.holds)(),
    }
}
