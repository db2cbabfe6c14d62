//! fio: where it comes from, its jobs, and the reading of its figures.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::bench::packages;

/// Seconds that each timed job runs.
const SECONDS: &str = "--runtime=3";

/// What fio is asked to do.
pub const SYNCED: &[&str] =
    &["--rw=randwrite", "--bs=4k", "--size=64m", "--fdatasync=1", "--time_based", SECONDS];
/// A new file from its beginning to its end, not synced.
pub const WRITE: &[&str] = &["--rw=write", "--bs=1m", "--size=512m"];
/// Over a file that is in the cache below, as far as it is.
pub const READ: &[&str] = &["--rw=read", "--bs=1m", "--size=512m", "--time_based", SECONDS];
/// What a mount has seen before its memory is measured.
pub const SOME_WORK: &[&str] = &["--rw=randwrite", "--bs=8k", "--size=8m", "--fdatasync=16"];

/// What one job took.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Operations done.
    pub operations: f64,
    /// Operations a second.
    pub operations_per_s: f64,
    /// CPU time of fio for one, and of who serves it once that is added.
    pub cpu_us_per_operation: f64,
    /// Megabytes a second.
    pub mb_per_s: f64,
}

impl Job {
    /// With the CPU seconds of who served it.
    #[must_use]
    pub fn served_by(mut self, cpu_s: f64) -> Job {
        self.cpu_us_per_operation += cpu_s * 1e6 / self.operations;
        self
    }
}

/// The program.
#[derive(Debug)]
pub struct Fio {
    program: PathBuf,
    library_path: Option<OsString>,
}

impl Fio {
    /// The one on `PATH`; else the distribution's, unpacked into `folder`.
    ///
    /// # Errors
    /// When there is neither.
    pub fn find(folder: &Path) -> anyhow::Result<Fio> {
        if Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success()) {
            return Ok(Fio { program: "fio".into(), library_path: None });
        }
        eprintln!("fio is not installed: downloading its package");
        let unpacked =
            packages::unpack(&["fio"], true, folder).context("fio is missing; install the package `fio`")?;
        let program = unpacked.root.join("usr/bin/fio");
        Ok(Fio { program, library_path: Some(unpacked.library_path()?) })
    }

    /// Runs a job in a folder.
    ///
    /// # Errors
    /// When it fails, or says nothing that can be read.
    pub fn run(&self, job: &[&str], folder: &Path) -> anyhow::Result<Job> {
        let mut command = Command::new(&self.program);
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        command.args(["--name=job", "--ioengine=psync", "--output-format=json"]).args(job);
        command.arg(format!("--directory={}", folder.display()));
        // Not in the folder itself, which is to be unmounted.
        command.current_dir("/tmp");
        let said = packages::run(&mut command)?;
        let told: Value = serde_json::from_str(&said).context("read what fio says")?;
        let told = &told["jobs"][0];
        let way = if job[0] == "--rw=read" { "read" } else { "write" };
        let number = |value: &Value| value.as_f64().with_context(|| format!("fio says no number: {value}"));
        let (operations, runtime_ms) = (number(&told[way]["total_ios"])?, number(&told[way]["runtime"])?);
        let bytes_per_s = number(&told[way]["bw_bytes"])?;
        if operations <= 0.0 || bytes_per_s <= 0.0 || runtime_ms <= 0.0 {
            bail!("fio did nothing in {}", folder.display());
        }
        let cpu_share = (number(&told["usr_cpu"])? + number(&told["sys_cpu"])?) / 100.0;
        Ok(Job {
            operations,
            operations_per_s: operations * 1e3 / runtime_ms,
            cpu_us_per_operation: runtime_ms * 1e3 / operations * cpu_share,
            mb_per_s: bytes_per_s / 1e6,
        })
    }
}
