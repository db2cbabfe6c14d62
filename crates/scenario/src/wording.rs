//! Turns of phrase that messages share: lists of names, what a key looks like, which name a misspelt one may have meant.
//!
//! Owns words only; what is wrong is found elsewhere.

use crate::language::{Field, Fields, MOST_NAME_BYTES, Shape};

/// What to add, where one of these keys is needed; of many without what each means.
pub(crate) fn hint(fields: &'static Fields, names: &[&str]) -> String {
    const MOST_EXPLAINED: usize = 3;
    let fitting = fields.fields.iter().filter(|field| names.contains(&field.name));
    if names.len() > MOST_EXPLAINED {
        let written: Vec<_> = fitting.map(|field| format!("`{}`", written(field))).collect();
        return format!("add one of {}", written.join(", "));
    }
    let lines: Vec<_> = fitting.map(example).collect();
    format!("add {}", lines.join("; or "))
}

/// A key as it may be written, and what it means.
pub(crate) fn example(field: &Field) -> String {
    format!("`{}` ({})", written(field), field.meaning)
}

fn written(field: &Field) -> String {
    let name = field.name;
    match &field.shape {
        Shape::Word(words) => format!("{name}: {}", words.first().unwrap_or(&"...")),
        Shape::Name if name == "name" => format!("{name}: my-scenario"),
        Shape::Name => format!("{name}: baseline"),
        Shape::Count { least, .. } => format!("{name}: {}", (*least).max(1)),
        Shape::Either([Shape::Count { .. }, ..]) => format!("{name}: 3"),
        Shape::Either([Shape::Duration, ..]) => format!("{name}: 1ms"),
        Shape::Duration if name == "delay" => format!("{name}: 5ms"),
        Shape::Duration => format!("{name}: 5s"),
        Shape::BitRate => format!("{name}: 100Mbit/s"),
        Shape::Size => format!("{name}: 512KiB"),
        Shape::Percent => format!("{name}: 1%"),
        Shape::Synchronous => format!("{name}: any 1"),
        Shape::Place if matches!(name, "isolate" | "bridge") => format!("{name}: leader"),
        Shape::Place if matches!(name, "from" | "to") => {
            format!("{name}: {}", if name == "from" { "dc1" } else { "dc2" })
        }
        Shape::List { of: Shape::Place, .. } => format!("{name}: [dc1, dc2]"),
        _ => format!("{name}:"),
    }
}

/// A choice in words.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [name] => format!("`{name}`"),
        names => format!("exactly one of {}", listed(names)),
    }
}

/// `one`, or `one` or `other`.
pub(crate) fn either(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

/// Names in backticks, with commas; the first thirty where there are more.
pub(crate) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 30;
    let shown: Vec<_> = names.iter().take(MOST).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = names.len().saturating_sub(MOST);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

/// The known name a user may have meant.
pub fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    // The distance is quadratic in the lengths: nothing long is a misspelt name.
    if written.len() > 2 * MOST_NAME_BYTES {
        return None;
    }
    let allowed = match written.chars().count() {
        0..=3 => 1,
        4..=8 => 2,
        _ => 3,
    };
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The known names that share most with what was written, the closest first; none where nothing is like it.
pub(crate) fn closest<'k>(
    written: &str,
    known: impl IntoIterator<Item = &'k str>,
    most: usize,
) -> Vec<&'k str> {
    const LEAST_LIKENESS: f64 = 0.6;
    if written.len() > 2 * MOST_NAME_BYTES {
        return Vec::new();
    }
    let likeness = |name: &'k str| (strsim::normalized_damerau_levenshtein(written, name), name);
    let mut like: Vec<_> =
        known.into_iter().map(likeness).filter(|(how, _)| *how >= LEAST_LIKENESS).collect();
    like.sort_by(|one, other| other.0.total_cmp(&one.0));
    like.into_iter().take(most).map(|(_, name)| name).collect()
}

/// A text as it may stand in a message.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let flat: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() { format!("{flat}...") } else { flat }
}
