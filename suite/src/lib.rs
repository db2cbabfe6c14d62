//! `cargo xtask test`: everything that must hold, step by step, and one line at the end that counts it.
//!
//! Owns the order of the steps. What is tested stands with what is tested, tidiness of the repository too; how results are
//! read, in [`tally`]. It stands apart from the other chores because they are built with nearly all of the project, from other
//! features of what that stands on, and would be built a second time for their tests.

mod chromium;
mod failures;
pub mod part;
mod stream;
pub mod tally;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use part::Part;
use tally::Tally;

/// How cargo is asked for all tests. Not for examples, which clippy looks at, nor for code in comments, of which there is
/// none: both would be built here and not be run.
const TESTS: [&str; 3] = ["test", "--workspace", "--tests"];

/// Environment variable of a test program: how many of its tests run at the same time.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// Most tests wait most of the time. Those that keep a processor busy take turns (`end_to_end/turns.rs`).
const THREADS_FOR_A_PROCESSOR: usize = 3;

/// The top folder of the repository this program was built from.
#[must_use]
pub fn repository_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where build results go.
#[must_use]
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository_root().join("target"), PathBuf::from)
}

/// How a step came out.
enum Outcome {
    /// It holds.
    Passed,
    /// It does not; what was wrong has been printed.
    Failed,
    /// It could not be tried here, and why.
    Skipped(String),
    /// Many tests, counted one by one.
    Counted(Tally),
}

/// Which tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tests {
    /// Those of the first tier.
    First,
    /// All of them, or a part.
    All(Option<Part>),
}

/// Does all steps, even after one has failed: one run shows everything that is wrong.
///
/// # Errors
/// When cargo cannot be started or the repository cannot be read.
pub fn run(wanted: Tests) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let mut tally = Tally::default();
    step("chromium", &mut tally, || Ok(chromium::make_sure()))?;
    step("rustfmt", &mut tally, || tool("fmt", "rustfmt", &["fmt", "--all", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    step("clippy", &mut tally, || tool("clippy", "clippy", &clippy))?;
    step("build", &mut tally, build)?;
    step("machine", &mut tally, machine)?;
    step("tests", &mut tally, || tests(wanted))?;
    for skipped in &tally.skipped {
        println!("skipped: {skipped}");
    }
    for line in &tally.failures {
        println!("{line}");
    }
    println!("{:.0} s in all", began.elapsed().as_secs_f64());
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn step(name: &str, tally: &mut Tally, does: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<()> {
    println!("== {name}");
    let began = Instant::now();
    let outcome = does()?;
    let word = match outcome {
        Outcome::Passed => {
            tally.passed += 1;
            "passed".to_owned()
        }
        Outcome::Failed => {
            tally.failed += 1;
            "FAILED".to_owned()
        }
        Outcome::Skipped(why) => {
            tally.skip(&format!("{name}: {why}"));
            format!("skipped: {name}: {why}")
        }
        Outcome::Counted(counted) => {
            let word = counted.to_string();
            tally.add(counted);
            word
        }
    };
    println!("== {name}: {word} ({:.0} s)", began.elapsed().as_secs_f64());
    Ok(())
}

/// Cargo, at the top folder of the repository.
#[must_use]
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository_root());
    command
}

/// A step that is one call of one of cargo's own tools.
fn tool(subcommand: &str, component: &str, arguments: &[&str]) -> anyhow::Result<Outcome> {
    let found = cargo().args([subcommand, "--version"]).output()?;
    if !found.status.success() {
        return Ok(Outcome::Skipped(format!("not installed; `rustup component add {component}`")));
    }
    let status = cargo().args(arguments).status()?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed })
}

/// Builds the tests and the program that they start.
fn build() -> anyhow::Result<Outcome> {
    let status = cargo().args(TESTS).args(["--no-run", "--quiet"]).status()?;
    Ok(if status.success() { Outcome::Passed } else { Outcome::Failed })
}

/// What this machine allows a lab to do, for whoever reads the rest: tests that need more skip themselves. Asks the program
/// that was built with the tests: cargo would build one for itself alone from other features of what it stands on.
fn machine() -> anyhow::Result<Outcome> {
    let program = target_directory().join("debug/holdfast");
    if !program.is_file() {
        return Ok(Outcome::Skipped(format!("{} was not built", program.display())));
    }
    let status = Command::new(program).arg("doctor").current_dir(repository_root()).status()?;
    Ok(match status.code() {
        Some(0) => Outcome::Passed,
        Some(255) => Outcome::Skipped("no lab can run here; the remedies stand above".to_owned()),
        _ => Outcome::Failed,
    })
}

/// Names of all tests, as the test programs list them.
fn listed() -> anyhow::Result<String> {
    let listed = cargo().args(TESTS).args(["--quiet", "--", "--list", "--format", "terse"]).output()?;
    anyhow::ensure!(
        listed.status.success(),
        "the tests cannot be listed: {}",
        String::from_utf8_lossy(&listed.stderr)
    );
    Ok(String::from_utf8(listed.stdout)?)
}

fn tests(wanted: Tests) -> anyhow::Result<Outcome> {
    let mut command = cargo();
    command.args(TESTS).args(["--no-fail-fast", "--", "--show-output"]);
    if std::env::var_os(TEST_THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.env(TEST_THREADS, (THREADS_FOR_A_PROCESSOR * processors).to_string());
    }
    if let Tests::All(part) = wanted {
        command.arg("--include-ignored");
        if let Some(part) = part {
            let skip = |name| ["--skip".to_owned(), name];
            command.arg("--exact").args(part.leaves_out(&listed()?)?.into_iter().flat_map(skip));
        }
    }
    let (succeeded, mut tally) = stream::run(&mut command)?;
    if !succeeded && tally.failed == 0 {
        // A test program that did not compile, or died without a result line.
        tally.failed = 1;
    }
    Ok(Outcome::Counted(tally))
}
