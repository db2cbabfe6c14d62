//! Scenarios whose engine is a file of the user's: the file is read once and from then on part of the scenario, so that the
//! run directory holds all that was run.
//!
//! Owns bringing the two together and where a file's mistakes are told. The language of engine files is `capabilities`'.

use std::path::Path;

use scenario::{EngineFiles, NamedFile, Plan, Refusal, Rejection, Source};

use crate::beside_scenario;

/// What is wrong with a scenario or with the engine file that it names.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// With carets.
    #[error(transparent)]
    Rejected(#[from] Box<Rejection>),
    /// A file on an axis of the matrix that cannot be read.
    #[error("engine file {0}")]
    Unreadable(#[from] beside_scenario::BesideError),
}

/// Reads a scenario, and the engine files that it names, whose paths begin at `folder`.
///
/// # Errors
/// When the scenario or an engine file is not sound, or a file cannot be read.
pub fn plan(source: &Source, overrides: &[(String, String)], folder: &Path) -> Result<Plan, PlanError> {
    let mut files = EngineFiles::new();
    for file in scenario::engine_files(source, overrides) {
        let text = match beside_scenario::read_text(&file.path, folder) {
            Ok(text) => text,
            Err(error) => return Err(refused(source, overrides, &file, error)),
        };
        let path = file.path.strip_prefix("./").unwrap_or(&file.path);
        let name = folder.join(path).display().to_string();
        let engine = capabilities::file::read(&name, &text).map_err(Box::new)?;
        files.insert(file.path, engine);
    }
    scenario::plan_with(source, overrides, &files).map_err(|rejection| Box::new(rejection).into())
}

/// A file that cannot be read, with a caret under the path that leads to it.
fn refused(
    source: &Source,
    overrides: &[(String, String)],
    file: &NamedFile,
    error: beside_scenario::BesideError,
) -> PlanError {
    let refusal = Refusal {
        code: "engine-file",
        message: format!("engine file {error}"),
        label: "this file cannot be used".to_owned(),
        help: "name an engine file in the scenario's folder; `holdfast explain engine` shows its keys"
            .to_owned(),
    };
    match file.at.and_then(|at| scenario::point_at(source, overrides, at, refusal)) {
        Some(rejection) => Box::new(rejection).into(),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "name: mine\nsite: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }\n\
        database: { engine: ./my-database.yaml, nodes: 3 }\nloads: [{ workload: ledger, clients: 1, from: dc1 }]\n\
        schedule: [{ phase: baseline, for: 5s }]\nexpect: { errors: 0 }\n";
    const ENGINE_TEXT: &str = include_str!("../../../engines/etcd.yaml");

    fn source(text: &str) -> Source {
        Source { name: "mine.yaml".to_owned(), text: text.to_owned() }
    }

    fn told(folder: &Path, text: &str) -> String {
        match plan(&source(text), &[], folder).expect_err("refused") {
            PlanError::Rejected(rejection) => {
                let problem = &rejection.problems()[0];
                format!("{} at {} in {}", problem.message(), problem.culprit(), problem.source_name())
            }
            PlanError::Unreadable(error) => error.to_string(),
        }
    }

    #[test]
    fn an_engine_in_a_file_beside_the_scenario_is_read_and_stays_with_the_scenario_that_is_written_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mine = ENGINE_TEXT.replace("engine: etcd\n", "engine: my-database\n");
        std::fs::write(folder.path().join("my-database.yaml"), &mine).expect("written");
        let plan = plan(&source(SCENARIO), &[], folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let database = &plan.scenario.database;
        assert_eq!(database.engine.name, "my-database");
        let written = scenario::to_yaml(&plan.scenario, 7);
        let again = scenario::parse(&source(&written), &[]).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(again.database.engine, database.engine, "the run directory needs no other file");
        assert_eq!(again.database.engine.file.map(|file| file.text.as_str()), Some(mine.as_str()));
    }

    #[test]
    fn the_files_of_the_guide_are_sound_as_they_stand_there() {
        let guide = include_str!("../../../docs/guide/own-database.md");
        let blocks: Vec<&str> =
            guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        let [engine, scenario] = blocks.as_slice() else { panic!("an engine file and a scenario") };
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("my-database.yaml"), engine).expect("written");
        let plan = plan(&source(scenario), &[], folder.path()).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(plan.scenario.database.engine.name, "my-database");
        assert!(engine.lines().count() <= 30, "a whole engine file is short");
    }

    #[test]
    fn a_mistake_in_an_engine_file_is_told_where_it_stands() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("my-database.yaml");
        std::fs::write(&path, ENGINE_TEXT.replace("{node.name}", "{nod.name}")).expect("written");
        let expected = format!(
            "nothing is named `nod.name` here at {{nod.name in {}/my-database.yaml",
            folder.path().display()
        );
        assert_eq!(told(folder.path(), SCENARIO), expected);
    }

    #[test]
    fn an_engine_file_that_cannot_be_read_is_told_in_the_scenario() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = told(folder.path(), SCENARIO);
        assert!(
            missing.contains("No such file") && missing.ends_with("at ./my-database.yaml in mine.yaml"),
            "{missing}"
        );
        let outside = told(folder.path(), &SCENARIO.replace("./my-database.yaml", "../my-database.yaml"));
        assert!(outside.contains("../my-database.yaml"), "{outside}");
    }
}
