//! `holdfast list`: what there is, one line each.

use std::io::ErrorKind;
use std::path::Path;

use clap::ValueEnum;
use history::whole_file::{self, Link, WholeFileError};

use crate::arguments::Listed;
use crate::commands::engine_matrix::matrix;
use crate::commands::faults::in_a_line;
use crate::commands::folder_of;
use crate::exit::Exit;
use crate::printed;

/// Lists; without a word what can be listed.
pub fn list(what: Option<Listed>) -> Result<Exit, Exit> {
    let Some(what) = what else {
        let values = Listed::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        for value in values {
            let help = value.get_help().map(ToString::to_string).unwrap_or_default();
            printed!("holdfast list {:9}  {help}", value.get_name());
        }
        return Ok(Exit::Done);
    };
    let lines: Vec<(String, String)> = match what {
        Listed::Engines => engine::registry::engines().iter().map(with_what_was_tested).collect(),
        Listed::Workloads => pairs(workload::all().iter().map(|entry| (entry.name(), entry.facts().summary))),
        Listed::Faults => {
            let kinds = pairs(scenario::FAULT_KINDS.iter().map(|kind| (kind.name, kind.summary)));
            kinds.into_iter().chain(remote::shipped().iter().map(in_a_line)).collect()
        }
        Listed::Checks => pairs(check::CHECKS.iter().map(|entry| (entry.name, entry.doc))),
        Listed::Scenarios => scenarios(Path::new("scenarios"))?,
    };
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, summary) in lines {
        printed!("{name:width$}  {summary}");
    }
    if matches!(what, Listed::Engines) {
        let workloads: Vec<&str> = workload::all().iter().map(|workload| workload.name()).collect();
        for line in matrix(capabilities::engines(), &workloads) {
            printed!("{line}");
        }
    }
    Ok(Exit::Done)
}

/// An engine and its summary; of one that is a file also what was tested of it.
fn with_what_was_tested(engine: &engine::EngineFacts) -> (String, String) {
    let tested = engine.tested().map_or_else(String::new, |tested| format!(" ({tested})"));
    (engine.name.to_owned(), format!("{}{tested}", engine.summary()))
}

fn pairs<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    entries.map(|(name, summary)| (name.to_owned(), summary.to_owned())).collect()
}

/// Scenario files with what they say of themselves.
fn scenarios(folder: &Path) -> Result<Vec<(String, String)>, Exit> {
    let failed = |error: std::io::Error| {
        let remedy = match error.kind() {
            ErrorKind::NotFound => "; shipped scenarios are in the source tree: run this there",
            _ => "",
        };
        Exit::wrong(anyhow::anyhow!("folder {}: {error}{remedy}", folder.display()))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let description = description(&path).unwrap_or_else(|error| format!("cannot be read: {error}"));
            found.push((path.display().to_string(), description));
        }
    }
    found.sort();
    Ok(found)
}

/// What a scenario says of itself.
pub(super) fn description(path: &Path) -> Result<String, WholeFileError> {
    let text = whole_file::read_text(path, Link::Followed, scenario::MOST_BYTES as u64)?;
    let source = scenario::Source { name: path.display().to_string(), text };
    Ok(match scenario_files::plan(&source, &[], &folder_of(path)) {
        Ok(plan) if !plan.scenario.about.description.is_empty() => plan.scenario.about.description,
        Ok(_) => "no description".to_owned(),
        Err(_) => format!("not valid; see `holdfast check {}`", path.display()),
    })
}
