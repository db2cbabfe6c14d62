//! Names that say nothing.

use super::Violation;
use super::source::Source;

/// Parts of names that say nothing, and what to write instead.
const BANNED: &[&str] = &["common", "util", "utils", "helper", "helpers", "manager"];

/// A path of which a part says nothing.
pub fn check_path(path: &str) -> Vec<Violation> {
    let banned = path.split(['/', '.']).filter_map(banned_part);
    banned.map(|part| violation(path, 1, "path", path, part)).collect()
}

/// Names given in a file that say nothing.
pub fn check_items(source: &Source) -> Vec<Violation> {
    let checked = source.names.iter().filter_map(|named| banned_part(&named.name).map(|part| (named, part)));
    checked.map(|(named, part)| violation(&source.path, named.line, named.what, &named.name, part)).collect()
}

fn violation(path: &str, line: usize, what: &str, name: &str, part: &str) -> Violation {
    let message = format!("{what} `{name}`: `{part}` says nothing; name it after what it owns or does");
    Violation { path: path.to_owned(), line, message }
}

fn banned_part(name: &str) -> Option<&'static str> {
    let parts = parts(name);
    BANNED.iter().find(|banned| parts.iter().any(|part| part == *banned)).copied()
}

/// The words of `snake_case`, `kebab-case` and `CamelCase`, in small letters.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() || letter == '_' || letter == '-' {
            parts.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(last) = parts.last_mut()
        {
            last.extend(letter.to_lowercase());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found_as_whole_words() {
        let text = "struct LoadManager;\nfn string_utils() {}\nmod helper {}\nfn uncommon_futile() {}\nstruct Managers;\n";
        let found: Vec<usize> =
            check_items(&parsed("a.rs", text)).iter().map(|violation| violation.line).collect();
        let mut lines = found.clone();
        lines.sort_unstable();
        assert_eq!(lines, [1, 2, 3]);
    }

    #[test]
    fn paths_that_say_nothing_are_found() {
        assert_eq!(check_path("crates/lab/src/common.rs").len(), 1);
        assert_eq!(check_path("crates/test-utils/src/lib.rs").len(), 1);
        assert_eq!(check_path("crates/lab/src/init.rs").len(), 0);
    }
}
