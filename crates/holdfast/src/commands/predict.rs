//! `holdfast predict`: what follows from a scenario on paper, at any scale, or from runs for more of the same. Starts
//! nothing.

use std::path::{Path, PathBuf};

use model::scale::durability::Rates;
use paper::at_scale::{Scale, predict as reckon};
use paper::capacity::{By, of_runs};

use crate::arguments::{CapacityBy, PredictOptions};
use crate::commands::{folder_of, not_planned, read_source};
use crate::exit::Exit;
use crate::{paper_text, printed};

/// Predicts.
pub fn predict(options: &PredictOptions) -> Result<Exit, Exit> {
    match options.of.as_slice() {
        [only] if !only.is_dir() => at_scale(only, options),
        runs => capacity(runs, options),
    }
}

/// What more clients or nodes would give.
fn capacity(runs: &[PathBuf], options: &PredictOptions) -> Result<Exit, Exit> {
    if let Some(option) = option_of_a_scenario(options) {
        return Err(Exit::wrong(anyhow::anyhow!(
            "{option} is for the prediction of one scenario, not of run directories; leave it out"
        )));
    }
    let by = options.by.map(|by| match by {
        CapacityBy::Clients => By::Clients,
        CapacityBy::Nodes => By::Nodes,
    });
    for (number, found) in
        of_runs(runs, by, options.seed.unwrap_or(1)).map_err(Exit::wrong)?.iter().enumerate()
    {
        if number > 0 {
            printed!("");
        }
        for line in paper_text::capacity(found) {
            printed!("{line}");
        }
    }
    Ok(Exit::Done)
}

/// The first option given that says something about a scenario alone, as far as its absence can be told from its default.
fn option_of_a_scenario(options: &PredictOptions) -> Option<&'static str> {
    let given = [
        ("--set", !options.set.is_empty()),
        ("--nodes", options.nodes.is_some()),
        ("--ranges", options.ranges.is_some()),
        ("--replicas", options.replicas.is_some()),
        ("--racks", options.racks.is_some()),
        ("--zones", options.zones.is_some()),
        ("--regions", options.regions.is_some()),
        ("--copysets", options.copysets.is_some()),
        ("--edge-rate", options.edge_rate.is_some()),
    ];
    given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
}

fn at_scale(path: &Path, options: &PredictOptions) -> Result<Exit, Exit> {
    if options.by.is_some() {
        return Err(Exit::wrong(anyhow::anyhow!(
            "--by needs run directories; {} is not one",
            path.display()
        )));
    }
    let plan =
        scenario_files::plan(&read_source(path)?, &options.set, &folder_of(path)).map_err(not_planned)?;
    let scenario = plan.scenario;
    for (name, share) in [("--not-returning", options.not_returning), ("--host-down", options.host_down)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(Exit::wrong(anyhow::anyhow!("{name} must be from 0% to 100%")));
        }
    }
    let scale = Scale {
        nodes: options.nodes,
        ranges: options.ranges,
        replicas: options.replicas,
        racks: options.racks,
        zones: options.zones,
        regions: options.regions,
        copysets: options.copysets,
        range_bytes: options.range_size as f64,
        host_bits_per_s: options.host_rate.max(1) as f64,
        edge_bits_per_s: options.edge_rate.map(|rate| rate.max(1) as f64),
        rates: Rates { host_failure_h: options.host_failure_hours, repair_h: options.repair_hours },
        not_returning: options.not_returning,
        host_down: options.host_down,
        seed: options.seed,
    };
    let prediction = reckon(&scenario, &scale).map_err(Exit::wrong)?;
    for line in paper_text::prediction(&scenario.name, &prediction) {
        printed!("{line}");
    }
    Ok(Exit::Done)
}
