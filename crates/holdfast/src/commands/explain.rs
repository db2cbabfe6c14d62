//! `holdfast explain`: what a word of a scenario, a workload, an engine or a check means, with its keys and examples.

use scenario::explain::{Explanation, Key};

use crate::exit::Exit;
use crate::printed;

/// Explains.
pub fn explain(word: &str) -> Result<Exit, Exit> {
    let named = things(word);
    let explanations = scenario::explain::explain(word);
    if named.is_empty() && explanations.is_empty() {
        let hint = nearest(word).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(Exit::wrong(anyhow::anyhow!(
            "there is nothing named `{word}` to explain{hint} (any word of a scenario, and what `holdfast list` shows)"
        )));
    }
    for (what, meaning) in named {
        printed!("{word}: {what}\n  {meaning}\n");
    }
    for explanation in explanations {
        show(word, &explanation);
    }
    Ok(Exit::Done)
}

/// Engines, workloads and checks of that name.
fn things(word: &str) -> Vec<(&'static str, String)> {
    let engines = engine::registry::ENGINES.iter().map(|entry| ("an engine", entry.name, entry.summary()));
    let workloads = workload::all().iter().map(|entry| ("a workload", entry.name(), entry.summary()));
    let named = engines.chain(workloads).filter(|(_, name, _)| *name == word);
    let checks = check::CHECKS.iter().filter(|entry| entry.name == word).map(|entry| {
        let meaning = format!(
            "{}\n  proves when it passes: {}\n  does not prove: {}\n  judges workloads: {}",
            entry.doc,
            entry.proves,
            entry.does_not_prove,
            entry.workloads.join(", ")
        );
        ("a check", meaning)
    });
    named.map(|(what, _, meaning)| (what, meaning.to_owned())).chain(checks).collect()
}

fn show(word: &str, explanation: &Explanation) {
    printed!("{word}: {}", explanation.path);
    printed!("  {}", explanation.meaning);
    printed!("  holds {}", explanation.holds);
    if !explanation.keys.is_empty() {
        printed!("  keys:");
        let width = explanation.keys.iter().map(|key| key.name.len()).max().unwrap_or(0);
        for Key { name, required, holds, meaning } in &explanation.keys {
            let needed = if *required { " (needed)" } else { "" };
            printed!("    {name:width$}  {meaning}{needed}; {holds}");
        }
    }
    if !explanation.examples.is_empty() {
        printed!("  for example:");
        for example in &explanation.examples {
            printed!("    {example}");
        }
    }
    printed!("");
}

/// The word that was probably meant.
fn nearest(word: &str) -> Option<&'static str> {
    let workloads = workload::all().iter().map(|entry| entry.name());
    let checks = check::CHECKS.iter().map(|entry| entry.name);
    scenario::explain::nearest(word, scenario::explain::words().into_iter().chain(workloads).chain(checks))
}
