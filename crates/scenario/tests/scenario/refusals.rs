//! Files that people write and the messages with which they are refused: what the tests of every language of such files have in
//! common. The languages are each test's own.

#![allow(dead_code)] // The tests of engine files use a part of it.

use std::path::{Path, PathBuf};

use miette::{GraphicalReportHandler, GraphicalTheme};
use yaml::Rejection;

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    files
}

/// The names of the files in a folder, without their ending.
pub fn names(folder: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let mut names: Vec<String> = files(folder).iter().filter_map(name).collect();
    names.sort();
    names
}

/// The texts of the files in a folder and in its `rejected/`.
pub fn texts(folder: &Path) -> Vec<String> {
    let all = [files(folder), files(&folder.join("rejected"))].concat();
    all.iter().map(|path| std::fs::read_to_string(path).expect("the file")).collect()
}

pub fn drawn(rejection: &Rejection) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .without_syntax_highlighting()
        .render_report(&mut text, rejection)
        .expect("drawn");
    // The drawing pads some lines; what is kept in a repository should not end in blanks.
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Every problem has its words, and all can be drawn, which reads every span.
pub fn is_told_whole(rejection: &Rejection) {
    assert!(!rejection.problems().is_empty());
    for problem in rejection.problems() {
        assert!(!problem.message().is_empty() && !problem.help().is_empty(), "{problem:?}");
    }
    let drawn = drawn(rejection);
    assert!(!drawn.contains("Failed to read contents"), "{drawn}");
}

/// `refusal` gives what is said of a file by its name and its text. `UPDATE_SNAPSHOTS=1` rewrites the messages.
pub fn each_is_the_one_beside_it(folder: &Path, refusal: impl Fn(&str, String) -> Option<Rejection>) {
    let update = std::env::var_os("UPDATE_SNAPSHOTS").is_some();
    let mut wrong = Vec::new();
    for name in names(folder) {
        let text = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).expect("the file");
        let rejection = refusal(&name, text).unwrap_or_else(|| panic!("{name} is accepted"));
        let message = drawn(&rejection);
        let beside = folder.join(format!("{name}.txt"));
        if update {
            std::fs::write(&beside, &message).expect("written");
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != message {
            wrong.push(format!("{name} now gives\n{message}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
