//! `database.settings`: further settings of the database's own, which differ from engine to engine.
//!
//! Owns reading them by the form that the engine gives them. What one does is the database's to say.

use std::collections::BTreeMap;

use capabilities::{Capabilities, SettingForm, SettingNames};

use crate::decode::Decoder;
use crate::language::MOST_FREE_NAME_BYTES;
use crate::rejection::Spot;
use crate::tree::{Node, Value};
use crate::wording::{nearest, shortened};

/// Reads the settings of an engine; of one that is unknown, as the first that there is.
pub(crate) fn decode(
    node: &Node,
    engine: Option<&Capabilities>,
    decoder: &mut Decoder,
) -> Option<BTreeMap<String, String>> {
    let engine = engine.unwrap_or(capabilities::engines()[0]);
    match engine.settings {
        SettingForm::Names(names) => free(node, &names, decoder),
        SettingForm::OneOf { name, values } => one_of(node, engine, (name, values), decoder),
        SettingForm::Nothing => nothing(node, engine, decoder),
    }
}

/// Where the value of a setting stands.
pub(crate) fn value_at(node: &Node, name: &str) -> Option<Spot> {
    let Value::Map(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.key == name).map(|entry| entry.value.at)
}

fn free(node: &Node, names: &SettingNames, decoder: &mut Decoder) -> Option<BTreeMap<String, String>> {
    let entries = decoder.entries(node, "`settings`")?;
    let mut settings = BTreeMap::new();
    for entry in entries {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || names.signs.contains(&c);
        let short = entry.key.len() <= MOST_FREE_NAME_BYTES;
        if !short || !entry.key.starts_with(|c: char| c.is_ascii_lowercase()) || !entry.key.chars().all(fits)
        {
            let message = format!("`{}` cannot be a setting", shortened(&entry.key));
            decoder.findings.add("bad-name", entry.key_at, message, "not a setting's name", names.help);
            continue;
        }
        let is_ours = |name: &str| entry.key == name || (name.ends_with('-') && entry.key.starts_with(name));
        if let Some((_, why)) = names.decided.iter().find(|(name, _)| is_ours(name)) {
            decoder.findings.add(
                "our-setting",
                entry.key_at,
                format!("`{}` is set by holdfast", entry.key),
                "not yours to set",
                format!("remove it: {why}"),
            );
            continue;
        }
        if let Some(meant) = misspelt(&entry.key, names) {
            decoder.findings.add(
                "unknown-setting",
                entry.key_at,
                format!("the database has no setting `{}`", entry.key),
                "unknown setting",
                format!("did you mean `{meant}`?"),
            );
            continue;
        }
        let Some(text) = decoder.text(&entry.value, &format!("`{}`", entry.key)) else { continue };
        if text.value.contains(char::is_control) {
            let message = format!("`{}` holds a line break or another control character", entry.key);
            decoder.findings.add(
                "bad-setting",
                text.at,
                message,
                "not on one line",
                "write the value on one line",
            );
            continue;
        }
        settings.insert(entry.key.clone(), text.value);
    }
    Some(settings)
}

/// The setting that was meant, where the name is close to a known one and is none itself. A name with a dot belongs to an
/// extension.
fn misspelt(name: &str, names: &SettingNames) -> Option<&'static str> {
    let is_known = names.known.lines().any(|known| known == name);
    if is_known || name.contains('.') { None } else { nearest(name, names.known.lines()) }
}

/// The settings of an engine that has one.
fn one_of(
    node: &Node,
    engine: &Capabilities,
    (name, values): (&str, &'static [&'static str]),
    decoder: &mut Decoder,
) -> Option<BTreeMap<String, String>> {
    let mut settings = BTreeMap::new();
    for entry in decoder.entries(node, "`settings`")? {
        if entry.key != name {
            let message = format!("the engine `{}` has no setting `{}`", engine.name, shortened(&entry.key));
            let help =
                format!("its one setting is `{name}`, such as `{name}: {}`", values.last().unwrap_or(&""));
            decoder.findings.add("unknown-setting", entry.key_at, message, "not a setting of it", help);
            continue;
        }
        if let Some(value) = decoder.word(&entry.value, name, values) {
            settings.insert(entry.key.clone(), value.value.to_owned());
        }
    }
    Some(settings)
}

/// The settings of an engine that has none.
fn nothing(node: &Node, engine: &Capabilities, decoder: &mut Decoder) -> Option<BTreeMap<String, String>> {
    for entry in decoder.entries(node, "`settings`")? {
        let message = format!("the engine `{}` has no setting `{}`", engine.name, shortened(&entry.key));
        decoder.findings.add("unknown-setting", entry.key_at, message, "it has none", "take `settings` out");
    }
    Some(BTreeMap::new())
}
