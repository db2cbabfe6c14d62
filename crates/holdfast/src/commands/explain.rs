//! `holdfast explain`: what a word of a scenario or of the glossary, a workload, an engine, a check or a rule means, with its keys and
//! examples.

use std::path::{Path, PathBuf};

use model::practice::{LAYOUT_RULES, MACHINE_RULES};
use scenario::explain::{Explanation, Key};

use crate::commands::engines::not_carried;
use crate::commands::faults;
use crate::commands::list::description;
use crate::exit::Exit;
use crate::{glossary, printed};

/// The word for the language of command files.
const COMMAND_FILE: &str = "command-file";

/// Explains; a name that is unknown as it is written is looked up in small letters, and as the word that it is but for these.
pub fn explain(word: &str) -> Result<Exit, Exit> {
    explain_as_written(word).or_else(|unknown| {
        let small = word.to_lowercase();
        let alike = words().find(|known| known.eq_ignore_ascii_case(word));
        let others = [Some(small.as_str()), alike].into_iter().flatten().filter(|other| *other != word);
        others.map(explain_as_written).find(Result::is_ok).unwrap_or(Err(unknown))
    })
}

fn explain_as_written(word: &str) -> Result<Exit, Exit> {
    let named = things(word);
    let mut explanations = scenario::explain::explain(word);
    if word == scenario::explain::ENGINE {
        explanations.extend(engine_file());
    } else if let Some((scenario::explain::ENGINE, key)) = word.split_once('.') {
        explanations = capabilities::file::words(key);
    } else if explanations.is_empty() {
        explanations = capabilities::file::words(word);
    }
    let meaning = glossary::meaning(word);
    let here = glossary::here(word);
    let shipped = shipped(word);
    let command_file = remote::named(word);
    if word == COMMAND_FILE {
        explanations.extend(remote::language::explain());
    } else if explanations.is_empty() {
        explanations = remote::language::words(word);
    }
    if command_file.is_none()
        && named.is_empty()
        && explanations.is_empty()
        && meaning.is_none()
        && here.is_none()
        && shipped.is_none()
    {
        let hint = scenario::explain::nearest(word, words())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(Exit::wrong(anyhow::anyhow!(
            "`{word}` is unknown{hint} (`explain` knows the words of scenarios, of the glossary and of `holdfast \
             list`)"
        )));
    }
    if let Some(meaning) = meaning {
        printed!("{word}: in the glossary\n  {}\n", glossary::without_links(meaning));
    }
    if let Some(here) = here {
        printed!("{word}: a word of other systems; here it is\n  {}\n", glossary::without_links(here));
    }
    if let Some((path, description)) = shipped {
        let path = path.display();
        printed!("{word}: a scenario\n  {description}");
        printed!("  holdfast check {path}   what it means on paper\n  holdfast run {path}\n");
    }
    if let Some(file) = command_file {
        faults::show(file);
        printed!("");
    }
    for (what, meaning) in named {
        printed!("{word}: {what}\n  {meaning}\n");
    }
    for explanation in explanations {
        show(word, &explanation);
    }
    Ok(Exit::Done)
}

/// A scenario of that name among those that `holdfast list scenarios` shows, with what it says of itself.
fn shipped(word: &str) -> Option<(PathBuf, String)> {
    let name = word.strip_suffix(".yaml").unwrap_or(word);
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return None;
    }
    let path = Path::new("scenarios").join(name).with_extension("yaml");
    description(&path).ok().map(|description| (path, description))
}

/// Engines, workloads, checks and rules of that name.
fn things(word: &str) -> Vec<(&'static str, String)> {
    let engines = engine::registry::engines().iter().filter(|entry| entry.name == word);
    let engines = engines.map(|entry| ("an engine", of_engine(entry)));
    let workloads = workload::all().iter().filter(|entry| entry.name() == word);
    let workloads = workloads.map(|entry| ("a workload", entry.facts().summary.to_owned()));
    let checks = check::CHECKS.iter().filter(|entry| entry.name == word).map(|entry| {
        let workloads: Vec<&str> = entry.workloads().collect();
        let judged = match workloads.as_slice() {
            [] => "loads of which every replica is read".to_owned(),
            workloads => format!("workloads: {}", workloads.join(", ")),
        };
        let meaning = format!(
            "{}\n  proves if it passes: {}\n  does not prove: {}\n  judges {judged}",
            entry.doc, entry.proves, entry.does_not_prove,
        );
        ("a check", meaning)
    });
    let rules = rules().filter(|(id, ..)| *id == word).map(|(_, source, remedy)| {
        ("a rule of best practice", format!("{remedy}\n  recommended by: {source}"))
    });
    engines.chain(workloads).chain(checks).chain(rules).collect()
}

/// What an engine is, what was tested of it, and what it cannot carry.
fn of_engine(engine: &engine::EngineFacts) -> String {
    let tested = engine.tested().into_iter();
    let refused = capabilities::named(engine.name).map(not_carried).unwrap_or_default();
    let summary = std::iter::once(engine.summary().to_owned());
    summary.chain(tested).chain(refused).collect::<Vec<String>>().join("\n  ")
}

/// Of an engine file the keys at its top and the names in its templates; what is within a key is explained when it is asked for.
fn engine_file() -> Vec<Explanation> {
    let mut explanations = capabilities::file::explain();
    let names = explanations.pop();
    explanations.truncate(1);
    if let Some(whole) = explanations.first_mut() {
        whole.examples = ["processes", "ready"].map(|key| format!("holdfast explain engine.{key}")).to_vec();
    }
    explanations.extend(names);
    explanations
}

/// Name, source and remedy of every rule that `check` and `doctor` hold a site or a machine against.
fn rules() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let of_layouts = LAYOUT_RULES.iter().map(|rule| (rule.id, rule.source, rule.remedy));
    of_layouts.chain(MACHINE_RULES.iter().map(|rule| (rule.id, rule.source, rule.remedy)))
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

/// Every word that is explained, but for shipped scenarios.
fn words() -> impl Iterator<Item = &'static str> {
    let workloads = workload::all().iter().map(|entry| entry.name());
    let checks = check::CHECKS.iter().map(|entry| entry.name);
    let commands = remote::shipped().iter().map(|file| file.name.as_str()).chain([COMMAND_FILE]);
    let of_program = workloads.chain(checks).chain(commands).chain(rules().map(|(id, ..)| id));
    let words = scenario::explain::words().into_iter().chain(of_program);
    words.chain(glossary::terms().flat_map(|term| term.words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_file_is_told_at_its_top_and_each_key_has_its_own_explanation() {
        let paths: Vec<String> = engine_file().into_iter().map(|one| one.path).collect();
        assert_eq!(paths, ["the whole engine file", "names in templates"]);
        for key in &engine_file()[0].keys {
            assert!(!capabilities::file::words(key.name).is_empty(), "{}", key.name);
        }
    }

    #[test]
    fn an_engine_is_told_with_what_it_cannot_carry() {
        let things = things("nuodb");
        let [(what, told)] = &things[..] else { panic!("{things:?}") };
        assert_eq!(*what, "an engine");
        assert!(
            told.contains("not run here")
                && told.contains("not tpcc, kv, iot, script: has no form in its SQL"),
            "{told}"
        );
    }
}
