//! Turns of phrase that messages share: lists of names, what a key looks like, which name a misspelt one may have meant.
//!
//! Owns words only; what is wrong is found elsewhere.

use crate::language::{Field, Fields, Language, MOST_NAME_BYTES, Shape};

/// What to add, where one of these keys is needed; of many without what each means.
pub(crate) fn hint(fields: &'static Fields, names: &[&str], language: &Language) -> String {
    const MOST_EXPLAINED: usize = 3;
    let fitting = fields.fields.iter().filter(|field| names.contains(&field.name));
    if names.len() > MOST_EXPLAINED {
        let written: Vec<_> = fitting.map(|field| format!("`{}`", written(field, language))).collect();
        return format!("add one of {}", written.join(", "));
    }
    let lines: Vec<_> = fitting.map(|field| example(field, language)).collect();
    format!("add {}", lines.join("; or "))
}

/// A key as it may be written, and what it means.
pub(crate) fn example(field: &Field, language: &Language) -> String {
    format!("`{}` ({})", written(field, language), field.meaning)
}

fn written(field: &Field, language: &Language) -> String {
    let name = field.name;
    let value = (language.example)(field).or_else(|| match &field.shape {
        Shape::Word(words) => Some((*words.first().unwrap_or(&"...")).to_owned()),
        Shape::Count { least, .. } => Some((*least).max(1).to_string()),
        Shape::Either([Shape::Count { .. }, ..]) => Some("3".to_owned()),
        Shape::Either([Shape::Duration, ..]) => Some("1ms".to_owned()),
        Shape::Duration => Some("5s".to_owned()),
        Shape::BitRate => Some("100Mbit/s".to_owned()),
        Shape::Size => Some("512KiB".to_owned()),
        Shape::Percent => Some("1%".to_owned()),
        _ => None,
    });
    value.map_or_else(|| format!("{name}:"), |value| format!("{name}: {value}"))
}

/// A choice in words.
#[must_use]
pub fn one_of(names: &[&str]) -> String {
    match names {
        [name] => format!("`{name}`"),
        names => format!("exactly one of {}", listed(names)),
    }
}

/// `one`, or `one` or `other`.
#[must_use]
pub fn either(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

/// Names in backticks, with commas; the first thirty where there are more.
#[must_use]
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const MOST: usize = 30;
    let shown: Vec<_> = names.iter().take(MOST).map(|name| format!("`{}`", name.as_ref())).collect();
    let more = names.len().saturating_sub(MOST);
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

/// The known name a user may have meant.
#[must_use]
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
    // Two of four letters are half of the word: `node` is no misspelt `zone`, but `alfa` may be `alpha`.
    let begins_alike = |name: &str| name.chars().next() == written.chars().next();
    let is_near = |(distance, name): &(usize, &str)| {
        *distance <= allowed && (*distance < 2 || written.len() > 4 || begins_alike(name))
    };
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(is_near)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The known names that share most with what was written, the closest first; none where nothing is like it.
#[must_use]
pub fn closest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>, most: usize) -> Vec<&'k str> {
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
#[must_use]
pub fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let flat: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() { format!("{flat}...") } else { flat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_half_another_word_is_not_taken_for_it() {
        let names = ["host", "rack", "zone", "region", "alpha"];
        assert_eq!(nearest("node", names), None);
        assert_eq!(nearest("alfa", names), Some("alpha"));
        assert_eq!(nearest("zoen", names), Some("zone"));
        assert_eq!(nearest("regoin", names), Some("region"));
    }
}
