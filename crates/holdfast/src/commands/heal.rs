//! `holdfast heal`: undoes what a run left standing on machines that exist.

use std::path::Path;
use std::time::Duration;

use history::Verdict;
use remote::heal::{self, Healed, Healing, Outcome};
use remote::journal;
use remote::strike::Patience;

use crate::exit::Exit;
use crate::printed;

/// How long each fault is given until it is seen to be gone.
const PATIENCE: Patience = Patience { stands: Duration::ZERO, gone: Duration::from_secs(30) };

/// What every run directory has.
const EVENTS: &str = "events.jsonl";

/// Heals, or prints what healing would run.
pub fn heal(run_directory: &Path, print: bool) -> Result<Exit, Exit> {
    if !run_directory.is_dir() {
        let path = run_directory.display();
        return Err(Exit::wrong(anyhow::anyhow!(
            "{path} is not a run directory: it is not there or not a directory"
        )));
    }
    if print {
        return print_only(run_directory);
    }
    let healing =
        heal::heal(run_directory, PATIENCE, |entry| entry.intent.reach.clone()).map_err(Exit::wrong)?;
    let Some(healing) = healing else { return without_journal(run_directory) };
    if healing.faults.is_empty() && healing.damaged.is_empty() {
        printed!("nothing stands: the journal has {} faults, all seen to be gone", healing.closed);
    }
    healing.faults.iter().for_each(tell);
    healing.damaged.iter().for_each(|error| printed!("{error}"));
    Ok(match verdict(&healing) {
        Verdict::Pass => Exit::Done,
        verdict => Exit::Verdict(verdict),
    })
}

/// Only of a run: that a folder of runs, say, has no journal means nothing.
fn without_journal(run_directory: &Path) -> Result<Exit, Exit> {
    let path = run_directory.display();
    if !run_directory.join(EVENTS).is_file() {
        return Err(Exit::wrong(anyhow::anyhow!(
            "{path} is not a run directory: it holds neither {} nor {EVENTS}",
            journal::FILE
        )));
    }
    printed!(
        "nothing stands: the run broke nothing outside its lab (there is no {} in {path})",
        journal::FILE
    );
    Ok(Exit::Done)
}

fn verdict(healing: &Healing) -> Verdict {
    let of_one = |healed: &Healed| match (healed.outcome, healed.doubts.is_empty()) {
        (Outcome::Stands, _) => Verdict::Fail,
        (Outcome::NotSeen, _) | (_, false) => Verdict::Unknown,
        (Outcome::WasGone | Outcome::Undone, true) => Verdict::Pass,
    };
    let damaged = if healing.damaged.is_empty() { Verdict::Pass } else { Verdict::Unknown };
    healing.faults.iter().map(of_one).fold(damaged, Verdict::and)
}

fn tell(healed: &Healed) {
    let intent = &healed.entry.intent;
    let outcome = match healed.outcome {
        Outcome::WasGone => "was gone already",
        Outcome::Undone => "undone, and seen to be gone",
        Outcome::Stands => "STILL STANDS",
        Outcome::NotSeen => "state unknown",
    };
    let timer = healed.timer.as_ref().map_or_else(String::new, |end| format!("; {end}"));
    printed!("{} of {} ({}): {outcome}{timer}", intent.name, intent.member, intent.reach.host());
    healed.doubts.iter().for_each(|doubt| printed!("  {doubt}"));
    if matches!(healed.outcome, Outcome::Stands | Outcome::NotSeen) {
        printed!("  to undo it by hand, on {}:", intent.reach.host());
        intent.undo.iter().for_each(|command| printed!("    {command}"));
    }
}

fn print_only(run_directory: &Path) -> Result<Exit, Exit> {
    let Some(read) = journal::read(run_directory).map_err(Exit::wrong)? else {
        return without_journal(run_directory);
    };
    for entry in read.entries.iter().filter(|entry| !entry.is_done()) {
        let intent = &entry.intent;
        printed!("{} of {} ({}):", intent.name, intent.member, intent.reach.host());
        printed!("  gone, if each of these shows it; nothing is undone then:");
        intent.gone.iter().for_each(|look| printed!("    {}", look.command));
        printed!("  undone by:");
        intent.undo.iter().for_each(|command| printed!("    {command}"));
    }
    let left = read.entries.iter().filter(|entry| !entry.is_done()).count();
    printed!("{left} of {} faults are not known to be gone; nothing was run", read.entries.len());
    read.damaged.iter().for_each(|error| printed!("{error}"));
    Ok(Exit::Done)
}
