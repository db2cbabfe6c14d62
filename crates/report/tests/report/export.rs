//! The forms that other programs read, each held to the rules of its own specification.

use std::collections::BTreeSet;
use std::path::PathBuf;

use history::edn::{EdnHistory, Model};
use history::{Action, HistoryWriter, Operation, Outcome, Verdict};
use report::export::{ExportError, Format, Rows, export};
use results::matrix::{CellResult, MatrixResult};
use tempfile::TempDir;

use crate::fixture::{self, Fixture};

struct Exported {
    folder: TempDir,
}

impl Exported {
    fn of(fixture: &Fixture) -> Exported {
        let folder = TempDir::new().expect("a temporary folder");
        fixture.write(folder.path()).expect("the fixture is written");
        Exported { folder }
    }

    fn with_history(self, operations: &[Operation]) -> Exported {
        let mut writer = HistoryWriter::new(Vec::new()).expect("a writer");
        operations.iter().for_each(|operation| writer.write(operation).expect("an operation"));
        std::fs::write(self.path("history.jsonl.zst"), writer.finish().expect("whole")).expect("the file");
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_as(&self, format: Format, load: Option<&str>) -> Result<String, ExportError> {
        let mut text = Vec::new();
        export(self.folder.path(), format, load, &mut text)?;
        Ok(String::from_utf8(text).expect("UTF-8"))
    }

    fn as_text(&self, format: Format) -> String {
        self.try_as(format, None).expect("exported")
    }
}

fn operation(load: &str, action: Action, outcome: Outcome, at: f64) -> Operation {
    Operation {
        load: load.to_owned(),
        client: 1,
        action,
        invoked_s: at,
        completed_s: at + 0.5,
        outcome,
        error: None,
        node: Some("n1".to_owned()),
    }
}

fn ledger(load: &str) -> Vec<Operation> {
    vec![
        operation(load, Action::LedgerInsert { value: 7 }, Outcome::Ok, 0.0),
        operation(load, Action::LedgerInsert { value: 8 }, Outcome::Unknown, 1.0),
        operation(load, Action::LedgerRead { values: vec![7], complete: true }, Outcome::Ok, 9.0),
    ]
}

/// The rules of OpenMetrics 1.0 that a text can be held to line by line.
fn openmetrics_holds(text: &str) {
    let body = text.strip_suffix("# EOF\n").expect("ends with EOF and a line feed");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    let (mut name, mut kind) = (String::new(), String::new());
    for line in body.lines() {
        assert!(!line.is_empty() && !line.contains('\r'), "{line:?}");
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "TYPE", family, of] => {
                assert!(families.insert((*family).to_owned()), "{family} stands twice or apart");
                let known = ["gauge", "counter", "stateset", "info", "summary"];
                assert!(known.contains(of), "{line}");
                (name, kind) = ((*family).to_owned(), (*of).to_owned());
            }
            ["#", "UNIT", family, of] => {
                assert!(*family == name && name.ends_with(&format!("_{of}")), "{line}");
                assert!(!matches!(kind.as_str(), "info" | "stateset"), "{line}");
            }
            ["#", "HELP", family, _] => assert_eq!(*family, name, "{line}"),
            _ => sample_holds(line, &name, &kind, &mut samples),
        }
    }
}

fn sample_holds(line: &str, family: &str, kind: &str, samples: &mut BTreeSet<String>) {
    let (identity, value) = line.rsplit_once(' ').expect("a value");
    assert!(samples.insert(identity.to_owned()), "{identity} stands twice");
    let value: f64 = value.parse().expect("a number");
    let (name, labels) = identity
        .split_once('{')
        .map_or((identity, ""), |(name, rest)| (name, rest.strip_suffix('}').expect("a closing brace")));
    let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{name} is not of {family}"));
    let is_legal = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    assert!(is_legal(name), "{name}");
    let suffixes: &[&str] = match kind {
        "counter" => &["_total"],
        "info" => &["_info"],
        "summary" => &["", "_count", "_sum"],
        _ => &[""],
    };
    assert!(suffixes.contains(&suffix), "{line}: {kind}");
    match kind {
        "info" => assert!((value - 1.0).abs() < f64::EPSILON, "{line}"),
        "stateset" => {
            assert!(value == 0.0 || value == 1.0, "{line}");
            assert!(labels.contains(&format!("{family}=\"")), "{line}");
        }
        "counter" => assert!(value >= 0.0, "{line}"),
        "summary" => assert_eq!(suffix.is_empty(), labels.contains("quantile=\""), "{line}"),
        _ => assert!(!labels.contains("quantile="), "{line}"),
    }
    let mut rest = labels;
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label and its value");
        assert!(is_legal(label), "{label}");
        let mut end = None;
        let mut is_escaped = false;
        for (at, character) in after.char_indices() {
            match character {
                _ if is_escaped => {
                    assert!(matches!(character, '\\' | '"' | 'n'), "{line}");
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        rest = &after[end.expect("a closing quote") + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

#[test]
fn openmetrics_is_as_its_specification_says() {
    let mut fixture = fixture::host_failure();
    openmetrics_holds(&Exported::of(&fixture).as_text(Format::OpenMetrics));
    // Names that must be escaped, phases of one name, nothing measured.
    fixture.result.scenario = "a\"b\\c\nd".to_owned();
    fixture.result.faults[0].recovery_s.first_success = None;
    let again = fixture.result.loads[0].phases[0].clone();
    fixture.result.loads[0].phases.push(again);
    let text = Exported::of(&fixture).as_text(Format::OpenMetrics);
    openmetrics_holds(&text);
    assert!(text.contains(r#"scenario="a\"b\\c\nd""#) && !text.contains("NaN"), "{text}");
    assert!(text.contains("holdfast_verdict{holdfast_verdict=\"pass\"} 1\n"));
}

#[test]
fn junit_counts_what_failed_as_failures_and_what_could_not_be_shown_as_errors() {
    let mut fixture = fixture::host_failure();
    let exported = |fixture: &Fixture| {
        let text = Exported::of(fixture).as_text(Format::Junit);
        let report = quick_junit::Report::deserialize_from_str(&text).expect("JUnit's XML");
        (report.tests, report.failures, report.errors, text)
    };
    let (tests, failures, errors, _) = exported(&fixture);
    let expected =
        1 + fixture.result.expectations.len() + fixture.result.checks.len() + fixture.result.faults.len();
    assert_eq!((tests, failures, errors), (expected, 0, 0));
    fixture.result.verdict = Verdict::Fail;
    fixture.result.reasons = vec!["lost_writes: wanted 0, measured <37> & \"more\" \u{1}".to_owned()];
    fixture.result.checks[0].verdict = Verdict::Fail;
    fixture.result.faults[0].receipt.verdict = Verdict::Unknown;
    let (_, failures, errors, text) = exported(&fixture);
    assert_eq!((failures, errors), (2, 1), "{text}");
    assert!(text.contains("&lt;37&gt; &amp;") && !text.contains('\u{1}'), "{text}");
}

#[test]
fn the_runs_of_a_matrix_are_test_results_together_and_one_not_made_is_an_error() {
    let folder = TempDir::new().expect("a temporary folder");
    let result = fixture::host_failure().result;
    let cell = |repetition, result| CellResult {
        cell: 1,
        repetition,
        label: "clients = 1".to_owned(),
        values: Default::default(),
        settings: Default::default(),
        run_dir: folder.path().to_owned(),
        result,
        failure: None,
        lab_dir: None,
        lab_discarded: Vec::new(),
    };
    let matrix = MatrixResult {
        holdfast: result.holdfast.clone(),
        scenario: result.scenario.clone(),
        seed: 1,
        started_at: result.started_at.clone(),
        verdict: Verdict::Unknown,
        interrupted: Some("by a signal".to_owned()),
        axes: Default::default(),
        repeat: 2,
        cells: vec![cell(1, Some(result)), cell(2, None)],
        distributions: Vec::new(),
    };
    results::matrix::write(folder.path(), &matrix).expect("written");
    let mut text = Vec::new();
    export(folder.path(), Format::Junit, None, &mut text).expect("exported");
    let text = String::from_utf8(text).expect("UTF-8");
    let read = quick_junit::Report::deserialize_from_str(&text).expect("JUnit's XML");
    assert_eq!((read.failures, read.errors), (0, 2), "{text}");
    assert!(text.contains("[clients = 1, run 2]"), "{text}");
    let refused = export(folder.path(), Format::OpenMetrics, None, &mut Vec::new());
    assert!(matches!(refused, Err(ExportError::OneOfMany { .. })));
}

#[test]
fn tables_are_read_back_as_what_was_recorded() {
    let exported = Exported::of(&fixture::host_failure()).with_history(&ledger("ledger"));
    let rows = |text: &str| -> Vec<Vec<String>> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        reader.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect()
    };
    let timeline = exported.as_text(Format::Csv(Rows::Timeline));
    let read = rows(&timeline);
    assert!(timeline.starts_with(measure::csv::HEADING) && read.len() > 60);
    let only = exported.try_as(Format::Csv(Rows::Timeline), Some("ledger")).expect("exported");
    assert!(rows(&only).iter().all(|row| row[1] == "ledger") && rows(&only).len() < read.len());
    let operations = rows(&exported.as_text(Format::Csv(Rows::Operations)));
    let told: Vec<[&str; 3]> = operations.iter().map(|row| [row[2].as_str(), &row[5], &row[8]]).collect();
    assert_eq!(
        told,
        [
            ["ledger-insert", "ok", r#"{"value":7}"#],
            ["ledger-insert", "unknown", r#"{"value":8}"#],
            ["ledger-read", "ok", r#"{"values":[7],"complete":true}"#],
        ]
    );
    let figures = rows(&exported.as_text(Format::Csv(Rows::Figures)));
    assert!(figures.iter().any(|row| row[0] == "ledger" && row[1].is_empty() && row[2] == "insert"));
    assert!(figures.iter().all(|row| row.len() == 11));
}

#[test]
fn a_history_goes_to_jepsen_and_back() {
    let exported = Exported::of(&fixture::host_failure()).with_history(&ledger("ledger"));
    let text = exported.as_text(Format::Jepsen);
    let read = EdnHistory::new(text.as_bytes(), "ledger".parse::<Model>().expect("a model"));
    let read: Vec<Operation> = read.collect::<Result<_, _>>().expect("EDN");
    let outcomes: Vec<(Action, Outcome)> =
        read.into_iter().map(|operation| (operation.action, operation.outcome)).collect();
    assert!(outcomes.contains(&(Action::LedgerInsert { value: 7 }, Outcome::Ok)), "{outcomes:?}");
    assert!(outcomes.contains(&(Action::LedgerInsert { value: 8 }, Outcome::Unknown)), "{outcomes:?}");
    assert_eq!(outcomes.len(), 3);
}

#[test]
fn what_jepsen_has_no_form_for_is_told_and_what_must_be_chosen_is_asked() {
    let fixture = fixture::host_failure();
    let tpcb = operation("bank", Action::TpcbTransaction { delta: 3 }, Outcome::Ok, 0.0);
    let two = [ledger("ledger"), ledger("bank")].concat();
    let chosen = Exported::of(&fixture).with_history(&two);
    assert!(matches!(chosen.try_as(Format::Jepsen, None), Err(ExportError::SeveralLoads { .. })));
    assert!(chosen.try_as(Format::Jepsen, Some("bank")).is_ok());
    // A load without a form does not stand in the way of one that has it.
    let mixed = Exported::of(&fixture).with_history(&[ledger("ledger"), vec![tpcb.clone()]].concat());
    assert_eq!(
        mixed.as_text(Format::Jepsen),
        mixed.try_as(Format::Jepsen, Some("ledger")).expect("exported")
    );
    let without = Exported::of(&fixture).with_history(&[tpcb]);
    assert!(matches!(without.try_as(Format::Jepsen, None), Err(ExportError::NoForm { .. })));
    assert!(matches!(without.try_as(Format::Jepsen, Some("lodger")), Err(ExportError::NoLoad { .. })));
    let torn = Exported::of(&fixture);
    assert!(matches!(torn.try_as(Format::Jepsen, None), Err(ExportError::History { .. })));
}
