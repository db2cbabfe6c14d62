//! The atlas: every engine that runs here under the same faults, several runs each, as data, tables and scenarios that
//! anybody can run again.
//!
//! Owns which cells there are and the order of the runs. A run that was made once stays: the campaign may be cut short at
//! any time and goes on where it was. What is drawn from a run stands in `data`, the pages in `page`.

mod data;
mod engines;
mod faults;
mod page;
mod wall;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ::atlas::{Cell, Run};
use anyhow::{Context, ensure};
use results::matrix::MatrixResult;

use self::engines::{ENGINES, EngineSetting};
use self::faults::{FAULTS, FaultSetting};
use crate::program;

/// What is asked of the campaign.
#[derive(Debug)]
pub struct Options {
    /// Runs of each cell.
    pub runs: usize,
    /// Cells by `ENGINE`, `FAULT` or `ENGINE/FAULT`; all when empty.
    pub only: Vec<String>,
    /// No run begins after so many minutes.
    pub minutes: Option<u64>,
}

/// Makes the runs that are missing and writes `docs/atlas/`.
///
/// # Errors
/// When the program does not build, a cell is named that there is none of, or a file cannot be written.
pub fn run(asked: &Options) -> anyhow::Result<ExitCode> {
    let cells = chosen(&asked.only)?;
    let holdfast = program::build()?;
    let folder = crate::repository_root().join("docs/atlas/");
    let began = Instant::now();
    let may_begin =
        || asked.minutes.is_none_or(|minutes| began.elapsed() < Duration::from_secs(minutes * 60));
    // Portion by portion: a campaign that is cut short has some of each cell, not all of a few.
    for runs in portions(asked.runs) {
        for (engine, fault) in &cells {
            if may_begin() {
                complete(&holdfast, &folder, (engine, fault), runs)?;
            }
        }
    }
    page::write(&folder)?;
    println!("{}", folder.join("README.md").display());
    Ok(ExitCode::SUCCESS)
}

fn chosen(only: &[String]) -> anyhow::Result<Vec<(&'static EngineSetting, &'static FaultSetting)>> {
    let all = || ENGINES.iter().flat_map(|engine| FAULTS.iter().map(move |fault| (engine, fault)));
    let is_named = |engine: &EngineSetting, fault: &FaultSetting, name: &str| {
        name == engine.name || name == fault.name || name == format!("{}/{}", engine.name, fault.name)
    };
    for name in only {
        ensure!(
            all().any(|(engine, fault)| is_named(engine, fault, name)),
            "no cell of the atlas is called {name:?}: write ENGINE, FAULT or ENGINE/FAULT\nengines: {}\nfaults: {}",
            ENGINES.iter().map(|engine| engine.name).collect::<Vec<_>>().join(", "),
            FAULTS.iter().map(|fault| fault.name).collect::<Vec<_>>().join(", "),
        );
    }
    let is_asked = |(engine, fault): &(&EngineSetting, &FaultSetting)| {
        only.is_empty() || only.iter().any(|name| is_named(engine, fault, name))
    };
    Ok(all().filter(is_asked).collect())
}

/// Runs of one cell that are made one after the other, in a lab that is kept.
const PORTION: usize = 5;

/// How many runs each cell is to have after each pass over all cells.
fn portions(runs: usize) -> impl Iterator<Item = usize> {
    let passes = runs.saturating_sub(1).div_ceil(PORTION);
    (0..=passes).map(move |pass| runs.min(1 + pass * PORTION))
}

/// Adds runs to a cell that has fewer than so many. A cell whose scenario has changed since begins anew.
fn complete(
    holdfast: &Path,
    folder: &Path,
    (engine, fault): (&EngineSetting, &FaultSetting),
    runs: usize,
) -> anyhow::Result<()> {
    let scenario = scenario_text(engine, fault);
    let path = scenario_path(folder, engine.name, fault.name);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut cell = match data::read(folder, engine.name, fault.name)? {
        Some(cell) if before == scenario => cell,
        _ => Cell::new(engine.name, fault.name),
    };
    let missing = runs.saturating_sub(cell.runs.len());
    if missing == 0 {
        return Ok(());
    }
    write(&path, &scenario)?;
    // One that gave no result is not drawn again.
    let first_seed = cell.runs.iter().map(|run| run.seed).max().map_or(1, |seed| seed + 1).to_string();
    let further = ["--seed", &first_seed, "--repeat", &missing.to_string()];
    let (_, result) = program::run_file(holdfast, &path, &further)?;
    let matrix: MatrixResult = serde_json::from_value(result).context("matrix.json")?;
    let mut without = Vec::new();
    for repetition in matrix.cells {
        let Some(result) = repetition.result else {
            without.push(repetition.failure.unwrap_or_else(|| "it was not begun".to_owned()));
            continue;
        };
        let of_a_kept_lab = repetition.lab_dir.is_some();
        let mut run = Run::of(&result);
        // Its database was made and loaded before it.
        run.boot_s = run.boot_s.filter(|_| !of_a_kept_lab);
        println!("{}/{}: run {}: {}", engine.name, fault.name, cell.runs.len() + 1, data::in_a_line(&run));
        cell.runs.push(run);
        data::save(folder, &cell)?;
    }
    anyhow::ensure!(without.is_empty(), "{}: runs without a result: {}", path.display(), without.join("; "));
    Ok(())
}

/// The scenario of a cell: three nodes in two zones, a spare host, and one fault.
fn scenario_text(engine: &EngineSetting, fault: &FaultSetting) -> String {
    let EngineSetting { name, engine: engine_name, database, loads, warm_up_s, recovery_s, .. } = engine;
    let loads: String = loads.iter().map(|load| format!("  - {{ {load}, from: dc1 }}\n")).collect();
    let (title, faults) = (fault.title, fault.on(engine));
    // A scenario's name has no dot.
    let plain_name = name.replace('.', "-");
    format!(
        "\
# {title}, on {name}: a cell of the atlas. `cargo xtask atlas --only {name}/{cell}` adds runs to its figures.
name: atlas-{plain_name}-{cell}
site:
  regions:
    dc1:
      zones:
        a: {{ racks: {{ r1: {{ hosts: 1 }} }} }}
        b: {{ racks: {{ r2: {{ hosts: 1 }}, r3: {{ hosts: 1 }} }} }}
        c: {{ racks: {{ r4: {{ hosts: 1 }} }} }}
database:
  engine: {engine_name}
  nodes: [dc1/a/r1/h1, dc1/b/r2/h1, dc1/b/r3/h1]
{database}loads:
{loads}schedule:
  - {{ phase: warm-up, for: {warm_up_s}s }}
  - {{ phase: baseline, for: 8s }}
  - phase: fault
    for: 16s
    faults:
      - {faults}
  - {{ phase: recovery, for: {recovery_s}s }}
expect:
  lost_writes: 0
  invented_writes: 0
",
        cell = fault.name,
    )
}

fn scenario_path(folder: &Path, engine: &str, fault: &str) -> PathBuf {
    folder.join(format!("scenarios/{engine}/{fault}.yaml"))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().context("a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_of_every_cell_is_sound() {
        for (engine, fault) in chosen(&[]).expect("all") {
            let text = scenario_text(engine, fault);
            let source = scenario::Source { name: format!("{}/{}", engine.name, fault.name), text };
            scenario::parse(&source, &[]).unwrap_or_else(|rejection| panic!("{rejection}"));
        }
    }

    #[test]
    fn each_cell_has_one_run_before_any_has_more_and_all_in_the_end() {
        let of = |runs| portions(runs).collect::<Vec<_>>();
        assert_eq!((of(1), of(3), of(10)), (vec![1], vec![1, 3], vec![1, 6, 10]));
    }

    #[test]
    fn cells_are_chosen_by_engine_by_fault_or_by_both_and_a_wrong_name_is_refused() {
        let count = |only: &[&str]| {
            chosen(&only.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).map(|cells| cells.len())
        };
        assert_eq!(count(&["etcd"]).ok(), Some(FAULTS.len()));
        assert_eq!(count(&["process-killed"]).ok(), Some(ENGINES.len()));
        assert_eq!(count(&["etcd/process-killed", "redis/process-killed"]).ok(), Some(2));
        assert_eq!(count(&[]).ok(), Some(FAULTS.len() * ENGINES.len()));
        let error = count(&["etcd/nothing"]).expect_err("no such cell").to_string();
        assert!(error.contains("process-killed") && error.contains("redis"), "{error}");
    }
}
