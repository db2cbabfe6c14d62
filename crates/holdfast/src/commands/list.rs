//! `holdfast list`: what there is, one line each.

use std::path::Path;

use crate::arguments::Listed;
use crate::exit::Exit;
use crate::printed;

/// Lists.
pub fn list(what: Listed) -> Result<Exit, Exit> {
    let lines: Vec<(String, String)> = match what {
        Listed::Engines => pairs(engine::registry::ENGINES.iter().map(|entry| (entry.name, entry.summary))),
        Listed::Workloads => pairs(workload::all().iter().map(|entry| (entry.name(), entry.summary()))),
        Listed::Faults => pairs(faults::KINDS.iter().map(|entry| (entry.name, entry.summary))),
        Listed::Checks => pairs(check::CHECKS.iter().map(|entry| (entry.name, entry.doc))),
        Listed::Scenarios => scenarios(Path::new("scenarios"))?,
    };
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, summary) in lines {
        printed!("{name:width$}  {summary}");
    }
    Ok(Exit::Done)
}

fn pairs<'a>(entries: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    entries.map(|(name, summary)| (name.to_owned(), summary.to_owned())).collect()
}

/// Scenario files with their first comment.
fn scenarios(folder: &Path) -> Result<Vec<(String, String)>, Exit> {
    let failed = |error| Exit::wrong(anyhow::anyhow!("folder {}: {error}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            let comment = text.lines().next().and_then(|line| line.strip_prefix('#')).unwrap_or_default();
            found.push((path.display().to_string(), comment.trim().to_owned()));
        }
    }
    found.sort();
    Ok(found)
}
