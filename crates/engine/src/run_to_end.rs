//! Runs a program of this machine to its end, for what it says.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

/// How long a program may be open for writing before it counts as one that cannot be run. Whoever has just written it may
/// have it open still, and so may a process that was forked meanwhile, until it runs a program of its own.
const BEING_WRITTEN_MAX: Duration = Duration::from_secs(5);

/// The output of a program that is run to its end.
///
/// # Errors
/// The kernel's, see execve(2); `ETXTBSY` only where the program stays open for writing.
pub(crate) fn output(command: &mut Command) -> io::Result<Output> {
    let began = Instant::now();
    loop {
        match command.output() {
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
    let output = output(command.env("LC_ALL", "C").stdin(Stdio::null()))
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
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
}
