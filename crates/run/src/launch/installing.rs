//! The database and the driver, found or installed before the lab is there.

use std::path::{Path, PathBuf};

use engine::client_program::install_driver;
use engine::installation::cache_directory;
use engine::{Installation, Origin};
use scenario::Scenario;

use super::error::LaunchError;
use super::options::Show;
use crate::orders::InstallationOrders;

pub(super) fn installation(
    scenario: &Scenario,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<InstallationOrders, LaunchError> {
    let engine = engine::registry::of(scenario.database.engine)?;
    let explicit = scenario.database.path.as_deref().map(Path::new);
    let found = match engine.find(explicit) {
        Ok(found) => found,
        Err(error) if explicit.is_some() => return Err(error.into()),
        Err(_) => engine.install(&mut |step| show(Show::Step(step)))?,
    };
    show(Show::Step(&format!("{} {} {}", engine.name, found.version, found.origin)));
    let orders = orders_for(found);
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    if orders.shows_to_nodes(Path::new("/")) || home.is_some_and(|home| orders.shows_to_nodes(&home)) {
        let why = "nodes can read the whole folder of the database, and this folder contains your home: move the database into a separate folder";
        return Err(engine::InstallError::Explicit { path: orders.root, why: why.to_owned() }.into());
    }
    Ok(orders)
}

/// The folder of the driver of the program that speaks for clients, where one does and its driver is to be installed.
pub(super) fn driver(
    scenario: &Scenario,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Option<PathBuf>, LaunchError> {
    let program = scenario.database.engine.file.and_then(|file| file.client_program.as_ref());
    let Some(program) = program else { return Ok(None) };
    let cache = cache_directory(|name| std::env::var_os(name))?;
    Ok(install_driver(program, &cache, &mut |step| show(Show::Step(step)))?)
}

pub(super) fn orders_for(found: Installation) -> InstallationOrders {
    // A cache lies in a home directory, which the node's user, another than ours when we are root, cannot enter; so may
    // this program itself.
    let shown = matches!(found.origin, Origin::Cache | Origin::Installed | Origin::Itself);
    InstallationOrders {
        bin: found.bin,
        version: found.version,
        origin: found.origin.to_string(),
        library_path: found.library_path,
        root: found.root,
        programs: found.programs,
        system: found.system,
        shown,
    }
}
