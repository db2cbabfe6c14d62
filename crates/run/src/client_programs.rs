//! Programs that speak for the clients of a load: as engines name them, started where the load's clients stand.
//!
//! Owns the way from the engine's words to `load`'s. The load starts the program, and ends it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use capabilities::file::{self, SqlDialect};
use client::process::{GREETING_WITHIN, Settings, Speaks, TakesWrites, Target};
use engine::{Engine, EngineError, Node};
use lab::guest::{self, Guest};
use lab::protocol::{DRIVER, ShownPrograms};
use load::ClientProgram;
use scenario::Scenario;

use crate::orders::Orders;

/// The program for a load, as the engine names it; nothing where the engine's protocol is one of ours.
///
/// # Errors
/// When a node is none of the engine's.
pub fn for_load(
    load: &str,
    scenario: &Scenario,
    orders: &Orders,
    engine: &dyn Engine,
    nodes: &[Arc<dyn Node>],
    users_mapped: bool,
) -> Result<Option<ClientProgram>, EngineError> {
    let file = scenario.database.engine.file.and_then(|file| file.client_program.as_ref());
    let driver = orders.driver.as_ref().map(|folder| ShownPrograms {
        outside: folder.clone(),
        inside: PathBuf::from(DRIVER),
        system: None,
    });
    let folder = driver.as_ref().map(|_| DRIVER.to_owned()).unwrap_or_default();
    let (Some(program), Some(command)) = (file, engine.client_command(&folder)) else { return Ok(None) };
    let (mut targets, mut prepare) = (BTreeMap::new(), None);
    for node in nodes {
        let target = engine.client_target(node.as_ref())?;
        targets.insert(node.name().to_owned(), Target { url: target.url, options: target.options });
        prepare.get_or_insert(target.prepare);
    }
    let guest = Guest {
        name: "clients".to_owned(),
        program: command.program,
        arguments: command.arguments,
        environment: command.environment,
        shown: orders.installation.shown_to_nodes().into_iter().chain(driver).collect(),
        names: nodes.iter().map(|node| (node.name().to_owned(), node.addresses())).collect(),
        users_mapped,
    };
    let log = lab::janitor::log_path(&orders.run_directory).with_file_name(format!("client-{load}.log"));
    let settings = Settings {
        name: command.name,
        starter: starter(guest, log.clone()),
        driver: program.driver.clone(),
        folder,
        log: Some(log),
        patience: GREETING_WITHIN,
        accountant: None,
    };
    let speaks = speaks(program.speaks);
    let takes_writes = program.takes_writes.clone().map(|(query, is)| TakesWrites { query, is });
    let prepare = prepare.unwrap_or_default();
    Ok(Some(ClientProgram { settings, speaks, targets, takes_writes, prepare }))
}

fn speaks(written: file::Speaks) -> Speaks {
    match written {
        file::Speaks::Keys => Speaks::Keys,
        file::Speaks::Sql(SqlDialect::Postgres) => Speaks::Sql(client::Dialect::Postgres),
        file::Speaks::Sql(SqlDialect::Mysql) => Speaks::Sql(client::Dialect::Mysql),
        file::Speaks::Sql(SqlDialect::Standard) => Speaks::Sql(client::Dialect::Standard),
    }
}

fn starter(guest: Guest, log: PathBuf) -> client::process::Starter {
    Arc::new(move |socket: OwnedFd| guest::start(&guest, socket, open(&log)?))
}

/// The supervisor's own folder: no program of the lab can put a link there.
fn open(log: &Path) -> std::io::Result<File> {
    File::options().create(true).append(true).open(log)
}
