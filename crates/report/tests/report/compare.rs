//! Runs compared: which belong together, which differences are told, and that what cannot be judged is not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use history::{Event, EventKind, Verdict};
use measure::interval::record_latency;
use measure::{Finding, HlogWriter, Interval};
use report::compare::{
    self, Basis, Bound, CompareError, Comparison, Gate, GateError, Given, Judged, Quantity, Subject,
};
use results::matrix::{CellResult, MatrixResult};
use results::{ReproducedFigure, ReproducedReport, RunResult, SyncsResult, VolumeResult};
use tempfile::TempDir;

use crate::fixture;

mod gates;

/// A folder of synthetic run directories.
struct Runs {
    folder: TempDir,
    count: u64,
}

impl Runs {
    fn new() -> Runs {
        Runs { folder: TempDir::new().expect("a temporary folder"), count: 0 }
    }

    /// A run with this many clients whose figures are `factor` times the usual ones.
    fn add(&mut self, clients: u32, factor: f64) -> PathBuf {
        self.count += 1;
        let path = self.folder.path().join(format!("run-{}", self.count));
        std::fs::create_dir(&path).expect("a run directory");
        let mut fixture = fixture::host_failure();
        fixture.result.seed = self.count;
        let scaled = |us: u64| (us as f64 * factor) as u64;
        for load in &mut fixture.result.loads {
            load.measured.throughput_per_s *= factor;
            load.measured.latency_us.mean *= factor;
            load.measured.latency_us.p99 = scaled(load.measured.latency_us.p99);
            for operation in load.measured.operations.values_mut() {
                operation.latency_us.mean *= factor;
                operation.latency_us.p50 = scaled(operation.latency_us.p50);
            }
        }
        fixture.write(&path).expect("the fixture is written");
        let scenario = format!(
            "name: host-failure\nseed: {}\nloads:\n  - {{ workload: tpcb, clients: {clients} }}\n",
            self.count
        );
        std::fs::write(path.join("scenario.yaml"), scenario).expect("the scenario is written");
        path
    }
}

/// The second-by-second file of a run whose ledger inserts take so long, and come so often a second.
fn write_seconds(run: &Path, latency: Duration, per_s: u64) {
    let mut seconds = HlogWriter::new(Vec::new(), || UNIX_EPOCH);
    for second in 0..60 {
        let mut interval = Interval { load: "ledger".to_owned(), second, operations: Default::default() };
        let insert = interval.operations.entry("insert".to_owned()).or_default();
        // Seconds differ a little, as they do.
        for number in 0..per_s + second % 3 {
            record_latency(&mut insert.histogram, latency + Duration::from_micros(number % 7));
        }
        seconds.write(&interval).expect("an interval");
    }
    std::fs::write(run.join("timeline.hlog"), seconds.into_inner()).expect("the file");
}

fn compared(paths: &[PathBuf]) -> Comparison {
    compare::compare(&compare::expand(paths).expect("runs"), None).expect("a comparison")
}

/// The finding on one figure of the second variant, and its ground.
#[track_caller]
fn finding(comparison: &Comparison, load: &str, wanted: Quantity) -> (Finding, Basis) {
    let subject = Subject::Load { load: load.to_owned(), phase: None };
    let row = comparison.rows.iter().find(|row| row.subject == subject && row.quantity == wanted);
    let difference = row.expect("a row").cells[1].difference.expect("a difference");
    (difference.measured.finding, difference.basis)
}

#[test]
fn runs_of_the_same_settings_are_repetitions_whatever_their_seeds() {
    let mut runs = Runs::new();
    let paths: Vec<PathBuf> = [(1, 1.0), (8, 2.0), (1, 1.02), (8, 2.05), (8, 1.98), (1, 0.99)]
        .map(|(clients, factor)| runs.add(clients, factor))
        .into();
    let comparison = compared(&paths);
    let told: Vec<(&str, &str, usize)> = comparison
        .variants
        .iter()
        .map(|variant| (variant.name.as_str(), variant.label.as_str(), variant.runs.len()))
        .collect();
    assert_eq!(told, [("A", "loads.0.clients = 1", 3), ("B", "loads.0.clients = 8", 3)]);
    let ground = Basis::Runs { first: 3, second: 3 };
    assert_eq!(finding(&comparison, "bank", Quantity::Throughput), (Finding::Larger, ground));
    assert_eq!(finding(&comparison, "bank", Quantity::Mean), (Finding::Larger, ground));
    // This figure is the same in all.
    assert_eq!(finding(&comparison, "bank", Quantity::P50), (Finding::Noise, ground));
    let text = compare::text(&comparison);
    for line in text.lines().filter(|line| !line.starts_with('-') && !line.starts_with("Against")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(text.contains("loads.0.clients = 8") && text.contains("noise"), "{text}");
    assert!(
        compare::html(&comparison).contains("<b>+10"),
        "a change of about 100 % in bold, with its interval"
    );
}

#[test]
fn two_single_runs_are_judged_by_their_seconds_and_only_roughly() {
    let mut runs = Runs::new();
    let (one, same, half) = (runs.add(1, 1.0), runs.add(2, 1.0), runs.add(3, 0.5));
    write_seconds(&one, Duration::from_millis(4), 500);
    write_seconds(&same, Duration::from_millis(4), 480);
    write_seconds(&half, Duration::from_millis(2), 250);
    let comparison = compared(&[one.clone(), same]);
    assert_eq!(finding(&comparison, "ledger", Quantity::Throughput), (Finding::Noise, Basis::Seconds));
    let comparison = compared(&[one, half]);
    assert_eq!(finding(&comparison, "ledger", Quantity::Throughput), (Finding::Smaller, Basis::Seconds));
    assert_eq!(finding(&comparison, "ledger", Quantity::Mean), (Finding::Smaller, Basis::Seconds));
    assert!(
        comparison.notes.iter().any(|note| note.starts_with("One run of each")),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn what_has_no_ground_is_not_judged() {
    let mut runs = Runs::new();
    // One run beside several, and no seconds.
    let paths = [runs.add(1, 1.0), runs.add(1, 1.1), runs.add(8, 9.0)];
    let comparison = compared(&paths);
    assert_eq!(finding(&comparison, "bank", Quantity::Throughput), (Finding::Unknown, Basis::Nothing));
    assert!(compare::text(&comparison).contains("not judged"));
    assert_eq!(comparison.counts(), (0, 0));
}

#[test]
fn a_run_that_was_cut_short_counts_for_nothing_but_its_verdict() {
    let mut runs = Runs::new();
    let whole = [runs.add(1, 1.0), runs.add(1, 1.0), runs.add(8, 1.0), runs.add(8, 1.0)];
    let cut = runs.add(8, 50.0);
    let interrupted = Event { t_s: 3.0, kind: EventKind::Interrupted { why: "by a signal".to_owned() } };
    let mut events = std::fs::read_to_string(cut.join("events.jsonl")).expect("events");
    events.push_str(&format!("{}\n", serde_json::to_string(&interrupted).expect("an event")));
    std::fs::write(cut.join("events.jsonl"), events).expect("events");
    let killed = runs.add(8, 50.0);
    std::fs::remove_file(killed.join("result.json")).expect("there was one");
    let comparison = compared(&[whole.to_vec(), vec![cut, killed]].concat());
    assert_eq!((comparison.variants[1].runs.len(), comparison.variants[1].counted()), (4, 2));
    assert_eq!(comparison.variants[1].verdict(), Verdict::Unknown);
    assert_eq!(finding(&comparison, "bank", Quantity::Throughput).0, Finding::Noise);
    assert_eq!(comparison.notes.iter().filter(|note| note.contains("left out")).count(), 2);
}

#[test]
fn a_run_that_was_killed_counts_for_nothing_though_what_it_left_was_written_down_as_its_result() {
    let mut runs = Runs::new();
    let whole = [runs.add(1, 1.0), runs.add(1, 1.0), runs.add(8, 1.0), runs.add(8, 1.0)];
    let killed = runs.add(8, 1.0);
    let scenario = std::fs::read(killed.join("scenario.yaml")).expect("a scenario");
    fixture::host_failure().cut_at(33.4).write_killed(&killed).expect("written");
    std::fs::write(killed.join("scenario.yaml"), scenario).expect("written");
    std::fs::remove_file(killed.join("result.json")).expect("there was one");
    // As the program does that finds its run dead.
    let derived = results::read(&killed).expect("readable").result;
    std::fs::write(killed.join("result.json"), serde_json::to_string(&derived).expect("text"))
        .expect("written");
    assert!(results::read(&killed).is_ok_and(|read| !read.is_derived));
    let comparison = compared(&[whole.to_vec(), vec![killed]].concat());
    assert_eq!((comparison.variants[1].runs.len(), comparison.variants[1].counted()), (3, 2));
    assert!(comparison.notes.iter().any(|note| note.ends_with("left out: the run did not complete")));
    let subject = Subject::Load { load: "bank".to_owned(), phase: None };
    assert!(derived.loads.iter().any(|load| load.name == "bank" && load.measured.transactions > 0));
    assert_eq!(Quantity::P50.of(&derived, &subject), None, "a percentile that was not kept is not 0");
}

/// A run of a matrix over clients.
fn cell_of(run_dir: PathBuf, cell: u32, repetition: u32, clients: u32) -> CellResult {
    CellResult {
        cell,
        repetition,
        label: format!("clients {clients}"),
        values: [("clients".to_owned(), clients.to_string())].into(),
        settings: [("loads.0.clients".to_owned(), clients.to_string())].into(),
        result: Some(results::read(&run_dir).expect("a run").result),
        run_dir,
        failure: None,
        lab_dir: None,
        lab_discarded: Vec::new(),
    }
}

fn matrix_of(cells: Vec<CellResult>) -> MatrixResult {
    MatrixResult {
        holdfast: "0.1.0".to_owned(),
        scenario: "host-failure".to_owned(),
        seed: 7,
        started_at: "2026-11-21T20:04:11Z".to_owned(),
        verdict: Verdict::Pass,
        interrupted: None,
        axes: [("clients".to_owned(), vec!["1".to_owned(), "8".to_owned()])].into(),
        repeat: 2,
        cells,
        distributions: Vec::new(),
    }
}

#[test]
fn the_directory_of_a_matrix_stands_for_its_runs_by_cell() {
    let mut runs = Runs::new();
    let mut cells = Vec::new();
    for (cell, repetition, clients) in [(2, 1, 8), (1, 1, 1), (1, 2, 1), (2, 2, 8)] {
        let run_dir = runs.add(clients, f64::from(clients));
        cells.push(cell_of(run_dir, cell, repetition, clients));
    }
    let matrix = matrix_of(cells);
    let directory = runs.folder.path();
    results::matrix::write(directory, &matrix).expect("written");
    assert_eq!(results::matrix::read(directory).expect("readable"), Some(matrix.clone()));
    let comparison = compared(&[directory.to_owned()]);
    let labels: Vec<&str> = comparison.variants.iter().map(|variant| variant.label.as_str()).collect();
    assert_eq!(labels, ["clients 1", "clients 8"], "cells in the order of the axes, not of running");
    let text = compare::text(&comparison);
    assert!(
        text.contains("\n  clients 8  ") && text.contains("against clients 1"),
        "cells have names: {text}"
    );
    let (_, page) = report::compare::write_of_matrix(directory, &matrix).expect("a page");
    assert!(std::fs::read_to_string(page).expect("a page").contains("clients 8"));
}

#[test]
fn what_was_published_stands_beside_each_variant_and_workloads_figures_are_compared() {
    let mut runs = Runs::new();
    let paths: Vec<PathBuf> =
        [(1, 1.0), (8, 1.0), (1, 1.0), (8, 1.0)].map(|(clients, _)| runs.add(clients, 1.0)).into();
    for (number, path) in paths.iter().enumerate() {
        let file = path.join("result.json");
        let text = std::fs::read_to_string(&file).expect("a result");
        let mut result: RunResult = serde_json::from_str(&text).expect("a result");
        let is_first = number % 2 == 0;
        let figure = |name: &str, reported, measured| ReproducedFigure {
            name: name.to_owned(),
            reported,
            measured,
            reported_baseline: None,
            measured_baseline: None,
        };
        result.reproduces = ReproducedReport {
            report: "FR-4".to_owned(),
            figures: vec![
                figure("read_mb_per_s", if is_first { 598.0 } else { 232.0 }, Some(100.0 + number as f64)),
                figure("moon_phase", 0.5, None),
            ],
            ..ReproducedReport::default()
        };
        result.loads[0]
            .measured
            .figures
            .insert("read_mb_per_s".to_owned(), if is_first { 100.0 } else { 40.0 });
        std::fs::write(&file, serde_json::to_string(&result).expect("a text")).expect("written");
    }
    let comparison = compared(&paths);
    let subject = Subject::Figure {
        load: comparison.variants[0].runs[0].result.loads[0].name.clone(),
        figure: "read_mb_per_s".to_owned(),
    };
    let row = comparison.rows.iter().find(|row| row.subject == subject).expect("a row");
    assert_eq!(row.cells[1].difference.expect("judged").measured.finding, Finding::Smaller);
    let text = compare::text(&comparison);
    let at = text.find("beside FR-4").expect("a table");
    let table: Vec<String> = text[at..]
        .lines()
        .skip(1)
        .take(4)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let wanted = ["read_mb_per_s A 598 101", "read_mb_per_s B 232 102", "moon_phase A 0.50 not measured"];
    assert_eq!(table[..3], wanted);
    let page = compare::html(&comparison);
    assert!(
        page.contains("Beside the published report")
            && page.contains("<td class=\"n\">232<td class=\"n\">102")
    );
}

/// A run whose inserts take so long at the median, on volumes with so many components: each sync waits one round trip of
/// 800 us for the others.
fn with_storage(runs: &mut Runs, clients: u32, replicas: u32, insert_us: u64) -> PathBuf {
    let path = runs.add(clients, 1.0);
    let text = std::fs::read_to_string(path.join("result.json")).expect("a result");
    let mut result: RunResult = serde_json::from_str(&text).expect("a result");
    let volume = serde_json::json!({ "node": "n1", "replicas": replicas, "resync": [] });
    let mut volume: VolumeResult = serde_json::from_value(volume).expect("a volume");
    if replicas > 1 {
        volume.acknowledge = "sync".to_owned();
        volume.syncs = Some(SyncsResult {
            count: 1_000,
            here_us_p50: 500,
            here_us_p99: 900,
            beyond_us_mean: 800.0,
            beyond_us_p50: 800,
            beyond_us_p99: 1_500,
            round_trip_us: Some(790),
        });
    }
    result.volumes = vec![volume];
    for load in &mut result.loads {
        for operation in load.measured.operations.values_mut() {
            operation.latency_us.p50 = insert_us;
        }
    }
    std::fs::write(path.join("result.json"), serde_json::to_string(&result).expect("text")).expect("written");
    let scenario = std::fs::read_to_string(path.join("scenario.yaml")).expect("a scenario");
    let scenario = format!("{scenario}database:\n  storage: {{ replicas: {replicas} }}\n");
    std::fs::write(path.join("scenario.yaml"), scenario).expect("written");
    path
}

#[test]
fn what_replication_cost_is_told_in_round_trips_between_settings_that_differ_in_nothing_else() {
    let mut runs = Runs::new();
    let mut paths = vec![with_storage(&mut runs, 2, 1, 1_000), with_storage(&mut runs, 2, 1, 1_040)];
    paths.extend([with_storage(&mut runs, 2, 2, 1_800), with_storage(&mut runs, 2, 2, 1_840)]);
    // Nothing like it without replication is there.
    paths.push(with_storage(&mut runs, 8, 2, 5_000));
    let comparison = compared(&paths);
    let text = compare::text(&comparison);
    let told: Vec<&str> = text.lines().filter(|line| line.contains(" A to B ")).collect();
    let update =
        told.iter().find(|line| line.contains("UPDATE accounts")).unwrap_or_else(|| panic!("{text}"));
    assert!(update.contains("800\u{a0}µs") && update.contains("1.00 ("), "{update}");
    assert!(!text.contains(" A to C "), "{text}");
    let page = compare::html(&comparison);
    assert!(page.contains("What replication cost") && page.contains("790\u{a0}µs"), "the table");
}

#[test]
fn replication_that_costs_nothing_or_is_not_there_is_not_told_to_cost_a_round_trip() {
    let mut runs = Runs::new();
    let paths = [with_storage(&mut runs, 2, 1, 1_000), with_storage(&mut runs, 2, 2, 1_000)];
    let text = compare::text(&compared(&paths));
    assert!(
        text.lines().any(|line| line.contains(" A to B ") && line.trim_end().ends_with("0.00")),
        "{text}"
    );
    let paths = [with_storage(&mut runs, 2, 1, 1_000), with_storage(&mut runs, 8, 1, 1_000)];
    let text = compare::text(&compared(&paths));
    assert!(!text.contains("what replication cost"), "{text}");
}

#[test]
fn a_cell_of_a_matrix_is_held_against_the_one_that_differs_least_from_it() {
    let mut runs = Runs::new();
    let mut cells = Vec::new();
    for (storage, workload, factor) in
        [("r1", "b", 1.0), ("r1", "c", 4.0), ("r2", "b", 1.0), ("r2", "c", 4.0)]
    {
        let axes = [("storage", storage), ("workload", workload)];
        let axes: BTreeMap<String, String> =
            axes.map(|(axis, value)| (axis.to_owned(), value.to_owned())).into();
        for _ in 0..3 {
            let label = Some(format!("{storage} {workload}"));
            cells.push(Given { axes: axes.clone(), ..Given::at(runs.add(1, factor), label) });
        }
    }
    let comparison = compare::compare(&cells, None).expect("a comparison");
    let references: Vec<usize> = comparison.variants.iter().map(|variant| variant.reference).collect();
    assert_eq!(references, [0, 0, 0, 1]);
    let text = compare::text(&comparison);
    assert!(text.contains("against r1 c") && text.contains("Each against the earlier cell"), "{text}");
    // A load four times as fast on another workload says nothing of the storage.
    let quantity = "throughput_per_s".to_owned();
    let gate = Gate { scope: Some("ledger".to_owned()), quantity, bound: Bound::Share(0.2) };
    let judged = compare::judge(&comparison, &gate).expect("judged");
    let verdicts: Vec<Verdict> = judged.iter().map(|judged| judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Fail, Verdict::Pass, Verdict::Pass]);
    assert!(compare::html(&comparison).contains("against r1 c"));
}

#[test]
fn fewer_than_two_runs_and_what_is_no_run_are_refused() {
    let mut runs = Runs::new();
    let one = Given::at(runs.add(1, 1.0), None);
    assert!(matches!(
        compare::compare(std::slice::from_ref(&one), None),
        Err(CompareError::TooFew { runs: 1 })
    ));
    let nowhere = Given::at(runs.folder.path().join("nowhere"), None);
    assert!(matches!(compare::compare(&[one, nowhere], None), Err(CompareError::Read(_))));
}

#[test]
fn a_run_is_no_repetition_of_itself() {
    let mut runs = Runs::new();
    let (one, other, link) = (runs.add(1, 1.0), runs.add(8, 1.0), runs.folder.path().join("latest"));
    std::os::unix::fs::symlink(&other, &link).expect("a link");
    let given = compare::expand(&[one, other, link.clone()]).expect("runs");
    let told = compare::compare(&given, None).expect_err("refused");
    assert!(matches!(&told, CompareError::Twice { path } if *path == link), "{told}");
}

#[test]
fn a_name_cannot_break_out_of_the_page() {
    let mut runs = Runs::new();
    let paths = [runs.add(1, 1.0), runs.add(2, 1.0)];
    let mut given = compare::expand(&paths).expect("runs");
    given[0].label = Some("<script>alert(1)</script>".to_owned());
    given[1].label = Some("\u{1b}[2J".to_owned());
    let comparison = compare::compare(&given, None).expect("a comparison");
    assert!(!compare::html(&comparison).contains("<script"));
    assert!(!compare::text(&comparison).contains('\u{1b}'));
}
