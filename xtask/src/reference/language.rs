//! The pages of the scenario language: keys, faults and quantities, from the language's own tables.

use scenario::FAULT_KINDS;
use scenario::catalogue;
use scenario::explain::{Explanation, Key, explain, words};
use scenario::quantity::{Needs, QUANTITIES};

use super::markdown::{block, code, page, sentence, table};

/// Where faults stand in a scenario.
const FAULTS: &str = "schedule[].faults";

/// The keys of a map.
pub(super) fn key_table(keys: &[Key]) -> String {
    let row = |key: &Key| {
        let name = if key.required { format!("`{}` (required)", key.name) } else { code(key.name) };
        vec![name, sentence(key.meaning), sentence(&key.holds)]
    };
    table(&["key", "meaning", "value"], keys.iter().map(row).collect())
}

/// Every map of the language, the outer before the inner, in the order of the scenario's first keys.
fn maps() -> Vec<Explanation> {
    let order: Vec<&str> = explain("scenario").iter().flat_map(|all| &all.keys).map(|key| key.name).collect();
    let first = |path: &str| {
        let head = path.split(['.', '[']).next().unwrap_or_default();
        order.iter().position(|name| *name == head).unwrap_or(usize::MAX)
    };
    let mut found: Vec<Explanation> = words().into_iter().flat_map(explain).collect();
    found.retain(|one| !one.keys.is_empty());
    found.sort_by_key(|one| (first(&one.path), one.path.clone()));
    found.dedup_by(|one, other| one.path == other.path);
    found
}

fn section(level: &str, found: &Explanation) -> String {
    let mut text = format!("{level} `{}`\n\n{}\n\n", found.path, sentence(&found.meaning));
    text.push_str(&key_table(&found.keys));
    if !found.examples.is_empty() {
        text.push_str(&block("yaml", &found.examples.join("\n")));
    }
    text
}

/// Every key of a scenario.
pub(super) fn scenario() -> String {
    let mut body = String::from("## Top level\n\n");
    body.push_str(&explain("scenario").iter().map(|all| key_table(&all.keys)).collect::<String>());
    let elsewhere = |path: &str| {
        path.starts_with("expect")
            || path.starts_with("loads[].options")
            || path.starts_with("schedule[].faults[].")
    };
    for found in maps().iter().filter(|found| found.path != "the whole file" && !elsewhere(&found.path)) {
        body.push_str(&section("##", found));
    }
    page(
        "Scenario",
        "A scenario is one YAML file. `[]` in a path stands for each element of a list, `NAME` for a name of your choice. \
         Unknown keys are errors. The keys of [faults](faults.md), [options of workloads](workloads.md) and \
         [expectations](expectations.md) have pages of their own.",
        &body,
    )
}

/// The maps of a file, the whole first.
fn of_a_file(explained: &[Explanation]) -> String {
    let mut body = String::from("## Top level\n\n");
    let (whole, parts) =
        explained.split_first().map_or((None, &[][..]), |(whole, parts)| (Some(whole), parts));
    body.push_str(&whole.map(|whole| key_table(&whole.keys)).unwrap_or_default());
    for found in parts {
        body.push_str(&section("##", found));
    }
    body
}

/// Every key of a command file, and those that ship.
pub(super) fn command_file() -> String {
    let mut body = of_a_file(&remote::language::explain());
    body.push_str("## Files that ship\n\nIn `faults/external/`. A scenario strikes with them by the fault `external`.\n\n");
    let rows = remote::shipped().iter().map(|file| {
        let tool = format!("{} {}", file.written_for.tool, file.written_for.version);
        vec![code(&file.name), sentence(&file.summary), tool, sentence(&file.tested.to_string())]
    });
    body.push_str(&table(&["fault", "summary", "written for", "tested"], rows.collect()));
    page(
        "Command file",
        "A command file is one YAML file that describes a fault of a machine that exists, as four commands: do, undo, \
         stands, gone. `holdfast faults check FILE` reads yours, `holdfast explain NAME` shows one that ships. \
         [Why it is so](../design/remote-faults.md).",
        &body,
    )
}

/// Every key of an engine file.
pub(super) fn engine_file() -> String {
    let body = of_a_file(&capabilities::file::explain());
    page(
        "Engine file",
        "An engine file is one YAML file that describes a database. A scenario names it by `engine: ./my-database.yaml`; those \
         that ship are in `engines/`. [How to write one](../guide/own-database.md). The JSON Schema for editors is printed by \
         `holdfast schema --engine`.",
        &body,
    )
}

/// The faults with their keys and targets.
pub(super) fn faults() -> String {
    let maps = maps();
    let mut body = String::from("## Keys of every fault\n\n");
    let common = maps.iter().filter(|found| found.path == FAULTS);
    body.push_str(&common.map(|found| key_table(&found.keys)).collect::<String>());
    body.push_str("## Roles\n\nA fault's target is a place by name, or the place of a role:\n\n");
    let roles = catalogue::ROLES.iter().map(|role| vec![code(role.name), sentence(role.meaning)]);
    body.push_str(&table(&["role", "place"], roles.collect()));
    for kind in FAULT_KINDS {
        body.push_str(&format!("## {}\n\n{}\n\n", kind.name, sentence(kind.meaning)));
        let path = format!("{FAULTS}[].{}", kind.name);
        for found in maps.iter().filter(|found| found.path == path) {
            body.push_str(&key_table(&found.keys));
            body.push_str(&block("yaml", &found.examples.join("\n")));
        }
        for found in maps.iter().filter(|found| found.path.starts_with(&format!("{path}."))) {
            body.push_str(&section("###", found));
        }
    }
    page(
        "Faults",
        "A fault is listed under `faults` of a phase. It counts only with its [receipts](../receipts.md): independent \
         observations that it took effect and that it healed.",
        &body,
    )
}

/// The quantities that a scenario can bound.
pub(super) fn expectations() -> String {
    let needs = |needs: Needs| match needs {
        Needs::Nothing => String::new(),
        Needs::Fault => "a fault".to_owned(),
        Needs::Leader => "nodes that elect their leader, or `promote`".to_owned(),
        Needs::Election => "nodes that elect their leader".to_owned(),
        Needs::CheckedBy(_) | Needs::Figure(_) => format!("a load of {}", needs.workloads().join(", ")),
    };
    let rows = QUANTITIES.iter().map(|entry| {
        let bound = format!("{}: {}", code(entry.example), entry.unit.written());
        let scope = entry.measured.syntax().to_owned();
        vec![code(entry.name), sentence(entry.meaning), bound, scope, needs(entry.needs)]
    });
    let mut body = String::new();
    for expect in explain("expect").into_iter().filter(|found| found.path == "expect") {
        body.push_str(&format!("{}\n\n", sentence(&expect.holds)));
        body.push_str(&block("yaml", &expect.examples.join("\n")));
    }
    body.push_str(&table(&["quantity", "meaning", "bound", "scope", "needs"], rows.collect()));
    page(
        "Expectations",
        "An expectation is a gate: the run passes only if every one was shown to hold. [How to choose them](../guide/expectations.md).",
        &body,
    )
}
