//! `holdfast engines`: engine files of the user's own.

use std::path::Path;

use capabilities::{Capabilities, Lack};
use history::whole_file::{self, Link};

use crate::commands::reject;
use crate::exit::Exit;
use crate::printed;

/// The workloads that an engine does not carry, those of one reason in a line.
pub(super) fn not_carried(engine: &Capabilities) -> Vec<String> {
    let mut by_reason: Vec<(Lack, Vec<&str>)> = Vec::new();
    for workload in workload::all().iter().map(|workload| workload.name()) {
        let Some(reason) = engine.understands.why_not(workload) else { continue };
        match by_reason.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, workloads)) => workloads.push(workload),
            None => by_reason.push((reason, vec![workload])),
        }
    }
    by_reason
        .into_iter()
        .map(|(reason, workloads)| format!("not {}: {reason}", workloads.join(", ")))
        .collect()
}

/// Checks an engine file, and says what was understood.
pub fn check(path: &Path) -> Result<Exit, Exit> {
    let text = whole_file::read_text(path, Link::Followed, scenario::MOST_BYTES as u64)
        .map_err(|error| Exit::wrong(anyhow::anyhow!("engine file {}: {error}", path.display())))?;
    let engine = capabilities::file::read(&path.display().to_string(), &text).map_err(reject)?;
    printed!("{}: {} is valid", path.display(), engine.name);
    printed!("  {}", engine.summary);
    let Some(file) = engine.file else { return Ok(Exit::Done) };
    let processes: Vec<&str> = file.processes.iter().map(|process| process.name.as_str()).collect();
    printed!("  on each node: {}", processes.join(", "));
    let ports: Vec<String> = file.ports.iter().map(|(name, port)| format!("{name} {port}")).collect();
    printed!("  ports: {}", ports.join(", "));
    let workloads = workload::all().iter().map(|workload| workload.name());
    let carried: Vec<&str> = workloads.filter(|name| engine.understands.workload(name)).collect();
    printed!("  workloads: {}", carried.join(", "));
    for line in not_carried(engine) {
        printed!("  {line}");
    }
    printed!("  {}", file.tested);
    match engine::registry::of(engine).map(|engine| engine.find(None)) {
        Ok(Ok(found)) => printed!("  found: {} in {}, {}", found.version, found.bin.display(), found.origin),
        Ok(Err(error)) => printed!("  not here: {error}"),
        Err(error) => return Err(Exit::failed(error)),
    }
    Ok(Exit::Done)
}
