//! `holdfast check`: says whether a scenario is right, and what it would do. Starts nothing.

use std::path::Path;

use crate::commands::{read_source, reject};
use crate::exit::Exit;
use crate::printed;

/// Checks a scenario on paper.
pub fn check(path: &Path, set: &[(String, String)]) -> Result<Exit, Exit> {
    let scenario = scenario::parse(&read_source(path)?, set).map_err(reject)?;
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
    Ok(Exit::Done)
}
