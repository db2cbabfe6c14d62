//! A node's virtual disk beside the file system below it, by fio, pair by pair: synced writes, sequential writes and reads,
//! CPU time per write, memory per mount.
//!
//! Owns the mounting, in a mount namespace of its own that goes with the process, and the reading of fio's figures. This
//! process serves the mounts and never uses them; fio does. libfuse's `passthrough_ll`, the peer one would wish for, is an
//! example that distributions do not ship as a program, so its column is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use disk::{Flush, FolderStore, Limits, Mount, Volume};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use tempfile::TempDir;

use super::table::{Row, conclude};

/// A mount may take so many megabytes.
const MEMORY_GOAL_MB: f64 = 5.0;
/// A sequential write must reach so many megabytes a second.
const WRITE_GOAL_MB_PER_S: f64 = 1000.0;
/// Mounts over which memory is measured.
const MOUNTS: usize = 20;
/// Seconds that each timed job runs.
const SECONDS: &str = "--runtime=4";

/// What fio is asked to do.
const SYNCED: &[&str] =
    &["--rw=randwrite", "--bs=4k", "--size=64m", "--fdatasync=1", "--time_based", SECONDS];
const WRITE: &[&str] = &["--rw=write", "--bs=1m", "--size=1g"];
const READ: &[&str] = &["--rw=read", "--bs=1m", "--size=1g", "--time_based", SECONDS];

/// What one job took.
#[derive(Debug, Clone, Copy)]
struct Job {
    us_per_operation: f64,
    cpu_us_per_operation: f64,
    mb_per_s: f64,
}

/// Measures and prints.
///
/// # Errors
/// When fio is missing or fails, or nothing can be mounted here.
pub fn run(pairs: usize) -> anyhow::Result<ExitCode> {
    ensure!(
        Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success()),
        "fio is missing; install the package `fio`"
    );
    if cfg!(debug_assertions) {
        return as_released(pairs);
    }
    enter_own_mounts().context("a mount namespace of one's own")?;
    let mut measured: [Vec<(Job, Job)>; 4] = Default::default();
    for pair in 1..=pairs {
        eprintln!("pair {pair} of {pairs}");
        let jobs =
            [(SYNCED, Flush::Real), (SYNCED, Flush::Pretended), (WRITE, Flush::Real), (READ, Flush::Real)];
        for ((job, flush), measured) in jobs.into_iter().zip(&mut measured) {
            measured.push((on_volume(job, flush)?, on_folder(job)?));
        }
    }
    let [synced, pretended, write, read] = &measured;
    let rows = [
        row("synced 4 KiB write, synced below as well", "us", synced, |job| job.us_per_operation),
        row("the same, CPU of fio and of serving", "us", synced, |job| job.cpu_us_per_operation),
        row("synced 4 KiB write, not synced below", "us", pretended, |job| job.us_per_operation),
        row("sequential write of 1 GiB", "s/GB", write, |job| 1000.0 / job.mb_per_s),
        against(
            "the same, held to 1 GB/s",
            "goal",
            "s/GB",
            write.iter().map(|(ours, _)| (1000.0 / ours.mb_per_s, 1000.0 / WRITE_GOAL_MB_PER_S)),
        ),
        row("sequential read, cached", "s/GB", read, |job| 1000.0 / job.mb_per_s),
        against("memory of a mount after use", "goal", "MB", [(memory_mb()?, MEMORY_GOAL_MB)]),
    ];
    Ok(if conclude("disk", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The same again, built as it is shipped: this process is the one that serves.
fn as_released(pairs: usize) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--package", "xtask", "--", "bench", "disk", "--pairs"]);
    let status = command.arg(pairs.to_string()).status().context("start cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(what: &str, unit: &str, pairs: &[(Job, Job)], figure: fn(&Job) -> f64) -> Row {
    let pairs: Vec<_> = pairs.iter().map(|(ours, theirs)| (figure(ours), figure(theirs))).collect();
    Row::of_pairs(what, "the file system below", unit, &pairs, None)
}

fn against(what: &str, peer: &str, unit: &str, pairs: impl IntoIterator<Item = (f64, f64)>) -> Row {
    Row::of_pairs(what, peer, unit, &pairs.into_iter().collect::<Vec<_>>(), Some(1.0))
}

fn enter_own_mounts() -> anyhow::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    Ok(())
}

/// A folder for one measurement, beside the build's own, which is on a disk where the temporary folder may be in memory.
fn folder() -> anyhow::Result<TempDir> {
    let target = crate::target_directory();
    tempfile::Builder::new()
        .prefix("bench-disk-")
        .tempdir_in(&target)
        .with_context(|| format!("make a folder in {}", target.display()))
}

/// A volume as mounted.
struct Mounted {
    mount: Mount,
    place: PathBuf,
    _folder: TempDir,
}

impl Mounted {
    fn new(flush: Flush) -> anyhow::Result<Mounted> {
        let folder = folder()?;
        let (store, place) = (folder.path().join("store"), folder.path().join("mounted"));
        fs::create_dir(&store)?;
        fs::create_dir(&place)?;
        let store = FolderStore::new(&store, flush);
        let volume = Volume::new(store, Limits::default(), 0, 0, SystemTime::now());
        let (point, mount) = disk::prepare(Arc::new(volume))?;
        point.mount_over(&place)?;
        Ok(Mounted { mount, place, _folder: folder })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Where it stays mounted, it goes with the namespace.
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
    }
}

fn on_volume(job: &[&str], flush: Flush) -> anyhow::Result<Job> {
    let mounted = Mounted::new(flush)?;
    let before = mounted.mount.cpu_time();
    let (mut measured, operations) = fio(job, &mounted.place)?;
    let serving = mounted.mount.cpu_time().saturating_sub(before);
    measured.cpu_us_per_operation += serving.as_secs_f64() * 1e6 / operations;
    Ok(measured)
}

fn on_folder(job: &[&str]) -> anyhow::Result<Job> {
    Ok(fio(job, folder()?.path())?.0)
}

/// Runs a job of fio in a folder. Returns what it took, and how many operations there were.
fn fio(job: &[&str], folder: &Path) -> anyhow::Result<(Job, f64)> {
    let output = Command::new("fio")
        .args(["--name=job", "--ioengine=psync", "--output-format=json"])
        .args(job)
        .arg(format!("--directory={}", folder.display()))
        .current_dir(folder.parent().unwrap_or(folder))
        .output()
        .context("start fio")?;
    ensure!(output.status.success(), "fio: {}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).context("read what fio says")?;
    let told = &told["jobs"][0];
    let way = if job[0] == "--rw=read" { "read" } else { "write" };
    let number = |value: &Value| value.as_f64().with_context(|| format!("fio says no number: {value}"));
    let (operations, runtime_ms) = (number(&told[way]["total_ios"])?, number(&told[way]["runtime"])?);
    let bytes_per_s = number(&told[way]["bw_bytes"])?;
    if operations <= 0.0 || bytes_per_s <= 0.0 {
        bail!("fio did nothing in {}", folder.display());
    }
    let cpu_share = (number(&told["usr_cpu"])? + number(&told["sys_cpu"])?) / 100.0;
    let us_per_operation = runtime_ms * 1e3 / operations;
    let job = Job {
        us_per_operation,
        cpu_us_per_operation: us_per_operation * cpu_share,
        mb_per_s: bytes_per_s / 1e6,
    };
    Ok((job, operations))
}

/// Megabytes that each of several mounts takes of this process, after fio has written to each.
fn memory_mb() -> anyhow::Result<f64> {
    let before = resident_kb()?;
    let mut mounts = Vec::new();
    for _ in 0..MOUNTS {
        let mounted = Mounted::new(Flush::Pretended)?;
        fio(&["--rw=randwrite", "--bs=8k", "--size=8m", "--fdatasync=16"], &mounted.place)?;
        mounts.push(mounted);
    }
    Ok((resident_kb()? - before).max(0.0) / 1e3 / MOUNTS as f64)
}

fn resident_kb() -> anyhow::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number =
        line.and_then(|line| line.split_whitespace().next()).context("no RssAnon in /proc/self/status")?;
    Ok(number.parse()?)
}
