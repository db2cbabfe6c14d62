//! The folders of nodes outside: their volumes and their logs.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A folder could not be made.
#[derive(Debug, thiserror::Error)]
#[error("run directory {path}: {source}")]
pub struct FolderError {
    /// Its path.
    path: PathBuf,
    /// Why.
    source: io::Error,
}

/// Where the folders of nodes lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The folder of volumes, removed with the lab.
    pub volumes: PathBuf,
    /// The folder of logs.
    pub logs: PathBuf,
}

impl Folders {
    /// The folder of a node's logs, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn logs_of(&self, node: &str) -> Result<PathBuf, FolderError> {
        made(self.logs.join(node))
    }

    /// The folder of a node's volume, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn volume_of(&self, node: &str) -> Result<PathBuf, FolderError> {
        made(self.volumes.join(node))
    }
}

fn made(path: PathBuf) -> Result<PathBuf, FolderError> {
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(FolderError { path, source }),
    }
}
