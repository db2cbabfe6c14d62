//! Nodes whose process is this program itself, one process a node.
//!
//! Owns where the program is and how its settings reach it. Which process runs where is `processes`' record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::installation::Installation;
use crate::processes::Processes;
use crate::{Command, EngineError, InstallError, Node, NodeError};

/// This program's folder and name.
pub(crate) fn own_program() -> Result<(PathBuf, PathBuf), InstallError> {
    let explicit = |path: PathBuf, why: String| InstallError::Explicit { path, why };
    let path = std::env::current_exe()
        .map_err(|error| explicit(PathBuf::from("/proc/self/exe"), error.to_string()))?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((folder.to_owned(), PathBuf::from(name))),
        _ => Err(explicit(path, "not the path of a program".to_owned())),
    }
}

/// The processes of one engine.
pub(crate) struct OwnProcesses {
    program: PathBuf,
    subcommand: &'static str,
    processes: Processes,
}

impl std::ops::Deref for OwnProcesses {
    type Target = Processes;

    fn deref(&self) -> &Processes {
        &self.processes
    }
}

impl OwnProcesses {
    /// Of this program as nodes see it, started with `subcommand`.
    pub(crate) fn new(
        installation: &Installation,
        subcommand: &'static str,
        log: &'static str,
        noun: &'static str,
    ) -> Result<OwnProcesses, EngineError> {
        let (_, name) = own_program().map_err(|error| {
            EngineError::Node(NodeError::Io {
                node: log.to_owned(),
                what: "finding this program".to_owned(),
                source: std::io::Error::other(error.to_string()),
            })
        })?;
        Ok(OwnProcesses {
            program: installation.bin.join(name),
            subcommand,
            processes: Processes::new(log, noun),
        })
    }

    /// Starts the node's process and hands it its settings.
    pub(crate) fn start(&self, node: &dyn Node, settings: &impl Serialize) -> Result<(), EngineError> {
        let settings = serde_json::to_string(settings).map_err(|error| EngineError::Answer {
            node: node.name().to_owned(),
            statement: "its settings".to_owned(),
            answer: error.to_string(),
        })?;
        let command = Command {
            program: self.program.clone(),
            arguments: vec![self.subcommand.to_owned(), settings],
            environment: BTreeMap::new(),
        };
        self.processes.start(node, &command)
    }
}
