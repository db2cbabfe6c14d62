//! The shipped scenarios: each parses, says in its first comment what it shows, ends in time, agrees with the schema and
//! survives being written back.

use std::path::{Path, PathBuf};

use scenario::{Source, parse, to_yaml};

fn shipped() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "the shipped scenarios are missing");
    files
}

fn read(name: &str, text: &str) -> scenario::Scenario {
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    parse(&source, &[]).unwrap_or_else(|rejection| panic!("{name}: {rejection}: {:?}", rejection.problems()))
}

#[test]
fn every_shipped_scenario_parses_under_its_own_name_and_ends_within_two_minutes() {
    for (path, text) in shipped() {
        let scenario = read(&path.display().to_string(), &text);
        assert_eq!(Some(scenario.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert!(text.starts_with("# "), "{} says nothing about itself", path.display());
        let seconds: u64 = scenario.schedule.iter().map(|phase| phase.length.as_secs()).sum();
        assert!(seconds <= 70, "{} lasts {seconds} s", path.display());
    }
}

#[test]
fn every_shipped_scenario_is_the_same_after_writing_and_reading() {
    for (path, text) in shipped() {
        let mut scenario = read("shipped", &text);
        let written = to_yaml(&scenario, 42);
        scenario.seed = Some(42);
        assert_eq!(read("written", &written), scenario, "{}:\n{written}", path.display());
    }
}
