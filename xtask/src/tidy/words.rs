//! Words that must not stand in the repository: unfinished work without an issue, places that only one machine has, and phrases to
//! puzzle over.

use super::source::{Source, Token};
use super::{TextFile, Violation};

/// Marks of unfinished work. Written in two parts, so that this file is not its own first finding.
const UNFINISHED: &[&str] = &[concat!("FIX", "ME"), concat!("TO", "DO"), concat!("XX", "X:")];

/// Macros that stand for unfinished work.
const UNFINISHED_MACROS: &[&str] = &["todo", "unimplemented"];

/// Roots of paths that only one person's machine has.
const PRIVATE_ROOTS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

/// Hosts that packages come from: a client of theirs knows them, we need not.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("registry.npm", "js.org"),
    concat!("repo1.", "maven.org"),
    concat!("proxy.go", "lang.org"),
    concat!("deb.deb", "ian.org"),
    concat!("archive.ubu", "ntu.com"),
];

/// Phrases that readers of documents and messages have to puzzle over, and the plain ones. The reference says what the program says.
const PHRASES: &[(&str, &str)] = &[
    (concat!("held", " against"), "compared with"),
    (concat!(" is", " of "), "belongs to, or comes from"),
    (concat!("such", " that also"), "which also"),
    (concat!("was", " told"), "was sent, or was reported"),
    (concat!("un", "told"), "not judged"),
    (concat!("becomes", " of"), "happens to"),
    (concat!("passed", " over"), "skipped, or ignored"),
    (concat!("as without", " it"), "the default"),
];
/// Whose comments of documentation are the text of `--help`.
const HELP: &str = "crates/holdfast/src/arguments.rs";
const WRITTEN_BY_PEOPLE: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/guide/",
    "docs/design/",
    "docs/performance.md",
];

/// Files that other programs write, with these words in them.
const WRITTEN_BY_CARGO: &str = "Cargo.lock";
/// Paths that are an example of a path, and where.
const EXAMPLES_OF_PATHS: &[(&str, &str)] = &[(
    "crates/engine/src/installation.rs",
    "a user's home folder in a unit test, not a place on any machine",
)];

/// Words in any text file.
pub fn check(file: &TextFile) -> Vec<Violation> {
    if file.path.ends_with(WRITTEN_BY_CARGO) {
        return Vec::new();
    }
    let paths_allowed = EXAMPLES_OF_PATHS.iter().any(|(path, _)| *path == file.path);
    let by_people = WRITTEN_BY_PEOPLE.iter().any(|path| file.path.starts_with(path));
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        let mut say = |message| found.push(Violation { path: file.path.clone(), line: number + 1, message });
        for mark in UNFINISHED.iter().filter(|mark| line.contains(**mark)) {
            say(format!("`{mark}`: finish it, or open an issue and say here what does not work yet"));
        }
        if by_people {
            phrases_in(line).for_each(&mut say);
        }
        for root in PRIVATE_ROOTS.iter().filter(|root| !paths_allowed && begins_a_path(line, root)) {
            say(format!("a path under `{root}` exists on one machine; write it relative to the repository"));
        }
        for host in REGISTRY_HOSTS.iter().filter(|host| line.contains(**host)) {
            say(format!("`{host}`: name the package client that fetches it, not the host it fetches from"));
        }
    }
    found
}

/// Whether a path in `line` begins with `root`, rather than has it somewhere within.
fn begins_a_path(line: &str, root: &str) -> bool {
    let within =
        |before: char| before.is_alphanumeric() || matches!(before, '.' | '_' | '-' | '}' | '/' | '>');
    line.match_indices(root).any(|(at, _)| !line[..at].ends_with(within))
}

/// The phrases of a text, each with what to do instead.
fn phrases_in(text: &str) -> impl Iterator<Item = String> {
    let found = PHRASES.iter().filter(move |(phrase, _)| text.contains(phrase));
    found.map(|(phrase, plain)| format!("`{}`: write plainly: {plain}", phrase.trim()))
}

/// Unfinished work in Rust, and phrases in what the program says.
pub fn check_source(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut say = |line, message| found.push(Violation { path: source.path.clone(), line, message });
    for name in UNFINISHED_MACROS {
        for line in source.lines_with(&[name, "!"]) {
            say(line, format!("`{name}!`: return an error that says what this version cannot do"));
        }
    }
    for line in &source.ignored_without_reason {
        say(*line, "`#[ignore]` without a reason; write `#[ignore = \"why\"]`".to_owned());
    }
    for token in said(source) {
        phrases_in(&on_one_line(&token.text)).for_each(|message| say(token.line, message));
    }
    found
}

/// The strings that somebody may come to read. Tests and comments are for those who read the source.
fn said(source: &Source) -> impl Iterator<Item = &Token> {
    let tokens = &source.tokens;
    let is_comment = move |at: usize| at > 1 && tokens[at - 1].text == "=" && tokens[at - 2].text == "doc";
    let is_said = move |at: usize| source.path == HELP || !is_comment(at);
    let strings = tokens.iter().enumerate().filter(|(_, token)| token.text.contains('"'));
    let said = strings.filter(move |(at, token)| is_said(*at) && !source.is_test(token.line));
    said.map(|(_, token)| token)
}

/// A string as it is shown: one that goes on in the next line of the source has no break there.
fn on_one_line(string: &str) -> String {
    let mut lines = string.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |whole, line| whole + line.trim_start())
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&TextFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(count("a.md", concat!("see TO", "DO below")), 1);
        assert_eq!(count("a.rs", concat!("// FIX", "ME: later")), 1);
        let text = "fn f() { todo!() }\n#[ignore]\n#[test]\nfn g() {}\n#[ignore = \"ten minutes\"]\n#[test]\nfn h() {}\n";
        let lines: Vec<usize> =
            check_source(&parsed("a.rs", text)).iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn a_phrase_to_puzzle_over_is_found_where_people_write() {
        assert_eq!(count("README.md", "figures are held against the baseline"), 1);
        assert_eq!(count("CHANGELOG.md", "figures are held against the baseline"), 0);
    }

    #[test]
    fn a_phrase_to_puzzle_over_is_found_in_a_string_also_across_lines_and_not_in_comments_or_tests() {
        let lines = |path: &str, text: &str| {
            let found = check_source(&parsed(path, text));
            found.iter().map(|violation| violation.line).collect::<Vec<_>>()
        };
        let message = "enum E {\n    #[error(\"the lab is of user {0}\")]\n    A(u32),\n}\n";
        assert_eq!(lines("crates/a/src/lib.rs", message), [2]);
        let broken = "fn f() {\n    g(\"what becomes \\\n       of it\");\n}\n";
        assert_eq!(lines("crates/a/src/lib.rs", broken), [2]);
        let comment = "/// What becomes of it.\n// It was told.\nfn f() {}\n";
        assert_eq!(lines("crates/a/src/lib.rs", comment), [0; 0]);
        assert_eq!(lines(HELP, comment), [1]);
        let test = "#[cfg(test)]\nmod tests {\n    const A: &str = \"it was told\";\n}\n";
        assert_eq!(lines("crates/a/src/lib.rs", test), [0; 0]);
        assert_eq!(lines("crates/a/tests/b.rs", "const A: &str = \"it was told\";\n"), [0; 0]);
    }

    #[test]
    fn a_path_of_one_machine_is_found_and_a_part_of_another_path_is_not() {
        assert_eq!(count("a.md", concat!("in `/ho", "me/ann/x`")), 1);
        assert_eq!(count("a.md", concat!("/ro", "ot/x")), 1);
        assert_eq!(count("a.md", concat!("target/wo", "rk/x and $DIR/ho", "me/x")), 0);
    }

    #[test]
    fn a_registrys_host_is_found_but_for_cargos_own_file() {
        let text = concat!("https://crates", ".io/x");
        assert_eq!(count("README.md", text), 1);
        assert_eq!(count("Cargo.lock", text), 0);
    }
}
