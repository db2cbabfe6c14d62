//! `holdfast manifests`: the service account and the roles with which a scenario of pods may be run. Starts nothing, asks no cluster.

use pods::{Manifests, Wanted};
use scenario::Scenario;

use crate::arguments::ManifestsOptions;
use crate::commands::{check_set, folder_of, not_planned, read_source, reject};
use crate::exit::Exit;
use crate::{complained, printed};

/// Prints them; for a matrix, what all its combinations need.
pub fn manifests(options: &ManifestsOptions) -> Result<Exit, Exit> {
    let scenarios = scenarios(options)?;
    let wanted = Wanted {
        account: options.account.clone(),
        namespace: options.namespace.clone(),
        is_only_needed: options.only_needed,
    };
    let each: Vec<&Scenario> = scenarios.iter().collect();
    let Some(Manifests { text, not_known }) = pods::manifests(&each, &wanted) else {
        return Err(Exit::wrong(anyhow::anyhow!(
            "{}: no roles are needed: it has no pods as members (`target: kubernetes`)",
            options.scenario.display()
        )));
    };
    text.lines().for_each(|line| printed!("{line}"));
    if !not_known.is_empty() {
        complained!("other permissions that the commands of {} need are unknown", not_known.join(", "));
    }
    Ok(Exit::Done)
}

/// The scenario, or every combination of its matrix, with command files of its own read into it.
fn scenarios(options: &ManifestsOptions) -> Result<Vec<Scenario>, Exit> {
    let (path, set) = (&options.scenario, &options.set);
    let (source, folder) = (read_source(path)?, folder_of(path));
    let plan = scenario_files::plan(&source, set, &folder).map_err(not_planned)?;
    let mut scenarios: Vec<Scenario> = match plan.matrix {
        Some(matrix) => {
            check_set(&matrix, &source, set)?;
            matrix.cells.into_iter().map(|cell| cell.scenario).collect()
        }
        None => vec![plan.scenario],
    };
    for scenario in &mut scenarios {
        scenario_files::check_commands(scenario, &source, set, &folder)
            .map_err(|rejection| reject(*rejection))?;
    }
    Ok(scenarios)
}
