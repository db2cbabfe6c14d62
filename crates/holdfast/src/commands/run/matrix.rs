//! A scenario run several times, or over its matrix: one run after the other, each as if it stood alone, and one comparison at the end.

use history::Verdict;
use run::{LaunchError, Options, Placement, Series, Turn};
use scenario::{Matrix, Scenario, Source};

use super::kept::Kept;
use super::{Desk, refusal, told};
use crate::arguments::RunOptions;
use crate::commands::{folder_of, refused_cell, reject};
use crate::exit::Exit;
use crate::live::Live;
use crate::printed;

/// Runs every cell and ends with the verdict of all.
pub fn run(
    options: &RunOptions,
    source: &Source,
    base: &Scenario,
    mut matrix: Matrix,
    desk: &mut Desk,
) -> Result<Exit, Exit> {
    if options.keep {
        return Err(Exit::wrong(anyhow::anyhow!(
            "--keep needs a single run; remove --keep, or the matrix and --repeat"
        )));
    }
    let folder = folder_of(&options.scenario);
    for cell in &mut matrix.cells {
        scenario_files::check_workloads(&mut cell.scenario, &folder)
            .map_err(|error| refused_cell(&error, source, &options.set, &cell.label))?;
        scenario_files::check_commands(&mut cell.scenario, source, &options.set, &folder)
            .map_err(|rejection| reject(*rejection))?;
        scenario_files::permit(&cell.scenario, options.yes_break.as_deref()).map_err(Exit::wrong)?;
    }
    let version = env!("CARGO_PKG_VERSION");
    let mut series =
        Series::begin(&options.out, base, matrix, options.seed, version).map_err(Exit::failed)?;
    desk.interrupts.begun();
    desk.terminal.note(&format!("matrix directory {}", series.path().display()));
    desk.live.iter().for_each(Live::expect_more);
    let mut left_behind = Vec::new();
    let turns = series.turns();
    let mut kept = Kept::new(&series, options.boot_each, desk);
    for (number, turn) in turns.iter().enumerate() {
        if desk.interrupts.is_asked() {
            break;
        }
        let label = &series.cell(turn).label;
        let of = if series.record().repeat > 1 {
            format!(", repetition {}", turn.repetition)
        } else {
            String::new()
        };
        desk.terminal.note(&format!("run {} of {}: {label}{of}", number + 1, turns.len()));
        let options = options_of(options, turn, &series);
        kept.boot_if_needed((turn, &series), &options, desk)?;
        if desk.interrupts.is_asked() {
            break;
        }
        left_behind.extend(one(&options, turn, (&mut series, &mut kept), desk)?);
        let is_last = turns[number + 1..].iter().all(|later| later.cell != turn.cell);
        left_behind.extend(kept.end_of(turn, is_last));
    }
    left_behind.extend(kept.end());
    let interrupted = desk.interrupts.is_asked().then(|| "interrupted by a signal".to_owned());
    let verdict = series.end(interrupted).map_err(Exit::failed)?;
    desk.terminal.finish();
    conclude(options, &series, verdict, &left_behind, desk)
}

/// What a run is asked.
fn options_of(options: &RunOptions, turn: &Turn, series: &Series) -> Options {
    let cell = series.cell(turn);
    Options {
        source: Source {
            name: format!("scenario.yaml ({})", cell.label),
            text: scenario::to_yaml(&cell.scenario, turn.seed),
        },
        folder: folder_of(&options.scenario),
        overrides: Vec::new(),
        seed: Some(turn.seed),
        place: Placement::At(series.place_of(turn)),
        keep: false,
        prevent_faults: options.prevent_faults,
        planted: options.plant.iter().copied().collect(),
        captures: options.capture.clone(),
        confirmed: options.yes_break.clone(),
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// One run, noted in `matrix.json`. Returns what it left on the machine.
fn one(
    options: &Options,
    turn: &Turn,
    (series, kept): (&mut Series, &mut Kept),
    desk: &mut Desk,
) -> Result<Vec<String>, Exit> {
    let noted =
        |series: &mut Series, result, failure| series.note(turn, result, failure).map_err(Exit::failed);
    match kept.launch((turn, series), options, desk) {
        Ok(ended) => {
            let read = told(&ended.run_directory, &mut desk.terminal);
            let verdict = ended.verdict;
            desk.terminal.note(&format!("{verdict}; {}", ended.run_directory.display()));
            match read {
                Ok(result) => noted(series, Some(result), None)?,
                Err(error) => noted(series, None, Some(error.to_string()))?,
            }
            Ok(ended.left_behind)
        }
        // One lab that could not be had is one run without a result: the others may still tell something.
        Err(LaunchError::Lab { why, run_directory, .. }) => {
            desk.terminal.note(&format!("no result: {why}; {}", run_directory.display()));
            let _ = report::write(&run_directory);
            noted(series, None, Some(why))?;
            Ok(Vec::new())
        }
        Err(error) => Err(refusal(error)),
    }
}

fn conclude(
    options: &RunOptions,
    series: &Series,
    verdict: Verdict,
    left_behind: &[String],
    desk: &mut Desk,
) -> Result<Exit, Exit> {
    let record = series.record();
    let terminal = &mut desk.terminal;
    match report::compare::write_of_matrix(series.path(), record) {
        Ok((comparison, page)) => {
            terminal.say(&report::compare::text(&comparison));
            terminal.say(&format!("{}\n", page.display()));
        }
        Err(error) => terminal.say(&format!("no comparison: {error}\n")),
    }
    let made = record.cells.iter().filter(|cell| cell.result.is_some()).count();
    let cut = record.interrupted.as_ref().map_or_else(String::new, |why| format!("; {why}"));
    terminal.say(&format!("{verdict}: {made} of {} runs left a result{cut}\n", record.cells.len()));
    for left in left_behind {
        terminal.say(&format!("left behind: {left}\n"));
    }
    if options.json {
        printed!("{}", serde_json::to_string_pretty(record).map_err(Exit::failed)?);
    } else {
        printed!("{}", series.path().display());
    }
    if !left_behind.is_empty() {
        return Err(Exit::failed(anyhow::anyhow!(
            "a lab was not removed completely; the verdict is {verdict}"
        )));
    }
    let failures: Vec<&str> = record.cells.iter().filter_map(|cell| cell.failure.as_deref()).collect();
    if made == 0 && record.interrupted.is_none() {
        let why = failures.first().copied().unwrap_or("no run was made");
        return Err(Exit::failed(anyhow::anyhow!("no lab could do its job: {why}")));
    }
    Ok(Exit::Verdict(verdict))
}
