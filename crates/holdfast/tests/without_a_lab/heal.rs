//! `holdfast heal`, `faults check`, and what `list` and `explain` say of command files: the program itself, with a journal that
//! a real strike wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use remote::strike::{Patience, strike, token};
use remote::{Journal, Permit, Reach};

use crate::folder::said;

fn holdfast(arguments: &[&str]) -> (i32, String) {
    said(Command::new(env!("CARGO_BIN_EXE_holdfast")).args(arguments))
}

/// A command file by which a file is there, and one that undoes it with `undo`.
fn text(folder: &Path, undo: &str) -> String {
    let mark = folder.join("mark").display().to_string();
    format!(
        "fault: marker\nsummary: a file is there\nwritten-for: {{ tool: coreutils, version: \"9\", asked-by: {{ run: [touch, \
         --version] }} }}\ndo: [{{ run: [touch, {mark}] }}]\nundo: [{{ run: [{undo}] }}]\nstands: [{{ run: [test, -e, {mark}] }}]\n\
         gone: [{{ run: [test, -e, {mark}], exit: 1 }}]\ntested: {{ here: false, from: this test }}\n"
    )
}

/// Strikes, and leaves it standing.
fn left_standing(folder: &Path, undo: &str) {
    let file = remote::read("marker.yaml", &text(folder, undo)).expect("a sound file");
    let id = token().expect("randomness")[..8].to_owned();
    let fault = file.filled(&BTreeMap::new(), &id).expect("no values");
    let hosts = BTreeSet::from(["localhost".to_owned()]);
    let permit = Permit::ask(&hosts, &hosts, "test", Some("test")).expect("leave");
    let here = Reach::Local { through: Vec::new() };
    let patience = Patience { stands: Duration::from_secs(20), gone: Duration::ZERO };
    let journal = Journal::open(folder).expect("a journal");
    let late = Duration::from_secs(600);
    drop(strike(("n1", fault), &here, &permit, &journal, (late, patience)).expect("struck"));
    assert!(folder.join("mark").exists());
}

#[test]
fn what_a_run_left_standing_is_printed_undone_and_then_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark").display().to_string();
    left_standing(folder.path(), &format!("rm, -f, {mark}"));
    let directory = folder.path().display().to_string();
    let (code, said) = holdfast(&["heal", &directory, "--print"]);
    assert!(code == 0 && said.contains(&format!("rm -f {mark}")), "{code}: {said}");
    assert!(said.contains("1 of 1 faults are not known to be gone; nothing was run"), "{said}");
    assert!(Path::new(&mark).exists());
    let (code, said) = holdfast(&["heal", &directory]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("marker of n1 (localhost): undone, and seen to be gone"), "{said}");
    assert!(!Path::new(&mark).exists());
    let (code, said) = holdfast(&["heal", &directory]);
    assert!(code == 0 && said.contains("nothing stands: the journal has 1 faults"), "{code}: {said}");
}

#[test]
fn what_cannot_be_undone_is_named_with_its_commands_and_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    left_standing(folder.path(), "\"false\"");
    let directory = folder.path().display().to_string();
    let (code, said) = holdfast(&["heal", &directory]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("STILL STANDS") && said.contains("the undoing failed: `false` ended with 1"),
        "{said}"
    );
    assert!(said.contains("to undo it by hand, on localhost:\n    false"), "{said}");
    fs::remove_file(folder.path().join("mark")).expect("the mark");
    let (code, said) = holdfast(&["heal", &directory]);
    assert!(
        code == 0 && said.contains("was gone already; the timer on the machine was disarmed"),
        "{code}: {said}"
    );
}

#[test]
fn a_run_that_broke_nothing_outside_its_lab_needs_no_healing_and_a_file_is_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let directory = folder.path().display().to_string();
    let (code, said) = holdfast(&["heal", &directory]);
    assert!(code == 254 && said.contains("neither remote.jsonl nor events.jsonl"), "{code}: {said}");
    fs::write(folder.path().join("events.jsonl"), "").expect("written");
    let (code, said) = holdfast(&["heal", &directory]);
    assert!(code == 0 && said.contains("broke nothing outside its lab"), "{code}: {said}");
    let (code, said) = holdfast(&["heal", "no-such-folder"]);
    assert!(code == 254 && said.contains("not a run directory"), "{code}: {said}");
}

#[test]
fn a_command_file_is_checked_with_a_caret_and_shown_with_its_commands() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.yaml");
    fs::write(&path, text(folder.path(), "rm, -f, /tmp/none")).expect("written");
    let (code, said) = holdfast(&["faults", "check", &path.display().to_string()]);
    assert!(
        code == 0 && said.contains("marker is valid") && said.contains("rm -f /tmp/none"),
        "{code}: {said}"
    );
    fs::write(&path, text(folder.path(), "rm, \"{mark}\"")).expect("written");
    let (code, said) = holdfast(&["faults", "check", &path.display().to_string()]);
    assert!(
        code == 254 && said.contains("commands::unknown-name") && said.contains("mine.yaml:5:"),
        "{code}: {said}"
    );
}

#[test]
fn list_and_explain_know_the_command_files_that_ship() {
    let (code, listed) = holdfast(&["list", "faults"]);
    assert_eq!(code, 0, "{listed}");
    for file in remote::shipped() {
        assert!(
            listed.lines().any(|line| line.starts_with(&file.name) && line.contains("external")),
            "{}",
            file.name
        );
        let (code, said) = holdfast(&["explain", &file.name]);
        assert!(code == 0 && said.contains("  undo:\n") && said.contains("  gone, if:\n"), "{code}: {said}");
    }
    for any_case in ["tpmc", "TPMC", "Command-File"] {
        assert_eq!(holdfast(&["explain", any_case]).0, 0, "{any_case}");
    }
    let (code, said) = holdfast(&["explain", "command-file"]);
    assert!(
        code == 0 && said.contains("the whole command file") && said.contains("ipv4-list"),
        "{code}: {said}"
    );
}
