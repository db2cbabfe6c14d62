//! The hidden doors: this program started again by itself as a lab's supervisor, a node's init, the janitor, a node of
//! the control database, the process on a volume or a program beside clients; and what a release asks for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::{guest, init, janitor, node, supervisor};

use super::manual;
use crate::complained;

/// Does the job of a hidden door, when the first argument names one.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let door = arguments.next()?;
    let told = |result: Result<(), String>| match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complained!("{error}");
            ExitCode::FAILURE
        }
    };
    if door == node::INIT_SUBCOMMAND {
        Some(told(init::main().map_err(|error| error.to_string())))
    } else if door == supervisor::SUPERVISOR_SUBCOMMAND {
        Some(ExitCode::from(run::supervise()))
    } else if door == supervisor::OUTSIDE_SUBCOMMAND {
        Some(ExitCode::from(run::supervise_outside()))
    } else if door == janitor::JANITOR_SUBCOMMAND {
        let (name, directory) = (arguments.next()?, arguments.next()?);
        let name = name.to_string_lossy().into_owned();
        Some(told(janitor::main(&name, &PathBuf::from(directory)).map_err(|error| error.to_string())))
    } else if door == guest::GUEST_SUBCOMMAND {
        Some(told(
            guest::main(&arguments.next()?).map(|never| match never {}).map_err(|error| error.to_string()),
        ))
    } else if door == control::server::SUBCOMMAND {
        let node = arguments.next()?;
        Some(told(control_node(&node.to_string_lossy())))
    } else if door == rawio::server::SUBCOMMAND {
        let node = arguments.next()?;
        Some(told(rawio_node(&node.to_string_lossy())))
    } else if door == manual::SUBCOMMAND {
        let folder = PathBuf::from(arguments.next()?);
        Some(told(manual::write(&folder).map_err(|error| format!("{}: {error}", folder.display()))))
    } else {
        None
    }
}

fn rawio_node(node: &str) -> Result<(), String> {
    let node: rawio::server::Node =
        serde_json::from_str(node).map_err(|error| format!("what volume this is to serve: {error}"))?;
    match rawio::server::serve(&node) {
        Ok(never) => match never {},
        Err(error) => Err(error.to_string()),
    }
}

fn control_node(node: &str) -> Result<(), String> {
    let node: control::server::Node =
        serde_json::from_str(node).map_err(|error| format!("what node this is to be: {error}"))?;
    match control::server::serve(&node) {
        Ok(never) => match never {},
        Err(error) => Err(error.to_string()),
    }
}
