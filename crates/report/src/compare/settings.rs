//! What distinguishes runs: the resolved scenario of each as a flat list of settings, and those that are not the same
//! everywhere.
//!
//! Knows YAML, not the scenario's words. The seed is no setting: runs that differ in nothing else are repetitions.

use std::collections::{BTreeMap, BTreeSet};

use saphyr_parser::{Event, Parser, StrInput};

use super::Differing;
use super::source::Taken;
use results::RunDirectory;

/// Deepest nesting that is followed; scenarios have less.
const DEPTH_MAX: usize = 64;
/// Longest path of a setting; scenarios have shorter ones.
const PATH_BYTES_MAX: usize = 1_000;
/// Settings named in a label at most.
const NAMED_MAX: usize = 3;

/// The settings of a run, by dotted path.
pub(super) fn of(run: &RunDirectory) -> BTreeMap<String, String> {
    let facts = &run.result.facts;
    let written = run.scenario_yaml.as_deref().and_then(flat);
    let mut settings = written.unwrap_or_else(|| {
        // A load run alone has no scenario; what it was stands in the facts.
        let value = serde_json::json!({
            "name": run.result.scenario,
            "database": facts.engine_settings,
            "loads": facts.loads,
            "schedule": facts.phases,
        });
        let mut settings = BTreeMap::new();
        flat_json(&value, String::new(), &mut settings);
        settings
    });
    settings.remove("seed");
    settings.insert("holdfast's version".to_owned(), run.result.holdfast.clone());
    settings.insert("the database's version".to_owned(), facts.engine_version.clone());
    settings
}

/// A YAML text as settings by path; none when it is not one map that can be followed to its end.
pub(super) fn flat(text: &str) -> Option<BTreeMap<String, String>> {
    let mut parser = Parser::new_from_str(text);
    let mut settings = BTreeMap::new();
    loop {
        match parser.next_event()?.ok()?.0 {
            Event::StreamStart | Event::DocumentStart(_) => {}
            event @ Event::MappingStart(..) => {
                node(&mut parser, event, String::new(), 0, &mut settings)?;
                return Some(settings);
            }
            _ => return None,
        }
    }
}

fn node(
    parser: &mut Parser<'_, StrInput<'_>>,
    event: Event<'_>,
    path: String,
    depth: usize,
    settings: &mut BTreeMap<String, String>,
) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match event {
        // A name of each level stands in every path below it: many levels of long names would be more than memory holds.
        Event::Scalar(..) if path.len() > PATH_BYTES_MAX => return None,
        Event::Scalar(text, ..) => {
            settings.insert(path, text.into_owned());
        }
        Event::MappingStart(..) => loop {
            match parser.next_event()?.ok()?.0 {
                Event::MappingEnd => break,
                Event::Scalar(key, ..) => {
                    let value = parser.next_event()?.ok()?.0;
                    node(parser, value, below(&path, &key), depth + 1, settings)?;
                }
                _ => return None,
            }
        },
        Event::SequenceStart(..) => {
            for index in 0.. {
                match parser.next_event()?.ok()?.0 {
                    Event::SequenceEnd => break,
                    event => node(parser, event, below(&path, &index.to_string()), depth + 1, settings)?,
                }
            }
        }
        _ => return None,
    }
    Some(())
}

fn flat_json(value: &serde_json::Value, path: String, settings: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(key, value)| flat_json(value, below(&path, key), settings));
        }
        serde_json::Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| flat_json(value, below(&path, &index.to_string()), settings));
        }
        serde_json::Value::String(text) => {
            settings.insert(path, text.clone());
        }
        other => {
            settings.insert(path, other.to_string());
        }
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The settings that are not the same in all.
pub(super) fn differing(variants: &[&BTreeMap<String, String>]) -> Vec<Differing> {
    let paths: BTreeSet<&String> = variants.iter().flat_map(|settings| settings.keys()).collect();
    let all = paths.into_iter().map(|path| Differing {
        path: path.clone(),
        values: variants.iter().map(|settings| settings.get(path).cloned()).collect(),
    });
    all.filter(|setting| setting.values.iter().any(|value| *value != setting.values[0])).collect()
}

/// What each variant is called: by its label, else by what distinguishes it, else by its scenario.
pub(super) fn labels(groups: &[Vec<&Taken>], differing: &[Differing]) -> Vec<String> {
    let name = |index: usize| groups[index][0].run.result.scenario.clone();
    let are_named = differing.iter().any(|setting| setting.path == "name");
    let by_settings = |index: usize| {
        // The name is what people call it by; a description says nothing that the settings do not.
        let telling =
            differing.iter().filter(|setting| !matches!(setting.path.as_str(), "name" | "description"));
        let written: Vec<String> = telling
            .map(|setting| {
                let value = setting.values[index].as_deref().unwrap_or("absent");
                format!("{} = {value}", setting.path)
            })
            .collect();
        let more = written.len().saturating_sub(NAMED_MAX);
        let shown = written[..written.len().min(NAMED_MAX)].join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    (0..groups.len())
        .map(|index| match &groups[index][0].label {
            Some(label) => label.clone(),
            None if differing.is_empty() || are_named => name(index),
            None => by_settings(index),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&[(&str, &str)]>) {
        let expected = expected.map(|pairs| {
            pairs.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
        });
        assert_eq!(flat(text), expected, "{text}");
    }

    #[test]
    fn a_scenario_becomes_settings_by_path() {
        check(
            "name: a\ndatabase:\n  nodes: [x, y]\n  replication: { synchronous: any 1 }\n",
            Some(&[
                ("database.nodes.0", "x"),
                ("database.nodes.1", "y"),
                ("database.replication.synchronous", "any 1"),
                ("name", "a"),
            ]),
        );
        check("", None);
        check("- a\n", None);
        check("a: [", None);
    }

    #[test]
    fn only_what_is_not_the_same_everywhere_distinguishes() {
        let one = flat("a: 1\nb: 2\n").unwrap();
        let other = flat("a: 1\nb: 3\nc: 4\n").unwrap();
        let found = differing(&[&one, &other]);
        let told: Vec<(&str, Vec<Option<&str>>)> = found
            .iter()
            .map(|setting| {
                (setting.path.as_str(), setting.values.iter().map(|value| value.as_deref()).collect())
            })
            .collect();
        assert_eq!(told, [("b", vec![Some("2"), Some("3")]), ("c", vec![None, Some("4")])]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in any::<String>()) {
            flat(&text);
        }
    }
}
