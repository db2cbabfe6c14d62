//! Runs of the same settings: how each figure is spread over them, which run was the worst, and that a run without a figure
//! is counted.

use history::Verdict;
use report::compare::{self, Given};
use results::matrix::{CellResult, DistributionResult, MatrixResult};

use crate::fixture;

/// Twelve runs of the fixture, the throughput of run 5 a tenth, the first fault of run 7 without a recovery.
fn repeated(folder: &std::path::Path) -> MatrixResult {
    let cell = |number: u32| {
        let run_dir = folder.join(format!("cells/1/run-{number}"));
        std::fs::create_dir_all(&run_dir).expect("a run directory");
        let mut fixture = fixture::host_failure();
        fixture.result.seed = u64::from(number);
        if number == 5 {
            fixture.result.loads[0].measured.throughput_per_s /= 10.0;
        }
        if number == 7 {
            fixture.result.faults[0].recovery_s.first_success = None;
        }
        fixture.write(&run_dir).expect("the fixture is written");
        CellResult {
            cell: 1,
            repetition: number,
            label: "host-failure".to_owned(),
            values: Default::default(),
            settings: Default::default(),
            run_dir,
            result: Some(fixture.result),
            failure: None,
            lab_dir: None,
            lab_discarded: Vec::new(),
        }
    };
    MatrixResult {
        holdfast: "0.1.0".to_owned(),
        scenario: "host-failure".to_owned(),
        seed: 1,
        started_at: "2026-11-21T20:04:11Z".to_owned(),
        verdict: Verdict::Pass,
        interrupted: None,
        axes: Default::default(),
        repeat: 12,
        cells: (1..=12).map(cell).collect(),
        distributions: Vec::new(),
    }
}

fn figure<'d>(all: &'d [DistributionResult], name: &str) -> &'d DistributionResult {
    all.iter().find(|told| told.figure == name).unwrap_or_else(|| panic!("{name} in {all:?}"))
}

#[test]
fn the_worst_repetition_is_named_with_its_directory_and_one_without_a_figure_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let matrix = repeated(folder.path());
    let all = compare::distributions_of(&matrix);
    let throughput = figure(&all, "throughput_per_s");
    assert!(throughput.worst_run_dir.as_ref().is_some_and(|path| path.ends_with("cells/1/run-5")));
    assert!(throughput.worst < throughput.nine_of_ten && throughput.nine_of_ten <= throughput.median);
    let first_success = figure(&all, "first_success");
    assert_eq!(
        (first_success.runs, first_success.runs_with_value, first_success.unit.as_str()),
        (12, 11, "s")
    );
    // It never came, so no value is the worst, and of twelve runs the eleventh best is the last that came.
    assert_eq!((first_success.worst, first_success.nine_of_ten.is_some()), (None, true));
    assert!(first_success.worst_run_dir.as_ref().is_some_and(|path| path.ends_with("cells/1/run-7")));
    assert_eq!(figure(&all, "lost_writes").unit, "count");
}

#[test]
fn what_half_of_the_repetitions_do_not_have_nine_of_ten_do_not_keep_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut matrix = repeated(folder.path());
    for cell in matrix.cells.iter_mut().take(7) {
        cell.result.as_mut().expect("a result").faults[0].recovery_s.first_success = None;
    }
    let all = compare::distributions_of(&matrix);
    let told = figure(&all, "first_success");
    assert_eq!((told.runs_with_value, told.median, told.nine_of_ten, told.worst), (5, None, None, None));
}

#[test]
fn lost_writes_that_may_be_more_in_one_repetition_may_be_more_in_the_distribution() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut matrix = repeated(folder.path());
    assert!(!figure(&compare::distributions_of(&matrix), "lost_writes").at_least);
    let checks = &mut matrix.cells[0].result.as_mut().expect("a result").checks;
    // Without a ledger, one that found three lost and one that could not tell.
    (checks[0].name, checks[0].lost) = ("last-writes".to_owned(), Some(3));
    (checks[1].acknowledged, checks[1].lost) = (Some(9), None);
    let all = compare::distributions_of(&matrix);
    let lost = figure(&all, "lost_writes");
    assert_eq!((lost.at_least, lost.worst), (true, Some(3.0)));
}

#[test]
fn a_repetition_that_was_cut_short_is_no_worst_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut matrix = repeated(folder.path());
    let cut = matrix.cells[2].result.as_mut().expect("a result");
    for load in &mut cut.loads {
        load.phases.truncate(3);
        load.phases[2].to_s = 33.4;
        load.measured.throughput_per_s /= 100.0;
    }
    let all = compare::distributions_of(&matrix);
    let throughput = figure(&all, "throughput_per_s");
    assert_eq!((throughput.runs, throughput.runs_with_value), (11, 11));
    assert!(throughput.worst_run_dir.as_ref().is_some_and(|path| path.ends_with("cells/1/run-5")));
}

#[test]
fn a_figure_that_no_repetition_has_is_told_as_absent_and_not_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut matrix = repeated(folder.path());
    for result in matrix.cells.iter_mut().filter_map(|cell| cell.result.as_mut()) {
        result.faults[0].recovery_s.first_success = None;
    }
    let all = compare::distributions_of(&matrix);
    let told = figure(&all, "first_success");
    assert_eq!(
        (told.runs_with_value, told.median, told.worst.is_none(), &told.worst_run_dir),
        (0, None, true, &None)
    );
}

#[test]
fn terminal_and_page_tell_the_repetitions_and_hold_nothing_against_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let matrix = repeated(folder.path());
    let given: Vec<Given> = matrix
        .cells
        .iter()
        .map(|cell| Given {
            axes: cell.values.clone(),
            ..Given::at(cell.run_dir.clone(), Some(cell.label.clone()))
        })
        .collect();
    let comparison = compare::compare(&given, None).expect("a comparison");
    let text = compare::text(&comparison);
    assert!(
        text.contains("over 12 runs") && text.contains("run-5") && text.contains("(1 without)"),
        "{text}"
    );
    assert!(text.contains("12 runs of the same settings.") && !text.contains("Against"), "{text}");
    let page = compare::html(&comparison);
    assert!(page.contains("Over the repetitions") && page.contains("11 of 12"), "no table");
    assert!(page.contains("run-5: "), "no dot for the worst run");
    assert!(!page.contains("How the differences were judged"));
}
