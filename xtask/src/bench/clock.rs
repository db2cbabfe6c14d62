//! A node's clock beside the machine's: what asking for the time costs a program, and what starting programs costs.
//!
//! The same program asks in a process that has a clock of its own, and in one that has not, in turn.

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clock::{Clock, Rate, Shift};

use super::table::{Row, conclude};

/// Hidden subcommand of `xtask` that makes it the program that asks.
pub const CALLS_SUBCOMMAND: &str = "bench-clock-calls";
/// A call may cost at most so many times a native one.
const GOAL: f64 = 1.3;
/// The fastest of so many batches counts: the others were disturbed.
const BATCHES: usize = 30;
const CALLS: u32 = 20_000;
/// How many programs are started one after the other.
const EXECS: u32 = 200;
const ROWS: [&str; 3] = ["clock_gettime", "gettimeofday", "time"];

/// Asks again and again; a line with the nanoseconds that a call took for each of [`ROWS`].
///
/// # Errors
/// When its output cannot be written.
pub fn calls() -> anyhow::Result<()> {
    let calls: [fn(); 3] = [
        // SAFETY: the call fills a place of ours, as the next does; the last fills none.
        || _ = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut std::mem::zeroed()) },
        || _ = unsafe { libc::gettimeofday(&mut std::mem::zeroed(), std::ptr::null_mut()) },
        || _ = unsafe { libc::time(std::ptr::null_mut()) },
    ];
    for call in calls {
        let batch = |_| {
            let began = Instant::now();
            (0..CALLS).for_each(|_| call());
            began.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
        };
        let fastest = (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min);
        writeln!(std::io::stdout(), "{fastest}")?;
    }
    Ok(())
}

/// Runs a program to its end, with the clock or without; its output.
fn run_by(clock: Option<&Arc<Clock>>, mut command: Command) -> anyhow::Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = match clock {
        Some(clock) => clock::start(clock, &mut command)?,
        None => command.spawn()?,
    };
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn call_costs(clock: Option<&Arc<Clock>>) -> anyhow::Result<Vec<f64>> {
    let mut command = Command::new(std::env::current_exe().context("find this program")?);
    command.arg(CALLS_SUBCOMMAND);
    run_by(clock, command)?.lines().map(|line| line.parse().context("nanoseconds")).collect()
}

fn exec_cost_us(clock: Option<&Arc<Clock>>) -> anyhow::Result<f64> {
    let script = format!("i=0; while [ $i -lt {EXECS} ]; do /bin/true; i=$((i+1)); done");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script]);
    let began = Instant::now();
    run_by(clock, command)?;
    Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(EXECS))
}

/// Measures and prints.
///
/// # Errors
/// When this machine allows no clock, or a program does not run.
pub fn run(pairs: usize) -> anyhow::Result<ExitCode> {
    ensure!(pairs > 0, "nothing to measure: --pairs 0");
    clock::trial()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("clock");
    let clock = Arc::new(Clock::in_file(&file, &file)?);
    let jump = Shift::jump(5_000_000_000);
    let racing = Shift::running_away(Rate { parts_per_billion: 500_000_000 }, 1_800_000_000_000_000_000);
    let mut rows = Vec::new();
    for (name, shift) in [("5 s ahead", jump), ("racing by 50 %", racing)] {
        clock.set(shift);
        let readings: Vec<(Vec<f64>, Vec<f64>)> = (0..pairs)
            .map(|_| Ok((call_costs(Some(&clock))?, call_costs(None)?)))
            .collect::<anyhow::Result<_>>()?;
        for (number, call) in ROWS.iter().enumerate() {
            let pairs: Vec<_> =
                readings.iter().map(|(ours, theirs)| (ours[number], theirs[number])).collect();
            rows.push(Row::of_pairs(&format!("{call}, {name}"), "native", "ns", &pairs, Some(GOAL)));
        }
    }
    let execs: Vec<_> = (0..pairs)
        .map(|_| Ok((exec_cost_us(Some(&clock))?, exec_cost_us(None)?)))
        .collect::<anyhow::Result<_>>()?;
    rows.push(Row::of_pairs("starting a program", "native", "us", &execs, None));
    Ok(if conclude("clock", &rows)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
