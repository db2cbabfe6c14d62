//! The repository is in order. What that means stands in `xtask/src/tidy`, one file per kind of rule.

use xtask::tidy::{TextFile, check_files, check_repository, imports};

#[test]
fn the_repository_is_tidy() {
    let found = check_repository(&xtask::repository_root()).expect("a repository that can be read");
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} violations:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn cargo_names_the_crates_and_what_they_import() {
    let crates = imports::crates_of(&xtask::repository_root()).expect("a workspace");
    let run = crates.iter().find(|krate| krate.name == "run").expect("the composition root");
    assert!(run.dependencies.contains("lab") && run.manifest == "crates/run/Cargo.toml", "{run:?}");
}

#[test]
fn every_rule_is_applied_to_a_file_that_breaks_it() {
    let text = "mod utils {}\nfn f() { todo!(); println!(); }\n#[ignore]\n/// ```\nfn g() {}\nconst P: &str = \"postgres\";\n";
    let planted = TextFile { path: "crates/fabric/src/planted.rs".to_owned(), text: text.to_owned() };
    let found: Vec<String> = check_files(&[planted]).iter().map(ToString::to_string).collect();
    let all = [
        "open with `//!`",
        "module `utils`",
        "`todo!`",
        "`println!`",
        "`#[ignore]`",
        "code in a comment",
        "an engine's name",
    ];
    for wanted in all {
        assert!(found.iter().any(|line| line.contains(wanted)), "{wanted} in {found:#?}");
    }
}
