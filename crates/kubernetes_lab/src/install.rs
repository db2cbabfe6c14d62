//! The programs of a cluster, brought into the cache directory once: built, unpacked, and proven to be there.
//!
//! Owns that a half-made installation is never seen. What the pieces are, `pieces` says; how Go builds, `go`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use engine::programs;
use engine::trust::{self, Untrusted};

use crate::go::{self, GoError};
use crate::image::{self, ImageFile, Shell};
use crate::pieces::{self, ALL, KUBERNETES, NODE_AGENT, Programs, SHELL, UNPACKED};

/// Work under way. Kept after a failure, so that the next attempt need not download everything again.
const STAGING: &str = ".staging-kubernetes";

/// Why a cluster's programs are not there.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Somebody else can write in the cache directory.
    #[error("the cache directory: {0}, or set HOLDFAST_CACHE to another")]
    Untrusted(#[from] Untrusted),
    /// A file or folder of the cache.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// Kubernetes could not be built.
    #[error(transparent)]
    Go(#[from] GoError),
    /// Debian's packages could not be had.
    #[error(
        "packages for Kubernetes nodes ({}): {why}; they are taken from the archive of Debian 12 or of a distribution made from \
         it, by apt-get and dpkg-deb",
        pieces::packages().join(", ")
    )]
    Packages {
        /// The last words of what was run.
        why: String,
    },
    /// The images could not be made.
    #[error("images of pods: {why}")]
    Images {
        /// Why not.
        why: String,
    },
    /// A program is missing or is none.
    #[error("{path}, a piece of Kubernetes, will not do: {why}")]
    Piece {
        /// The program.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

fn at<T>(path: &Path, result: io::Result<T>) -> Result<T, InstallError> {
    result.map_err(|source| InstallError::File { path: path.to_owned(), source })
}

/// What an earlier call has installed into this cache, if it is whole.
#[must_use]
pub fn installed(cache: &Path) -> Option<Programs> {
    let programs = Programs::at(target(cache));
    check(&programs).is_ok().then_some(programs)
}

/// Installs all of it into this cache; returns at once when it is there already.
///
/// Two at once: the second waits for the first and takes what it made.
///
/// # Errors
/// What is missing, and what to do where that is known.
pub fn install(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Programs, InstallError> {
    trust::make_folder(cache)?;
    let lock_path = cache.join(".lock-kubernetes");
    let lock = at(&lock_path, File::options().create(true).append(true).open(&lock_path))?;
    at(&lock_path, lock.lock())?;
    if let Some(programs) = installed(cache) {
        return Ok(programs);
    }
    let staging = cache.join(STAGING);
    let tree = staging.join("tree");
    remove(&tree)?;
    at(&tree, fs::create_dir_all(&tree))?;
    let made = Programs::at(&tree);
    // The short part first: what is missing there is then known before minutes of building.
    unpack(&staging, &tree, progress)?;
    let images = made.images();
    at(&images, fs::write(&images, make_images(&made)?))?;
    go::build(&staging, &made.built(), progress)?;
    at(&tree, programs::readable_by_all(&tree))?;
    check(&made)?;
    let target = target(cache);
    // A folder of that name is there only if it was found unusable.
    remove(&target)?;
    at(&target, fs::rename(&tree, &target))?;
    remove(&staging)?;
    progress(&format!("Kubernetes {KUBERNETES} is in {}", target.display()));
    Ok(Programs::at(target))
}

fn target(cache: &Path) -> PathBuf {
    cache.join(format!("kubernetes-{KUBERNETES}-{}", std::env::consts::ARCH))
}

fn remove(folder: &Path) -> Result<(), InstallError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => at(folder, Err(error)),
        _ => Ok(()),
    }
}

fn unpack(staging: &Path, tree: &Path, progress: &mut dyn FnMut(&str)) -> Result<(), InstallError> {
    let (apt, unpacked) = (staging.join("apt"), tree.join(UNPACKED));
    // What a broken attempt left there may be half a package.
    remove(&apt)?;
    at(&apt, fs::create_dir_all(&apt))?;
    programs::unpack_debian(&pieces::packages(), &apt, &unpacked, progress)
        .map_err(|why| InstallError::Packages { why })
}

fn make_images(made: &Programs) -> Result<Vec<u8>, InstallError> {
    image::archive(&shell(made)?).map_err(|error| InstallError::Images { why: error.to_string() })
}

/// The archive of an image of this name, with a shell and further programs: each a file of this machine, with its path in the image,
/// relative to the root.
///
/// # Errors
/// When a file cannot be read, or a path is too long.
pub fn make_image(made: &Programs, name: &str, files: &[(PathBuf, String)]) -> Result<Vec<u8>, InstallError> {
    let read = |(outside, path): &(PathBuf, String)| {
        let content = at(outside, fs::read(outside))?;
        Ok(ImageFile { path: path.clone(), content })
    };
    let files = files.iter().map(read).collect::<Result<Vec<_>, InstallError>>()?;
    let archive = image::archive_with(&shell(made)?, name, &files);
    archive.map_err(|error| InstallError::Images { why: error.to_string() })
}

fn shell(made: &Programs) -> Result<Shell, InstallError> {
    let shell = made.of(&SHELL);
    let content = at(&shell, fs::read(&shell))?;
    let commands = programs::run(Command::new(&shell).arg("--list"));
    let commands = commands.map_err(|why| InstallError::Images { why })?;
    Ok(Shell { content, commands: commands.split_whitespace().map(str::to_owned).collect() })
}

/// Whether every piece is there, and the one whose version matters is of the right one.
fn check(programs: &Programs) -> Result<(), InstallError> {
    for path in ALL.iter().map(|piece| programs.of(piece)).chain([programs.images()]) {
        at(&path, fs::metadata(&path))?;
    }
    let agent = programs.of(&NODE_AGENT);
    let fail = |why: String| InstallError::Piece { path: agent.clone(), why };
    let said = programs::run(Command::new(&agent).arg("--version")).map_err(fail)?;
    if said.trim() == format!("Kubernetes v{KUBERNETES}") {
        return Ok(());
    }
    Err(fail(format!("it says that it is `{}`", said.trim())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn planted(cache: &Path, version: &str) -> Programs {
        let programs = Programs::at(target(cache));
        for path in ALL.iter().map(|piece| programs.of(piece)).chain([programs.images()]) {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, format!("#!/bin/sh\necho Kubernetes {version}\n")).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        }
        programs
    }

    #[test]
    fn what_is_installed_is_found_when_it_is_whole_and_of_the_right_version() {
        let cache = tempfile::tempdir().expect("a folder");
        assert_eq!(installed(cache.path()), None);
        let programs = planted(cache.path(), "v1.35.4");
        assert_eq!(installed(cache.path()), Some(programs.clone()));
        assert_eq!(install(cache.path(), &mut |_| {}).ok(), Some(programs.clone()));
        fs::remove_file(programs.of(&pieces::BRIDGE)).expect("removed");
        assert_eq!(installed(cache.path()), None);
    }

    #[test]
    fn another_version_is_not_taken_and_what_it_says_is_told() {
        let cache = tempfile::tempdir().expect("a folder");
        let programs = planted(cache.path(), "v1.36.0");
        let why = check(&programs).expect_err("another version").to_string();
        assert!(why.ends_with("will not do: it says that it is `Kubernetes v1.36.0`"), "{why}");
    }
}
