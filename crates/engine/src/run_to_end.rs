//! Runs a program of this machine to its end, for what it says.

use std::process;

/// Runs a program to its end and returns what it said; its last words are the error. Where the command says nothing else,
/// not in the folder that this program was started in, which may be a stranger's.
pub(crate) fn run(command: &mut process::Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    if command.get_current_dir().is_none() {
        command.current_dir("/");
    }
    let output = command
        .env("LC_ALL", "C")
        .stdin(process::Stdio::null())
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut words: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).rev().take(4).collect();
    words.reverse();
    Err(format!("{program} failed ({}): {}", output.status, words.join(" | ")))
}
