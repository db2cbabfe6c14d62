//! The folders of nodes outside: their volumes and their logs.

use std::fs;
use std::io;
use std::path::PathBuf;

/// A folder could not be made.
#[derive(Debug, thiserror::Error)]
#[error("run directory {path}: {source}")]
pub struct FolderError {
    path: PathBuf,
    /// What the operating system answered.
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

/// What is appended to a node's name where the snapshot of its volume lies.
const SNAPSHOT: &str = "snapshot";

impl Folders {
    /// The folder of a snapshot of a node's volume, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn snapshot_of(&self, node: &str) -> Result<PathBuf, FolderError> {
        self.volume_of(&format!("{node}-{SNAPSHOT}"))
    }

    /// Removes whatever lies beside the volumes of these nodes and their snapshots: what an earlier run in these folders laid
    /// there for itself.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn leave_volumes_and_snapshots(&self, nodes: &[String]) -> Result<(), FolderError> {
        let failed = |source| FolderError { path: self.volumes.clone(), source };
        for entry in fs::read_dir(&self.volumes).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let of = name.strip_suffix(SNAPSHOT).and_then(|of| of.strip_suffix('-')).unwrap_or(&name);
            if !nodes.iter().any(|node| node == of) {
                fs::remove_dir_all(entry.path())
                    .map_err(|source| FolderError { path: entry.path(), source })?;
            }
        }
        Ok(())
    }
}

fn made(path: PathBuf) -> Result<PathBuf, FolderError> {
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(FolderError { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_laid_beside_its_volumes_goes_and_volumes_and_their_snapshots_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let folders = Folders { volumes: folder.path().join("volumes"), logs: folder.path().join("logs") };
        for name in ["n1", "n1-making", "probes", "n12"] {
            fs::write(folders.volume_of(name).expect("made").join("1"), "x").expect("written");
        }
        folders.snapshot_of("n1").expect("made");
        folders.leave_volumes_and_snapshots(&["n1".to_owned()]).expect("removed");
        let left = fs::read_dir(&folders.volumes).expect("a folder");
        let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
        left.sort();
        assert_eq!(left, ["n1", "n1-snapshot"]);
    }
}
