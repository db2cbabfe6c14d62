//! What the atlas keeps of a run, and the file of a cell: `docs/atlas/data/ENGINE/FAULT.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An engine under a fault.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) engine: String,
    pub(super) fault: String,
    /// The versions of the database that ran.
    pub(super) versions: Vec<String>,
    /// The machines that they ran on: processor, cores, kernel.
    pub(super) machines: Vec<String>,
    /// In the order in which they were made.
    pub(super) runs: Vec<Run>,
}

/// A run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) seed: u64,
    /// Holdfast's version.
    pub(super) holdfast: String,
    pub(super) verdict: String,
    /// Why it is what it is; empty when it passed.
    pub(super) reasons: Vec<String>,
    /// Whether the longest time without a success was longer than before the fault.
    pub(super) interrupted: Option<bool>,
    /// The longest time without a success, of all loads.
    pub(super) gap_s: Option<f64>,
    /// Until throughput was at 95 % of the baseline for good.
    pub(super) sustained_s: Option<f64>,
    pub(super) acknowledged_writes: Option<u64>,
    pub(super) lost_writes: Option<u64>,
    /// Of all loads, by class.
    pub(super) errors: BTreeMap<String, u64>,
    /// Each check's verdict.
    pub(super) checks: BTreeMap<String, String>,
    /// Of everything, the lab included.
    pub(super) cpu_s: f64,
}

impl Run {
    /// What a result says.
    pub(super) fn of(result: &Value) -> anyhow::Result<Run> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let each = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let fault = &result["faults"][0];
        let checks = each(&result["checks"]);
        let ledger = checks.iter().find(|check| check["name"] == "ledger");
        let of_ledger = |key: &str| ledger.and_then(|check| check[key].as_u64());
        let verdict = text(&result["verdict"]);
        let mut errors = BTreeMap::new();
        for load in each(&result["loads"]) {
            for (class, count) in load["errors"].as_object().into_iter().flatten() {
                *errors.entry(class.clone()).or_default() += count.as_u64().unwrap_or_default();
            }
        }
        let cpu = result["lab"]["cpu_seconds"].as_object().context("lab.cpu_seconds")?;
        Ok(Run {
            seed: result["seed"].as_u64().context("seed")?,
            holdfast: text(&result["holdfast"]),
            reasons: match verdict.as_str() {
                "pass" => Vec::new(),
                _ => each(&result["reasons"]).iter().map(text).collect(),
            },
            verdict,
            interrupted: fault["interrupted"].as_bool(),
            gap_s: fault["gap_s"].as_f64(),
            sustained_s: fault["recovery_s"]["sustained"].as_f64(),
            acknowledged_writes: of_ledger("acknowledged"),
            lost_writes: of_ledger("lost"),
            errors,
            checks: checks.iter().map(|check| (text(&check["name"]), text(&check["verdict"]))).collect(),
            cpu_s: cpu.values().filter_map(Value::as_f64).sum(),
        })
    }

    /// For the terminal.
    pub(super) fn in_a_line(&self) -> String {
        let seconds =
            |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), |value| format!("{value:.1} s"));
        let gap = if self.interrupted == Some(false) { "none".to_owned() } else { seconds(self.gap_s) };
        let lost = self.lost_writes.map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
        format!(
            "{}, interruption {gap}, back for good {}, lost {lost}",
            self.verdict,
            seconds(self.sustained_s)
        )
    }
}

impl Cell {
    /// One without a run.
    pub(super) fn new(engine: &str, fault: &str) -> Cell {
        Cell {
            engine: engine.to_owned(),
            fault: fault.to_owned(),
            versions: Vec::new(),
            machines: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a run.
    pub(super) fn take(&mut self, run: Run, result: &Value) {
        let facts = &result["facts"];
        let machine = &facts["machine"];
        let of_machine = |key: &str| machine[key].as_str().unwrap_or("?").to_owned();
        let machine =
            format!("{}, {} cores, Linux {}", of_machine("cpu"), of_machine("cores"), of_machine("kernel"));
        let version = facts["engine_version"].as_str().unwrap_or("?").to_owned();
        for (known, new) in [(&mut self.versions, version), (&mut self.machines, machine)] {
            if !known.contains(&new) {
                known.push(new);
            }
        }
        self.runs.push(run);
    }
}

fn path(folder: &Path, engine: &str, fault: &str) -> PathBuf {
    folder.join(format!("data/{engine}/{fault}.json"))
}

/// The cell, where it has a run.
pub(super) fn read(folder: &Path, engine: &str, fault: &str) -> anyhow::Result<Option<Cell>> {
    let path = path(folder, engine, fault);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text)
        .map(Some)
        .with_context(|| format!("{}: not a cell of the atlas", path.display()))
}

/// Writes the cell.
pub(super) fn save(folder: &Path, cell: &Cell) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(cell)?;
    super::write(&path(folder, &cell.engine, &cell.fault), &format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result() -> Value {
        json!({
            "holdfast": "0.1.0", "seed": 3, "verdict": "fail", "reasons": ["2 acknowledged writes are lost"],
            "faults": [{ "interrupted": true, "gap_s": 8.25, "recovery_s": { "sustained": 9.5 } }],
            "checks": [
                { "name": "append", "verdict": "pass" },
                { "name": "ledger", "verdict": "fail", "acknowledged": 100, "lost": 2 },
            ],
            "loads": [{ "errors": { "timeout": 4 } }, { "errors": { "timeout": 1, "refused": 2 } }],
            "lab": { "cpu_seconds": { "database": 10.0, "disk": 2.5 } },
            "facts": { "engine_version": "17.2", "machine": { "cpu": "EPYC", "cores": "2", "kernel": "6.18" } },
        })
    }

    #[test]
    fn a_run_is_what_its_result_says_and_errors_are_added_over_loads() {
        let run = Run::of(&result()).expect("a run");
        assert_eq!((run.seed, run.gap_s, run.sustained_s), (3, Some(8.25), Some(9.5)));
        assert_eq!((run.acknowledged_writes, run.lost_writes, run.cpu_s), (Some(100), Some(2), 12.5));
        assert_eq!(run.errors, BTreeMap::from([("refused".to_owned(), 2), ("timeout".to_owned(), 5)]));
        assert_eq!(run.in_a_line(), "fail, interruption 8.2 s, back for good 9.5 s, lost 2");
    }

    #[test]
    fn a_cell_is_read_back_as_it_was_saved_and_damage_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(read(folder.path(), "etcd", "all-off").expect("readable"), None);
        let mut cell = Cell::new("etcd", "all-off");
        cell.take(Run::of(&result()).expect("a run"), &result());
        cell.take(Run::of(&result()).expect("a run"), &result());
        assert_eq!((cell.versions.len(), cell.machines.len(), cell.runs.len()), (1, 1, 2));
        save(folder.path(), &cell).expect("saved");
        assert_eq!(read(folder.path(), "etcd", "all-off").expect("readable"), Some(cell));
        super::super::write(&path(folder.path(), "etcd", "all-off"), "{").expect("written");
        assert!(read(folder.path(), "etcd", "all-off").is_err());
    }
}
