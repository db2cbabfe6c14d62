//! The database and the driver, found or installed before the lab is there.

use std::path::{Path, PathBuf};

use engine::client_program::install_driver;
use engine::installation::cache_directory;
use engine::{Installation, Origin};
use lab::protocol::{PROGRAMS, UPGRADE};
use scenario::{Release, Scenario};

use super::error::LaunchError;
use super::options::Show;
use crate::orders::InstallationOrders;

pub(super) fn installation(
    scenario: &Scenario,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<InstallationOrders, LaunchError> {
    let found = match &scenario.database.release {
        Some(release) => of_release(scenario, release, show)?,
        None => {
            let engine = engine::registry::of(scenario.database.engine)?;
            match engine.find(None) {
                Ok(found) => found,
                Err(_) => engine.install(&mut |step| show(Show::Step(step)))?,
            }
        }
    };
    if scenario.database.engine.is_database() {
        show(Show::Step(&format!("{} {} {}", scenario.database.engine.name, found.version, found.origin)));
    }
    readable(orders_for(found, PROGRAMS))
}

/// What the schedule upgrades nodes to.
pub(super) fn upgrade(
    scenario: &Scenario,
    begins_with: &InstallationOrders,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Option<InstallationOrders>, LaunchError> {
    let Some(release) = scenario.upgrade_to() else { return Ok(None) };
    let found = of_release(scenario, release, show)?;
    let name = scenario.database.engine.name;
    show(Show::Step(&format!("{name} {} {}, to upgrade to", found.version, found.origin)));
    let orders = readable(orders_for(found, UPGRADE))?;
    if begins_with.system.is_some() || orders.system.is_some() {
        return Err(LaunchError::UpgradeOfAnImage { engine: name });
    }
    if orders.programs == begins_with.programs && orders.bin == begins_with.bin {
        let (version, folder) = (orders.version, orders.bin);
        return Err(LaunchError::UpgradeToTheSame { engine: name, version, folder });
    }
    if let Some(why) = engine::registry::of(scenario.database.engine)?
        .cannot_be_upgraded(&begins_with.version, &orders.version)
    {
        let (from, to) = (begins_with.version.clone(), orders.version);
        return Err(LaunchError::Upgrade { engine: name, from, to, why });
    }
    Ok(Some(orders))
}

/// The installation that a scenario names: a folder and nothing else, or a version.
fn of_release(
    scenario: &Scenario,
    release: &Release,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Installation, LaunchError> {
    let engine = engine::registry::of(scenario.database.engine)?;
    Ok(match release {
        Release::Folder(folder) => engine.find(Some(Path::new(folder)))?,
        Release::Version(version) => engine.of_version(version, &mut |step| show(Show::Step(step)))?,
    })
}

/// Refuses what would show nodes more than a database.
fn readable(orders: InstallationOrders) -> Result<InstallationOrders, LaunchError> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    if orders.shows_to_nodes(Path::new("/")) || home.is_some_and(|home| orders.shows_to_nodes(&home)) {
        let why = "nodes can read the whole folder of the database, and this folder contains your home: move the database into a separate folder";
        return Err(engine::InstallError::Explicit { path: orders.root, why: why.to_owned() }.into());
    }
    Ok(orders)
}

/// The folder of the programs of the cluster that the database is in, where it is in one.
pub(super) fn cluster(
    scenario: &Scenario,
    show: &mut dyn FnMut(Show<'_>),
) -> Result<Option<PathBuf>, LaunchError> {
    if scenario.database.on.kubernetes().is_none() {
        return Ok(None);
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(LaunchError::ClusterNeedsRoot);
    }
    let cache = cache_directory(|name| std::env::var_os(name))?;
    let programs = kubernetes_lab::install(&cache, &mut |step| show(Show::Step(step)))?;
    Ok(Some(programs.root().to_owned()))
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

/// `folder` is where nodes find it, if they cannot where it lies.
pub(super) fn orders_for(found: Installation, folder: &str) -> InstallationOrders {
    // A cache lies in a home directory, which the node's user, another than ours when we are root, cannot enter; so may
    // this program itself.
    let is_shown = matches!(found.origin, Origin::Cache | Origin::Installed | Origin::Itself);
    InstallationOrders {
        bin: found.bin,
        version: found.version,
        origin: found.origin.to_string(),
        library_path: found.library_path,
        root: found.root,
        programs: found.programs,
        system: found.system,
        shown_at: is_shown.then(|| PathBuf::from(folder)),
    }
}
