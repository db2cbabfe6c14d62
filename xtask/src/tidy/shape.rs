//! Sizes, and the words each file opens with.

use super::source::Source;
use super::{TextFile, Violation};

/// Lines of a file at most.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function at most.
const FUNCTION_LINES_MAX: usize = 70;

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
    fn methods_count_as_functions() {
        let text = format!("struct S;\nimpl S {{\n fn m() {{{}}}\n}}\n", "\n".repeat(80));
        assert_eq!(check_functions(&parsed("a.rs", &text)).len(), 1);
    }
}
