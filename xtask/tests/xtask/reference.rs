//! The pages of `docs/reference/` say what the registries say. That the help on them is the program's own is a test of
//! `holdfast`.

use std::fs;

use xtask::reference::{FOLDER, command_line, pages};

#[test]
fn the_reference_pages_are_those_of_the_registries() {
    let root = xtask::repository_root();
    let folder = root.join(FOLDER);
    let commands = fs::read_to_string(folder.join("command-line.md")).expect("the page of commands");
    let pages = pages(&root, &command_line::helps_on(&commands)).expect("pages");
    for (file, text) in &pages {
        let committed = fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(&committed == text, "{FOLDER}/{file} is stale: run `cargo xtask reference`");
    }
    let files = fs::read_dir(&folder).expect("the folder").filter_map(Result::ok);
    for file in files.map(|entry| entry.file_name().to_string_lossy().into_owned()) {
        assert!(pages.contains_key(file.as_str()), "{FOLDER}/{file} is written by nobody: remove it");
    }
}

#[test]
fn a_page_that_differs_from_its_registry_is_found() {
    let root = xtask::repository_root();
    let one = pages(&root, &[(String::new(), "Exit codes: 0 pass.".to_owned())]).expect("pages");
    let other = pages(&root, &[(String::new(), "Exit codes: 0 pass, 1 fail.".to_owned())]).expect("pages");
    let differing: Vec<&str> =
        one.iter().filter(|(file, text)| other[*file] != **text).map(|(file, _)| *file).collect();
    assert_eq!(differing, ["command-line.md"]);
}
