//! What may be concluded from a run's own record: read again, by other code than that which judged it.
//!
//! Owns the doubts about a `pass`. Knows the ledger only as sets of numbers, and uses nothing of `check`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use history::{Action, HistoryReader, Outcome};
use serde_json::Value;

/// Why a run that ended with `pass` should not have; empty where nothing speaks against it.
pub(super) fn doubts(directory: &Path, result: &Value) -> Vec<String> {
    let mut doubts = of_result(result);
    match of_ledgers(&directory.join("history.jsonl.zst")) {
        Ok(found) => doubts.extend(found),
        Err(why) => doubts.push(why),
    }
    doubts
}

fn of_result(result: &Value) -> Vec<String> {
    let mut doubts = Vec::new();
    let each = |key: &str| result[key].as_array().cloned().unwrap_or_default();
    for (number, fault) in each("faults").iter().enumerate() {
        if fault["receipt"]["verdict"] != "pass" || !fault["took_effect_s"].is_f64() {
            doubts.push(format!("fault {} has no receipt", number + 1));
        }
    }
    for check in each("checks").iter().chain(&each("expectations")).filter(|check| check["verdict"] != "pass")
    {
        doubts.push(format!("{} did not pass", check["name"]));
    }
    if result["checks"].as_array().is_none_or(Vec::is_empty) {
        doubts.push("nothing was checked".to_owned());
    }
    if result["lab"]["stalls"].as_array().is_some_and(|stalls| !stalls.is_empty()) {
        doubts.push("the lab stalled".to_owned());
    }
    doubts
}

/// Numbers of one ledger.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeSet<u64>,
    may_be_there: BTreeSet<u64>,
    found: BTreeSet<u64>,
    is_read_to_its_end: bool,
}

/// What is wrong with the ledgers of a history.
///
/// # Errors
/// When it cannot be read to its end.
fn of_ledgers(path: &Path) -> Result<Vec<String>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| failed(&error))?;
    let reader = HistoryReader::new(BufReader::new(file)).map_err(|error| failed(&error))?;
    let mut ledgers: BTreeMap<String, Ledger> = BTreeMap::new();
    for operation in reader {
        let operation = operation.map_err(|error| failed(&error))?;
        let ledger = ledgers.entry(operation.load).or_default();
        match (operation.action, operation.outcome) {
            (Action::LedgerInsert { value }, Outcome::Ok) => drop(ledger.acknowledged.insert(value)),
            (Action::LedgerInsert { value }, Outcome::Unknown) => drop(ledger.may_be_there.insert(value)),
            (Action::LedgerRead { values, complete }, Outcome::Ok) => {
                ledger.found.extend(values);
                ledger.is_read_to_its_end |= complete;
            }
            _ => {}
        }
    }
    let mut doubts = Vec::new();
    for (load, ledger) in ledgers.into_iter().filter(|(_, ledger)| ledger.is_a_ledger()) {
        if !ledger.is_read_to_its_end {
            doubts.push(format!("{load} was not read to its end"));
        }
        if let Some(lost) = ledger.acknowledged.difference(&ledger.found).next() {
            doubts.push(format!("{load} lost {lost}"));
        }
        let mut invented = ledger.found.difference(&ledger.acknowledged);
        if let Some(invented) = invented.find(|value| !ledger.may_be_there.contains(value)) {
            doubts.push(format!("{load} has {invented}, which nobody inserted"));
        }
    }
    Ok(doubts)
}

impl Ledger {
    fn is_a_ledger(&self) -> bool {
        !(self.acknowledged.is_empty() && self.may_be_there.is_empty() && self.found.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(lines: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .expect("written");
        of_ledgers(&path).expect("a history")
    }

    fn insert(value: u64, outcome: &str) -> String {
        format!(
            r#"{{"load":"l","client":1,"f":"ledger-insert","value":{value},"invoked_s":1.0,"completed_s":1.1,"outcome":"{outcome}"}}"#
        )
    }

    fn read(values: &str, complete: bool) -> String {
        format!(
            r#"{{"load":"l","client":9,"f":"ledger-read","values":[{values}],"complete":{complete},"invoked_s":2.0,"completed_s":2.1,"outcome":"ok"}}"#
        )
    }

    #[test]
    fn a_lost_an_invented_and_an_unread_row_are_each_a_doubt_and_an_honest_ledger_is_none() {
        let (one, two, three) = (insert(1, "ok"), insert(2, "unknown"), insert(3, "fail"));
        let check = |read_of: &str, complete, expected: &[&str]| {
            assert_eq!(ledger(&[&one, &two, &three, &read(read_of, complete)]), expected);
        };
        check("1", true, &[]);
        check("1,2", true, &[]);
        check("2", true, &["l lost 1"]);
        check("1,3", true, &["l has 3, which nobody inserted"]);
        check("1", false, &["l was not read to its end"]);
    }

    #[test]
    fn a_pass_without_a_receipt_without_a_check_or_with_a_stall_is_doubted() {
        let honest = serde_json::json!({
            "faults": [{ "receipt": { "verdict": "pass" }, "took_effect_s": 1.5 }],
            "checks": [{ "name": "ledger", "verdict": "pass" }], "expectations": [], "lab": { "stalls": [] },
        });
        assert_eq!(of_result(&honest), Vec::<String>::new());
        let doubted = |path: &str, value: Value, expected: &str| {
            let mut result = honest.clone();
            *result.pointer_mut(path).expect("a key") = value;
            assert_eq!(of_result(&result), [expected]);
        };
        doubted("/faults/0/receipt/verdict", "unknown".into(), "fault 1 has no receipt");
        doubted("/faults/0/took_effect_s", Value::Null, "fault 1 has no receipt");
        doubted("/checks/0/verdict", "unknown".into(), "\"ledger\" did not pass");
        doubted("/checks", serde_json::json!([]), "nothing was checked");
        doubted("/lab/stalls", serde_json::json!([{ "from_s": 1.0 }]), "the lab stalled");
    }
}
