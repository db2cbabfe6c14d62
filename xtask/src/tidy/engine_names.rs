//! Names of engines: they stand with what an engine or a protocol is, and nowhere else, so that a new engine changes no other
//! crate.
//!
//! Looks at strings and at names in code. Comments may tell of any database, and a dialect of SQL is called after one.

use super::source::{Source, Token};
use super::{TextFile, Violation, names};

/// Crates that say what engines and protocols are, or speak the protocols.
const OWNERS: &[&str] = &["engine", "client", "capabilities"];

/// Where an engine's file is, around its name.
const FOLDER: &str = "engines/";
const ENDING: &str = ".yaml";

/// Names that no file in `engines/` has: of the engine that is written in Rust, and other names of the same products.
const OTHER_NAMES: &[&str] = &["cockroach", "mongo", "postgres", "postgresql", "yugabyte"];

/// Types whose variants are dialects of SQL, in which workloads write their statements.
const DIALECTS: &[&str] = &["Dialect", "SqlDialect"];

/// One use of an engine's name where it has no business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    path: String,
    line: usize,
    name: String,
}

/// A file in which some names are right.
#[derive(Debug)]
pub struct Exception {
    path: &'static str,
    names: &'static [&'static str],
    /// Why there is no other way. For the reader of this table.
    #[expect(dead_code, reason = "read by people")]
    why: &'static str,
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "crates/holdfast/src/commands/load/password.rs",
        names: &["postgresql"],
        why: "libpq's password file calls these folders `localhost`",
    },
    Exception {
        path: "crates/holdfast/src/commands/load/url.rs",
        names: &["postgres", "postgresql"],
        why: "reads a URL as libpq does, with its file of certificates; messages show such a URL",
    },
    Exception {
        path: "crates/kubernetes_lab/src/control_plane.rs",
        names: &["etcd"],
        why: "the flag by which an API server is led to its store",
    },
    Exception {
        path: "crates/kubernetes_lab/src/pieces.rs",
        names: &["etcd"],
        why: "a program of Kubernetes' control plane, and its package: its store, no database of a run",
    },
    Exception {
        path: "crates/load/src/lib.rs",
        names: &["postgres", "redis"],
        why: "what a plan holds for a protocol is that client's own type",
    },
    Exception {
        path: "crates/load/src/plan.rs",
        names: &["etcd", "postgres", "redis"],
        why: "the one place where a protocol becomes its client",
    },
    Exception {
        path: "crates/load/src/replica_read.rs",
        names: &["postgres"],
        why: "asks each standby by itself, with the client of the one protocol whose standbys say how far they are",
    },
    Exception {
        path: "crates/model/src/practice/layout.rs",
        names: &["etcd", "postgresql"],
        why: "documents that rules cite; the rules apply to every engine that has the setting",
    },
    Exception {
        path: "crates/model/src/practice/machine.rs",
        names: &["cassandra", "postgresql"],
        why: "documents that rules about machines cite",
    },
    Exception {
        path: "crates/remote/src/language.rs",
        names: &["postgresql"],
        why: "an example of a unit, which users name",
    },
    Exception {
        path: "crates/remote/src/parameter.rs",
        names: &["postgresql"],
        why: "examples of a unit and of a path, which users name",
    },
    Exception {
        path: "crates/scenario/src/release.rs",
        names: &["postgresql"],
        why: "an example of a path, which users name",
    },
    Exception {
        path: "crates/scenario/src/faults/external.rs",
        names: &["postgresql"],
        why: "an example of a unit, which users name",
    },
    Exception {
        path: "crates/workload/src/script/mod.rs",
        names: &["postgresql"],
        why: "a refusal names the dialect of SQL that it is about",
    },
    Exception {
        path: "crates/workload/src/tpcc/mod.rs",
        names: &["postgresql"],
        why: "a refusal names the dialect of SQL that it is about",
    },
];

/// The names of all engines, in small letters.
pub fn known(files: &[TextFile]) -> Vec<String> {
    let of_file = |file: &TextFile| {
        let name = file.path.strip_prefix(FOLDER)?.strip_suffix(ENDING)?;
        (!name.contains('/')).then(|| name.to_lowercase())
    };
    files.iter().filter_map(of_file).chain(OTHER_NAMES.iter().map(|name| (*name).to_owned())).collect()
}

/// Every use in a file of a crate that should know none of these names.
pub fn uses(source: &Source, text: &str, known: &[String]) -> Vec<Use> {
    let is_of_a_crate = source.path.starts_with("crates/") && source.path.contains("/src/");
    if !is_of_a_crate || OWNERS.contains(&source.krate()) || !has_one(text, known) {
        return Vec::new();
    }
    let mut uses = Vec::new();
    for (number, token) in source.tokens.iter().enumerate() {
        if source.is_test(token.line) || !has_one(&token.text, known) || is_exempt(&source.tokens, number) {
            continue;
        }
        let found = words(&token.text).into_iter().filter(|word| known.contains(word));
        uses.extend(found.map(|name| Use { path: source.path.clone(), line: token.line, name }));
    }
    uses
}

/// Whether a name stands somewhere in a text, also within a word. Quick, because nearly all texts have none.
fn has_one(text: &str, known: &[String]) -> bool {
    let text = text.to_ascii_lowercase();
    known.iter().any(|name| text.contains(name.as_str()))
}

/// Whether a token is a comment of documentation or a dialect of SQL.
fn is_exempt(tokens: &[Token], number: usize) -> bool {
    let before = |steps: usize| number.checked_sub(steps).map_or("", |place| tokens[place].text.as_str());
    let documents = before(1) == "=" && before(2) == "doc";
    documents || (before(1) == ":" && before(2) == ":" && DIALECTS.contains(&before(3)))
}

/// The words of a string or of a name, in small letters.
fn words(token: &str) -> Vec<String> {
    match token.contains('"') {
        true => token.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect(),
        false => names::parts(token),
    }
}

/// Uses without an exception, and exceptions without a use.
pub fn check(uses: &[Use], exceptions: &[Exception]) -> Vec<Violation> {
    let excepted = |used: &Use| {
        exceptions.iter().any(|one| one.path == used.path && one.names.contains(&used.name.as_str()))
    };
    let mut found: Vec<Violation> = uses
        .iter()
        .filter(|used| !excepted(used))
        .map(|used| Violation {
            path: used.path.clone(),
            line: used.line,
            message: format!(
                "`{}` is an engine's name: let the engine or its protocol state what is asked here, in `capabilities`",
                used.name
            ),
        })
        .collect();
    for exception in exceptions {
        let is_used = |name: &&str| uses.iter().any(|one| one.path == exception.path && one.name == **name);
        found.extend(exception.names.iter().filter(|name| !is_used(name)).map(|name| Violation {
            path: exception.path.to_owned(),
            line: 1,
            message: format!(
                "no longer names `{name}`; take its exception out of xtask/src/tidy/engine_names.rs"
            ),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    fn engines() -> Vec<String> {
        let file = |path: &str| TextFile { path: path.to_owned(), text: String::new() };
        known(&[file("engines/etcd.yaml"), file("engines/rejected/unknown-key.yaml"), file("README.md")])
    }

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let uses = uses(&parsed(path, text), text, &engines());
        uses.into_iter().map(|one| (one.line, one.name)).collect()
    }

    #[test]
    fn each_file_of_the_folder_is_a_name_and_the_rejected_ones_are_not() {
        assert!(engines().contains(&"etcd".to_owned()) && engines().contains(&"postgres".to_owned()));
        assert!(!engines().iter().any(|name| name.contains("unknown")));
    }

    #[test]
    fn an_engines_name_in_a_string_or_a_path_is_found() {
        let text =
            "fn f() {\n    g(\"on PostgreSQL only\");\n    client::etcd::Wait;\n    Protocol::Postgres;\n}\n";
        let expected = [(2_usize, "postgresql"), (3, "etcd"), (4, "postgres")];
        let expected = expected.map(|(line, name)| (line, name.to_owned()));
        assert_eq!(found("crates/model/src/lib.rs", text), expected);
        assert_eq!(
            found("crates/model/src/lib.rs", "use client::redis::EtcdClient;\n"),
            [(1_usize, "etcd".to_owned())]
        );
    }

    #[test]
    fn comments_dialects_tests_and_other_words_are_free() {
        let text = "//! As etcd does.\n/// As etcd does.\nfn f(d: Dialect) {\n    // PostgreSQL\n    g(d == Dialect::Postgres, \
                    \"betcd\");\n}\n#[cfg(test)]\nmod tests {\n    const A: &str = \"etcd\";\n}\n";
        assert!(found("crates/model/src/lib.rs", text).is_empty());
        let named = "const A: &str = \"etcd\";\n";
        for path in
            ["crates/engine/src/a.rs", "crates/client/src/a.rs", "crates/a/tests/b.rs", "xtask/src/a.rs"]
        {
            assert!(found(path, named).is_empty(), "{path}");
        }
        assert!(found("crates/a/src/b/tests.rs", named).is_empty());
    }

    #[test]
    fn an_exception_holds_for_its_file_and_name_only_and_must_be_needed() {
        let exception = [Exception { path: "crates/a/src/b.rs", names: &["etcd"], why: "planted" }];
        let text = "const A: &str = \"etcd\";\n";
        let in_file = |path: &str| uses(&parsed(path, text), text, &engines());
        assert!(check(&in_file("crates/a/src/b.rs"), &exception).is_empty());
        let found = check(&in_file("crates/a/src/c.rs"), &exception);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].message.contains("no longer names"), "{found:?}");
    }
}
