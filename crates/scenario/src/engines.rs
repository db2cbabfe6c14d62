//! `database.engine`: an engine that ships, by its name, or a file, by its path or in full.
//!
//! Owns telling these apart and which files a scenario names. Reads none: whoever has them hands the engines in.

use std::collections::BTreeMap;

use capabilities::{Capabilities, file};
use yaml::{Decoder, Node, Value};

use crate::language::ENGINE_IN_FULL;
use crate::quoted::quoted;
use crate::wording::shortened;

/// The setting's path.
pub(crate) const PATH: &str = "database.engine";
/// The same of a cluster that exists.
const OF_A_CLUSTER: &str = "cluster.engine";

/// Engines by the paths of their files, as the scenario has them.
pub type EngineFiles = BTreeMap<String, &'static Capabilities>;

/// A file that a scenario names for its engine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFile {
    /// Its path, as written.
    pub path: String,
    /// The setting that it stands at, by its path; absent on an axis of the matrix.
    pub at: Option<&'static str>,
}

/// The engine, where it is sound and, if it is in a file of its own, was read.
pub(crate) fn decode(
    node: &Node,
    files: &EngineFiles,
    decoder: &mut Decoder,
) -> Option<&'static Capabilities> {
    match &node.value {
        Value::Map(_) => in_full(node, decoder),
        Value::Scalar { text, .. } if is_path(text) => {
            let path = decoder.file(node, "the engine's file")?;
            let engine = files.get(&path.value).copied();
            if engine.is_none() {
                decoder.findings.add(
                    "engine-file",
                    path.at,
                    format!("the engine file `{}` was not read", shortened(&path.value)),
                    "not read",
                    "`holdfast run`, `check` and `predict` read it; elsewhere name an engine that ships",
                );
            }
            engine
        }
        _ => {
            let name = decoder.word(node, "engine", crate::catalogue::engines())?;
            capabilities::named(name.value)
        }
    }
}

fn is_path(written: &str) -> bool {
    written.contains('/') || written.ends_with(".yaml") || written.ends_with(".yml")
}

fn in_full(node: &Node, decoder: &mut Decoder) -> Option<&'static Capabilities> {
    let record = decoder.record(node, &ENGINE_IN_FULL)?;
    let name = record.get("file").and_then(|node| decoder.text(node, "the file's name"));
    let text = record.get("text").and_then(|node| decoder.text(node, "the file's text"));
    let (name, text) = (name?, text?);
    match file::read(&name.value, &text.value) {
        Ok(engine) => Some(engine),
        Err(rejection) => {
            let first =
                rejection.problems().first().map_or_else(String::new, |problem| problem.message().to_owned());
            decoder.findings.add(
                "engine-file",
                text.at,
                format!("the engine file `{}` is refused: {first}", shortened(&name.value)),
                "not an engine",
                "write it into a separate file and check it with `holdfast engines check FILE`",
            );
            None
        }
    }
}

/// Files that are named where an engine may be.
pub(crate) fn named_in(root: &Node) -> Vec<NamedFile> {
    let mut found = Vec::new();
    let mut note = |node: &Node, at: Option<&'static str>| {
        if let Value::Scalar { text, .. } = &node.value
            && is_path(text)
        {
            found.push(NamedFile { path: text.clone(), at });
        }
    };
    for at in [PATH, OF_A_CLUSTER] {
        if let Some(engine) = root.value_at(at) {
            note(engine, Some(at));
        }
    }
    if let Some(axes) = root.value_at("matrix.axes") {
        on_axes(axes, &mut |node| note(node, None));
    }
    found.sort();
    found.dedup_by(|one, other| one.path == other.path);
    found
}

fn on_axes(node: &Node, note: &mut dyn FnMut(&Node)) {
    let Value::Map(entries) = &node.value else { return };
    for entry in entries {
        match &entry.value.value {
            Value::List(items) if entry.key == PATH => items.iter().for_each(&mut *note),
            Value::Scalar { .. } if entry.key == PATH => note(&entry.value),
            _ => on_axes(&entry.value, note),
        }
    }
}

/// The engine as a resolved scenario has it.
pub(crate) fn written(engine: &'static Capabilities) -> String {
    match engine.file {
        Some(file) if capabilities::named(engine.name) != Some(engine) => {
            format!("{{ file: {}, text: {} }}", quoted(&file.source), quoted(&file.text))
        }
        _ => quoted(engine.name),
    }
}
