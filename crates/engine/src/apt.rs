//! Debian's packages, downloaded by apt with folders of our own and unpacked beside them, without root; and what to tell a
//! person where nothing could be installed.
//!
//! Owns the apt commands and the remedies by distribution. The machine's own package state is read, never changed. Which
//! packages are fetched, the engines say.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::installation::{is_of, not_the_wanted, numbers};
use crate::run_to_end::run;

/// Libraries that no program we run loads: the just-in-time compiler's, tens of megabytes of them.
pub(crate) const NEVER_NEEDED: &[&str] = &["libllvm", "libclang", "libz3"];

/// apt with its state, lists and archives in folders of ours.
pub(crate) struct Apt {
    configuration: PathBuf,
    archives: PathBuf,
    scratch: PathBuf,
}

impl Apt {
    /// With folders below `staging`.
    pub(crate) fn new(staging: &Path) -> Result<Self, String> {
        let folder = |name: &str| {
            let path = staging.join(name);
            std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok::<_, String>(path)
        };
        let (state, cache, archives) = (folder("state")?, folder("cache")?, folder("archives")?);
        folder("state/lists/partial")?;
        folder("cache/archives/partial")?;
        let configuration = staging.join("apt.conf");
        std::fs::write(&configuration, apt_configuration(&state, &cache))
            .map_err(|error| format!("{}: {error}", configuration.display()))?;
        Ok(Self { configuration, archives, scratch: folder("scratch")? })
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(&self.configuration).current_dir(&self.archives).env("TMPDIR", &self.scratch);
        command
    }

    /// Brings the lists of packages up to date, in our folders.
    pub(crate) fn update(&self, progress: &mut dyn FnMut(&str)) -> Result<(), String> {
        progress("asking apt for its lists of packages");
        run(self.command("apt-get").arg("update").arg("-qq")).map(drop)
    }

    /// The packages as apt is asked for them: where a version is wanted, the newest of it that the archives have.
    pub(crate) fn named(&self, packages: &[String], version: Option<&str>) -> Result<Vec<String>, String> {
        let Some(wanted) = version else { return Ok(packages.to_vec()) };
        let named = |package: &String| {
            let listing = run(self.command("apt-cache").arg("madison").arg(package))?;
            newest_named(package, &versions_in(&listing), wanted)
        };
        packages.iter().map(named).collect()
    }

    /// Everything that has to be installed for these packages and is not there yet, themselves among it.
    pub(crate) fn planned(&self, packages: &[String]) -> Result<Vec<String>, String> {
        let plan = run(self
            .command("apt-get")
            .args(["install", "--simulate", "--no-install-recommends", "-qq"])
            .args(packages))?;
        Ok(planned_in(&plan))
    }

    /// Downloads packages and unpacks them into the tree. apt holds each against the archive's signed checksums.
    pub(crate) fn fetch(&self, packages: &[String], tree: &Path) -> Result<(), String> {
        if packages.is_empty() {
            return Ok(());
        }
        run(self.command("apt-get").args(["download", "-qq"]).args(packages))?;
        std::fs::create_dir_all(tree).map_err(|error| format!("{}: {error}", tree.display()))?;
        let entries = std::fs::read_dir(&self.archives)
            .map_err(|error| format!("{}: {error}", self.archives.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "deb") {
                run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(tree))?;
                std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
        Ok(())
    }
}

/// The packages that `apt-get --simulate` would install.
fn planned_in(plan: &str) -> Vec<String> {
    let planned = plan.lines().filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next());
    planned.map(ToOwned::to_owned).collect()
}

/// The versions in `apt-cache madison`'s lines: `etcd-server | 3.4.23-4+b4 | http://...`.
fn versions_in(listing: &str) -> Vec<&str> {
    listing.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect()
}

/// A package with the newest of its versions that begins with the numbers wanted. An epoch (`1:`) is none of them.
fn newest_named(package: &str, versions: &[&str], wanted: &str) -> Result<String, String> {
    let upstream = |version: &str| version.split_once(':').map_or(version, |(_, rest)| rest).to_owned();
    let of_version = versions.iter().filter(|version| is_of(&upstream(version), wanted));
    let newest = of_version.min_by_key(|version| Reverse(numbers(&upstream(version))));
    match newest {
        Some(version) => Ok(format!("{package}={version}")),
        None if versions.is_empty() => Err(format!("apt knows of no package {package}")),
        None => Err(not_the_wanted(&versions.join(", "), wanted)),
    }
}

/// What is ours of apt's configuration; proxies, sources and keys stay the machine's.
fn apt_configuration(state: &Path, cache: &Path) -> String {
    // Locks guard folders that are ours alone, and another user's could not be taken. As root apt would hand the
    // download to a user that may not write into our folders. The machine's own hooks tidy folders that are not ours.
    format!(
        "Dir::State \"{}\";\nDir::Cache \"{}\";\nDir::State::status \"/var/lib/dpkg/status\";\n\
         Debug::NoLocking \"true\";\nAPT::Sandbox::User \"\";\n\
         Acquire::Retries \"2\";\nAcquire::http::Timeout \"20\";\nAcquire::https::Timeout \"20\";\n\
         #clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n",
        state.display(),
        cache.display()
    )
}

/// The names this distribution goes by, its own first, as in its `os-release`.
pub(crate) fn distribution() -> Vec<String> {
    let text =
        ["/etc/os-release", "/usr/lib/os-release"].iter().find_map(|path| std::fs::read_to_string(path).ok());
    names_in(&text.unwrap_or_default())
}

fn names_in(os_release: &str) -> Vec<String> {
    ["ID=", "ID_LIKE="]
        .iter()
        .filter_map(|key| os_release.lines().find_map(|line| line.strip_prefix(key)))
        .flat_map(|value| value.trim_matches(['"', '\'']).split_whitespace().map(ToOwned::to_owned))
        .collect()
}

/// What the distributions call a database, for the remedies.
pub(crate) struct Names<'a> {
    /// The database and the versions that will do.
    pub(crate) wanted: &'a str,
    /// The command that installs it, by the distribution's name in its `os-release`.
    pub(crate) by_distribution: &'a [(&'a str, &'a str)],
    /// What to do instead of that.
    pub(crate) otherwise: &'a str,
}

/// What a person can do instead, by distribution.
pub(crate) fn remedy(names: &Names<'_>, distribution: &[String]) -> String {
    let command = distribution
        .iter()
        .find_map(|name| names.by_distribution.iter().find(|(known, _)| known == name))
        .map(|(_, command)| *command);
    match command {
        Some(command) => format!("install it yourself: {command}\n{}", names.otherwise),
        None => format!("install {} with your system's packages,\n{}", names.wanted, names.otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_installed_is_read_from_apt_s_plan() {
        let plan = "Inst libpq5 (15 Debian [amd64])\nInst libxml2 [1] (2)\nConf libpq5 (15)\nInst postgresql-15 (15)\n";
        assert_eq!(planned_in(plan), ["libpq5", "libxml2", "postgresql-15"]);
    }

    #[test]
    fn the_newest_package_of_a_version_is_named_with_it() {
        let listing = "postgresql-15 | 15.20-0+deb12u1 | http://a bookworm-security/main amd64 Packages\n\
                       postgresql-15 | 15.18-0+deb12u1 | http://a bookworm/main amd64 Packages\n";
        let versions = versions_in(listing);
        let named = |wanted: &str| newest_named("postgresql-15", &versions, wanted);
        assert_eq!(named("15"), Ok("postgresql-15=15.20-0+deb12u1".to_owned()));
        assert_eq!(named("15.18"), Ok("postgresql-15=15.18-0+deb12u1".to_owned()));
        assert_eq!(named("15.2"), Err("it has 15.20-0+deb12u1, 15.18-0+deb12u1, not 15.2".to_owned()));
        assert_eq!(newest_named("redis", &["5:7.0.15-1"], "7.0"), Ok("redis=5:7.0.15-1".to_owned()));
        assert_eq!(newest_named("x", &[], "1"), Err("apt knows of no package x".to_owned()));
    }

    #[test]
    fn the_remedy_is_this_distribution_s_own_name_first() {
        let known = &[("debian", "apt-get install x"), ("rhel", "dnf install x")];
        let names = Names { wanted: "X 3", by_distribution: known, otherwise: "or build it" };
        let check = |os_release: &str, expected: &str| {
            assert_eq!(remedy(&names, &names_in(os_release)), expected, "{os_release}");
        };
        check("NAME=x\nID=debian\n", "install it yourself: apt-get install x\nor build it");
        check("ID=\"rocky\"\nID_LIKE=\"rhel centos\"\n", "install it yourself: dnf install x\nor build it");
        let unknown = "install X 3 with your system's packages,\nor build it";
        check("ID=void\n", unknown);
        check("", unknown);
    }
}
