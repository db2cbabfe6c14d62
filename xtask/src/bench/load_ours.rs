//! Our load generator as one side of a pair, against any of the databases that the benches start.
//!
//! Owns how it is started and what its result makes of it. Each database is a file of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::cpu_account::cpu_of_reaped_children;
use super::load_sides::{Length, Side};

/// A database that our generator can be told of.
pub(super) trait Served {
    fn url(&self) -> String;

    /// Where runs against it leave their directories.
    fn runs(&self) -> PathBuf;

    /// Our generator, with its run directory under `out`.
    fn command(&self, holdfast: &Path, arguments: &[&str], out: &Path) -> Command {
        let mut command = Command::new(holdfast);
        command.arg("load").args(arguments).args(["--json", "--out"]).arg(out).args(["--url", &self.url()]);
        command
    }

    /// Runs our generator and returns its result.
    fn holdfast(&self, holdfast: &Path, arguments: &[&str]) -> anyhow::Result<Value> {
        result_of(&mut self.command(holdfast, arguments, &self.runs()))
    }

    /// Our generator with these options.
    fn ours(&self, holdfast: &Path, options: &[&str], clients: u32, length: Length) -> anyhow::Result<Side> {
        let (clients, seconds) = match length {
            Length::Little => (clients.to_string(), 1),
            Length::Seconds(seconds) => (clients.to_string(), seconds),
        };
        let span = format!("{seconds}s");
        let mut arguments = [options, &["--clients", &clients, "--for", &span]].concat();
        if matches!(length, Length::Little) {
            arguments.extend(["--rate", "100/s"]);
        }
        let before = cpu_of_reaped_children()?;
        let result = self.holdfast(holdfast, &arguments)?;
        let cpu = cpu_of_reaped_children()?.saturating_sub(before);
        let load = &result["loads"][0];
        let errors = &load["errors"];
        ensure!(errors.as_object().is_some_and(serde_json::Map::is_empty), "errors: {errors}");
        let transactions = load["transactions"].as_f64().context("transactions")?;
        ensure!(transactions > 0.0, "no transaction succeeded");
        Ok(Side { transactions, per_s: transactions / f64::from(seconds), cpu })
    }
}

/// Runs our generator; its result.
pub(super) fn result_of(load: &mut Command) -> anyhow::Result<Value> {
    let output = load.stdin(Stdio::null()).output()?;
    // Without tables of its own a load proves nothing, and says so by its exit code; its figures are what is asked for.
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 2)), "holdfast load: {}: {complaint}", output.status);
    serde_json::from_slice(&output.stdout).context("result of holdfast load")
}
