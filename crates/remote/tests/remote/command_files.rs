//! `faults/external/`: each file that ships is sound, and each of `faults/external/rejected/` is refused with exactly the
//! message beside it. `UPDATE_SNAPSHOTS=1` rewrites the messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::{GraphicalReportHandler, GraphicalTheme};
use remote::FillError;
use yaml::Rejection;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults/external")
}

/// The names of the files in a folder, without their ending.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .filter_map(|path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn rendered(rejection: &Rejection) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .without_syntax_highlighting()
        .render_report(&mut text, rejection)
        .expect("drawn");
    // The drawing pads some lines; what is kept in a repository should not end in blanks.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn every_command_file_of_the_folder_ships_under_its_own_name() {
    let shipped: Vec<&str> = remote::shipped().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names(&folder()), shipped);
    for file in remote::shipped() {
        let filled = file.with_examples().expect("its own examples");
        assert!(!filled.strike.is_empty() && !filled.undo.is_empty(), "{}", file.name);
    }
}

#[test]
fn every_rejected_command_file_gives_the_message_beside_it() {
    let folder = folder().join("rejected");
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut wrong = Vec::new();
    for name in names(&folder) {
        let text = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).expect("the file");
        let Err(rejection) = remote::read(&format!("faults/external/rejected/{name}.yaml"), &text) else {
            panic!("{name} is accepted")
        };
        let message = rendered(&rejection);
        let beside = folder.join(format!("{name}.txt"));
        if update {
            std::fs::write(&beside, &message).expect("written");
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != message {
            wrong.push(format!("{name} now gives\n{message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_guides_file_is_sound() {
    let guide = include_str!("../../../../docs/guide/command-files.md");
    let text = guide.split_once("```yaml\n").and_then(|(_, rest)| rest.split_once("```")).expect("a file").0;
    let file =
        remote::read("freeze.yaml", text).unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()));
    assert_eq!(file.name, "freeze");
}

#[test]
fn the_schema_knows_every_key_of_the_file() {
    let schema = remote::language::json_schema();
    assert_eq!(schema["additionalProperties"], false);
    for key in ["fault", "written-for", "parameters", "do", "undo", "stands", "gone", "tested"] {
        assert!(schema["properties"][key].is_object(), "{key}");
        assert!(!remote::language::words(key).is_empty(), "{key}");
    }
    let whole = &remote::language::explain()[0];
    assert_eq!(whole.keys.len(), schema["properties"].as_object().map_or(0, serde_json::Map::len));
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn values_that_are_missing_unknown_or_of_another_kind_are_refused() {
    let partition = remote::named("nftables-partition").expect("it ships");
    let refused = |given: &[(&str, &str)]| partition.filled(&values(given), "0a1b2c3d").expect_err("refused");
    assert!(matches!(refused(&[("peers", "10.0.0.2")]), FillError::Missing { name, .. } if name == "probe"));
    let injected = [("peers", "10.0.0.2 }; flush ruleset; {"), ("probe", "10.0.0.2")];
    assert!(matches!(refused(&injected), FillError::NotOfKind { name, .. } if name == "peers"));
    let option = [("peers", "10.0.0.2"), ("probe", "-f")];
    assert!(matches!(refused(&option), FillError::NotOfKind { name, .. } if name == "probe"));
    let unknown = [("peers", "10.0.0.2"), ("probe", "10.0.0.2"), ("port", "22")];
    assert!(matches!(refused(&unknown), FillError::Unknown { name, .. } if name == "port"));
}

#[test]
fn what_a_fault_makes_on_a_machine_has_its_own_name() {
    let partition = remote::named("nftables-partition").expect("it ships");
    let given = values(&[("peers", "10.0.0.2"), ("probe", "10.0.0.2")]);
    let commands = |id: &str| {
        let filled = partition.filled(&given, id).expect("sound values");
        filled.strike.iter().chain(&filled.undo).map(ToString::to_string).collect::<String>()
    };
    assert!(commands("0a1b2c3d").contains("holdfast_0a1b2c3d"));
    assert_ne!(commands("0a1b2c3d"), commands("ffffffff"));
}
