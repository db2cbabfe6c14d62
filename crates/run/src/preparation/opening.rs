//! The engine of a run, with the files that it brings.

use std::path::Path;
use std::sync::Arc;

use engine::{Configuration, Engine, EngineError, Installation, Origin};
use faulting::{InstalledFiles, Upgrade};
use scenario::{Scenario, Synchronous};

use crate::orders::{InstallationOrders, Orders};

/// Opens the engine over the installation found outside.
pub(crate) fn open_engine(scenario: &Scenario, orders: &Orders) -> Result<Arc<dyn Engine>, EngineError> {
    let engine = engine::registry::of(scenario.database.engine)?;
    Ok(Arc::from(engine.open(installation(orders), configuration(scenario, orders))?))
}

/// The installation as nodes see it.
pub(super) fn installation(orders: &Orders) -> Installation {
    as_nodes_see(&orders.installation)
}

/// How the database is to be set up.
pub(super) fn configuration(scenario: &Scenario, orders: &Orders) -> Configuration {
    Configuration {
        synchronous: match scenario.database.synchronous {
            Synchronous::Off => engine::Synchronous::Off,
            Synchronous::Any(count) => engine::Synchronous::Any(count),
            Synchronous::All => engine::Synchronous::All,
        },
        settings: scenario.database.settings.clone(),
        port: scenario.database.engine.client_port,
        copies: scenario.database.copies,
        places: scenario.database.nodes.iter().map(|host| place(&scenario.site.hosts[*host])).collect(),
        max_connections: scenario.max_connections(),
        upgrade: orders.upgrade.as_ref().map(as_nodes_see),
    }
}

fn place(host: &scenario::Host) -> engine::NodePlace {
    engine::NodePlace {
        region: host.region.clone(),
        zone: host.zone.clone(),
        // Racks of several zones may have the same name.
        rack: host.rack.as_ref().map_or_else(|| host.zone.clone(), |rack| format!("{}-{rack}", host.zone)),
        host: host.name.clone(),
    }
}

/// What the schedule upgrades nodes to, where it does, as it lies outside.
pub(crate) fn upgrade(orders: &Orders) -> Option<Upgrade> {
    let files = |of: &InstallationOrders| InstalledFiles::of(&of.version, &of.programs, &of.bin, &of.root);
    Some(Upgrade::new(files(&orders.installation), files(orders.upgrade.as_ref()?)))
}

/// The installation under the path by which nodes reach it.
fn as_nodes_see(orders: &InstallationOrders) -> Installation {
    let base = if orders.is_one_program() { &orders.bin } else { &orders.root };
    let seen = |path: &Path| match path.strip_prefix(base) {
        Ok(inside) => orders.shown_at.as_ref().map_or_else(|| path.to_owned(), |at| at.join(inside)),
        Err(_) => path.to_owned(),
    };
    Installation {
        bin: seen(&orders.bin),
        version: orders.version.clone(),
        origin: Origin::Explicit,
        library_path: orders.library_path.as_deref().map(seen),
        root: seen(&orders.root),
        programs: orders.programs.iter().map(|(name, path)| (name.clone(), seen(path))).collect(),
        system: orders.system.clone(),
    }
}
