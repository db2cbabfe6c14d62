//! A database as installed on this machine, and where one is kept that we installed ourselves.
//!
//! Owns the description, the cache directory's place and the order of versions. Finding and installing is each engine's own work.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{InstallError, System, trust};

/// How an installation was come by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The scenario named it.
    Explicit,
    /// It is on the search path.
    Path,
    /// It is where distributions put it.
    Distribution,
    /// An earlier run installed it into the cache directory.
    Cache,
    /// It has just been installed into the cache directory.
    Installed,
    /// It is part of this program.
    Itself,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Origin::Explicit => "set by `database.path`",
            Origin::Path => "on PATH",
            Origin::Distribution => "from the distribution",
            Origin::Cache => "in the cache directory",
            Origin::Itself => "part of holdfast",
            Origin::Installed => "newly installed into the cache directory",
        })
    }
}

/// A database's programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installation {
    /// The folder of its programs; within [`Installation::root`], or around it where that is one program.
    pub bin: PathBuf,
    /// Its version in its own words: `18.6`.
    pub version: String,
    /// How it was come by.
    pub origin: Origin,
    /// What `LD_LIBRARY_PATH` must be, where the programs do not find their libraries by themselves.
    pub library_path: Option<PathBuf>,
    /// The folder a node must see, or the one program; readable by the database's user.
    pub root: PathBuf,
    /// Programs by name that need not lie in [`Installation::bin`]; empty where the engine knows what lies there.
    pub programs: BTreeMap<String, PathBuf>,
    /// The system that the programs need in place of the machine's, which is what lies in [`Installation::root`];
    /// none where they are programs among others.
    pub system: Option<System>,
}

/// Something that was looked at, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Where it was.
    pub path: PathBuf,
    /// Which kind of place.
    pub origin: Origin,
    /// What it is, or why it will not do.
    pub usable: Result<Installation, String>,
}

/// The folder for what we install: `$HOLDFAST_CACHE`, else `$XDG_CACHE_HOME/holdfast`, else `~/.cache/holdfast`.
///
/// # Errors
/// [`InstallError::NoCache`] when none of the three variables is set to an absolute path; [`InstallError::Untrusted`] when
/// somebody else can write in the folder, from which programs are run.
pub fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, InstallError> {
    // A relative path would mean another folder for each working directory.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("HOLDFAST_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|path| path.join("holdfast")))
        .or_else(|| absolute("HOME").map(|path| path.join(".cache/holdfast")))
        .ok_or(InstallError::NoCache)?;
    trust::check_programs(&cache)?;
    Ok(cache)
}

/// The folders of `parent` whose names are `prefix` and a version, newest first.
pub(crate) fn newest_first(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let mut folders: Vec<(Vec<u32>, String, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(prefix)?;
            let numbers = numbers(version);
            (!numbers.is_empty()).then(|| (numbers, name, entry.path()))
        })
        .collect();
    folders.sort_by(|a, b| b.cmp(a));
    folders.into_iter().map(|(_, _, path)| path).collect()
}

/// The numbers a version begins with: `18.6.3-x86_64` has three.
pub(crate) fn numbers(version: &str) -> Vec<u32> {
    let digits =
        version.split(|letter: char| letter != '.' && !letter.is_ascii_digit()).next().unwrap_or_default();
    digits.split('.').map_while(|number| number.parse().ok()).collect()
}

/// Whether a version begins with the numbers wanted: 3.4.23 is a 3.4, and 3.45 is none.
pub(crate) fn is_of(version: &str, wanted: &str) -> bool {
    numbers(version).starts_with(&numbers(wanted))
}

/// The newest of the usable ones that are of the version wanted; of equals the first.
pub(crate) fn newest_of(found: Vec<Found>, wanted: &str) -> Option<Installation> {
    let usable = found.into_iter().filter_map(|found| found.usable.ok());
    let of_version = usable.filter(|installation| is_of(&installation.version, wanted));
    of_version.min_by_key(|installation| Reverse(numbers(&installation.version)))
}

/// Why a way of installing does not have the version wanted.
pub(crate) fn not_the_wanted(has: &str, wanted: &str) -> String {
    format!("it has {has}, not {wanted}")
}

/// The first of the candidates that will do, `examine` being what tells why one will not.
///
/// # Errors
/// With every candidate and what is wrong with it, when none will do.
pub(crate) fn first_usable(
    candidates: impl IntoIterator<Item = (PathBuf, Origin)>,
    examine: impl Fn(&Path, Origin) -> Result<Installation, String>,
    wanted: &str,
) -> Result<Installation, InstallError> {
    let mut seen = String::new();
    for (path, origin) in candidates {
        match examine(&path, origin) {
            Ok(installation) => return Ok(installation),
            Err(why) => seen.push_str(&format!("\n  {}: {why}", path.display())),
        }
    }
    Err(InstallError::NotFound { wanted: wanted.to_owned(), seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let found = cache_directory(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        });
        assert_eq!(found.ok(), expected.map(PathBuf::from));
    }

    #[test]
    fn the_cache_directory_is_the_most_specific_one_set() {
        let home = ("HOME", "/home/a");
        let xdg = ("XDG_CACHE_HOME", "/x");
        check(&[home], Some("/home/a/.cache/holdfast"));
        check(&[home, xdg], Some("/x/holdfast"));
        check(&[home, xdg, ("HOLDFAST_CACHE", "/c")], Some("/c"));
    }

    #[test]
    fn a_cache_directory_that_others_can_write_in_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).expect("permissions");
        let variable = |name: &str| (name == "HOLDFAST_CACHE").then(|| folder.path().as_os_str().to_owned());
        let refused = cache_directory(variable).expect_err("others can write").to_string();
        let told = format!(
            "the cache directory: {0} can be written to by others (mode 0777): `chmod go-w {0}`, or set HOLDFAST_CACHE to \
             another",
            folder.path().display()
        );
        assert_eq!(refused, told);
    }

    #[test]
    fn a_version_is_of_another_by_its_numbers_and_not_by_its_letters() {
        assert!(is_of("3.4.23", "3.4") && is_of("18.6", "18") && is_of("15.20 (Debian)", "15.20"));
        assert!(!is_of("3.45", "3.4") && !is_of("3.4", "3.4.1") && !is_of("15.2", "15.20"));
    }

    #[test]
    fn the_newest_of_a_version_is_taken_and_of_equals_the_first() {
        let found = |path: &str, usable: Result<&str, &str>| Found {
            path: path.into(),
            origin: Origin::Cache,
            usable: usable.map_err(str::to_owned).map(|version| Installation {
                bin: path.into(),
                version: version.to_owned(),
                origin: Origin::Cache,
                library_path: None,
                root: path.into(),
                programs: BTreeMap::new(),
                system: None,
            }),
        };
        let all = || {
            let (new, old) = (found("/new", Ok("3.5.1")), found("/old", Ok("3.4.9")));
            vec![
                old,
                found("/broken", Err("broken")),
                found("/a", Ok("3.4.23")),
                found("/b", Ok("3.4.23")),
                new,
            ]
        };
        let taken = |wanted: &str| newest_of(all(), wanted).map(|installation| installation.bin);
        assert_eq!(taken("3.4"), Some("/a".into()));
        assert_eq!(taken("3"), Some("/new".into()));
        assert_eq!(taken("3.6"), None);
    }

    #[test]
    fn a_relative_or_missing_cache_directory_is_not_used() {
        check(&[("HOLDFAST_CACHE", "c"), ("HOME", "/h")], Some("/h/.cache/holdfast"));
        check(&[("HOME", "")], None);
        check(&[], None);
    }
}
