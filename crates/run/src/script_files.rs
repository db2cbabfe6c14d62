//! Scripts that stand in files of their own: read once, before anything starts, and from then on part of the scenario, so
//! that the run directory holds all that was run.
//!
//! Owns reading them and telling in which file a mistake is. The language of scripts is `workload`'s; `scenario` reads no
//! file and knows paths only.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use scenario::Scenario;
use workload::ConfigurationError;

/// The option that names a file, of `scripts.N.file`.
const FILE: &str = ".file";

/// What can be wrong with a script in a file.
#[derive(Debug, thiserror::Error)]
pub enum ScriptFileError {
    /// It cannot be read.
    #[error("script {path}: {source}", path = .path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its name gives the script none.
    #[error("script {path}: {name:?} is no name for a script; give it one with `name`, of letters, digits, `-` and `_`", path = .path.display())]
    Nameless {
        /// Its path.
        path: PathBuf,
        /// Its name without the ending.
        name: String,
    },
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
/// When a file cannot be read, or its name is none for a script.
pub fn read_into(
    options: &mut BTreeMap<String, String>,
    folder: &Path,
) -> Result<ScriptFiles, ScriptFileError> {
    let is_file = |name: &str| name.starts_with("scripts.") && name.ends_with(FILE);
    let named: Vec<(String, String)> = options
        .iter()
        .filter(|(name, _)| is_file(name))
        .map(|(name, path)| (name.clone(), path.clone()))
        .collect();
    let mut files = ScriptFiles::default();
    for (option, written) in named {
        let path = folder.join(&written);
        let text = std::fs::read_to_string(&path)
            .map_err(|source| ScriptFileError::Unreadable { path: path.clone(), source })?;
        let script = option.trim_end_matches(FILE);
        let name = match options.get(&format!("{script}.name")) {
            Some(name) => name.clone(),
            None => name_of(&path)?,
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

/// The same for every load of a scenario: files by load.
///
/// # Errors
/// As [`read_into`].
pub fn read_into_scenario(
    scenario: &mut Scenario,
    folder: &Path,
) -> Result<BTreeMap<String, ScriptFiles>, ScriptFileError> {
    let of_load = |load: &mut scenario::Load| Ok((load.name.clone(), read_into(&mut load.options, folder)?));
    scenario.loads.iter_mut().map(of_load).collect()
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
        let files = read_into(&mut given, folder.path()).expect("read");
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
            read_into(&mut options(&[("scripts.0.file", file)]), folder.path())
                .expect_err("refused")
                .to_string()
        };
        assert!(refused("nowhere.sql").contains("nowhere.sql: No such file"), "{}", refused("nowhere.sql"));
        std::fs::write(folder.path().join("7 things.sql"), "SELECT 1;\n").expect("written");
        assert!(refused("7 things.sql").contains("give it one with `name`"), "{}", refused("7 things.sql"));
    }
}
