//! Sizes, the words each file opens with, and that tests are where they are run.

use std::collections::BTreeMap;

use super::source::Source;
use super::{TextFile, Violation};

/// Lines of a file at most.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function at most.
const FUNCTION_LINES_MAX: usize = 70;
/// Test programs of a crate at most. Each is linked with all that the crate is made of, and waits for the one before.
const TEST_PROGRAMS_MAX: usize = 2;

/// Whether the file says what it is, and is not too long.
pub fn check_text(file: &TextFile) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |line, message| found.push(Violation { path: file.path.clone(), line, message });
    if !file.text.starts_with("//!") {
        say(1, "open with `//!`: what this file owns and what it does not".to_owned());
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        say(
            lines,
            format!("{lines} lines, {FILE_LINES_MAX} at most; give each of its subjects a file of its own"),
        );
    }
    found
}

/// Crates whose tests are too many programs.
pub fn check_test_programs(files: &[TextFile]) -> Vec<Violation> {
    let mut programs: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        let Some((krate, inside)) = file.path.split_once("/tests/") else { continue };
        let is_program = match inside.split_once('/') {
            None => inside.ends_with(".rs"),
            Some((_, within)) => within == "main.rs",
        };
        if is_program {
            programs.entry(krate).or_default().push(&file.path);
        }
    }
    let beyond = programs.into_values().filter_map(|of_crate| of_crate.get(TEST_PROGRAMS_MAX).copied());
    beyond
        .map(|path| Violation {
            path: path.to_owned(),
            line: 1,
            message: format!(
                "more than {TEST_PROGRAMS_MAX} test programs in a crate; make it a module of one of the others"
            ),
        })
        .collect()
}

/// Code in comments of which documents are made: it would be a test, and nobody runs it.
pub fn check_comments(file: &TextFile) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut is_within = false;
    for (number, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { continue };
        let is_code = match comment.trim_start().strip_prefix("```") {
            Some(language) => {
                is_within = !is_within;
                is_within && language != "text"
            }
            None => !is_within && comment.starts_with("     ") && !comment.trim().is_empty(),
        };
        if is_code {
            found.push(Violation {
                path: file.path.clone(),
                line: number + 1,
                message: "code in a comment is run by nobody; write a test, or say that it is `text`"
                    .to_owned(),
            });
        }
    }
    found
}

/// Functions that are too long.
pub fn check_functions(source: &Source) -> Vec<Violation> {
    let too_long = source.functions.iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
    too_long
        .map(|function| Violation {
            path: source.path.clone(),
            line: function.line,
            message: format!(
                "`{}` has {} lines, {FUNCTION_LINES_MAX} at most; name its steps and make each a function",
                function.name, function.lines
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    fn in_text(text: String) -> usize {
        check_text(&TextFile { path: "a.rs".to_owned(), text }).len()
    }

    #[test]
    fn a_file_must_say_what_it_is() {
        assert_eq!(in_text("//! Owns this.\n".to_owned()), 0);
        assert_eq!(in_text("use a;\n".to_owned()), 1);
    }

    #[test]
    fn a_file_may_have_600_lines_and_no_more() {
        assert_eq!(in_text(format!("//! A.\n{}", "\n".repeat(599))), 0);
        assert_eq!(in_text(format!("//! A.\n{}", "\n".repeat(600))), 1);
    }

    #[test]
    fn a_function_may_have_70_lines_and_no_more_whatever_braces_its_strings_hold() {
        let function = |inner: usize| format!("fn f() {{{}let s = \"}}\"; }}\n", "\n".repeat(inner));
        assert_eq!(check_functions(&parsed("a.rs", &function(69))).len(), 0);
        let found = check_functions(&parsed("a.rs", &function(70)));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.starts_with("`f` has 71 lines"), "{found:?}");
    }

    #[test]
    fn a_crate_may_have_two_test_programs_and_no_more() {
        let found = |paths: &[&str]| {
            let file = |path: &&str| TextFile { path: (*path).to_owned(), text: String::new() };
            check_test_programs(&paths.iter().map(file).collect::<Vec<_>>())
        };
        let two = ["crates/a/tests/b.rs", "crates/a/tests/c/main.rs", "crates/a/tests/c/d.rs"];
        assert_eq!(found(&two), []);
        assert_eq!(found(&[&two[..], &["crates/e/tests/f.rs"]].concat()), []);
        let third = found(&[&two[..], &["crates/a/tests/g.rs"]].concat());
        assert_eq!((third.len(), third[0].path.as_str()), (1, "crates/a/tests/g.rs"));
    }

    #[test]
    fn code_in_a_comment_is_found_and_a_drawing_is_not() {
        let lines = |text: &str| {
            let found = check_comments(&TextFile { path: "a.rs".to_owned(), text: text.to_owned() });
            found.iter().map(|violation| violation.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("//! ```text\n//!      a -> b\n//! ```\n"), [0; 0]);
        assert_eq!(lines("/// One.\n///\n/// ```\n/// one();\n/// ```\nfn one() {}\n"), [3]);
        assert_eq!(lines("/// One.\n///\n///     one();\nfn one() {}\n"), [3]);
        assert_eq!(lines("fn one() {\n    // ```\n}\n"), [0; 0]);
    }

    #[test]
    fn methods_count_as_functions() {
        let text = format!("struct S;\nimpl S {{\n fn m() {{{}}}\n}}\n", "\n".repeat(80));
        assert_eq!(check_functions(&parsed("a.rs", &text)).len(), 1);
    }
}
