//! What the documents show can be typed: their scenarios are accepted, their commands and options exist.

use std::collections::BTreeMap;

use scenario::{EngineFiles, Source};
use xtask::reference::{FOLDER, command_line};
use xtask::tidy::{TextFile, text_files};

/// Documents that show users what to type.
fn for_users() -> Vec<TextFile> {
    let files = text_files(&xtask::repository_root()).expect("the repository");
    let is_for_users = |path: &str| path == "README.md" || path.starts_with("docs/guide/");
    files.into_iter().filter(|file| is_for_users(&file.path) && file.path.ends_with(".md")).collect()
}

fn blocks(page: &str) -> impl Iterator<Item = &str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(block, _)| block)
}

/// Whole scenarios among the blocks of a page: those that begin with a name.
fn scenarios(page: &str) -> impl Iterator<Item = &str> {
    blocks(page).filter(|block| block.starts_with("name:"))
}

/// Engine files on the same page: blocks that begin with an engine, by the path that a scenario beside one has.
fn engines(page: &TextFile) -> EngineFiles {
    let files = blocks(&page.text).filter(|block| block.starts_with("engine:"));
    let read = files.map(|text| {
        let read = capabilities::file::read(&page.path, text);
        read.unwrap_or_else(|refused| panic!("{}: {:?}", page.path, refused.problems()))
    });
    read.map(|engine| (format!("./{}.yaml", engine.name), engine)).collect()
}

/// Commands of the program on a page: what follows `holdfast` on an indented line, comments left out.
fn commands(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("    holdfast "));
    lines.map(|line| line.split("  #").next().unwrap_or(line))
}

/// Options of a command line that its command does not have.
fn unknown_options(helps: &BTreeMap<String, String>, command: &str) -> Vec<String> {
    // What follows the node of a shell is another program's command line.
    let own_words = if command.starts_with("shell ") { 2 } else { usize::MAX };
    let mut words = command.split_whitespace().take(own_words);
    let Some(help) = words.next().and_then(|name| helps.get(name)) else { return vec![command.to_owned()] };
    let long = words.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap_or(word));
    long.filter(|option| !help.contains(*option)).map(str::to_owned).collect()
}

#[test]
fn every_whole_scenario_on_a_page_is_accepted() {
    let mut seen = 0;
    for file in for_users() {
        for text in scenarios(&file.text) {
            let source = Source { name: file.path.clone(), text: text.to_owned() };
            let read = scenario::plan_with(&source, &[], &engines(&file));
            assert!(
                read.is_ok(),
                "{}: {:?}",
                file.path,
                read.err().map(|refused| format!("{:?}", refused.problems()))
            );
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} scenarios were found");
}

#[test]
fn every_command_on_a_page_exists_with_its_options() {
    let page = std::fs::read_to_string(xtask::repository_root().join(FOLDER).join("command-line.md"))
        .expect("the page");
    let helps: BTreeMap<String, String> = command_line::helps_on(&page).into_iter().collect();
    let mut seen = 0;
    for file in for_users() {
        for command in commands(&file.text) {
            assert_eq!(unknown_options(&helps, command), [""; 0], "{}: holdfast {command}", file.path);
            seen += 1;
        }
    }
    assert!(seen >= 20, "only {seen} commands were found");
    assert_eq!(unknown_options(&helps, "run a.yaml --sed 7"), ["--sed"]);
    assert_eq!(unknown_options(&helps, "runn a.yaml"), ["runn a.yaml"]);
}
