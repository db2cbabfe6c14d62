//! The public form of `result.json` and `timeline.csv`: every key that scripts may rely on, with its type.
//!
//! The list below is the promise. Keys may be added to the files, and then here; none may go or change its type.

use std::path::Path;

use serde_json::Value;

/// `path kind`. A path goes through objects by `.`, through every element of a list by `[]` and through every value of
/// an object by `{}`. Kinds: text, whole (number), number, object, list, verdict; `?` after a kind allows null, `?`
/// before the path allows absence.
const KEYS: &str = "
holdfast text
scenario text
seed whole
started_at time
verdict verdict
expectations list
expectations[].name text
expectations[].wanted text
expectations[].measured text
expectations[].verdict verdict
checks list
checks[].name text
checks[].verdict verdict
checks[].explanation text
faults list
faults[].kind text
faults[].target text
faults[].asked_s number
faults[].took_effect_s number?
faults[].healed_s number?
faults[].receipt.verdict verdict
faults[].receipt.evidence list
faults[].receipt.evidence[] text
faults[].gap_s number?
faults[].below_50_percent_s number?
faults[].below_95_percent_s number?
faults[].recovery_s.first_success number?
faults[].recovery_s.back_to_95_percent number?
faults[].recovery_s.sustained number?
?faults[].new_leader_s number
faults[].loads list
faults[].loads[].load text
faults[].loads[].gap_s number?
?faults[].loads[].incomparable object
faults[].lost_operations number?
faults[].lost_writes whole?
faults[].throughput_ratio_during number?
loads list
loads[].name text
loads[].workload text
loads[].transactions whole
loads[].errors object
loads[].errors{} whole
loads[].throughput_per_s number
loads[].latency_us LATENCY
loads[].operations object
loads[].operations{}.count whole
loads[].operations{}.latency_us LATENCY
loads[].phases list
loads[].phases[].name text
loads[].phases[].from_s number
loads[].phases[].to_s number
loads[].phases[].transactions whole
loads[].phases[].errors object
loads[].phases[].errors{} whole
loads[].phases[].throughput_per_s number
loads[].phases[].latency_us LATENCY
loads[].phases[].operations object
loads[].phases[].operations{}.count whole
loads[].phases[].operations{}.latency_us LATENCY
prediction list
prediction[].name text
prediction[].predicted number
prediction[].measured number?
prediction[].unit text
volumes list
volumes[].node text
volumes[].replicas whole
volumes[].resync list
lab.boot_s number?
lab.nodes whole
lab.cpu_seconds.database number
lab.cpu_seconds.load number
lab.cpu_seconds.fabric number
lab.cpu_seconds.disk number
lab.cpu_seconds.other number
lab.cpu_share_of_lab number?
?lab.cpu_share_without_lab number
?lab.memory_bytes_max whole
lab.warnings list
";

const LATENCY_KEYS: [&str; 7] = ["mean", "p50", "p90", "p95", "p99", "p99_9", "max"];

/// The columns of `timeline.csv`.
const TIMELINE_HEADING: &str = "t_s,load,operation,count,errors,p50_us,p95_us,p99_us,max_us";

/// Everything in `result` that breaks the promise, one line each.
fn breaches(result: &Value) -> Vec<String> {
    let mut breaches = Vec::new();
    for line in KEYS.lines().filter(|line| !line.is_empty()) {
        let (path, kind) = line.split_once(' ').expect("path and kind");
        let (path, may_be_absent) = path.strip_prefix('?').map_or((path, false), |path| (path, true));
        let mut found = Vec::new();
        walk(result, path, &mut found);
        for value in found {
            if !value.map_or(may_be_absent, |value| is(value, kind)) {
                breaches.push(format!("{path} is not {kind}: {value:?}"));
            }
        }
    }
    for ledger in result["checks"].as_array().into_iter().flatten().filter(|check| check["name"] == "ledger")
    {
        for count in ["acknowledged", "lost", "invented", "indeterminate"] {
            // What could not be told is absent, and then the check is in doubt.
            let is_untold = ledger["verdict"] == "unknown" && ledger[count].is_null();
            if !ledger[count].is_u64() && !is_untold {
                breaches.push(format!("checks[ledger].{count} is not whole: {}", ledger[count]));
            }
        }
    }
    for load in result["loads"].as_array().into_iter().flatten() {
        if load["clients"].is_u64() == load["rate_per_s"].is_number() {
            breaches.push(format!("loads[].clients|rate_per_s: not exactly one of them: {load}"));
        }
    }
    breaches
}

/// Collects what stands at `path`; `None` where a key is missing.
fn walk<'a>(value: &'a Value, path: &str, found: &mut Vec<Option<&'a Value>>) {
    let end = path.find(['.', '[', '{']).unwrap_or(path.len());
    let (key, rest) = path.split_at(end);
    let value = if key.is_empty() { Some(value) } else { value.get(key) };
    match (value, rest) {
        (value, "") => found.push(value),
        (None, _) => found.push(None),
        (Some(value), rest) => {
            if let Some(rest) = rest.strip_prefix("[]") {
                for element in value.as_array().into_iter().flatten() {
                    walk(element, rest.trim_start_matches('.'), found);
                }
            } else if let Some(rest) = rest.strip_prefix("{}") {
                for element in value.as_object().into_iter().flat_map(|object| object.values()) {
                    walk(element, rest.trim_start_matches('.'), found);
                }
            } else {
                walk(value, &rest[1..], found);
            }
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    if let Some(kind) = kind.strip_suffix('?') {
        return value.is_null() || is(value, kind);
    }
    match kind {
        "text" => value.as_str().is_some_and(|text| !text.is_empty()),
        "time" => {
            value.as_str().is_some_and(|text| text.len() == 20 && text.ends_with('Z') && &text[10..11] == "T")
        }
        "whole" => value.is_u64(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "list" => value.is_array(),
        "verdict" => matches!(value.as_str(), Some("pass" | "fail" | "unknown")),
        "LATENCY" => LATENCY_KEYS.iter().all(|key| value.get(key).is_some_and(Value::is_number)),
        _ => panic!("no such kind: {kind}"),
    }
}

/// Asserts that a result keeps the promise.
#[track_caller]
pub fn holds(result: &Value) {
    let breaches = breaches(result);
    assert!(breaches.is_empty(), "result.json breaks its contract:\n  {}", breaches.join("\n  "));
}

/// The page of the reference that names every file of a run.
const FILES_PAGE: &str = include_str!("../../../../docs/reference/run-directory.md");

/// Names that the reference does not have.
fn undocumented<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    names.into_iter().filter(|name| !FILES_PAGE.contains(&format!("| `{name}` |"))).collect()
}

/// Asserts that the reference names every file of a run.
#[track_caller]
pub fn files_are_documented(run_directory: &Path) {
    let entries = std::fs::read_dir(run_directory).expect("the run directory").filter_map(Result::ok);
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() > 5, "{names:?}");
    let missing = undocumented(names.iter().map(String::as_str));
    assert!(missing.is_empty(), "add them to `cargo xtask reference`'s list of files: {missing:?}");
}

#[test]
fn a_file_that_the_reference_does_not_name_is_found() {
    assert_eq!(undocumented(["result.json", "invented.bin", "logs"]), ["invented.bin"]);
}

/// Asserts that the time line of a whole run keeps the promise: the columns, and for each operation a row in every
/// second from its first to the last.
#[track_caller]
pub fn timeline_holds(run_directory: &Path) {
    let text = std::fs::read_to_string(run_directory.join("timeline.csv")).expect("timeline.csv");
    assert!(text.ends_with('\n'), "the last row is not whole");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(TIMELINE_HEADING));
    let mut seconds = std::collections::BTreeMap::<(String, String), Vec<u64>>::new();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), 9, "{line}");
        let numbers: Vec<u64> = [0, 3, 4, 5, 6, 7, 8]
            .iter()
            .map(|field| fields[*field].parse().expect("a whole number"))
            .collect();
        assert!(numbers[3] <= numbers[4] && numbers[4] <= numbers[5] && numbers[5] <= numbers[6], "{line}");
        seconds.entry((fields[1].to_owned(), fields[2].to_owned())).or_default().push(numbers[0]);
    }
    assert!(!seconds.is_empty());
    for (operation, seconds) in seconds {
        let whole: Vec<u64> = (seconds[0]..seconds[0] + seconds.len() as u64).collect();
        assert_eq!(seconds, whole, "{operation:?} has no row a second");
    }
}

#[test]
fn a_missing_key_and_a_wrong_type_are_breaches() {
    let found = breaches(&serde_json::json!({
        "holdfast": 1, "loads": [{ "latency_us": { "mean": 1 } }], "checks": [{ "name": "ledger", "lost": -1 }],
    }));
    for expected in [
        "holdfast is not text",
        "scenario is not text",
        "loads[].latency_us is not LATENCY",
        "loads[].clients|rate_per_s: not exactly one",
        "checks[ledger].lost is not whole: -1",
        "lab.cpu_seconds.database is not number",
    ] {
        assert!(
            found.iter().any(|breach| breach.starts_with(expected)),
            "{expected} is not among {found:#?}"
        );
    }
}
