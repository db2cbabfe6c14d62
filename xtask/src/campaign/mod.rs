//! The campaign: runs drawn by chance, most of them disturbed, and the question whether any of them left something behind, panicked,
//! or said more than was seen.
//!
//! Owns the order of the runs and their count. What is drawn stands in `scenario`, what is done to a run in `treatment`, what it
//! may end with in `judge` and `seen`, the pages in `page`.

mod dice;
mod judge;
mod leftovers;
mod one_run;
mod page;
mod scenario;
mod seen;
mod treatment;

use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{bail, ensure};

use self::one_run::Became;
use self::treatment::{TREATMENTS, Treatment};
use crate::program;

/// What is asked of a campaign.
#[derive(Debug)]
pub struct Options {
    /// How many runs.
    pub runs: u64,
    /// The seed of the first; each further one has the next.
    pub seed: u64,
    /// How many are under way at the same time.
    pub at_once: usize,
    /// Only these treatments, by name; all when empty.
    pub only: Vec<String>,
}

/// Makes the runs, prints each that is complained about, and writes `docs/robustness.md` and its `.json`, unless only some treatments
/// were asked for.
///
/// # Errors
/// When the program cannot be built, a treatment is named that there is none of, or the campaign's own part fails.
pub fn run(asked: &Options) -> anyhow::Result<ExitCode> {
    ensure!(asked.at_once > 0, "--at-once takes 1 or more");
    let (possible, impossible) = treatment::possible();
    let among = chosen(&asked.only, &possible)?;
    let holdfast = program::build()?;
    let seeds = asked.seed..asked.seed + asked.runs;
    let became = make(&holdfast, seeds, asked.at_once, &among)?;
    keep_scenarios(&became)?;
    print!("{}", page::table(&became));
    if asked.only.is_empty() {
        page::write(asked, &became, &impossible)?;
    }
    let is_good = became.iter().all(|one| one.complaints.is_empty());
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the runs of these seeds; what is complained about, each complaint with its seed. For the regular suite.
///
/// # Errors
/// When the campaign's own part fails.
pub fn complaints(holdfast: &Path, seeds: Range<u64>, at_once: usize) -> anyhow::Result<Vec<String>> {
    let (possible, _) = treatment::possible();
    let became = make(holdfast, seeds, at_once, &possible)?;
    let told = |one: &Became| -> Vec<String> {
        one.complaints.iter().map(|complaint| format!("{}: {complaint}", one.seed)).collect()
    };
    Ok(became.iter().flat_map(told).collect())
}

/// Makes the runs of these seeds, some at the same time, and prints how each ended; in the order of the seeds.
fn make(
    holdfast: &Path,
    seeds: Range<u64>,
    at_once: usize,
    among: &[Treatment],
) -> anyhow::Result<Vec<Became>> {
    let next = AtomicU64::new(seeds.start);
    let became: Mutex<Vec<Became>> = Mutex::default();
    let work = || -> anyhow::Result<()> {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return Ok(());
            }
            let one = one_run::one(holdfast, seed, among)?;
            println!("{seed}: {}: {}: {}", one.treatment.name(), one.ended, one.why);
            for complaint in &one.complaints {
                println!("{seed}: COMPLAINT: {complaint}");
            }
            became.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    let mut became = became.into_inner().unwrap_or_else(PoisonError::into_inner);
    became.sort_by_key(|one| one.seed);
    Ok(became)
}

fn chosen(only: &[String], possible: &[Treatment]) -> anyhow::Result<Vec<Treatment>> {
    if let Some(name) = only.iter().find(|name| !TREATMENTS.iter().any(|(.., known)| known == name)) {
        let names: Vec<&str> = TREATMENTS.iter().map(|(.., name)| *name).collect();
        bail!("no treatment is called {name:?}; there are {}", names.join(", "));
    }
    let is_asked =
        |treatment: &&Treatment| only.is_empty() || only.iter().any(|name| name == treatment.name());
    let among: Vec<Treatment> = possible.iter().filter(is_asked).copied().collect();
    ensure!(!among.is_empty(), "this machine allows none of these treatments");
    Ok(among)
}

/// The scenarios of runs that were complained about, to be looked at.
fn keep_scenarios(became: &[Became]) -> anyhow::Result<()> {
    let folder = crate::target_directory().join("campaign");
    std::fs::create_dir_all(&folder)?;
    for one in became.iter().filter(|one| !one.complaints.is_empty()) {
        let path = folder.join(format!("{}.yaml", one.seed));
        std::fs::write(&path, &one.scenario)?;
        println!("{}", path.display());
    }
    Ok(())
}
