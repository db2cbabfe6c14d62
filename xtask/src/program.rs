//! The program under test: built as it is shipped, and run on a scenario of the repository.
//!
//! Owns both for all chores; what a result must say is each chore's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

/// Builds the program, optimised; where it lies.
///
/// # Errors
/// When it does not build.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--release", "--quiet", "--package", "holdfast"];
    let status = Command::new(cargo).args(arguments).current_dir(crate::repository_root()).status()?;
    ensure!(status.success(), "cargo build --release: {status}");
    Ok(crate::target_directory().join("release/holdfast"))
}

/// Runs `scenarios/SCENARIO.yaml` with further arguments, in a folder that is removed; exit code and `result.json`.
///
/// # Errors
/// When the run leaves no result.
pub(crate) fn run(holdfast: &Path, scenario: &str, further: &[&str]) -> anyhow::Result<(Option<i32>, Value)> {
    run_file(holdfast, &crate::repository_root().join(format!("scenarios/{scenario}.yaml")), further)
}

/// The same with a scenario's file, wherever it lies.
///
/// # Errors
/// When the run leaves no result.
pub(crate) fn run_file(
    holdfast: &Path,
    scenario: &Path,
    further: &[&str],
) -> anyhow::Result<(Option<i32>, Value)> {
    let out = tempfile::Builder::new().prefix("holdfast-chore-").tempdir().context("a folder")?;
    let output = Command::new(holdfast)
        .arg("run")
        .arg(scenario)
        .args(further)
        .args(["--json", "--out"])
        .arg(out.path())
        .stdin(Stdio::null())
        .output()
        .context("holdfast run")?;
    let told = || {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{} {}: {}: no result: {said}", scenario.display(), further.join(" "), output.status)
    };
    Ok((output.status.code(), serde_json::from_slice(&output.stdout).with_context(told)?))
}
