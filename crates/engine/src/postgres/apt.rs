//! The second way of installing: Debian's packages, downloaded by apt with folders of our own and unpacked beside
//! them, without root; and what to tell a person where neither way works.
//!
//! Owns the apt commands and the remedies by distribution. The machine's own package state is read, never changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::find::programs_in_cached;
use super::install::run;

/// Libraries the programs we run never load: the just-in-time compiler's, tens of megabytes of them.
const NEVER_NEEDED: &[&str] = &["libllvm", "libclang", "libz3"];

/// Downloads the newest server apt knows of, and those of its libraries this machine lacks, and unpacks them.
pub(super) fn install(staging: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let apt = Apt::new(staging)?;
    progress("asking apt for its lists of packages");
    run(apt.command("apt-get").arg("update").arg("-qq"))?;
    let listing = run(apt.command("apt-cache").args(["search", "--names-only", "^postgresql-[0-9]+$"]))?;
    let major = newest_server(&listing).ok_or("apt knows of no PostgreSQL server")?;
    let server = format!("postgresql-{major}");
    let tree = staging.join("tree");
    progress(&format!("downloading {server} with apt"));
    apt.fetch(&[server.clone(), format!("postgresql-client-{major}")], &tree)?;
    if lacks_libraries(&tree)? {
        let plan = run(apt
            .command("apt-get")
            .args(["install", "--simulate", "--no-install-recommends", "-qq"])
            .arg(&server))?;
        let libraries = libraries_planned(&plan);
        progress(&format!("downloading {} libraries with apt", libraries.len()));
        apt.fetch(&libraries, &tree)?;
    }
    Ok(tree)
}

/// apt with its state, lists and archives in folders of ours.
struct Apt {
    configuration: PathBuf,
    archives: PathBuf,
    scratch: PathBuf,
}

impl Apt {
    fn new(staging: &Path) -> Result<Self, String> {
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

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(&self.configuration).current_dir(&self.archives).env("TMPDIR", &self.scratch);
        command
    }

    /// Downloads packages and unpacks them into the tree. apt holds each against the archive's signed checksums.
    fn fetch(&self, packages: &[String], tree: &Path) -> Result<(), String> {
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

/// Whether any program we run misses a library.
fn lacks_libraries(tree: &Path) -> Result<bool, String> {
    let bin = programs_in_cached(tree).ok_or("no server was in what was downloaded")?;
    for program in ["postgres", "initdb", "pg_basebackup", "pg_rewind", "pg_controldata"] {
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

/// The libraries among the packages that `apt-get --simulate` would install.
fn libraries_planned(plan: &str) -> Vec<String> {
    let planned: BTreeSet<&str> = plan
        .lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next())
        .filter(|name| name.starts_with("lib") && !name.ends_with("-perl"))
        .filter(|name| !NEVER_NEEDED.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    planned.into_iter().map(ToOwned::to_owned).collect()
}

/// The names this distribution goes by, its own first, as in its `os-release`.
pub(super) fn distribution() -> Vec<String> {
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

/// What a person can do instead, by distribution.
pub(super) fn remedy(distribution: &[String]) -> String {
    let command = distribution.iter().find_map(|name| match name.as_str() {
        "debian" | "ubuntu" => Some("sudo apt-get install postgresql"),
        "fedora" | "rhel" | "centos" => Some("sudo dnf install postgresql-server"),
        "suse" | "opensuse" | "sles" => Some("sudo zypper install postgresql-server"),
        "arch" => Some("sudo pacman -S postgresql"),
        "alpine" => Some("sudo apk add postgresql"),
        _ => None,
    });
    let otherwise =
        "or name the `bin` folder of a PostgreSQL 13 or newer in the scenario (`database: { path: ... }`)";
    match command {
        Some(command) => format!("install it yourself: {command}\n{otherwise}"),
        None => format!("install PostgreSQL 13 or newer with your system's packages,\n{otherwise}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_server_is_the_greatest_number() {
        let listing = "postgresql-9 - old\npostgresql-15 - x\npostgresql-13 - y\npostgresql-contrib - z\n";
        assert_eq!(newest_server(listing), Some(15));
        assert_eq!(newest_server(""), None);
    }

    #[test]
    fn only_libraries_that_our_programs_load_are_planned() {
        let plan = "Inst libllvm14 (1)\nInst libpq5 (15 Debian [amd64])\nInst ssl-cert (1)\nInst libjson-perl (4)\n\
                    Inst libxml2 [1] (2)\nConf libpq5 (15)\nInst postgresql-15 (15)\n";
        assert_eq!(libraries_planned(plan), ["libpq5", "libxml2"]);
    }

    fn check(os_release: &str, expected: &str) {
        let remedy = remedy(&names_in(os_release));
        assert!(remedy.contains(expected) && remedy.contains("database: { path: ... }"), "{remedy}");
    }

    #[test]
    fn the_remedy_is_this_distributions() {
        check("NAME=x\nID=debian\n", "sudo apt-get install postgresql");
        check("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "sudo dnf install postgresql-server");
        check("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "sudo apt-get install postgresql");
        check("ID=void\n", "with your system's packages");
        check("", "with your system's packages");
    }
}
