//! `holdfast engines`: engine files of the user's own.

use std::path::Path;

use history::whole_file::{self, Link};

use crate::commands::reject;
use crate::exit::Exit;
use crate::printed;

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
    printed!("  {}", file.tested);
    match engine::registry::of(engine).map(|engine| engine.find(None)) {
        Ok(Ok(found)) => printed!("  found: {} in {}, {}", found.version, found.bin.display(), found.origin),
        Ok(Err(error)) => printed!("  not here: {error}"),
        Err(error) => return Err(Exit::failed(error)),
    }
    Ok(Exit::Done)
}
