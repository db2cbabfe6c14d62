//! `holdfast run`: the whole job, once, several times or over a matrix.

mod kept;
mod matrix;
mod signals;

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender};

use run::{Ended, KeptLab, LaunchError, Message, Options, Placement, Show};
use scenario::{Matrix, Source};

use crate::arguments::RunOptions;
use crate::commands::{check_set, folder_of, not_planned, read_source, reject};
use crate::exit::Exit;
use crate::live::Live;
use crate::printed;
use crate::terminal::Terminal;
use signals::Interrupts;

/// Runs a scenario and ends with its verdict.
pub fn run(mut options: RunOptions) -> Result<Exit, Exit> {
    if let Some(folder) = &options.engine_dir {
        let whole = std::path::absolute(folder)
            .map_err(|error| Exit::wrong(anyhow::anyhow!("--engine-dir {}: {error}", folder.display())))?;
        options.set.push(("database.path".to_owned(), as_value(&whole.display().to_string())));
    }
    let source = read_source(&options.scenario)?;
    let interrupts = Interrupts::listen()?;
    let plan =
        scenario_files::plan(&source, &options.set, &folder_of(&options.scenario)).map_err(not_planned)?;
    if let Some(matrix) = &plan.matrix {
        check_set(matrix, &source, &options.set)?;
    }
    let live = options.live.map(Live::start).transpose()?;
    let mut desk = Desk { terminal: Terminal::new(options.json), interrupts, live };
    if let Some(live) = &desk.live {
        desk.terminal.note(&format!("live at {}", live.url()));
    }
    let matrix = match (plan.matrix, options.repeat) {
        (Some(matrix), repeat) => Some(Matrix { repeat: repeat.unwrap_or(matrix.repeat), ..matrix }),
        (None, Some(repeat)) => Some(Matrix::of_repetitions(plan.scenario.clone(), repeat)),
        (None, None) => None,
    };
    match matrix {
        Some(matrix) => matrix::run(&options, &source, &plan.scenario, matrix, &mut desk),
        None => once(options, source, &mut desk),
    }
}

/// A path as a value that YAML takes for nothing else.
fn as_value(path: &str) -> String {
    let is_plain = path.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    // Text in JSON is text in YAML.
    if is_plain { path.to_owned() } else { serde_json::Value::from(path).to_string() }
}

/// What a run needs of the terminal's side, one after the other.
struct Desk {
    terminal: Terminal,
    interrupts: Interrupts,
    live: Option<Live>,
}

impl Desk {
    /// Does one run.
    fn launch(&mut self, options: &Options) -> Result<Ended, LaunchError> {
        self.at_work(|sender, receiver, show| run::launch(options, sender, receiver, show))
    }

    /// Boots a lab that is kept; no run is made.
    fn boot_to_keep(&mut self, options: &Options) -> Result<Option<KeptLab>, LaunchError> {
        self.at_work(|sender, receiver, show| run::boot_to_keep(options, sender, receiver, show))
    }

    /// Does one run on a lab that is kept.
    fn launch_on(
        &mut self,
        lab: KeptLab,
        options: &Options,
    ) -> (Result<Ended, LaunchError>, Result<KeptLab, Vec<String>>) {
        self.at_work(|sender, receiver, show| run::launch_on(lab, options, sender, receiver, show))
    }

    /// Does something that can be interrupted, and shows what comes of it.
    fn at_work<T>(
        &mut self,
        work: impl FnOnce(Sender<Message>, &Receiver<Message>, &mut dyn FnMut(Show<'_>)) -> T,
    ) -> T {
        let (sender, receiver) = self.interrupts.for_the_next_run();
        let Desk { terminal, interrupts, live } = self;
        let done = work(sender, &receiver, &mut |show| {
            if let Show::Directory(path) = show {
                interrupts.begun();
                live.iter().for_each(|live| live.show(path));
            }
            terminal.show(&show);
        });
        terminal.pause();
        done
    }
}

fn once(options: RunOptions, source: Source, desk: &mut Desk) -> Result<Exit, Exit> {
    let json = options.json;
    let options = Options {
        source,
        folder: folder_of(&options.scenario),
        overrides: options.set,
        seed: options.seed,
        place: Placement::Below(options.out),
        keep: options.keep,
        prevent_faults: options.prevent_faults,
        planted: options.plant.iter().copied().collect(),
        captures: options.capture,
        confirmed: options.yes_break,
        version: env!("CARGO_PKG_VERSION"),
    };
    let launched = desk.launch(&options);
    desk.terminal.finish();
    match launched {
        Ok(ended) => conclude(&ended, &mut desk.terminal, json),
        Err(error) => Err(refusal(error)),
    }
}

/// A run that did not come about, as the program's end.
fn refusal(error: LaunchError) -> Exit {
    match error {
        LaunchError::Rejected(rejection) => reject(*rejection),
        LaunchError::Workload(_)
        | LaunchError::EngineFile(_)
        | LaunchError::Capture(_)
        | LaunchError::NeedsLab { .. }
        | LaunchError::UpgradeOfAnImage { .. }
        | LaunchError::UpgradeToTheSame { .. }
        | LaunchError::Upgrade { .. }
        | LaunchError::NotPermitted(_) => Exit::wrong(error),
        LaunchError::Lab { part, why, run_directory } => {
            // What was recorded until then may still be worth a report; when it is not, the failure is what counts.
            let _ = report::write(&run_directory);
            Exit::failed(anyhow::anyhow!("{part}: {why}\n  what was recorded: {}", run_directory.display()))
        }
        error => Exit::failed(error),
    }
}

fn conclude(ended: &Ended, terminal: &mut Terminal, json: bool) -> Result<Exit, Exit> {
    match told(&ended.run_directory, terminal) {
        Ok(result) => {
            terminal.say(&report::text(&result));
            if json {
                printed!("{}", serde_json::to_string_pretty(&result).map_err(Exit::failed)?);
            }
        }
        Err(error) => terminal.say(&format!("no report: {error}\n")),
    }
    for left in &ended.left_behind {
        terminal.say(&format!("left behind: {left}\n"));
    }
    if !json {
        printed!("{}", ended.run_directory.display());
    }
    if ended.left_behind.is_empty() {
        Ok(Exit::Verdict(ended.verdict))
    } else {
        Err(Exit::failed(anyhow::anyhow!(
            "the lab was not removed completely; the verdict was {}",
            ended.verdict
        )))
    }
}

/// Writes a run's report and gives its result. A run that was interrupted before it could judge leaves what is known, in
/// the place where it is looked for.
fn told(run_directory: &Path, terminal: &mut Terminal) -> Result<results::RunResult, report::WriteError> {
    report::write(run_directory)?;
    let run = results::read(run_directory)?;
    if run.is_derived {
        let written = write_result(run_directory, &run.result);
        written.unwrap_or_else(|error| terminal.say(&format!("no result.json: {error:#}\n")));
    }
    Ok(run.result)
}

fn write_result(run_directory: &Path, result: &results::RunResult) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(result)?;
    run::RunDirectory::at(run_directory.to_owned()).write("result.json", &format!("{text}\n"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_programs_is_taken_as_it_is_whatever_signs_are_in_it() {
        let text = "name: x\nsite: { regions: { a: { zones: { b: { hosts: 1 } } } } }\n\
                    database: { engine: postgres, nodes: 1 }\nloads: [{ workload: ledger, clients: 1 }]\n\
                    schedule: [{ phase: baseline, for: 5s }]\n";
        let source = Source { name: "x.yaml".to_owned(), text: text.to_owned() };
        for folder in ["/opt/pg-15/bin", "/opt/pg #15", "/opt/a: b", "/opt/{a}", "/opt/\"é\"\\ "] {
            let set = [("database.path".to_owned(), as_value(folder))];
            let scenario = scenario::parse(&source, &set).expect(folder);
            assert_eq!(scenario.database.release, Some(scenario::Release::Folder(folder.to_owned())));
        }
    }
}
