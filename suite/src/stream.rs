//! Runs `cargo test`, shows what matters of its output as it comes, keeps all of it in a file, each line with the seconds since the
//! beginning: what takes long is seen there.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::failures::Failures;
use crate::tally::{Tally, skipped_line};

/// Where all of it is kept, under the target directory.
const LOG: &str = "xtask-test.log";

/// How long no test may end before the test program is taken for one that hangs. The longest test takes a third of it.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// What stands in the output of a test that passed is of no interest, but for its word that it was skipped. Those that are left
/// out by `#[ignore]` are counted.
#[derive(Default)]
struct Screen {
    within_successes: bool,
}

impl Screen {
    fn shows(&mut self, line: &str) -> bool {
        match line {
            "successes:" => self.within_successes = true,
            "failures:" => self.within_successes = false,
            _ if line.starts_with("test result: ") => self.within_successes = false,
            _ => {}
        }
        let expected =
            line.starts_with("test ") && (line.ends_with(" ... ok") || line.contains(" ... ignored"));
        let empty = line.is_empty()
            || line == "running 0 tests"
            || line.starts_with("test result: ok. 0 passed; 0 failed; 0 ig");
        (!self.within_successes && !expected && !empty) || skipped_line(line).is_some()
    }
}

/// Runs it; whether it succeeded, and what its lines count and tell.
///
/// # Errors
/// When it cannot be started or its output cannot be kept.
pub fn run(command: &mut Command) -> anyhow::Result<(bool, Tally)> {
    let path = crate::target_directory().join(LOG);
    let mut log = File::create(&path).with_context(|| format!("create {}", path.display()))?;
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("start cargo test")?;
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        lines_of(stdout, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        lines_of(stderr, sender);
    }
    let began = Instant::now();
    let (mut tally, mut screen, mut failures) = (Tally::default(), Screen::default(), Failures::default());
    let mut hung = false;
    loop {
        let line = match receiver.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                hung = true;
                end_test_program(child.id())?;
                format!(
                    "no test ended within {} minutes: the test program was killed",
                    PATIENCE.as_secs() / 60
                )
            }
        };
        writeln!(log, "{:7.1} {line}", began.elapsed().as_secs_f64())
            .with_context(|| format!("write {}", path.display()))?;
        tally.read(&line);
        failures.read(&line);
        if screen.shows(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().context("wait for cargo test")?;
    println!("all of the tests' output: {}", path.display());
    tally.failures = failures.lines;
    Ok((status.success() && !hung, tally))
}

/// Kills what cargo has started, and with it the labs that it holds. Cargo goes on with the next test program.
///
/// # Errors
/// When it cannot be seen what cargo has started.
fn end_test_program(cargo: u32) -> anyhow::Result<()> {
    let path = format!("/proc/{cargo}/task/{cargo}/children");
    let children = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        // One that has ended meanwhile needs no signal.
        let _ = kill(Pid::from_raw(child), Signal::SIGKILL);
    }
    Ok(())
}

fn lines_of(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_and_a_skip_are_shown_and_the_chatter_of_what_passed_is_not() {
        let mut screen = Screen::default();
        let lines = [
            ("running 2 tests", true),
            ("test a ... ok", false),
            ("test b ... FAILED", true),
            ("test c ... ignored, second tier", false),
            ("successes:", false),
            ("chatter", false),
            ("skipped: a: no tun", true),
            ("failures:", true),
            ("assertion failed", true),
            ("test result: FAILED. 1 passed; 1 failed; 0 ignored", true),
            ("     Running next", true),
        ];
        for (line, shown) in lines {
            assert_eq!(screen.shows(line), shown, "{line}");
        }
    }
}
