//! What `holdfast check` says of failures, held against real runs of PostgreSQL and of the control database.
//!
//! Owns which scenarios are run, the counting, `docs/survival.json` and the page made from it. Prediction and measurement
//! stand beside each other in every result; here they are drawn together. Each engine must show at least four sets of
//! failures that its writes survive and four that stop them, and none may come out otherwise than predicted. Mirrored
//! volumes beneath a database are not among the cases: a scenario that has them is one more line here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::program;

/// Scenarios, and what is set in each.
const CASES: &[(&str, &[&str])] = &[
    ("survival-postgres", &[]),
    ("survival-control", &[]),
    ("host-failure", &[]),
    ("host-failure-promote", &[]),
    ("host-failure-async-promote", &[]),
    ("partition", &[]),
    ("survival-control", &["database.replication.synchronous=all"]),
    ("survival-mirrored", &[]),
    ("mirror-sync", &[]),
    ("mirror-async", &[]),
    ("fr2-disks", &[]),
];

/// Of each engine so many sets of failures must be shown that its writes survive, and as many that stop them.
const EACH_MIN: usize = 4;
/// How the rows end that say whether writes were served.
const SERVED: &str = ": writes served";

/// One prediction beside its measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    engine: String,
    scenario: String,
    failures: String,
    predicted: String,
    measured: String,
    survives: bool,
    agrees: Option<bool>,
}

/// Runs the cases, or those of some scenarios alone, prints each prediction beside what happened, and writes
/// `docs/survival.json`, in which the rows of what was not run stay, and the page beside it.
///
/// # Errors
/// When the program cannot be built, a run leaves no result, there is no case of such a scenario, or the rows to keep
/// cannot be read.
pub fn run(only: &[String]) -> anyhow::Result<ExitCode> {
    for name in only {
        ensure!(CASES.iter().any(|(scenario, _)| scenario == name), "no case of scenario {name}");
    }
    let docs = crate::repository_root().join("docs");
    let (data, path) = (docs.join("survival.json"), docs.join("survival.md"));
    let before = if only.is_empty() { Vec::new() } else { kept(&data)? };
    let holdfast = program::build()?;
    let mut rows = Vec::new();
    for (scenario, set) in CASES {
        if !only.is_empty() && !only.iter().any(|name| name == scenario) {
            let case = case_name(scenario, set);
            rows.extend(before.iter().filter(|row| row.scenario == case).cloned());
            continue;
        }
        let set_each: Vec<&str> = set.iter().flat_map(|set| ["--set", *set]).collect();
        let (_, result) = program::run(&holdfast, scenario, &[&set_each, &["--seed", "1"][..]].concat())?;
        let found = rows_of(&result, scenario, set);
        for row in &found {
            println!(
                "{:<9} {:<7} {} | {} | {}",
                row.engine,
                word(row.agrees),
                row.failures,
                row.predicted,
                row.measured
            );
        }
        rows.extend(found);
    }
    let text = serde_json::to_string_pretty(&rows)? + "\n";
    std::fs::write(&data, text).with_context(|| data.display().to_string())?;
    std::fs::write(&path, page(&rows)).with_context(|| path.display().to_string())?;
    println!("{}", path.display());
    let holds = complaints(&rows);
    holds.iter().for_each(|complaint| eprintln!("{complaint}"));
    Ok(if holds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn case_name(scenario: &str, set: &[&str]) -> String {
    [&[scenario], set].concat().join(" --set ")
}

/// The rows of the runs before.
fn kept(data: &Path) -> anyhow::Result<Vec<Row>> {
    let text = std::fs::read_to_string(data).with_context(|| data.display().to_string())?;
    serde_json::from_str(&text).with_context(|| data.display().to_string())
}

/// The rows of a result that say whether writes were served.
fn rows_of(result: &Value, scenario: &str, set: &[&str]) -> Vec<Row> {
    let text = |value: &Value| value.as_str().unwrap_or("not told").to_owned();
    let mut engine = text(&result["facts"]["engine"]);
    let mirrored = |volume: &Value| volume["replicas"].as_u64() > Some(1);
    if result["volumes"].as_array().is_some_and(|volumes| volumes.iter().any(mirrored)) {
        engine.push_str(" on mirrors");
    }
    let scenario = case_name(scenario, set);
    let row = |row: &Value| {
        let name = row["name"].as_str()?.strip_suffix(SERVED)?.to_owned();
        Some(Row {
            engine: engine.clone(),
            scenario: scenario.clone(),
            failures: name,
            predicted: text(&row["predicted_in_words"]),
            measured: text(&row["measured_in_words"]),
            survives: row["predicted"].as_f64() == Some(1.0),
            agrees: row["agrees"].as_bool(),
        })
    };
    result["prediction"].as_array().into_iter().flatten().filter_map(row).collect()
}

fn word(agrees: Option<bool>) -> &'static str {
    match agrees {
        Some(true) => "agrees",
        Some(false) => "DIFFERS",
        None => "not judged",
    }
}

/// By engine: how many that survive were confirmed, and how many that do not.
fn confirmed(rows: &[Row]) -> BTreeMap<&str, (usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in rows {
        let counts = counts.entry(&row.engine).or_default();
        let part = if row.survives { &mut counts.0 } else { &mut counts.1 };
        *part += usize::from(row.agrees == Some(true));
    }
    counts
}

fn complaints(rows: &[Row]) -> Vec<String> {
    let differs = rows.iter().filter(|row| row.agrees == Some(false));
    let differs =
        differs.map(|row| format!("{}: {}: not as predicted: {}", row.engine, row.failures, row.measured));
    let few = confirmed(rows).into_iter().filter(|(_, (yes, no))| *yes < EACH_MIN || *no < EACH_MIN);
    let few = few.map(|(engine, (yes, no))| {
        format!(
            "{engine}: {yes} survived and {no} did not as predicted; at least {EACH_MIN} of each are wanted"
        )
    });
    differs.chain(few).collect()
}

fn page(rows: &[Row]) -> String {
    let mut page = "# Predicted and measured failures\n\n\
         Each row is a set of failures: what `holdfast check` predicts before anything is started, and what a real run of \
         the same measured. Writes count as served if a load had one acknowledged between the first whole second after \
         the last failure took effect and the healing of the first. This page is written by\n\n    \
         cargo xtask survival\n\n\
         which takes twenty minutes. `--only SCENARIO` runs its cases alone and keeps the other rows.\n\n\
         | engine | scenario | failures | on paper | in the run | |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for row in rows {
        let Row { engine, scenario, failures, predicted, measured, .. } = row;
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| {engine} | `{scenario}` | {failures} | {predicted} | {measured} | {} |",
            word(row.agrees)
        );
    }
    for (engine, (yes, no)) in confirmed(rows) {
        let _ = write!(
            page,
            "\n{engine}: {yes} sets that leave writes served and {no} that stop them came out as predicted.\n"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(survives: bool, agrees: Option<bool>) -> Row {
        let result = json!({"facts": {"engine": "control"}, "prediction": [
            {"name": "leader: first success", "predicted": 1.0},
            {"name": "leader: writes served", "predicted": f64::from(u8::from(survives)), "agrees": agrees},
        ]});
        let [row] = rows_of(&result, "s", &[]).try_into().expect("one row says whether writes were served");
        row
    }

    #[test]
    fn one_that_differs_or_too_few_of_a_kind_fail_the_whole() {
        let check = |yes: usize, no: usize, differs: usize, expected: usize| {
            let mut rows = vec![row(true, Some(true)); yes];
            rows.extend(vec![row(false, Some(true)); no]);
            rows.extend(vec![row(false, Some(false)); differs]);
            rows.push(row(true, None));
            assert_eq!(complaints(&rows).len(), expected, "{yes} {no} {differs}");
        };
        check(4, 4, 0, 0);
        check(4, 3, 0, 1);
        check(4, 4, 2, 2);
    }

    #[test]
    fn the_page_is_made_from_the_rows_that_are_kept() {
        let docs = crate::repository_root().join("docs");
        let rows = kept(&docs.join("survival.json")).expect("rows");
        assert_eq!(page(&rows), std::fs::read_to_string(docs.join("survival.md")).expect("a page"));
    }

    #[test]
    fn every_case_has_its_scenario() {
        for (scenario, _) in CASES {
            let file = crate::repository_root().join(format!("scenarios/{scenario}.yaml"));
            assert!(file.is_file(), "{}", file.display());
        }
    }
}
