//! A run as test results in JUnit's XML, for the servers of continuous integration.
//!
//! What failed is a failure. What could not be shown is an error: no server may take it for a success.

use std::io::Write;

use history::{FaultId, Verdict};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::ExportError;
use results::matrix::MatrixResult;
use results::{FaultResult, RunResult};

/// Writes one suite each for the verdict, expectations, checks and faults.
pub(super) fn write(result: &RunResult, sink: &mut impl Write) -> Result<(), ExportError> {
    let mut report = Report::new(format!("holdfast {}", result.scenario));
    add_run(&mut report, result, &result.scenario);
    Ok(sink.write_all(report.to_string()?.as_bytes())?)
}

/// Writes the same for every run of a matrix, and the verdict of all. A run that was not made or left no result is an
/// error.
pub(super) fn write_matrix(matrix: &MatrixResult, sink: &mut impl Write) -> Result<(), ExportError> {
    let mut report = Report::new(format!("holdfast {}", matrix.scenario));
    let mut all = TestSuite::new(format!("{}: verdict", matrix.scenario));
    let told = matrix.interrupted.clone().unwrap_or_else(|| format!("{} of all runs", matrix.verdict));
    all.add_test_case(case("the matrix as a whole", &matrix.scenario, "verdict", matrix.verdict, &told));
    report.add_test_suite(all);
    for cell in &matrix.cells {
        let name = format!("{} [{}, run {}]", matrix.scenario, cell.label, cell.repetition);
        if let Some(result) = &cell.result {
            add_run(&mut report, result, &name);
            continue;
        }
        let why = cell.failure.as_deref().unwrap_or("this run was not made");
        let mut suite = TestSuite::new(format!("{name}: verdict"));
        suite.add_test_case(case("the run as a whole", &name, "verdict", Verdict::Unknown, why));
        report.add_test_suite(suite);
    }
    Ok(sink.write_all(report.to_string()?.as_bytes())?)
}

/// The suites of a run, under this name.
fn add_run(report: &mut Report, result: &RunResult, name: &str) {
    let mut verdict = TestSuite::new(format!("{name}: verdict"));
    verdict.add_property(Property::new("holdfast", result.holdfast.clone()));
    verdict.add_property(Property::new("seed", result.seed.to_string()));
    verdict.add_property(Property::new("started_at", result.started_at.clone()));
    verdict.add_property(Property::new("database", result.facts.engine_version.clone()));
    let reasons = result.reasons.join("\n");
    verdict.add_test_case(case("the run as a whole", name, "verdict", result.verdict, &reasons));
    report.add_test_suite(verdict);
    let expectations = result.expectations.iter().map(|expectation| {
        let told = format!("wanted {}, measured {}", expectation.wanted, expectation.measured);
        case(&expectation.name, name, "expectations", expectation.verdict, &told)
    });
    add(report, name, "expectations", expectations);
    let checks = result
        .checks
        .iter()
        .map(|check| case(&check.name, name, "checks", check.verdict, &check.explanation));
    add(report, name, "checks", checks);
    let faults = FaultId::of_each(&result.faults).map(|(number, fault)| {
        let FaultResult { kind, target, .. } = fault;
        let told = format!(
            "{}: {} took effect and healed",
            number.ordinal(),
            results::fault_name(kind, " of ", target)
        );
        case(&told, name, "faults", fault.receipt.verdict, &fault.receipt.evidence.join("\n"))
    });
    add(report, name, "faults", faults);
}

fn add(report: &mut Report, run: &str, part: &str, cases: impl Iterator<Item = TestCase>) {
    let mut suite = TestSuite::new(format!("{run}: {part}"));
    suite.add_test_cases(cases);
    if !suite.test_cases.is_empty() {
        report.add_test_suite(suite);
    }
}

/// A verdict as a test case; `told` is why, its first line the message.
fn case(name: &str, run: &str, part: &str, verdict: Verdict, told: &str) -> TestCase {
    let kind = match verdict {
        Verdict::Pass => None,
        Verdict::Fail => Some(NonSuccessKind::Failure),
        Verdict::Unknown => Some(NonSuccessKind::Error),
    };
    let status = match kind {
        None => TestCaseStatus::success(),
        Some(kind) => {
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(verdict.to_string());
            status.set_message(told.lines().next().unwrap_or_default());
            status.set_description(told);
            status
        }
    };
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("{run}.{part}"));
    if verdict == Verdict::Pass && !told.is_empty() {
        case.set_system_out(told);
    }
    case
}
