//! Scripts that stand in files of their own: read once, before anything starts, and from then on part of the scenario, so
//! that the run directory holds all that was run.
//!
//! Owns telling in which file a mistake is; which files may be read is `beside_scenario`'s. The language of scripts is `workload`'s;
//! `scenario` reads no file and knows paths only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scenario::{MOST_BYTES, Refusal, Rejection, Scenario, Source, point_at, to_yaml};
use workload::ConfigurationError;

use crate::beside_scenario::{BesideError, read_text};

/// The option that names a file, of `scripts.N.file`.
const FILE: &str = ".file";

/// What can be wrong with a script in a file.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    /// It cannot be had.
    #[error("script {0}")]
    File(#[from] BesideError),
    /// All scripts together, or one of them, are longer than any scenario.
    #[error("script {path}: with it the scenario is longer than {MOST_BYTES} bytes, the most that is read", path = .path.display())]
    TooMuch {
        /// The last one read.
        path: PathBuf,
    },
    /// Its name gives the script none.
    #[error("script {path}: {name:?} is no name for a script; give it one with `name`, of letters, digits, `-` and `_`", path = .path.display())]
    Nameless {
        path: PathBuf,
        /// Its name without the ending.
        name: String,
    },
}

/// A script's file that cannot be had, and the option that names it: `loads.0.options.scripts.1.file`.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct MisnamedFile {
    /// The option, by its path from the scenario's top.
    pub option: String,
    /// What is wrong with the file.
    pub error: ScriptFileError,
}

impl MisnamedFile {
    /// The same with a caret under the option, where it stands in the scenario or on the command line.
    #[must_use]
    pub fn pointed_at(&self, source: &Source, overrides: &[(String, String)]) -> Option<Rejection> {
        let refusal = Refusal {
            code: "script-file",
            message: self.error.to_string(),
            label: "this file cannot be used".to_owned(),
            help: format!(
                "name a text file in the scenario's folder; with it the scenario has at most {MOST_BYTES} bytes"
            ),
        };
        point_at(source, overrides, &self.option, refusal)
    }
}

/// Files of scripts by the names of the scripts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptFiles(BTreeMap<String, PathBuf>);

impl ScriptFiles {
    /// Names the file in a message about a script that stands in one, in the way that editors find the place by.
    #[must_use]
    pub fn name_file_in(&self, error: ConfigurationError) -> ConfigurationError {
        let ConfigurationError::Script { workload, mut source } = error else { return error };
        if let Some(path) = self.0.get(&source.script) {
            source.script =
                format!("{} ({}:{}:{})", source.script, path.display(), source.line, source.column);
        }
        ConfigurationError::Script { workload, source }
    }
}

/// Puts the text of each file in the place of its path, in the options of one load. Paths begin at `folder`.
///
/// # Errors
/// When a file cannot be read or may not be, or its name is none for a script; with the option's name among `options`.
pub fn read_scripts(
    options: &mut BTreeMap<String, String>,
    folder: &Path,
) -> Result<ScriptFiles, MisnamedFile> {
    let is_file = |name: &str| name.starts_with("scripts.") && name.ends_with(FILE);
    let named: Vec<(String, String)> = options
        .iter()
        .filter(|(name, _)| is_file(name))
        .map(|(name, path)| (name.clone(), path.clone()))
        .collect();
    let mut files = ScriptFiles::default();
    for (option, written) in named {
        let misnamed = |error| MisnamedFile { option: option.clone(), error };
        let path = folder.join(&written);
        let text = read_text(&written, folder).map_err(|error| misnamed(error.into()))?;
        let script = option.trim_end_matches(FILE);
        let name = match options.get(&format!("{script}.name")) {
            Some(name) => name.clone(),
            None => name_of(&path).map_err(misnamed)?,
        };
        options.remove(&option);
        options.insert(format!("{script}.text"), text);
        options.insert(format!("{script}.name"), name.clone());
        files.0.insert(name, path);
    }
    Ok(files)
}

/// A file's name without its ending, where that may be a script's.
fn name_of(path: &Path) -> Result<String, ScriptFileError> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_name = stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    // The language of scenarios has names in small letters.
    let name = stem.to_ascii_lowercase().replace('_', "-");
    if is_name && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(name);
    }
    Err(ScriptFileError::Nameless { path: path.to_owned(), name: stem })
}

/// The same for every load of a scenario: files by load. The scenario with all its scripts can be read again.
///
/// # Errors
/// As [`read_scripts`], with the option's path from the scenario's top; and when all of it is too long.
pub(crate) fn read_all_scripts(
    scenario: &mut Scenario,
    folder: &Path,
) -> Result<BTreeMap<String, ScriptFiles>, MisnamedFile> {
    let mut files = BTreeMap::new();
    let mut last = None;
    for (place, load) in scenario.loads.iter_mut().enumerate() {
        let from_the_top = |option: &str| format!("loads.{place}.options.{option}");
        let named =
            load.options.iter().rfind(|(name, _)| name.starts_with("scripts.") && name.ends_with(FILE));
        last = named.map(|(name, path)| (from_the_top(name), folder.join(path))).or(last);
        let read = read_scripts(&mut load.options, folder).map_err(|MisnamedFile { option, error }| {
            MisnamedFile { option: from_the_top(&option), error }
        })?;
        files.insert(load.name.clone(), read);
    }
    match last {
        Some((option, path)) if to_yaml(scenario, u64::MAX).len() > MOST_BYTES => {
            Err(MisnamedFile { option, error: ScriptFileError::TooMuch { path } })
        }
        _ => Ok(files),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_text_of_a_file_takes_the_place_of_its_path_and_a_mistake_names_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("Move_money.sql"), "SELECT 1;\n\\set x foo(1)\n").expect("written");
        let mut given = options(&[
            ("scripts.0.builtin", "select-only"),
            ("scripts.1.file", "Move_money.sql"),
            ("scripts.1.weight", "3"),
        ]);
        let files = read_scripts(&mut given, folder.path()).expect("read");
        let expected = options(&[
            ("scripts.0.builtin", "select-only"),
            ("scripts.1.name", "move-money"),
            ("scripts.1.text", "SELECT 1;\n\\set x foo(1)\n"),
            ("scripts.1.weight", "3"),
        ]);
        assert_eq!(given, expected);
        let error = workload::configured("script", &given).err().expect("refused");
        let told = files.name_file_in(error).to_string();
        let place = format!("script move-money ({}/Move_money.sql:2:8), line 2: ", folder.path().display());
        assert!(told.contains(&place) && told.ends_with("\\set x foo(1)\n         ^"), "{told}");
    }

    #[test]
    fn a_file_that_is_not_there_and_one_whose_name_is_no_name_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let refused = |file: &str| {
            read_scripts(&mut options(&[("scripts.0.file", file)]), folder.path())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused("nowhere.sql").contains("nowhere.sql: No such file"), "{}", refused("nowhere.sql"));
        std::fs::write(folder.path().join("7 things.sql"), "SELECT 1;\n").expect("written");
        assert!(refused("7 things.sql").contains("give it one with `name`"), "{}", refused("7 things.sql"));
    }

    #[test]
    fn scripts_that_together_are_longer_than_any_scenario_are_refused_at_the_last_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["first.sql", "second.sql"] {
            std::fs::write(folder.path().join(name), "-".repeat(600 << 10)).expect("written");
        }
        let text = "name: long\nsite: { regions: { dc1: { zones: { a: { hosts: 1 } } } } }\n\
                    database: { engine: postgres, nodes: 1, replication: { synchronous: off } }\n\
                    loads:\n  - { workload: script, clients: 1, options: { scripts: [\
                    { file: first.sql }, { file: second.sql }] } }\n\
                    schedule: [{ phase: baseline, for: 1s }]\n";
        let source = Source { name: "long.yaml".to_owned(), text: text.to_owned() };
        let mut scenario = scenario::parse(&source, &[]).unwrap_or_else(|error| panic!("{error:?}"));
        let too_long = read_all_scripts(&mut scenario.clone(), folder.path()).expect_err("refused");
        assert_eq!(too_long.option, "loads.0.options.scripts.1.file");
        let told = too_long.to_string();
        assert!(told.contains("second.sql: with it the scenario is longer than 1048576 bytes"), "{told}");
        scenario.loads[0].options.retain(|name, _| !name.starts_with("scripts.1."));
        assert!(read_all_scripts(&mut scenario, folder.path()).is_ok(), "the first alone is not too long");
    }

    #[test]
    fn a_file_within_the_folder_is_read_and_one_that_a_link_leads_to_outside_is_not() {
        let (folder, elsewhere) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("scripts")).expect("a folder");
        std::fs::write(at("scripts/move.sql"), "SELECT 1;").expect("written");
        std::fs::write(elsewhere.path().join("secret.sql"), "SELECT 2;").expect("written");
        std::os::unix::fs::symlink(elsewhere.path(), at("out")).expect("a link");
        std::os::unix::fs::symlink("scripts/move.sql", at("within.sql")).expect("a link");
        std::fs::write(at("long.sql"), "-".repeat(MOST_BYTES + 1)).expect("written");
        let read = |file: &str| {
            let mut options = options(&[("scripts.0.file", file), ("scripts.0.name", "mine")]);
            match read_scripts(&mut options, folder.path()) {
                Ok(_) => options["scripts.0.text"].clone(),
                Err(misnamed) => {
                    assert_eq!(misnamed.option, "scripts.0.file");
                    misnamed.to_string()
                }
            }
        };
        assert_eq!(read("./scripts/move.sql"), "SELECT 1;");
        assert_eq!(read("within.sql"), "SELECT 1;");
        assert!(
            read("out/secret.sql").contains("outside the scenario's folder"),
            "{}",
            read("out/secret.sql")
        );
        assert!(read("scripts").contains("it is a directory, not a regular file"), "{}", read("scripts"));
        assert!(read("long.sql").contains("longer than 1048576 bytes"), "{}", read("long.sql"));
        // Typed by the user: `scenario` lets no file say so.
        assert_eq!(read(&elsewhere.path().join("secret.sql").display().to_string()), "SELECT 2;");
        assert!(read("/dev/zero").contains("it is a device, not a regular file"), "{}", read("/dev/zero"));
    }
}
