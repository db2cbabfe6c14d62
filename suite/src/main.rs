//! `cargo xtask`: runs the tests, for which nothing else has to be built first, and hands all other chores on to the program
//! that knows them.
//!
//! Owns which of the two it is.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use suite::Tests;

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    match words.as_slice() {
        ["test"] if arguments.len() == 1 => suite::run(Tests::First),
        ["test", "--all"] if arguments.len() == 2 => suite::run(Tests::All(None)),
        ["test", "--all", "--part", part] if arguments.len() == 4 => {
            suite::run(Tests::All(Some(part.parse()?)))
        }
        _ => {
            let mut chores = suite::cargo();
            // Its results are expected where the caller stands.
            chores.current_dir(std::env::current_dir()?);
            chores.args(["run", "--quiet", "--package", "xtask", "--"]).args(arguments);
            Err(anyhow::Error::new(chores.exec()).context("cargo cannot be started"))
        }
    }
}
