//! The pages of engines, workloads and checks, from their registries.

use scenario::Source;
use scenario::explain::explain;

use super::language::key_table;
use super::markdown::{block, code, page, sentence, table};

/// A scenario of one node and one load, by which it is found out what the language accepts together.
fn smallest(engine: &str, workload: &str) -> Source {
    let text = format!(
        "name: smallest\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 1 }} }} }} }} }}\n\
         database: {{ engine: {engine}, nodes: 1 }}\nloads: [{{ workload: {workload}, clients: 1, from: dc1 }}]\n\
         schedule: [{{ phase: baseline, for: 5s }}]\nexpect: {{ errors: 0 }}\n"
    );
    Source { name: "smallest".to_owned(), text }
}

fn understands(engine: &str, workload: &str) -> bool {
    scenario::parse(&smallest(engine, workload), &[]).is_ok()
}

fn links(names: impl Iterator<Item = &'static str>, file: &str) -> String {
    names.map(|name| format!("[`{name}`]({file}#{name})")).collect::<Vec<_>>().join(", ")
}

pub(super) fn engines() -> String {
    let names = || workload::all().iter().map(|workload| workload.name());
    let rows = engine::registry::engines().iter().map(|entry| {
        let workloads = names().filter(|workload| understands(entry.name, workload));
        let tested = entry.tested().unwrap_or_default();
        vec![code(entry.name), sentence(entry.summary()), links(workloads, "workloads.md"), tested]
    });
    let settings = explain("database").into_iter().find(|found| found.path == "database");
    let mut body = table(&["`engine:`", "summary", "workloads", "tested"], rows.collect());
    body.push_str("## Keys of `database`\n\n");
    body.push_str(&settings.map(|found| key_table(&found.keys)).unwrap_or_default());
    page(
        "Engines",
        "An engine installs, starts and observes one kind of database. [How to choose and configure one](../guide/engines.md).",
        &body,
    )
}

/// The workloads with their options.
pub(super) fn workloads() -> String {
    let mut body = String::new();
    for entry in workload::all() {
        let name = entry.name();
        body.push_str(&format!("## {name}\n\n{}\n\n", sentence(entry.facts().summary)));
        let checks = check::registry::for_workload(name).map(|check| check.name);
        body.push_str(&format!("Checks: {}.\n", links(checks, "checks.md")));
        let engines = engine::registry::engines().iter().map(|engine| engine.name);
        let engines = engines.filter(|engine| understands(engine, name)).map(code);
        body.push_str(&format!("Engines: {}.\n\n", engines.collect::<Vec<_>>().join(", ")));
        let path = format!("loads[].options of {name}");
        for options in explain(name).into_iter().filter(|found| found.path == path) {
            body.push_str(&key_table(&options.keys));
            body.push_str(&block("yaml", &options.examples.join("\n")));
        }
    }
    page(
        "Workloads",
        "A workload is what the clients ask, transaction by transaction. Options are set in a load: \
         `{ workload: kv, clients: 8, options: { read: 95% } }`.",
        &body,
    )
}

/// The checks with what they prove.
pub(super) fn checks() -> String {
    let mut body = String::new();
    for entry in check::CHECKS {
        body.push_str(&format!("## {}\n\n{}\n\n", entry.name, sentence(entry.doc)));
        body.push_str(&format!("- **Proves if it passes.** {}\n", entry.proves));
        body.push_str(&format!("- **Does not prove.** {}\n", entry.does_not_prove));
        let judged = links(entry.workloads(), "workloads.md");
        if !judged.is_empty() {
            body.push_str(&format!("- **Judges** the workloads {judged}.\n"));
        }
        body.push('\n');
    }
    page(
        "Checks",
        "A check reads the recorded history and decides `pass`, `fail` or `unknown`. It never knows which faults ran. \
         `holdfast verify --model CHECK HISTORY` runs one by itself.",
        &body,
    )
}
