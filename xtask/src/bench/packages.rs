//! Programs and sources that a bench needs and the machine lacks: Debian's packages, downloaded by apt and unpacked into
//! a folder of the bench's own, without root.
//!
//! Owns the commands. The machine's own package state is read, never changed; what is unpacked goes with the bench.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A folder with unpacked packages.
#[derive(Debug)]
pub struct Unpacked {
    /// Its root: `usr/bin` and all below.
    pub root: PathBuf,
}

impl Unpacked {
    /// Every folder with a library in it, in the form of `LD_LIBRARY_PATH`.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn library_path(&self) -> anyhow::Result<OsString> {
        let mut folders = BTreeSet::new();
        gather_libraries(&self.root, &mut folders)?;
        Ok(std::env::join_paths(folders)?)
    }
}

fn gather_libraries(folder: &Path, found: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            gather_libraries(&entry.path(), found)?;
        } else if entry.file_name().to_string_lossy().contains(".so") {
            found.insert(folder.to_owned());
        }
    }
    Ok(())
}

/// Downloads packages into a new folder `into` and unpacks them there; with what they depend on and this machine lacks,
/// if `with_dependencies`. With the machine's own lists of packages, or where those do not do, with new ones.
///
/// # Errors
/// When apt cannot get them.
pub fn unpack(packages: &[&str], with_dependencies: bool, into: &Path) -> anyhow::Result<Unpacked> {
    let attempt = |apt: &Apt| apt.unpack(packages, with_dependencies);
    let with_machine_lists = Apt::new(into, false).and_then(|apt| attempt(&apt));
    with_machine_lists.or_else(|first| {
        let apt = Apt::new(into, true)?;
        run(apt.command("apt-get").args(["update", "-qq"])).with_context(|| format!("after: {first:#}"))?;
        attempt(&apt)
    })
}

/// apt with its archives, and its lists if need be, in a folder of ours.
struct Apt {
    folder: PathBuf,
    configuration: PathBuf,
}

impl Apt {
    fn new(folder: &Path, own_lists: bool) -> anyhow::Result<Apt> {
        for part in ["archives", "root", "cache/archives/partial", "state/lists/partial"] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("make {}", folder.display()))?;
        }
        // As root apt would hand the download to a user that may not write here; its locks guard folders that are ours
        // alone; the machine's own hooks tidy folders that are not ours.
        let mut text = format!(
            "Dir::Cache \"{}\";\nDebug::NoLocking \"true\";\nAPT::Sandbox::User \"\";\n\
             Acquire::Retries \"2\";\nAcquire::http::Timeout \"20\";\nAcquire::https::Timeout \"20\";\n\
             #clear APT::Update::Pre-Invoke;\n#clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n",
            folder.join("cache").display()
        );
        if own_lists {
            text += &format!(
                "Dir::State \"{}\";\nDir::State::status \"/var/lib/dpkg/status\";\n",
                folder.join("state").display()
            );
        }
        let configuration = folder.join("apt.conf");
        fs::write(&configuration, text).with_context(|| format!("write {}", configuration.display()))?;
        Ok(Apt { folder: folder.to_owned(), configuration })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(&self.configuration).current_dir(self.folder.join("archives"));
        command
    }

    fn unpack(&self, packages: &[&str], with_dependencies: bool) -> anyhow::Result<Unpacked> {
        let mut wanted: Vec<String> = packages.iter().map(|&package| package.to_owned()).collect();
        if with_dependencies {
            let simulated = ["install", "--simulate", "--no-install-recommends", "-qq"];
            wanted.extend(planned(&run(self.command("apt-get").args(simulated).args(packages))?));
            wanted.sort();
            wanted.dedup();
        }
        run(self.command("apt-get").args(["download", "-qq"]).args(&wanted))?;
        let root = self.folder.join("root");
        for entry in fs::read_dir(self.folder.join("archives"))? {
            let archive = entry?.path();
            if archive.extension() == Some(OsStr::new("deb")) {
                run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&root))?;
                fs::remove_file(&archive)?;
            }
        }
        Ok(Unpacked { root })
    }
}

/// What `apt-get --simulate` would install.
fn planned(plan: &str) -> Vec<String> {
    let lines = plan.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Runs a command to its end. Returns what it said.
///
/// # Errors
/// When it cannot be started, or fails; with what it said to that.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program}: {}: {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install_is_read_from_its_plan() {
        let plan = "Inst libaio1 (0.3 Debian:12 [amd64])\nInst fio [3.1] (3.33)\nConf libaio1 (0.3)\n";
        assert_eq!(planned(plan), ["libaio1", "fio"]);
    }
}
