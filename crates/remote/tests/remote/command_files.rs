//! `faults/external/`: each file that ships is sound, and each of `faults/external/rejected/` is refused with exactly the
//! message beside it. `UPDATE_SNAPSHOTS=1` rewrites the messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use remote::FillError;

use crate::refusals;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../faults/external")
}

#[test]
fn every_command_file_of_the_folder_ships_under_its_own_name() {
    let shipped: Vec<&str> = remote::shipped().iter().map(|file| file.name.as_str()).collect();
    assert_eq!(refusals::names(&folder()), shipped);
    for file in remote::shipped() {
        let filled = file.with_examples().expect("its own examples");
        assert!(!filled.strike.is_empty() && !filled.undo.is_empty(), "{}", file.name);
    }
}

#[test]
fn every_rejected_command_file_gives_the_message_beside_it() {
    refusals::each_is_the_one_beside_it(&folder().join("rejected"), |name, text| {
        remote::read(&format!("faults/external/rejected/{name}.yaml"), &text).err()
    });
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
