//! The lies that can be planted in the lab (`holdfast run --plant LIE`), each run many times beside honest runs.
//!
//! Owns what must catch each lie, the counting, and `docs/lies.md`. A lie counts as caught when the run ends with the exit
//! code meant for it and one of its reasons holds the sentence meant for it. An honest run must pass. Two processes keep
//! the processors busy meanwhile: evidence must hold on a machine that is short of time.

use std::collections::{BTreeSet, VecDeque};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::program;

/// A scenario under `scenarios/lies/`, run with a lie or without, and how that must end.
struct Case {
    /// Of the lie; `none` for an honest run.
    name: &'static str,
    scenario: &'static str,
    what: &'static str,
    exit_code: i32,
    /// One of the run's reasons holds all of these; empty for an honest run.
    sentence: &'static [&'static str],
}

const HONEST: &str = "none";
const PREVENTED: &str = "--prevent-faults";

/// A lie that must leave the verdict unknown.
const fn lie([name, scenario, what]: [&'static str; 3], sentence: &'static [&'static str]) -> Case {
    Case { name, scenario, what, exit_code: 2, sentence }
}

const fn honest(scenario: &'static str) -> Case {
    Case { name: HONEST, scenario, what: "an honest run", exit_code: 0, sentence: &[] }
}

const CASES: &[Case] = &[
    lie(
        ["delay-short", "network", "added delays are 45 ms where 50 ms were asked for"],
        &["expected 50.00 ms", "the delay is too short"],
    ),
    lie(
        ["leak-packets", "network", "a partition lets 1 packet of 50 through"],
        &["partition", "has no receipt", "although the fault blocks this direction"],
    ),
    honest("network"),
    lie(
        ["rate-double", "rate", "a link that the database fills carries twice of what was asked"],
        &["the rate is too high"],
    ),
    lie(
        ["rate-half", "rate", "a link that the database fills carries half of what was asked"],
        &["the rate is too low"],
    ),
    lie(
        ["queue-double", "rate", "the queue of a fault holds twice of what was asked"],
        &["has no receipt", "the queue has the wrong size"],
    ),
    honest("rate"),
    lie(
        ["loss-half", "conditions", "half of the packets that are to be lost are"],
        &["has no receipt", "were lost"],
    ),
    lie(
        ["duplicates-half", "conditions", "half of the packets that are to arrive twice do"],
        &["has no receipt", "arrived twice"],
    ),
    lie(
        ["corruption-half", "conditions", "half of the packets that are to have a bit flipped have"],
        &["has no receipt", "with a bit flipped"],
    ),
    lie(
        ["reorder-half", "conditions", "half of the packets that are to overtake do"],
        &["has no receipt", "took less than"],
    ),
    lie(
        ["jitter-half", "conditions", "jitter has half the spread that was asked for"],
        &["has no receipt", "jitter"],
    ),
    lie(
        ["large-packets", "conditions", "packets larger than a fault allows pass"],
        &["has no receipt", "packets of 1301 bytes"],
    ),
    honest("conditions"),
    lie(
        ["path-kept", "kernel-path", "a pair keeps to the kernel's own path, whatever is asked of it"],
        &["partition", "has no receipt", "although the fault blocks this direction"],
    ),
    lie(
        ["path-kept-by-one", "kernel-path", "one node of a place keeps to the kernel's own path"],
        &["network", "has no receipt", "from n3 to n1", "the delay is too short"],
    ),
    honest("kernel-path"),
    lie(
        ["no-rollback", "power-off", "data that was not synced stays at a power-off"],
        &["nothing was rolled back (canary)"],
    ),
    lie(
        ["synced-lost", "power-off", "the disks of the lab lose what was synced at a power-off"],
        &["the lab lost synced data at a power-off, so this run shows nothing about the database"],
    ),
    lie(
        ["no-rollback", "cut-off", "data that was not synced stays when the platform switches a node off"],
        &["nothing was rolled back (canary)"],
    ),
    honest("cut-off"),
    lie(
        ["old-programs", "upgrade", "a node that is to be upgraded is restarted with its old programs"],
        &["rolling-upgrade", "has no receipt", "runs from the files of 3.4"],
    ),
    honest("upgrade"),
    lie(
        ["process-left", "power-off", "a process of a node outlives its power-off"],
        &["still runs in the node's namespaces"],
    ),
    lie(
        [PREVENTED, "power-off", "a fault is announced and does not happen"],
        &["power-off", "has no receipt"],
    ),
    honest("power-off"),
    lie(
        ["kill-nothing", "process", "a kill of processes kills none"],
        &["process", "has no receipt", "still there after"],
    ),
    lie(
        ["stop-main-only", "process", "a stop of processes reaches the first of them alone"],
        &["process", "has no receipt", "are not stopped"],
    ),
    honest("process"),
    lie(
        ["no-pressure", "pressure", "a neighbour that is to take processors takes none"],
        &["pressure", "has no receipt"],
    ),
    honest("pressure"),
    lie(
        ["clock-c-only", "clock", "a node's clock reaches only programs with a C library"],
        &["clock-jump", "has no receipt"],
    ),
    lie([PREVENTED, "clock", "a fault is announced and does not happen"], &["clock-drift", "has no receipt"]),
    honest("clock"),
    lie(
        ["migration-drops", "migration", "a live migration cuts the connections of the node that it moves"],
        &["migrate", "has no receipt", "did not survive the migration"],
    ),
    lie([PREVENTED, "migration", "a fault is announced and does not happen"], &["migrate", "has no receipt"]),
    honest("migration"),
    lie(
        ["rules-forgotten", "placement", "the platform starts nodes wherever there is power"],
        &["run together although rule 1 keeps them apart"],
    ),
    honest("placement"),
    Case {
        exit_code: 1,
        ..lie(
            ["dropped-insert", "load", "an acknowledged insert was never sent"],
            &["acknowledged inserts is lost: insert "],
        )
    },
    Case {
        exit_code: 1,
        ..lie(
            ["invented-insert", "load", "the database holds an insert that nobody asked for"],
            // The row of a client that there is none of.
            &["9223370937343148032"],
        )
    },
    lie(["load-panic", "load", "the thread of a load panics"], &["load ledger: its thread panicked"]),
    lie(["load-dies", "load", "a load ends with an error"], &["load ledger: a planted defect ended it"]),
    lie(["lab-stall", "load", "the supervisor stands still for 5 s"], &["the lab stalled"]),
    lie(["vigil-panic", "load", "the watch over the lab panics"], &["its watchdog"]),
    lie(["no-vigil", "load", "the watch over the lab does not begin"], &["its watchdog"]),
    honest("load"),
    lie(
        ["no-final-read", "final-read", "the final read of the loads does not happen"],
        &["the final state of load", "was not read"],
    ),
    honest("final-read"),
];

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often each lie is planted, and each scenario run without one.
    pub runs: u64,
    /// How many runs are under way at the same time.
    pub at_once: usize,
    /// Only these lies, or all lies and honest runs of these scenarios; empty for all. `none` is the honest runs.
    pub only: Vec<String>,
}

impl Case {
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.scenario == name
    }

    /// What is added to `holdfast run`.
    fn arguments(&self) -> Vec<&'static str> {
        match self.name {
            HONEST => Vec::new(),
            PREVENTED => vec![PREVENTED],
            lie => vec!["--plant", lie],
        }
    }

    /// How its line of the page begins.
    fn line_head(&self) -> String {
        format!("| `{}` | {} | {} | {} | ", self.name, self.what, self.scenario, self.exit_code)
    }
}

/// How the runs of one case came out.
#[derive(Debug, Default, Clone)]
struct Row {
    runs: u64,
    good: u64,
    /// The reason that caught the lie, of one run.
    told: String,
}

/// A process that keeps a processor busy until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> anyhow::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Self(command.spawn().context("a busy loop")?))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // One that has ended by itself needs no more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs them, prints the table, and writes their lines of `docs/lies.md`.
///
/// # Errors
/// When the program cannot be built or a run leaves no result.
pub fn run(asked: &Options) -> anyhow::Result<ExitCode> {
    if let Some(name) = asked.only.iter().find(|name| !CASES.iter().any(|case| case.is_named(name))) {
        let names: BTreeSet<&str> = CASES.iter().flat_map(|case| [case.name, case.scenario]).collect();
        let names: Vec<&str> = names.into_iter().collect();
        bail!("no lie and no scenario is named `{name}`; there are {}", names.join(", "));
    }
    ensure!(asked.at_once > 0, "--at-once takes 1 or more");
    let holdfast = program::build()?;
    let wanted = |case: &Case| asked.only.is_empty() || asked.only.iter().any(|name| case.is_named(name));
    let all = (1..=asked.runs).flat_map(|seed| (0..CASES.len()).map(move |case| (seed, case)));
    let waiting: Mutex<VecDeque<(u64, usize)>> =
        Mutex::new(all.filter(|(_, case)| wanted(&CASES[*case])).collect());
    let rows = Mutex::new(vec![Row::default(); CASES.len()]);
    let busy = [BusyLoop::start()?, BusyLoop::start()?];
    let work = || -> anyhow::Result<()> {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((seed, number)) = next else { return Ok(()) };
            let case = &CASES[number];
            let (seed_written, arguments) = (seed.to_string(), case.arguments());
            let further = [&["--seed", &seed_written], arguments.as_slice()].concat();
            let ended = program::run(&holdfast, &format!("lies/{}", case.scenario), &further)?;
            let judged = judge(case, &ended);
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows[number].runs += 1;
            match judged {
                Ok(told) => {
                    rows[number].good += 1;
                    rows[number].told = told;
                }
                Err(why) => eprintln!("{} on {}, seed {seed}: {why}", case.name, case.scenario),
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..asked.at_once).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    drop(busy);
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (case, row) in CASES.iter().zip(&rows).filter(|(_, row)| row.runs > 0) {
        println!("{:<16} {:<10} {} of {}", case.name, case.scenario, row.good, row.runs);
    }
    let path = crate::repository_root().join("docs/lies.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, page(&rows, asked, &before)).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    let all_good = rows.iter().all(|row| row.good == row.runs);
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The reason that caught the lie; empty for an honest run that passed.
fn judge(case: &Case, (code, result): &(Option<i32>, Value)) -> Result<String, String> {
    let reasons = result["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ended =
        || format!("exit code {code:?}, verdict {}, reasons {}", result["verdict"], result["reasons"]);
    if *code != Some(case.exit_code) {
        return Err(ended());
    }
    if case.sentence.is_empty() {
        return Ok(String::new());
    }
    let catches = |reason: &&str| case.sentence.iter().all(|part| reason.contains(part));
    let told = reasons.iter().filter_map(Value::as_str).find(catches);
    told.map(str::to_owned).ok_or_else(|| format!("not for the reason that was meant: {}", ended()))
}

/// What was not run keeps the line that it had before.
fn page(rows: &[Row], asked: &Options, before: &str) -> String {
    let mut page = format!(
        "# Lies planted in the lab\n\n\
         `holdfast run --plant LIE` makes the lab, its loads or its recording lie. Each row is a scenario under \
         `scenarios/lies/`, run end to end, {} at the same time, with two busy loops beside them. A lie is caught when the \
         run ends with this exit code and gives this reason (2: the verdict is `unknown`; 1: `fail`). Rows of `{HONEST}` \
         are the same scenarios without a lie: all must pass. Written by\n\n    \
         cargo xtask lies --runs {} --at-once {}\n\n\
         | lie | what it does | scenario | exit code | runs as expected | the reason that one of the runs gave |\n\
         |---|---|---|---|---|---|\n",
        asked.at_once, asked.runs, asked.at_once
    );
    for (case, row) in CASES.iter().zip(rows) {
        let (head, told) = (case.line_head(), row.told.replace('|', "\\|"));
        let line = match row.runs {
            0 => before.lines().find(|line| line.starts_with(&head)).map(str::to_owned),
            runs => Some(format!("{head}{} of {runs} | {told} |", row.good)),
        };
        page.extend(line.into_iter().flat_map(|line| [line, "\n".to_owned()]));
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lie_is_caught_by_its_exit_code_and_its_reason_together() {
        let case = |name: &str| CASES.iter().find(|case| case.name == name).expect("a case");
        let ended =
            |code: i32, reason: &str| (Some(code), json!({"verdict": "unknown", "reasons": [reason]}));
        let stall = "the lab stalled for 5.0 s";
        assert_eq!(judge(case("lab-stall"), &ended(2, stall)).as_deref(), Ok(stall));
        assert!(judge(case("lab-stall"), &ended(0, stall)).is_err());
        assert!(judge(case("lab-stall"), &ended(2, "the machine was busy")).is_err());
        assert!(judge(case("lab-stall"), &(Some(2), json!({}))).is_err());
        assert!(judge(case(HONEST), &ended(0, "")).is_ok());
        assert!(
            judge(case(HONEST), &ended(2, stall)).is_err()
                && judge(case(HONEST), &(None, json!({}))).is_err()
        );
    }

    #[test]
    fn what_was_not_run_keeps_its_line_and_what_was_run_gets_a_new_one() {
        let asked = Options { runs: 2, at_once: 1, only: vec!["rate".to_owned()] };
        let row = |runs: u64| Row { runs, good: runs, told: "a | b".to_owned() };
        let all = page(&vec![row(2); CASES.len()], &asked, "");
        let rows: Vec<Row> =
            CASES.iter().map(|case| if case.scenario == "rate" { row(1) } else { Row::default() }).collect();
        let some = page(&rows, &asked, &all);
        assert_eq!(all.lines().count(), some.lines().count());
        for (old, new) in all.lines().zip(some.lines()) {
            let is_run =
                CASES.iter().any(|case| case.scenario == "rate" && old.starts_with(&case.line_head()));
            assert_eq!(old != new, is_run, "{old}\n{new}");
            assert!(!is_run || new.ends_with(r"| 1 of 1 | a \| b |"), "{new}");
        }
    }

    #[test]
    fn every_lie_is_planted_and_every_scenario_is_run_without_one() {
        let planted = |name: &str| CASES.iter().any(|case| case.arguments() == ["--plant", name]);
        for lie in faults::Lie::ALL {
            assert!(planted(lie.name()), "{lie} is planted nowhere");
        }
        let honest = |name: &str| CASES.iter().any(|case| case.name == HONEST && case.scenario == name);
        for entry in std::fs::read_dir(crate::repository_root().join("scenarios/lies")).expect("scenarios") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(honest(&name), "{name} is not run without a lie");
        }
    }
}
