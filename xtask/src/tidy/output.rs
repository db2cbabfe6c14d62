//! Who prints and who ends the process: `holdfast`, `xtask`, tests and examples; and a few named exceptions.

use super::Violation;
use super::source::Source;

/// One use of the terminal or of the process's end outside tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    path: String,
    line: usize,
    what: &'static str,
}

/// A use that is right where it is.
#[derive(Debug)]
pub struct Exception {
    path: &'static str,
    what: &'static str,
    /// Why there is no other way. For the reader of this table.
    #[expect(dead_code, reason = "read by people")]
    why: &'static str,
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "crates/capabilities/build.rs",
        what: "println!",
        why: "a build script tells Cargo on standard output which folder to watch",
    },
    Exception {
        path: "crates/clock/build.rs",
        what: "println!",
        why: "a build script tells Cargo on standard output which files to watch",
    },
    Exception {
        path: "crates/run/src/chronicle.rs",
        what: "io::stdout",
        why: "the supervisor's standard output is the pipe on which the outer process reads its news",
    },
    Exception {
        path: "crates/rawio/src/server.rs",
        what: "io::stdout",
        why: "a node's process has its log there, in which whoever started it looks for the line that it listens",
    },
    Exception {
        path: "crates/run/src/supervise.rs",
        what: "io::stderr",
        why: "the supervisor's standard error is the file logs/lab/lab.log",
    },
    Exception {
        path: "crates/run/src/supervise.rs",
        what: "process::exit",
        why: "an interrupt while the lab is being built: PID 1 ends, and the half-built lab with it",
    },
    Exception {
        path: "crates/lab/src/supervisor.rs",
        what: "process::exit",
        why: "the process that stays outside the PID namespace only passes the supervisor's exit code on; and PID 1 must \
              end the moment the outer process is gone, whatever its other threads are doing",
    },
    Exception {
        path: "crates/lab/src/supervisor.rs",
        what: "_exit",
        why: "a forked child that writes the user maps and may run no destructor of its parent's",
    },
    Exception {
        path: "crates/lab/src/shell.rs",
        what: "_exit",
        why: "the forked processes on the way into a place, which may run no destructor of the caller's",
    },
    Exception {
        path: "crates/lab/src/machine.rs",
        what: "_exit",
        why: "a forked child that tries to make namespaces and may run no destructor of its parent's",
    },
];

/// Crates whose job it is.
const PROGRAMS: &[&str] = &["holdfast", "suite", "xtask"];

/// Tokens of each use.
const PATTERNS: &[(&str, &[&str])] = &[
    ("print!", &["print", "!"]),
    ("println!", &["println", "!"]),
    ("eprint!", &["eprint", "!"]),
    ("eprintln!", &["eprintln", "!"]),
    ("dbg!", &["dbg", "!"]),
    ("io::stdout", &["stdout", "(", ")"]),
    ("io::stderr", &["stderr", "(", ")"]),
    ("process::exit", &["process", ":", ":", "exit"]),
    ("process::abort", &["process", ":", ":", "abort"]),
    ("_exit", &["_exit", "("]),
];

/// Every use in a file, where it is not the file's job.
pub fn uses(source: &Source) -> Vec<Use> {
    if PROGRAMS.contains(&source.krate()) {
        return Vec::new();
    }
    let mut uses = Vec::new();
    for (what, tokens) in PATTERNS {
        for line in source.lines_with(tokens).filter(|line| !source.is_test(*line)) {
            uses.push(Use { path: source.path.clone(), line, what });
        }
    }
    uses
}

/// Uses without an exception, and exceptions without a use.
pub fn check(uses: &[Use], exceptions: &[Exception]) -> Vec<Violation> {
    let excepted = |used: &Use| exceptions.iter().any(|one| one.path == used.path && one.what == used.what);
    let mut found: Vec<Violation> = uses
        .iter()
        .filter(|used| !excepted(used))
        .map(|used| Violation {
            path: used.path.clone(),
            line: used.line,
            message: format!(
                "`{}` is for `holdfast` alone; return a value or an error, and let it be told there",
                used.what
            ),
        })
        .collect();
    let unused = exceptions
        .iter()
        .filter(|one| !uses.iter().any(|used| used.path == one.path && used.what == one.what));
    found.extend(unused.map(|one| Violation {
        path: one.path.to_owned(),
        line: 1,
        message: format!("no longer uses `{}`; take its exception out of xtask/src/tidy/output.rs", one.what),
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::parsed;
    use super::*;

    const PLANTED: &str = "fn f() {\n    println!(\"x\");\n    std::process::exit(1);\n    assert!({ eprint!(\"y\"); true });\n}\n";

    #[test]
    fn a_library_that_prints_or_exits_is_found_even_inside_a_macro() {
        let uses = uses(&parsed("crates/lab/src/node.rs", PLANTED));
        let found = check(&uses, &[]);
        let lines: Vec<usize> = found.iter().map(|violation| violation.line).collect();
        assert_eq!(lines, [2, 4, 3], "{found:?}");
    }

    #[test]
    fn programs_tests_and_examples_may() {
        for path in [
            "crates/holdfast/src/a.rs",
            "xtask/src/a.rs",
            "crates/lab/tests/a.rs",
            "crates/lab/examples/a.rs",
        ] {
            assert_eq!(uses(&parsed(path, PLANTED)), [], "{path}");
        }
        let in_module = format!("#[cfg(test)]\nmod tests {{\n{PLANTED}}}\n");
        assert_eq!(uses(&parsed("crates/lab/src/a.rs", &in_module)), []);
    }

    #[test]
    fn an_exception_holds_for_its_file_and_use_only_and_must_be_needed() {
        let exception = [Exception { path: "crates/a/src/b.rs", what: "io::stdout", why: "planted" }];
        let text = "fn f() { std::io::stdout().lock(); }";
        assert_eq!(check(&uses(&parsed("crates/a/src/b.rs", text)), &exception), []);
        let found = check(&uses(&parsed("crates/a/src/c.rs", text)), &exception);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].message.contains("no longer uses"), "{found:?}");
    }
}
