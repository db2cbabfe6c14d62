//! What `holdfast check` and `holdfast predict` take, and how their figures stand beside published ones.
//!
//! The programs are measured as they are shipped, process by process; the published figures are reckoned with the
//! library they use.

mod published;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use super::table::{Goal, Row, conclude};

/// A check takes at most so long.
const CHECK_MS: f64 = 50.0;
/// Predicting 10,000 nodes and 1,000,000 ranges takes at most so long.
const PREDICT_S: f64 = 5.0;
/// And so much memory.
const PREDICT_MB: f64 = 1_000.0;

/// Measures and prints.
///
/// # Errors
/// When a program does not do what it is asked.
pub fn run(times: usize) -> anyhow::Result<ExitCode> {
    ensure!(times > 0, "nothing to measure: --times 0");
    let holdfast = crate::program::build()?;
    let mut rows = checks(&holdfast, times)?;
    rows.extend(predictions(&holdfast, times)?);
    rows.extend(published::rows()?);
    Ok(if conclude("paper", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One run of the program.
struct Cost {
    wall_s: f64,
    memory_mb: f64,
}

fn measured(holdfast: &Path, arguments: &[&str]) -> anyhow::Result<Cost> {
    let begun = Instant::now();
    let mut command = Command::new(holdfast);
    command.args(arguments).current_dir(crate::repository_root()).stdout(Stdio::null());
    let child = command.spawn().with_context(|| format!("start {}", holdfast.display()))?;
    let pid = i32::try_from(child.id()).context("a process id")?;
    let mut status = 0;
    // SAFETY: all zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values that live on this stack; the child is ours and is waited for only here.
    let ended = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
    ensure!(ended == pid && status == 0, "holdfast {} ended with status {status}", arguments.join(" "));
    // The kernel counts KiB.
    Ok(Cost { wall_s: begun.elapsed().as_secs_f64(), memory_mb: usage.ru_maxrss as f64 * 1024.0 / 1e6 })
}

/// `holdfast check` on every shipped scenario.
fn checks(holdfast: &Path, times: usize) -> anyhow::Result<Vec<Row>> {
    let folder = crate::repository_root().join("scenarios");
    let mut readings = Vec::new();
    let mut scenarios = 0;
    for entry in std::fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            scenarios += 1;
            for _ in 0..times {
                let cost = measured(holdfast, &["check", &path.to_string_lossy()])?;
                readings.push((Some(cost.wall_s * 1e3), None));
            }
        }
    }
    ensure!(scenarios > 0, "no scenarios in {}", folder.display());
    let what = format!("check of each of {scenarios} shipped scenarios, wall");
    Ok(vec![Row::of_readings(&what, "no peer", "ms", &readings, Some(Goal::EachOfOursAtMost(CHECK_MS)))])
}

/// `holdfast predict` at two scales, the one ten times the other.
fn predictions(holdfast: &Path, times: usize) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let scenario = "scenarios/fr3-cloud-regions.yaml";
    for (nodes, ranges, goals) in [("1000", "100000", false), ("10000", "1000000", true)] {
        let mut costs = Vec::new();
        for _ in 0..times {
            costs.push(measured(holdfast, &["predict", scenario, "--nodes", nodes, "--ranges", ranges])?);
        }
        let mut row = |what: &str, unit: &str, of: &dyn Fn(&Cost) -> f64, most: f64| {
            let readings: Vec<_> = costs.iter().map(|cost| (Some(of(cost)), None)).collect();
            let goal = goals.then_some(Goal::EachOfOursAtMost(most));
            let what = format!("predict {nodes} nodes, {ranges} ranges: {what}");
            rows.push(Row::of_readings(&what, "no peer", unit, &readings, goal));
        };
        row("wall", "s", &|cost| cost.wall_s, PREDICT_S);
        row("memory", "MB", &|cost| cost.memory_mb, PREDICT_MB);
    }
    Ok(rows)
}
