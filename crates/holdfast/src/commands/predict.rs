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

fn at_scale(path: &Path, options: &PredictOptions) -> Result<Exit, Exit> {
    if options.by.is_some() {
        return Err(Exit::wrong(anyhow::anyhow!(
            "--by needs run directories; {} is not one",
            path.display()
        )));
    }
    let plan = run::plan(&read_source(path)?, &options.set, &folder_of(path)).map_err(not_planned)?;
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
