//! From tree nodes to plain values: opens maps against their table, reads scalars, and says what is wrong at which byte.
//!
//! Knows the shapes of values, not what any of them means.

use std::path::{Component, Path};
use std::time::Duration;

use crate::language::{Fields, Language, MOST_NAME_BYTES, Shape};
use crate::rejection::{Finding, Findings, Spanned, Spot};
use crate::tree::{Entry, Node, Value};
use crate::units;
use crate::wording::{example, hint, listed, nearest, one_of, shortened};

/// A map that has been held against its table.
pub struct Record<'n> {
    entries: &'n [Entry],
    fields: &'static Fields,
}

impl<'n> Record<'n> {
    /// The value of a key of the table.
    pub fn get(&self, name: &'static str) -> Option<&'n Node> {
        debug_assert!(
            self.fields.fields.iter().any(|field| field.name == name),
            "{name} is not in the table"
        );
        self.entries.iter().find(|entry| entry.key == name).map(|entry| &entry.value)
    }

    /// Where a key stands, if it is there.
    pub fn key_at(&self, name: &'static str) -> Option<Spot> {
        self.entries.iter().find(|entry| entry.key == name).map(|entry| entry.key_at)
    }

    /// The first of these keys that is there.
    pub fn first_of(&self, names: &[&'static str]) -> Option<(&'static str, &'n Entry)> {
        names
            .iter()
            .find_map(|name| self.entries.iter().find(|entry| entry.key == *name).map(|entry| (*name, entry)))
    }
}

/// Reads nodes and notes what is wrong with them. A reader that returns `None` has noted why, so that an absent optional
/// value and a broken one may both become `None`: nothing is built from a file with findings.
pub struct Decoder {
    /// Whose words are used.
    language: &'static Language,
    /// What is wrong so far.
    pub findings: Findings,
}

/// Whether what is of this shape may be a map with this key.
fn has_key(shape: &Shape, key: &str) -> bool {
    match shape {
        Shape::Map(fields) => fields.fields.iter().any(|field| field.name == key),
        Shape::Either(shapes) => shapes.iter().any(|shape| has_key(shape, key)),
        _ => false,
    }
}

impl Decoder {
    /// A decoder of a language, with nothing wrong so far.
    #[must_use]
    pub fn new(language: &'static Language) -> Decoder {
        Decoder { language, findings: Findings::default() }
    }

    /// Opens a map: unknown keys, missing keys and broken choices are noted.
    pub fn record<'n>(&mut self, node: &'n Node, fields: &'static Fields) -> Option<Record<'n>> {
        let entries = self.entries(node, fields.what)?;
        let mut unknown = false;
        let mut meant = Vec::new();
        for entry in entries {
            match fields.fields.iter().find(|field| field.name == entry.key) {
                Some(_) => {}
                None => {
                    unknown = true;
                    meant.extend(self.unknown_key(entry, fields));
                }
            }
        }
        let has = |name: &str| entries.iter().any(|entry| entry.key == name);
        for field in fields.fields {
            if field.required && !has(field.name) && !meant.contains(&field.name) {
                self.findings.add(
                    "missing-key",
                    node.head,
                    format!("{} needs `{}`", fields.what, field.name),
                    format!("`{}` is missing here", field.name),
                    format!("add {}", example(field, self.language)),
                );
            }
        }
        if !unknown {
            self.choice(node, entries, fields);
        }
        Some(Record { entries, fields })
    }

    fn choice(&mut self, node: &Node, entries: &[Entry], fields: &'static Fields) {
        let given: Vec<_> =
            entries.iter().filter(|entry| fields.exactly_one_of.contains(&entry.key.as_str())).collect();
        match given.as_slice() {
            [] if !fields.exactly_one_of.is_empty() => self.findings.add(
                "missing-key",
                node.head,
                format!("{} needs {}", fields.what, one_of(fields.exactly_one_of)),
                "missing here",
                hint(fields, fields.exactly_one_of, self.language),
            ),
            [first, second, ..] => self.findings.push(Finding {
                code: "one-too-many",
                message: format!("{} has both `{}` and `{}`", fields.what, first.key, second.key),
                at: second.key_at,
                label: "this one is too many".to_owned(),
                help: format!("keep {}", one_of(fields.exactly_one_of)),
                also: Some((first.key_at, "given already".to_owned())),
            }),
            _ => {}
        }
        let lacks_all = |names: &[&str]| !entries.iter().any(|entry| names.contains(&entry.key.as_str()));
        if !fields.at_least_one_of.is_empty() && lacks_all(fields.at_least_one_of) {
            self.findings.add(
                "missing-key",
                node.head,
                format!("{} needs at least one of {}", fields.what, listed(fields.at_least_one_of)),
                "missing here",
                hint(fields, fields.at_least_one_of, self.language),
            );
        }
        let Some((one, other)) = fields.pair else { return };
        for (present, absent) in [(one, other), (other, one)] {
            let entry = entries.iter().find(|entry| entry.key == present);
            let lacks = !entries.iter().any(|entry| entry.key == absent);
            // A lone second half next to the other choice is one key too many, not one too few.
            if let (Some(entry), true) = (entry, lacks) {
                self.findings.add(
                    "missing-key",
                    entry.key_at,
                    format!("`{present}` needs `{absent}`"),
                    format!("without `{absent}`"),
                    format!("write both `{one}` and `{other}`"),
                );
            }
        }
    }

    fn unknown_key(&mut self, entry: &Entry, fields: &'static Fields) -> Option<&'static str> {
        let names: Vec<&'static str> = fields.fields.iter().map(|field| field.name).collect();
        let above =
            fields.fields.iter().find(|field| has_key(&field.shape, &entry.key)).map(|field| field.name);
        let near = above.or_else(|| nearest(&entry.key, names.iter().copied()));
        self.findings.add(
            "unknown-key",
            entry.key_at,
            format!("{} has no key `{}`", fields.what, entry.key),
            "unknown key",
            match (above, near) {
                (Some(above), _) => {
                    format!("`{0}` is a key of `{above}`: write `{above}: {{ {0}: ... }}`", entry.key)
                }
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => format!("the keys here are {}", listed(&names)),
            },
        );
        near
    }

    /// A map's entries, whatever their keys.
    pub fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Map(entries) => Some(entries),
            _ => {
                self.wrong_kind(
                    node,
                    &format!("{what} is a map of keys and values"),
                    "write `key: value` lines under it, or `{ key: value }`",
                );
                None
            }
        }
    }

    /// A map whose keys are names of the user's choice, at least one.
    pub fn named<'n>(
        &mut self,
        node: &'n Node,
        what: &'static str,
    ) -> Option<Vec<(Spanned<String>, &'n Node)>> {
        let entries = self.entries(node, what)?;
        if entries.is_empty() {
            self.findings.add(
                "empty",
                node.at,
                format!("{what} is empty"),
                "nothing in it",
                "name at least one",
            );
            return None;
        }
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            self.check_name(&entry.key, entry.key_at)?;
            named.push((Spanned { value: entry.key.clone(), at: entry.key_at }, &entry.value));
        }
        Some(named)
    }

    /// A list of at least `least` elements.
    pub fn list<'n>(&mut self, node: &'n Node, what: &str, least: usize) -> Option<&'n [Node]> {
        let Value::List(items) = &node.value else {
            self.wrong_kind(
                node,
                &format!("{what} is a list"),
                "write `- ` before each element, or `[one, two]`",
            );
            return None;
        };
        if items.len() < least {
            self.findings.add(
                "empty",
                node.at,
                match items.len() {
                    0 => format!("{what} is empty; it needs at least {least}"),
                    1 => format!("{what} has 1 element; it needs at least {least}"),
                    count => format!("{what} has {count} elements; it needs at least {least}"),
                },
                "too few",
                "add an element with `- `",
            );
            return None;
        }
        Some(items)
    }

    /// A scalar's text, as written.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<Spanned<String>> {
        match &node.value {
            Value::Scalar { text, plain } if !(*plain && matches!(text.as_str(), "" | "~" | "null")) => {
                Some(Spanned { value: text.clone(), at: node.at })
            }
            Value::Scalar { .. } => {
                self.no_value(node, what);
                None
            }
            _ => {
                self.wrong_kind(
                    node,
                    &format!("{what} is a single value"),
                    "write one value here, not a list or a map",
                );
                None
            }
        }
    }

    /// A path from the file's folder. In a file it leads out of that folder by none of its own words, because the file
    /// may be a stranger's; whoever types a path on the command line means it. Links are looked at when it is opened.
    pub fn file(&mut self, node: &Node, what: &str) -> Option<Spanned<String>> {
        let path = self.text(node, what)?;
        let stays = Path::new(&path.value)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if stays || path.at.text > 0 {
            return Some(path);
        }
        self.findings.add(
            "file-outside",
            path.at,
            format!("{what} leads out of the {}'s folder", self.language.noun),
            "an absolute path, or one with `..`",
            format!(
                "put the file into the folder of the {}; a file elsewhere can be named on the command line with --set",
                self.language.noun
            ),
        );
        None
    }

    /// A name: small letters, digits and hyphens.
    pub fn name(&mut self, node: &Node, what: &str) -> Option<Spanned<String>> {
        let text = self.text(node, what)?;
        self.check_name(&text.value, text.at)?;
        Some(text)
    }

    fn check_name(&mut self, name: &str, at: Spot) -> Option<()> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.is_empty() && name.len() <= MOST_NAME_BYTES && name.chars().all(fits) {
            return Some(());
        }
        let made: String = name
            .chars()
            .map(|c| c.to_ascii_lowercase())
            .map(|c| if fits(c) { c } else { '-' })
            .take(MOST_NAME_BYTES)
            .collect();
        let made = made.trim_matches('-');
        self.findings.add(
            "bad-name",
            at,
            format!("`{}` cannot be a name", shortened(name)),
            "not a name",
            match made {
                "" => "names are made of a-z, 0-9 and `-`".to_owned(),
                made => format!("names are at most {MOST_NAME_BYTES} of a-z, 0-9 and `-`: write `{made}`"),
            },
        );
        None
    }

    /// One of a few words.
    pub fn word(&mut self, node: &Node, what: &str, known: &[&'static str]) -> Option<Spanned<&'static str>> {
        let text = self.text(node, what)?;
        if let Some(word) = known.iter().find(|word| **word == text.value) {
            return Some(Spanned { value: *word, at: text.at });
        }
        self.findings.add(
            "unknown-word",
            text.at,
            match what.starts_with("the ") {
                true => format!("{what} cannot be `{}`", shortened(&text.value)),
                false => format!("there is no {what} `{}`", shortened(&text.value)),
            },
            "unknown",
            // Between words of one letter each is as near as any other.
            match nearest(&text.value, known.iter().copied()).filter(|near| near.len() > 1) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", listed(known)),
            },
        );
        None
    }

    /// `true` or `false`.
    pub fn flag(&mut self, node: &Node, what: &str) -> Option<Spanned<bool>> {
        let text = self.text(node, what)?;
        match (text.value.as_str(), &node.value) {
            ("true", Value::Scalar { plain: true, .. }) => Some(Spanned { value: true, at: text.at }),
            ("false", Value::Scalar { plain: true, .. }) => Some(Spanned { value: false, at: text.at }),
            _ => {
                self.findings.add(
                    "not-a-flag",
                    text.at,
                    format!("{what} is either true or false"),
                    "neither",
                    "write true or false, without quotes",
                );
                None
            }
        }
    }

    /// A whole number within bounds.
    pub fn count(&mut self, node: &Node, what: &str, least: u64, most: u64) -> Option<Spanned<u64>> {
        let text = self.text(node, what)?;
        let plain = matches!(node.value, Value::Scalar { plain: true, .. });
        let digits = !text.value.is_empty() && text.value.chars().all(|c| c.is_ascii_digit());
        match text.value.parse::<u64>() {
            Ok(value) if plain && digits && (least..=most).contains(&value) => {
                return Some(Spanned { value, at: text.at });
            }
            Ok(value) if plain && digits && value < least => {
                let help =
                    if least == 1 { "write 1 or more".to_owned() } else { format!("write {least} or more") };
                self.findings.add(
                    "too-small",
                    text.at,
                    format!("{what} cannot be {value}"),
                    "too small",
                    help,
                );
            }
            _ if plain && digits => {
                let message = format!("{what} cannot be {}", shortened(&text.value));
                self.findings.add(
                    "too-large",
                    text.at,
                    message,
                    "too large",
                    format!("write {most} or less"),
                );
            }
            _ => {
                let help = if digits {
                    format!("write {} without quotes", shortened(&text.value))
                } else {
                    "write digits only, such as 3".to_owned()
                };
                self.findings.add(
                    "not-a-number",
                    text.at,
                    format!("{what} must be a whole number"),
                    "not a whole number",
                    help,
                );
            }
        }
        None
    }

    /// A decimal number.
    pub fn number(&mut self, node: &Node, what: &str) -> Option<Spanned<f64>> {
        let text = self.text(node, what)?;
        let plain = matches!(node.value, Value::Scalar { plain: true, .. });
        let looks = text.value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        match text.value.parse::<f64>() {
            Ok(value) if plain && looks && value.is_finite() => Some(Spanned { value, at: text.at }),
            _ => {
                self.findings.add(
                    "not-a-number",
                    text.at,
                    format!("{what} must be a number"),
                    "not a number",
                    "write a plain number, such as 1.5",
                );
                None
            }
        }
    }

    /// A duration; `likely_unit` is proposed for a bare number.
    pub fn duration(&mut self, node: &Node, what: &str, likely_unit: &str) -> Option<Spanned<Duration>> {
        self.quantity(node, what, |text| units::duration(text, likely_unit))
    }

    /// A bit rate in bits a second.
    pub fn bit_rate(&mut self, node: &Node, what: &str) -> Option<Spanned<u64>> {
        self.quantity(node, what, units::bit_rate_per_s)
    }

    /// Events a second.
    pub fn rate(&mut self, node: &Node, what: &str) -> Option<Spanned<f64>> {
        self.quantity(node, what, units::rate_per_s)
    }

    /// A size in bytes; `likely_unit` is what the message proposes for a bare number.
    pub fn size(&mut self, node: &Node, what: &str, likely_unit: &str) -> Option<Spanned<u64>> {
        self.quantity(node, what, |text| units::size_bytes(text, likely_unit))
    }

    /// A percentage, as a ratio.
    pub fn percent(&mut self, node: &Node, what: &str) -> Option<Spanned<f64>> {
        self.quantity(node, what, units::percent)
    }

    fn quantity<T>(
        &mut self,
        node: &Node,
        what: &str,
        read: impl Fn(&str) -> Result<T, units::UnitError>,
    ) -> Option<Spanned<T>> {
        let text = self.text(node, what)?;
        match read(&text.value) {
            Ok(value) => Some(Spanned { value, at: text.at }),
            Err(error) => {
                self.unit(&error, text.at, what);
                None
            }
        }
    }

    /// Notes a quantity that could not be read.
    pub fn unit(&mut self, error: &units::UnitError, at: Spot, what: &str) {
        let code = if matches!(error, units::UnitError::NoUnit { .. }) { "no-unit" } else { "bad-unit" };
        self.findings.add(code, at, format!("{what}: {error}"), "this quantity", error.help());
    }

    fn wrong_kind(&mut self, node: &Node, message: &str, help: &str) {
        if let Value::Scalar { text, plain: true } = &node.value
            && text.is_empty()
        {
            self.findings.add(
                "no-value",
                node.head,
                format!("{message}, but there is nothing here"),
                "no value",
                help,
            );
            return;
        }
        let is = match &node.value {
            Value::Scalar { .. } => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        };
        self.findings.add(
            "wrong-kind",
            node.at,
            format!("{message}, not {is}"),
            format!("this is {is}"),
            help,
        );
    }

    fn no_value(&mut self, node: &Node, what: &str) {
        self.findings.add(
            "no-value",
            node.head,
            format!("{what} has no value"),
            "no value",
            "write one, or remove the key",
        );
    }
}
