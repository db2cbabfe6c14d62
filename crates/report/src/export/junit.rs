//! A run as test results in JUnit's XML, for the servers of continuous integration.
//!
//! What failed is a failure. What could not be shown is an error: no server may take it for a success.

use std::io::Write;

use history::Verdict;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::ExportError;
use crate::result::RunResult;

/// Writes one suite each for the verdict, expectations, checks and faults.
pub(super) fn write(result: &RunResult, sink: &mut impl Write) -> Result<(), ExportError> {
    let mut report = Report::new(format!("holdfast {}", result.scenario));
    let mut verdict = suite(result, "verdict");
    verdict.add_property(Property::new("holdfast", result.holdfast.clone()));
    verdict.add_property(Property::new("seed", result.seed.to_string()));
    verdict.add_property(Property::new("started_at", result.started_at.clone()));
    verdict.add_property(Property::new("database", result.facts.engine_version.clone()));
    let reasons = result.reasons.join("\n");
    verdict.add_test_case(case("the run as a whole", result, "verdict", result.verdict, &reasons));
    report.add_test_suite(verdict);
    let expectations = result.expectations.iter().map(|expectation| {
        let told = format!("wanted {}, measured {}", expectation.wanted, expectation.measured);
        case(&expectation.name, result, "expectations", expectation.verdict, &told)
    });
    add(&mut report, result, "expectations", expectations);
    let checks = result
        .checks
        .iter()
        .map(|check| case(&check.name, result, "checks", check.verdict, &check.explanation));
    add(&mut report, result, "checks", checks);
    let faults = result.faults.iter().enumerate().map(|(index, fault)| {
        let name = format!("{}: {} of {} took effect and healed", index + 1, fault.kind, fault.target);
        case(&name, result, "faults", fault.receipt.verdict, &fault.receipt.evidence.join("\n"))
    });
    add(&mut report, result, "faults", faults);
    report.serialize(&mut *sink)?;
    Ok(())
}

fn suite(result: &RunResult, part: &str) -> TestSuite {
    TestSuite::new(format!("{}: {part}", result.scenario))
}

fn add(report: &mut Report, result: &RunResult, part: &str, cases: impl Iterator<Item = TestCase>) {
    let mut suite = suite(result, part);
    suite.add_test_cases(cases);
    if !suite.test_cases.is_empty() {
        report.add_test_suite(suite);
    }
}

/// A verdict as a test case; `told` is why, its first line the message.
fn case(name: &str, result: &RunResult, part: &str, verdict: Verdict, told: &str) -> TestCase {
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
    case.set_classname(format!("{}.{part}", result.scenario));
    if verdict == Verdict::Pass && !told.is_empty() {
        case.set_system_out(told);
    }
    case
}
