//! The same load twice, pair by pair: how often the comparison calls a difference where there is none (an A/A test), and
//! whether it finds one that was planted.
//!
//! Owns the pairs. Judged is what `holdfast compare` judges, `measure::compare` on the throughput of each second; warm-up,
//! each side's own, is left out of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use measure::compare::{Comparison, Finding, Sampling, compare};

use super::load_ours::{Served, result_of};
use super::load_server::{SESSIONS, Server};
use super::table::{Row, conclude};

/// Called a difference at most so often, of forty.
const MOST_CALLED_OF_40: f64 = 3.0;
/// Left out at the beginning of each side.
const WARM_UP_S: u64 = 2;
/// What both sides do.
const ALIKE: &[&str] = &["--clients", "8"];
/// What stands for a difference that is one: clients that think, 40 transactions a second at most.
const PLANTED: &[&str] = &["--clients", "8", "--think-time", "200ms"];

/// Runs the pairs and prints what was called.
///
/// # Errors
/// When a side does not do its job.
pub fn run(pairs: usize, seconds: u32) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0 && seconds > 0, "nothing to measure: --pairs 0 or --seconds 0");
    let holdfast = crate::program::build()?;
    let bin = engine::registry::named("postgres")?.find(None).context("PostgreSQL")?.bin;
    let server = Server::start(&bin, SESSIONS)?;
    server.pgbench(&["-i", "-q", "-s", "10"])?;
    let compared = |what: &str, pair: usize, how: &[&str]| -> anyhow::Result<Comparison> {
        let first = throughput_per_s(&server, &holdfast, ALIKE, seconds)?;
        let second = throughput_per_s(&server, &holdfast, how, seconds)?;
        let seen = compare(&first, &second, Sampling::SecondsOfOneRun, 0.0, pair as u64);
        let (ratio, finding) = (seen.ratio, seen.finding.name());
        println!(
            "{what} {pair}: second by first {ratio:.3} ({:.3} to {:.3}): {finding}",
            seen.low, seen.high
        );
        Ok(seen)
    };
    let (mut called, mut ratios) = (0.0, Vec::new());
    for pair in 0..pairs {
        let seen = compared("alike", pair, ALIKE)?;
        ensure!(seen.finding != Finding::Unknown, "too little was measured to compare: take more --seconds");
        called += f64::from(u8::from(seen.finding != Finding::Noise));
        ratios.push((seen.ratio, 1.0));
    }
    let (planted, mut found) = (pairs.div_ceil(8), 0);
    for pair in 0..planted {
        found += usize::from(compared("planted", pair, PLANTED)?.finding == Finding::Smaller);
    }
    let most = (MOST_CALLED_OF_40 * pairs as f64 / 40.0).max(1.0);
    let rows = [
        Row::of_pairs(
            "called a difference, of pairs alike",
            "at most",
            "pairs",
            &[(called, most)],
            Some(1.0),
        ),
        Row::of_pairs("second by first, of pairs alike", "the truth", "", &ratios, None),
        Row::of_pairs(
            "planted differences not found",
            "planted",
            "pairs",
            &[((planted - found) as f64, planted as f64)],
            Some(0.0),
        ),
    ];
    Ok(if conclude("load-alike", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Transactions that succeeded in each second of a run of its own, after its warm-up.
fn throughput_per_s(
    server: &Server,
    holdfast: &Path,
    how: &[&str],
    seconds: u32,
) -> anyhow::Result<Vec<f64>> {
    let length = format!("{seconds}s");
    let warm_up = format!("{WARM_UP_S}s");
    let arguments = ["--workload", "tpcb", "--scale", "10", "--no-history"];
    let times = ["--warm-up", &warm_up, "--for", &length];
    let out = tempfile::tempdir_in(server.folder.path()).context("a folder")?;
    result_of(&mut server.command(holdfast, &[&arguments[..], how, &times[..]].concat(), out.path()))?;
    let run = newest(out.path())?;
    let path = run.join("timeline.csv");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [second, _, "transaction", count, ..] = cells[..] {
            let second: f64 = second.parse().with_context(|| format!("{}: {line}", path.display()))?;
            *counts.entry(second as u64).or_default() += count.parse::<f64>()?;
        }
    }
    let last = WARM_UP_S + u64::from(seconds);
    Ok(counts.range(WARM_UP_S..last).map(|(_, count)| *count).collect())
}

/// The run directory of the only run under `out`.
fn newest(out: &Path) -> anyhow::Result<std::path::PathBuf> {
    let mut folder = out.to_owned();
    while !folder.join("timeline.csv").exists() {
        let below = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
        let next = below.into_iter().find(|path| path.is_dir() && !path.is_symlink());
        folder = next.with_context(|| format!("{}: no run directory", out.display()))?;
    }
    Ok(folder)
}
