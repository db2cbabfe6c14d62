//! Runs a program of this machine to its end, for what it says.
//!
//! Owns that there is an end to it where a program is only asked for its version. Whatever it fetches or installs takes as
//! long as it takes.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

/// How long a program may be open for writing before it counts as one that cannot be run. Whoever has just written it may
/// have it open still, and so may a process that was forked meanwhile, until it runs a program of its own.
const BEING_WRITTEN_MAX: Duration = Duration::from_secs(5);
/// How long a program may take over its version.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much of what it says is read, bytes.
const MOST_WORDS: u64 = 64 << 10;
/// How often it is looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// What a program says of its version: not more than a version takes, and not later. What it started and left behind ends
/// with it.
///
/// # Errors
/// The kernel's, see execve(2), `ETXTBSY` only where the program stays open for writing; `TimedOut` where it does not end.
pub(crate) fn version_output(command: &mut Command) -> io::Result<Output> {
    version_output_within(command, PATIENCE)
}

fn version_output_within(command: &mut Command, patience: Duration) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = once_written(|| command.spawn())?;
    let words = beginning_of(child.stdout.take());
    let words = words.and_then(|stdout| Ok((stdout, beginning_of(child.stderr.take())?)));
    // One that nobody can listen to is ended at once.
    let status = end_of_group(&mut child, if words.is_ok() { patience } else { Duration::ZERO });
    let ((stdout, stderr), status) = (words?, status?);
    // What left the group may hold the other ends of these.
    let all = |words: mpsc::Receiver<Vec<u8>>| words.recv_timeout(patience).map_err(|_| too_late(patience));
    Ok(Output { status, stdout: all(stdout)?, stderr: all(stderr)? })
}

/// Reads the beginning of what a program says, while it runs. Whatever it says later it says to nobody.
fn beginning_of(pipe: Option<impl Read + Send + 'static>) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (give, taken) = mpsc::channel();
    let listen = move || {
        let mut words = Vec::new();
        if let Some(pipe) = pipe {
            // What came before an error is as good as the rest would be.
            let _ = pipe.take(MOST_WORDS).read_to_end(&mut words);
        }
        // Nobody takes the words of a program that did not end.
        let _ = give.send(words);
    };
    thread::Builder::new().name("version".to_owned()).spawn(listen)?;
    Ok(taken)
}

/// Waits for the end of a program, then ends its group, whose first process it is.
fn end_of_group(child: &mut Child, patience: Duration) -> io::Result<ExitStatus> {
    let group = Pid::from_raw(child.id().cast_signed());
    let deadline = Instant::now() + patience;
    let ended = loop {
        if has_ended(group) {
            break true;
        }
        if Instant::now() >= deadline {
            break false;
        }
        thread::sleep(GLANCE);
    };
    // It was not waited for yet, so that its number is still its own. A group that is gone is no error.
    let _ = killpg(group, Signal::SIGKILL);
    let status = child.wait()?;
    if ended { Ok(status) } else { Err(too_late(patience)) }
}

/// Whether it has ended; it stays to be waited for. One that cannot be asked about is not waited for any longer.
fn has_ended(process: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    !matches!(waitid(Id::Pid(process), flags), Ok(WaitStatus::StillAlive))
}

fn too_late(patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {patience:?}"))
}

/// Starts a program, as soon as nobody has it open for writing any more.
fn once_written<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match start() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && began.elapsed() < BEING_WRITTEN_MAX =>
            {
                thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

/// Runs a program to its end and returns what it said; its last words are the error. Where the command says nothing else,
/// not in the folder that this program was started in, which may be a stranger's.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    if command.get_current_dir().is_none() {
        command.current_dir("/");
    }
    command.env("LC_ALL", "C").stdin(Stdio::null());
    let output =
        once_written(|| command.output()).map_err(|error| format!("{program} cannot be run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed ({}): {}", output.status, last_words(&stderr)))
}

/// The last of what a program said of its failure, in one line.
pub(crate) fn last_words(stderr: &str) -> String {
    let mut words: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).rev().take(4).collect();
    words.reverse();
    words.join(" | ")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_is_still_open_for_writing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let mut file = File::create(&path).expect("created");
        file.write_all(b"#!/bin/sh\necho ran\n").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("permissions");
        // Linux 6.11 and 6.12 run such a file.
        let Err(refused) = Command::new(&path).output() else {
            let test = "a_program_that_is_still_open_for_writing_is_waited_for";
            return eprintln!("skipped: {test}: this kernel runs what is open for writing");
        };
        assert_eq!(refused.kind(), io::ErrorKind::ExecutableFileBusy);
        let closing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(file);
        });
        assert_eq!(run(&mut Command::new(&path)), Ok("ran\n".to_owned()));
        closing.join().expect("closed");
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_program_that_says_more_than_a_version_is_read_no_further() {
        let output = version_output(&mut shell("while echo more; do :; done"));
        let output = output.expect("it ends when nobody listens");
        assert_eq!(output.stdout.len() as u64, MOST_WORDS);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        for script in ["exec sleep 600", "sleep 600 & sleep 600"] {
            let outcome = version_output_within(&mut shell(script), Duration::from_millis(100));
            let error = outcome.expect_err("it is ended");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{script}");
        }
    }

    #[test]
    fn what_a_program_leaves_behind_is_ended_and_not_waited_for() {
        let output = version_output(&mut shell("sleep 600 & echo 18.6")).expect("it ends");
        assert!(output.status.success());
        assert_eq!(output.stdout, b"18.6\n");
    }

    #[test]
    fn a_program_that_does_not_end_takes_with_it_what_it_started() {
        let mut command = shell("sleep 600 & echo started; sleep 600");
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().expect("a shell");
        let mut pipe = child.stdout.take().expect("a pipe");
        let mut words = [0; 8];
        pipe.read_exact(&mut words).expect("the first sleeper was started");
        assert_eq!(&words, b"started\n");
        let error = end_of_group(&mut child, Duration::ZERO).expect_err("it goes on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // This ends when nobody holds the pipe any more.
        assert_eq!(pipe.read_to_end(&mut Vec::new()).expect("read"), 0);
    }
}
