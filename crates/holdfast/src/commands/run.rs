//! `holdfast run`: the whole job.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use history::Verdict;
use run::{Ended, LaunchError, Message, Options, Show};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::arguments::RunOptions;
use crate::commands::{read_source, reject};
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::{complained, printed};

/// Runs a scenario and ends with its verdict.
pub fn run(options: RunOptions) -> Result<Exit, Exit> {
    let source = read_source(&options.scenario)?;
    let (sender, receiver) = channel();
    let is_begun = listen_to_signals(sender.clone())?;
    let json = options.json;
    let options = Options {
        source,
        overrides: options.set,
        seed: options.seed,
        out: options.out,
        keep: options.keep,
        prevent_faults: options.prevent_faults,
        captures: options.capture,
        version: env!("CARGO_PKG_VERSION"),
    };
    let mut terminal = Terminal::new(json);
    let launched = run::launch(&options, sender, &receiver, &mut |show| {
        if matches!(show, Show::Directory(_)) {
            is_begun.store(true, Ordering::Relaxed);
        }
        terminal.show(&show);
    });
    terminal.finish();
    match launched {
        Ok(ended) => conclude(&ended, &mut terminal, json),
        Err(LaunchError::Rejected(rejection)) => Err(reject(*rejection)),
        Err(error @ (LaunchError::Workload(_) | LaunchError::Capture(_))) => Err(Exit::wrong(error)),
        Err(LaunchError::Lab { why, run_directory }) => {
            // What was recorded until then may still be worth a report; when it is not, the failure is what counts.
            let _ = report::write(&run_directory);
            Err(Exit::failed(anyhow::anyhow!("lab: {why}\n  what was recorded: {}", run_directory.display())))
        }
        Err(error) => Err(Exit::failed(error)),
    }
}

fn conclude(ended: &Ended, terminal: &mut Terminal, json: bool) -> Result<Exit, Exit> {
    match report::write(&ended.run_directory).and_then(|_| Ok(report::read(&ended.run_directory)?)) {
        Ok(run) => {
            if run.is_derived {
                // A run that was interrupted before it could judge leaves what is known, in the place where it is looked for.
                let written = write_result(&ended.run_directory, &run.result);
                written.unwrap_or_else(|error| terminal.say(&format!("no result.json: {error:#}\n")));
            }
            terminal.say(&report::text(&run.result));
            if json {
                printed!("{}", serde_json::to_string_pretty(&run.result).map_err(Exit::failed)?);
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

fn write_result(run_directory: &Path, result: &report::result::RunResult) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(result)?;
    run::RunDirectory::at(run_directory.to_owned()).write("result.json", &format!("{text}\n"))?;
    Ok(())
}

/// SIGINT and SIGTERM ask the run to end in order; a second one, at once. Before the run has begun, which is when the
/// flag returned is set, there is nothing to put in order.
fn listen_to_signals(sender: Sender<Message>) -> Result<Arc<AtomicBool>, Exit> {
    let is_begun = Arc::new(AtomicBool::new(false));
    let seen = is_begun.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Exit::failed)?;
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if !seen.load(Ordering::Relaxed) {
                complained!("holdfast: interrupted before the run began");
                std::process::exit(Verdict::Unknown.exit_code().into());
            }
            if sender.send(Message::Interrupt).is_err() {
                return;
            }
        }
    });
    Ok(is_begun)
}
