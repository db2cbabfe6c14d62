//! The control database's flaws, each run end to end over many seeds: who tests the tester.
//!
//! Owns which check is meant for which flaw, the counting, and `docs/flaws.md`. A flaw counts as found when the check
//! meant for it says `fail` and the run as a whole does too; the scenario without a flaw must pass, whole.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::program;

/// The scenario without a flaw.
const NONE: &str = "none";

/// Every flaw, the check that is meant for it, and what it is in a few words.
const FLAWS: &[(&str, &str, &str)] = &[
    ("ack-before-fsync", "ledger", "acknowledged before the journal is synced; power-off"),
    (
        "ack-before-replication",
        "ledger",
        "acknowledged when the leader alone has it; power-off of the leader",
    ),
    (
        "clock-last-write-wins",
        "register",
        "the write with the later wall clock stays; power-off of the leader whose clock is ahead",
    ),
    ("dirty-read", "bank", "half a transaction can be seen"),
    ("duplicate-on-retry", "list-append", "a new leader does again what is done; power-off of the leader"),
    ("forget-on-restart", "ledger", "a node starts with an empty journal; power-off of all"),
    ("lost-update", "list-append", "written values are computed from an old state"),
    ("non-repeatable-order", "list-append", "lists do not keep the order of their appends"),
    (
        "split-brain",
        "ledger",
        "a majority of those in reach is a majority; two nodes lose sight of each other",
    ),
    ("stale-reads", "register", "reads from a copy up to 200 ms old"),
    ("write-skew", "list-append", "snapshot isolation where serializable is claimed"),
];

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How many seeds each flaw is run with.
    pub seeds: u64,
    /// How many seeds the scenario without a flaw is run with.
    pub seeds_without: u64,
    /// Only these flaws; empty for all. `none` is the scenario without.
    pub only: Vec<String>,
}

/// One row of the table.
#[derive(Debug)]
struct Row {
    flaw: &'static str,
    check: &'static str,
    what: &'static str,
    seeds: u64,
    good: u64,
}

/// Runs them, prints the table as it grows, and writes `docs/flaws.md` when everything was run.
///
/// # Errors
/// When the program cannot be built or a run leaves no result.
pub fn run(asked: &Options) -> anyhow::Result<ExitCode> {
    let unknown = |name: &&String| *name != NONE && !FLAWS.iter().any(|(flaw, ..)| flaw == name);
    if let Some(name) = asked.only.iter().find(unknown) {
        let names: Vec<&str> = FLAWS.iter().map(|(flaw, ..)| *flaw).collect();
        bail!("no flaw is named `{name}`; there are {NONE}, {}", names.join(", "));
    }
    let holdfast = program::build()?;
    let without = (NONE, "all four", "all the faults above: everything must pass");
    let wanted =
        |row: &&(&str, &str, &str)| asked.only.is_empty() || asked.only.iter().any(|name| name == row.0);
    let mut rows = Vec::new();
    for (flaw, check, what) in FLAWS.iter().chain([&without]).filter(wanted).copied() {
        let seeds = if flaw == NONE { asked.seeds_without } else { asked.seeds };
        let mut row = Row { flaw, check, what, seeds, good: 0 };
        for seed in 1..=seeds {
            let further = ["--seed", &seed.to_string()];
            let (_, result) = program::run(&holdfast, &format!("flaws/{flaw}"), &further)?;
            match judge(&result, (flaw != NONE).then_some(check)) {
                Ok(()) => row.good += 1,
                Err(why) => eprintln!("{flaw}, seed {seed}: {why}"),
            }
        }
        println!("{:<24} {:<12} {} of {}", row.flaw, row.check, row.good, row.seeds);
        rows.push(row);
    }
    if asked.only.is_empty() {
        let path = crate::repository_root().join("docs/flaws.md");
        std::fs::write(&path, page(&rows, asked)).with_context(|| path.display().to_string())?;
        println!("{}", path.display());
    }
    let all_good = rows.iter().all(|row| row.good == row.seeds);
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether the run came out as it must: failed by the check meant, or, where none is meant to fail, passed.
fn judge(result: &Value, meant: Option<&str>) -> Result<(), String> {
    let word = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
    let verdict = word(&result["verdict"]);
    let reasons = || result["reasons"].to_string();
    let Some(meant) = meant else {
        return if verdict == "pass" {
            Ok(())
        } else {
            Err(format!("the run says {verdict}: {}", reasons()))
        };
    };
    let checks = result["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_check = checks.iter().find(|check| check["name"] == meant).map(|check| word(&check["verdict"]));
    match of_check.as_deref() {
        Some("fail") if verdict == "fail" => Ok(()),
        Some("fail") => Err(format!("{meant} says fail, the run {verdict}: {}", reasons())),
        Some(other) => Err(format!("{meant} says {other}, the run {verdict}: {}", reasons())),
        None => Err(format!("{meant} was not made, the run says {verdict}: {}", reasons())),
    }
}

fn page(rows: &[Row], asked: &Options) -> String {
    let mut page = format!(
        "# Planted flaws\n\n\
         Holdfast's own small database, `engine: control`, has a switch for each flaw that a check must find. Each row is \
         a scenario under `scenarios/flaws/`, run end to end: lab, load, faults, checks. The last row is the database \
         without a flaw under the faults of all other rows. This page is written by\n\n    \
         cargo xtask flaws --seeds {} --seeds-without {}\n\n\
         | flaw | what it does, and the fault | check meant for it | found |\n|---|---|---|---|\n",
        asked.seeds, asked.seeds_without
    );
    for row in rows {
        let verb = if row.flaw == NONE { " pass" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} of {} seeds{verb} |",
            row.flaw, row.what, row.check, row.good, row.seeds
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_check_that_is_meant_and_a_failed_run_count_as_found() {
        let check = |verdict: &str, of_ledger: &str, meant: Option<&str>, expected: bool| {
            let result = json!({"verdict": verdict, "checks": [{"name": "ledger", "verdict": of_ledger}]});
            assert_eq!(judge(&result, meant).is_ok(), expected, "{verdict} {of_ledger} {meant:?}");
        };
        check("fail", "fail", Some("ledger"), true);
        check("unknown", "fail", Some("ledger"), false);
        check("fail", "pass", Some("ledger"), false);
        check("fail", "fail", Some("bank"), false);
        check("pass", "pass", None, true);
        check("fail", "fail", None, false);
        check("unknown", "pass", None, false);
        assert!(judge(&json!({}), None).is_err() && judge(&json!([]), Some("ledger")).is_err());
    }

    #[test]
    fn every_flaw_has_its_scenario_and_every_scenario_its_flaw() {
        let folder = crate::repository_root().join("scenarios/flaws");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .expect("the scenarios")
            .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_string_lossy().into_owned()))
            .collect();
        there.sort();
        let mut known: Vec<&str> = FLAWS.iter().map(|(flaw, ..)| *flaw).chain([NONE]).collect();
        known.sort_unstable();
        assert_eq!(there, known);
    }
}
