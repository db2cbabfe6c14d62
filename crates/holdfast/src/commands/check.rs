//! `holdfast check`: says whether a scenario is right, and what follows from it on paper. Starts nothing.

use std::path::Path;

use crate::commands::{read_source, reject};
use crate::exit::Exit;
use crate::{paper, printed};

/// Checks a scenario on paper, the machine, or both.
pub fn check(path: Option<&Path>, set: &[(String, String)], this_host: bool) -> Result<Exit, Exit> {
    if let Some(path) = path {
        check_scenario(path, set)?;
    }
    if this_host {
        if path.is_some() {
            printed!("");
        }
        printed!("Best practice, from this machine");
        for line in paper::practice(&run::on_paper::practice_of_this_host()) {
            printed!("{line}");
        }
    }
    Ok(Exit::Done)
}

fn check_scenario(path: &Path, set: &[(String, String)]) -> Result<(), Exit> {
    let scenario = scenario::parse(&read_source(path)?, set).map_err(reject)?;
    run::check_workloads(&scenario).map_err(Exit::wrong)?;
    let length_s: u64 = scenario.schedule.iter().map(|phase| phase.length.as_secs()).sum();
    let faults: usize = scenario.schedule.iter().map(|phase| phase.faults.len()).sum();
    printed!("{}: {} is right", path.display(), scenario.name);
    printed!(
        "  {} hosts, {} nodes of {}, {} loads, {} phases of {length_s} s in all, {faults} faults, {} expectations",
        scenario.site.hosts.len(),
        scenario.database.nodes.len(),
        scenario.database.engine,
        scenario.loads.len(),
        scenario.schedule.len(),
        scenario.expect.len(),
    );
    for line in paper::lines(&run::on_paper::on_paper(&scenario)) {
        printed!("{line}");
    }
    Ok(())
}
