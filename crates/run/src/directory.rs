//! The run directory: what lies where, how a fresh one is made, and `latest`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use history::whole_file;

/// What can go wrong with a run directory.
#[derive(Debug, thiserror::Error)]
#[error("run directory {path}: {source}")]
pub struct DirectoryError {
    /// The path.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, DirectoryError> {
    result.map_err(|source| DirectoryError { path: path.to_owned(), source })
}

/// A run directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes a fresh one, `out/<scenario>/<timestamp>`, and points `out/latest` at it. Two runs that start in the
    /// same second get two directories.
    ///
    /// # Errors
    /// When a folder cannot be made.
    pub fn make(out: &Path, scenario: &str, timestamp: &str) -> Result<RunDirectory, DirectoryError> {
        let parent = out.join(scenario);
        at(&parent, fs::create_dir_all(&parent))?;
        let mut number = 1;
        let path = loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = parent.join(format!("{timestamp}{suffix}"));
            match fs::create_dir(&path) {
                Ok(()) => break at(&path, fs::canonicalize(&path))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return at(&path, Err(error)),
            }
        };
        point_latest(out, &path)?;
        Ok(RunDirectory { path })
    }

    /// Makes a fresh one at this path, with the folders above it. Nothing points at it.
    ///
    /// # Errors
    /// When it is there already or cannot be made.
    pub fn make_at(path: &Path) -> Result<RunDirectory, DirectoryError> {
        if let Some(parent) = path.parent() {
            at(parent, fs::create_dir_all(parent))?;
        }
        at(path, fs::create_dir(path))?;
        Ok(RunDirectory { path: at(path, fs::canonicalize(path))? })
    }

    /// An existing one.
    #[must_use]
    pub fn at(path: PathBuf) -> RunDirectory {
        RunDirectory { path }
    }

    /// The directory itself, absolute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of a node's logs, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn logs(&self, node: &str) -> Result<PathBuf, DirectoryError> {
        let path = self.path.join("logs").join(node);
        at(&path, fs::create_dir_all(&path))?;
        Ok(path)
    }

    /// The folder of a node's volume, made if need be. Removed with the lab.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn volume(&self, node: &str) -> Result<PathBuf, DirectoryError> {
        let path = lab::janitor::volumes_path(&self.path).join(node);
        at(&path, fs::create_dir_all(&path))?;
        Ok(path)
    }

    /// Writes a file whole and durable, so that nobody ever reads half of it, nor the next boot of the machine.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> Result<(), DirectoryError> {
        let path = self.file(name);
        at(&path, whole_file::write(&path, content.as_bytes()))
    }
}

/// Swaps the link in one step, so that a run beside this one never finds it missing.
fn point_latest(out: &Path, path: &Path) -> Result<(), DirectoryError> {
    let latest = out.join("latest");
    let unfinished = out.join(format!(".latest.{}", std::process::id()));
    let _ = fs::remove_file(&unfinished);
    at(&unfinished, std::os::unix::fs::symlink(path, &unfinished))?;
    at(&latest, fs::rename(&unfinished, &latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_the_same_second_get_two_directories_and_latest_is_the_second() {
        let out = tempfile::tempdir().expect("temporary folder");
        let first = RunDirectory::make(out.path(), "a", "t").expect("first");
        let second = RunDirectory::make(out.path(), "a", "t").expect("second");
        assert_ne!(first, second);
        let latest = fs::canonicalize(out.path().join("latest")).expect("latest");
        assert_eq!(latest, second.path());
    }
}
