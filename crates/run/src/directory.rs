//! The run directory: what lies where, how a fresh one is made, and `latest`.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use engine::trust;
use history::whole_file;
use platform::Folders;

/// What can go wrong with a run directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// A file or folder in it or above it.
    #[error("run directory {path}: {source}")]
    File {
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Somebody else can write where it is to be.
    #[error("run directory: {0}, or name another folder with --out")]
    Untrusted(#[from] trust::Untrusted),
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, DirectoryError> {
    result.map_err(|source| DirectoryError::File { path: path.to_owned(), source })
}

/// Where a run leaves its files: made anew, never written over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes a fresh one, `out/<scenario>/<timestamp>`, and points `out/latest` at it. Two runs that start in the
    /// same second get two directories.
    ///
    /// # Errors
    /// When a folder cannot be made, or somebody else can write in one above it.
    pub fn make(out: &Path, scenario: &str, timestamp: &str) -> Result<RunDirectory, DirectoryError> {
        let parent = out.join(scenario);
        trust::make_folder(&parent)?;
        let mut number = 1;
        let path = loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = parent.join(format!("{timestamp}{suffix}"));
            match fs::DirBuilder::new().mode(0o755).create(&path) {
                Ok(()) => break at(&path, fs::canonicalize(&path))?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return at(&path, Err(error)),
            }
        };
        point_latest(out, &path)?;
        RunDirectory { path }.with_logs()
    }

    /// Makes a fresh one at this path, with the folders above it. Nothing points at it.
    ///
    /// # Errors
    /// When it is there already or cannot be made, or somebody else can write in the folder above it.
    pub fn make_at(path: &Path) -> Result<RunDirectory, DirectoryError> {
        if let Some(parent) = path.parent() {
            at(parent, fs::DirBuilder::new().recursive(true).mode(0o755).create(parent))?;
        }
        at(path, fs::DirBuilder::new().mode(0o755).create(path))?;
        trust::check(path)?;
        RunDirectory { path: at(path, fs::canonicalize(path))? }.with_logs()
    }

    /// Makes the folder of logs. An ordinary user's nodes run as that user, and could make a program out of a log that they
    /// have open, which whoever can reach it would run as that user: then nobody else can.
    fn with_logs(self) -> Result<RunDirectory, DirectoryError> {
        let mode = if nix::unistd::geteuid().is_root() { 0o755 } else { 0o700 };
        let path = self.path.join("logs");
        at(&path, fs::DirBuilder::new().mode(mode).create(&path))?;
        Ok(self)
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

    /// Where the folders of nodes lie.
    #[must_use]
    pub fn node_folders(&self) -> Folders {
        Folders { volumes: lab::janitor::volumes_path(&self.path), logs: self.path.join("logs") }
    }

    /// The folder of the lab's own logs.
    #[must_use]
    pub(crate) fn lab_logs(&self) -> PathBuf {
        self.path.join("logs").join("lab")
    }

    /// Makes the folder of the lab's own logs, if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make_lab_logs(&self) -> Result<(), DirectoryError> {
        let path = self.lab_logs();
        at(&path, fs::create_dir_all(&path))
    }

    /// What of a lab in it was not removed, in words.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let volumes = lab::janitor::volumes_path(&self.path);
        let left = || format!("the nodes' volumes could not be removed: {}", volumes.display());
        volumes.exists().then(left).into_iter().collect()
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

/// Swaps the link in one step, so that a run beside this one never finds it missing. A run that is killed on the way leaves
/// what is unfinished in its own directory.
fn point_latest(out: &Path, path: &Path) -> Result<(), DirectoryError> {
    let latest = out.join("latest");
    let unfinished = path.join(".latest");
    at(&unfinished, std::os::unix::fs::symlink(path, &unfinished))?;
    at(&latest, fs::rename(&unfinished, &latest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_the_same_second_get_two_directories_and_latest_is_the_second() {
        let out = tempfile::tempdir().expect("temporary folder");
        assert!(matches!(RunDirectory::make_at(out.path()), Err(DirectoryError::File { .. })));
        let first = RunDirectory::make(out.path(), "a", "t").expect("first");
        let second = RunDirectory::make(out.path(), "a", "t").expect("second");
        assert_ne!(first, second);
        let latest = fs::canonicalize(out.path().join("latest")).expect("latest");
        assert_eq!(latest, second.path());
    }

    #[test]
    fn a_folder_that_others_can_write_in_is_refused_with_what_to_do() {
        use std::os::unix::fs::PermissionsExt;
        let out = tempfile::tempdir().expect("temporary folder");
        fs::set_permissions(out.path(), PermissionsExt::from_mode(0o777)).expect("permissions");
        let refused = RunDirectory::make(out.path(), "a", "t").expect_err("others can write").to_string();
        let told = format!(
            "run directory: {0} can be written to by others (mode 0777): `chmod go-w {0}`, or name another folder with --out",
            out.path().display()
        );
        assert_eq!(refused, told);
        assert_eq!(fs::read_dir(out.path().join("a")).expect("a folder").count(), 0);
    }
}
