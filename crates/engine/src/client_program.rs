//! Programs that speak for clients: what starts them, and how their drivers get into the cache directory.
//!
//! Owns the programs that ship (`clients/`), compiled in, and folders of drivers in the cache, each named by what is in it: a
//! folder that is there is whole. What is said to a program is the crate `client`'s.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use capabilities::file::{ClientProgram, DriverFiles, Scope, Speaker};

use crate::checksum::Checksum;
use crate::maven::{LIBRARY, with_maven};
use crate::package::{readable_by_all, with_requirements};
use crate::run_to_end::run;
use crate::{InstallError, Installation, trust};

/// The text of the program for Python's drivers.
const DBAPI: &str = include_str!("../../../clients/dbapi/client.py");
/// The text of the program for MongoDB.
const MONGO: &str = include_str!("../../../clients/mongo/client.py");
/// The texts of the program for JDBC drivers, by the names of their files, and its main class.
const JDBC: [(&str, &str); 2] = [
    ("Client.java", include_str!("../../../clients/jdbc/Client.java")),
    ("Json.java", include_str!("../../../clients/jdbc/Json.java")),
];
const JDBC_CLASS: &str = "Client";
/// A small heap, one collector thread and no long compilation: it shares the machine with the database.
const JDBC_FLAGS: [&str; 5] =
    ["-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"];
/// Where programs of the machine are that every place of a lab sees.
const MACHINE_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];
/// What folders of drivers begin with.
const PREFIX: &str = "driver-";
/// Unfinished ones; they are made under the lock, so that any that is found is left over.
const STAGING: &str = ".staging-driver";

/// What starts a client program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCommand {
    /// Its name in messages.
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// What it has in its environment.
    pub environment: BTreeMap<String, String>,
}

/// What a client program is told of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTarget {
    pub url: String,
    /// What else the driver is given.
    pub options: BTreeMap<String, String>,
    /// Statements that are run before a load's tables are made, if the node is the first.
    pub prepare: Vec<String>,
}

/// What starts a program that finds what was installed for it in `folder`.
#[must_use]
pub fn command(
    program: &ClientProgram,
    folder: &str,
    installation: &Installation,
    machine: &Scope,
    environment: BTreeMap<String, String>,
) -> ClientCommand {
    let (name, program, arguments) = match &program.speaker {
        Speaker::Dbapi => in_python("dbapi", DBAPI),
        Speaker::Mongo => in_python("mongo", MONGO),
        Speaker::Jdbc { class_path } => {
            let parts = [folder.to_owned(), format!("{folder}/*")].into_iter();
            let parts: Vec<String> =
                parts.chain(class_path.iter().map(|part| part.filled(machine))).collect();
            let flags = JDBC_FLAGS.map(str::to_owned).into_iter();
            let class = ["-cp".to_owned(), parts.join(":"), JDBC_CLASS.to_owned()];
            ("jdbc".to_owned(), of_the_machine("java"), flags.chain(class).collect())
        }
        Speaker::Own { program, arguments } => {
            let path = installation.programs.get(program);
            let path = path.cloned().unwrap_or_else(|| installation.bin.join(program));
            (program.clone(), path, arguments.iter().flat_map(|one| one.all_filled(machine)).collect())
        }
    };
    ClientCommand { name, program, arguments, environment }
}

/// A program of ours in Python: its name, Python, and the arguments.
fn in_python(name: &str, text: &str) -> (String, PathBuf, Vec<String>) {
    // On its own: no module from a user's folder, and nothing written beside the driver.
    let arguments = ["-I", "-B", "-c", text].map(str::to_owned).to_vec();
    (name.to_owned(), of_the_machine("python3"), arguments)
}

/// A program of the machine that every place of a lab sees.
fn of_the_machine(name: &str) -> PathBuf {
    let all = MACHINE_FOLDERS.map(|folder| Path::new(folder).join(name));
    all.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| Path::new("/usr/bin").join(name))
}

/// Puts a driver's files into the cache, and the program itself where that has to be compiled, unless they are there; the folder
/// they lie in, or nothing where all is the machine's own.
///
/// # Errors
/// When they cannot be fetched or are not those that were named.
pub fn install_driver(
    program: &ClientProgram,
    cache: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<PathBuf>, InstallError> {
    let Some(names) = names(program) else { return Ok(None) };
    let at = |path: &Path, source| InstallError::File { path: path.to_path_buf(), source };
    trust::make_folder(cache)?;
    let folder = cache.join(format!("{PREFIX}{}", digest(&names)));
    let lock_path = cache.join(".lock-driver");
    let lock = File::options().create(true).append(true).open(&lock_path);
    let lock = lock.map_err(|source| at(&lock_path, source))?;
    lock.lock().map_err(|source| at(&lock_path, source))?;
    if folder.is_dir() {
        return Ok(Some(folder));
    }
    let staging = cache.join(STAGING);
    // What a killed installation left.
    let _ = std::fs::remove_dir_all(&staging);
    std::fs::create_dir_all(&staging).map_err(|source| at(&staging, source))?;
    let made = fetch(program, &staging, progress).and_then(|tree| {
        readable_by_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
        std::fs::rename(&tree, &folder).map_err(|error| format!("{}: {error}", folder.display()))
    });
    let _ = std::fs::remove_dir_all(&staging);
    match made {
        Ok(()) => Ok(Some(folder)),
        Err(why) => Err(InstallError::Failed {
            title: "the driver of the client program".to_owned(),
            attempts: format!("\n  {why}"),
            remedy: "install the driver with your system's packages and leave `install` out of the engine file's `client`; jdbc \
                     needs a JDK (`sudo apt-get install default-jdk-headless`)"
                .to_owned(),
        }),
    }
}

/// What is in a folder, a line each with its checksum; nothing where there is none.
fn names(program: &ClientProgram) -> Option<String> {
    let mut names = String::new();
    match &program.files {
        DriverFiles::OfTheMachine => {}
        DriverFiles::Wheels(wheels) => {
            for wheel in wheels {
                // Writing into memory cannot fail.
                let _ = write!(names, "{}=={}", wheel.name, wheel.version);
                // pip takes the build that fits, if it is one of these.
                for sum in &wheel.sha256 {
                    let _ = write!(names, " --hash=sha256:{sum}");
                }
                names.push('\n');
            }
        }
        DriverFiles::Jars(jars) => {
            for jar in jars {
                let classifier = jar.classifier.as_deref().unwrap_or_default();
                let of_jar = (&jar.group, &jar.artifact, &jar.version, &jar.sha256);
                let _ = writeln!(names, "{}:{}:{}:{classifier} {}", of_jar.0, of_jar.1, of_jar.2, of_jar.3);
            }
        }
    }
    if matches!(program.speaker, Speaker::Jdbc { .. }) {
        names.extend(JDBC.map(|(_, text)| text));
    }
    (!names.is_empty()).then_some(names)
}

fn digest(names: &str) -> String {
    Checksum::of_bytes(names.as_bytes()).digits()[..16].to_owned()
}

/// Fills a folder below the staging folder.
fn fetch(program: &ClientProgram, staging: &Path, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, String> {
    let tree = match &program.files {
        DriverFiles::OfTheMachine => staging.to_owned(),
        DriverFiles::Wheels(wheels) => {
            progress(&format!("downloading {} wheels of a driver with pip", wheels.len()));
            with_requirements(&names(program).unwrap_or_default(), staging)?
        }
        DriverFiles::Jars(jars) => with_maven(jars, None, staging, progress)?.join(LIBRARY),
    };
    if matches!(program.speaker, Speaker::Jdbc { .. }) {
        compile(&tree)?;
    }
    Ok(tree)
}

/// The classes of the program for JDBC drivers.
fn compile(folder: &Path) -> Result<(), String> {
    for (name, text) in JDBC {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut compiler = Command::new(of_the_machine("javac"));
    run(compiler.args(["-d", "."]).args(JDBC.map(|(name, _)| name)).current_dir(folder)).map(drop)
}

#[cfg(test)]
mod tests {
    use capabilities::file::{PinnedWheel, Speaks, SqlDialect, Template};

    use super::*;

    fn program(speaker: Speaker, files: DriverFiles) -> ClientProgram {
        ClientProgram {
            speaker,
            speaks: Speaks::Sql(SqlDialect::Postgres),
            driver: String::new(),
            files,
            url: Template::default(),
            options: BTreeMap::new(),
            takes_writes: None,
            prepare: Vec::new(),
        }
    }

    #[test]
    fn the_program_for_jdbc_is_compiled_once_for_each_set_of_jars() {
        if !of_the_machine("javac").is_file() {
            eprintln!("skipped: the_program_for_jdbc_is_compiled_once_for_each_set_of_jars: no javac");
            return;
        }
        let cache = tempfile::tempdir().expect("a folder");
        let jdbc = program(Speaker::Jdbc { class_path: Vec::new() }, DriverFiles::OfTheMachine);
        let install =
            || install_driver(&jdbc, cache.path(), &mut |_| {}).expect("compiled").expect("a folder");
        let folder = install();
        let made =
            |folder: &Path| std::fs::metadata(folder.join("Client.class")).expect("compiled").modified();
        let first = made(&folder).expect("a time");
        assert_eq!((install(), made(&folder).expect("a time")), (folder, first));
    }

    fn wheel(version: &str, sum: &str) -> PinnedWheel {
        let (version, sha256) = (version.to_owned(), vec![sum.to_owned()]);
        PinnedWheel { name: "no-such-driver".to_owned(), version, sha256 }
    }

    fn folder_of(wheels: &[PinnedWheel]) -> String {
        let program = program(Speaker::Dbapi, DriverFiles::Wheels(wheels.to_vec()));
        digest(&names(&program).expect("some"))
    }

    #[test]
    fn a_folder_is_named_by_all_that_is_in_it() {
        let one = folder_of(&[wheel("1", "aa")]);
        assert_eq!(one, folder_of(&[wheel("1", "aa")]));
        for other in [&[wheel("2", "aa")][..], &[wheel("1", "ab")], &[wheel("1", "aa"), wheel("1", "aa")]] {
            assert_ne!(one, folder_of(other));
        }
        assert_eq!(names(&program(Speaker::Dbapi, DriverFiles::OfTheMachine)), None);
    }

    #[test]
    fn a_driver_that_is_there_is_not_fetched_again() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = cache.path().join(format!("{PREFIX}{}", folder_of(&[wheel("1", "aa")])));
        std::fs::create_dir(&folder).expect("a folder");
        let pinned = program(Speaker::Dbapi, DriverFiles::Wheels(vec![wheel("1", "aa")]));
        let found = install_driver(&pinned, cache.path(), &mut |step| panic!("{step}")).expect("there");
        assert_eq!(found, Some(folder));
        let plain = program(Speaker::Dbapi, DriverFiles::OfTheMachine);
        assert_eq!(install_driver(&plain, cache.path(), &mut |_| {}).expect("nothing to do"), None);
    }
}
