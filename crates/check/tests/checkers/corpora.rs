//! Every history under `histories/` gets the verdict its file's name says, and the story that was reviewed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use check::{CHECKS, Report};
use history::{HistoryReader, Operation, Verdict};

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../histories")
}

fn operations_of(path: &Path) -> Vec<Operation> {
    let reader = HistoryReader::new(File::open(path).unwrap()).unwrap();
    reader.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn judged(check: &check::RegisteredCheck, operations: &[Operation]) -> Report {
    let mut running = (check.begin)();
    for operation in operations {
        running.observe(operation);
    }
    running.conclude()
}

/// Histories of a check by name, with the verdicts their names demand.
fn histories_of(check: &str) -> BTreeMap<String, (PathBuf, Verdict)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(corpora().join(check)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let verdict = match name.rsplit('-').next() {
            Some("ok") => Verdict::Pass,
            Some("bad") => Verdict::Fail,
            Some("unknown") => Verdict::Unknown,
            _ => panic!("{}: its name ends in no verdict", path.display()),
        };
        found.insert(name, (path, verdict));
    }
    found
}

#[test]
fn every_history_gets_the_verdict_its_name_says() {
    for check in CHECKS {
        for (name, (path, wanted)) in histories_of(check.name) {
            let report = judged(check, &operations_of(&path));
            assert_eq!(report.verdict, wanted, "{}/{name}: {}", check.name, report.explanation);
        }
    }
}

#[test]
fn every_check_has_histories_of_all_three_verdicts() {
    for check in CHECKS {
        let histories = histories_of(check.name);
        for verdict in [Verdict::Pass, Verdict::Fail, Verdict::Unknown] {
            assert!(
                histories.values().any(|(_, wanted)| *wanted == verdict),
                "{}: none of {verdict}",
                check.name
            );
        }
    }
}

#[test]
fn the_order_of_operations_of_different_kinds_does_not_matter() {
    for check in CHECKS {
        for (name, (path, _)) in histories_of(check.name) {
            let operations = operations_of(&path);
            // Reads keep their order among themselves, for the last one counts.
            let (mut reads, mut writes): (Vec<_>, Vec<_>) =
                operations.iter().cloned().partition(|operation| {
                    matches!(
                        operation.action,
                        history::Action::LedgerRead { .. }
                            | history::Action::TpcbRead { .. }
                            | history::Action::ReplicaRead { .. }
                            | history::Action::RowsRead { .. }
                    )
                });
            writes.reverse();
            reads.append(&mut writes);
            assert_eq!(judged(check, &reads), judged(check, &operations), "{}/{name}", check.name);
        }
    }
}

#[test]
fn every_story_is_the_one_that_was_reviewed() {
    for check in CHECKS {
        let mut stories = String::new();
        for (name, (path, _)) in histories_of(check.name) {
            let report = judged(check, &operations_of(&path));
            let counts: Vec<String> =
                report.counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            stories += &format!(
                "{name}\n  {}: {}\n  acknowledged {:?}, lost {:?}, invented {:?}, indeterminate {:?}, {}\n",
                report.verdict,
                report.explanation,
                report.acknowledged,
                report.lost,
                report.invented,
                report.indeterminate,
                counts.join(", ")
            );
        }
        insta::assert_snapshot!(check.name, stories);
    }
}

#[test]
fn a_check_looks_at_the_actions_it_names_and_passes_over_all_others() {
    for check in CHECKS {
        let is_about = |operation: &&Operation| check.actions.contains(&operation.action.name());
        for (name, (path, _)) in histories_of(check.name) {
            let operations = operations_of(&path);
            let about: Vec<Operation> = operations.iter().filter(is_about).cloned().collect();
            assert_eq!(judged(check, &about), judged(check, &operations), "{}/{name}", check.name);
        }
        // Of a corpus that belongs to another check nothing else is looked at.
        for other in CHECKS {
            for (name, (path, _)) in histories_of(other.name) {
                let mut others = operations_of(&path);
                others.retain(|operation| !is_about(&operation));
                assert_eq!(
                    judged(check, &others),
                    judged(check, &[]),
                    "{} of {}/{name}",
                    check.name,
                    other.name
                );
            }
        }
    }
}

/// The operations of a history, with a final read of its load at one of two leaders behind them.
fn read_beside_another_leader(lines: &str, workload: &str) -> Vec<Operation> {
    let read = format!(
        "{lines}\n{{\"load\": \"l\", \"client\": 9, \"f\": \"final-read\", \"workload\": \"{workload}\", \"nodes\": [\"n1\"], \"why\": \
         \"n1 and n2 led at once\", \"invoked_s\": 90, \"completed_s\": 91, \"outcome\": \"ok\"}}\n"
    );
    let reader = HistoryReader::new(read.as_bytes()).expect("a history");
    reader.collect::<Result<_, _>>().expect("operations")
}

/// What becomes of a check's failure once it is known that the final read was at one of two leaders.
#[track_caller]
fn check_beside_another_leader(report: Report, operations: &[Operation], beside: Verdict) {
    assert_eq!(report.verdict, Verdict::Fail, "{}", report.explanation);
    let mut final_reads = check::FinalReads::default();
    operations.iter().for_each(|operation| final_reads.observe(operation));
    let report = final_reads.judge(report);
    assert_eq!(report.verdict, beside, "{}", report.explanation);
    assert!(report.explanation.contains("n1 and n2 led at once"), "{}", report.explanation);
}

#[test]
fn what_is_missing_at_one_of_two_leaders_may_be_at_the_other_and_what_else_is_wrong_is_wrong() {
    for (name, workload, history, beside) in [
        ("bank", "bank", "transfer-lost-bad", Verdict::Unknown),
        ("bank", "bank", "money-lost-bad", Verdict::Fail),
        ("bank", "bank", "overdrawn-bad", Verdict::Fail),
        ("bank", "bank", "account-missing-bad", Verdict::Fail),
        ("tpcb-sums", "tpcb", "lost-bad", Verdict::Unknown),
        ("tpcb-sums", "tpcb", "account-not-updated-bad", Verdict::Fail),
        ("tpcb-sums", "tpcb", "row-too-many-bad", Verdict::Fail),
        ("tpcb-sums", "tpcb", "row-of-an-amount-of-nobody-bad", Verdict::Fail),
    ] {
        let lines =
            fs::read_to_string(corpora().join(name).join(history).with_extension("jsonl")).expect("it");
        let operations = read_beside_another_leader(lines.trim_end(), workload);
        let check = CHECKS.iter().find(|known| known.name == name).expect("a check");
        check_beside_another_leader(judged(check, &operations), &operations, beside);
    }
}

#[test]
fn money_that_no_choice_of_transfers_moved_is_wrong_whatever_node_was_read() {
    let line = |f: &str, at: u32| {
        format!(
            "{{\"load\": \"l\", \"client\": 1, {f}, \"invoked_s\": {at}, \"completed_s\": {at}.5, \"outcome\": \"ok\"}}\n"
        )
    };
    let lines = line("\"f\": \"bank-setup\", \"balances\": [[1, 10], [2, 0]], \"may_be_negative\": false", 0)
        + &line("\"f\": \"bank-transfer\", \"from\": 1, \"to\": 2, \"amount\": 4", 1)
        + &line("\"f\": \"bank-read\", \"balances\": [[1, 7], [2, 3]]", 92);
    let operations = read_beside_another_leader(lines.trim_end(), "bank");
    check_beside_another_leader(check::bank::check(&operations), &operations, Verdict::Fail);
}

#[test]
fn an_append_that_is_missing_at_one_of_two_leaders_is_no_loss_where_reads_may_be_of_the_past() {
    let append = |steps: &str, at: u32| {
        format!(
            "{{\"load\": \"l\", \"client\": 1, \"f\": \"append-transaction\", \"steps\": [{steps}], \"invoked_s\": {at}, \
             \"completed_s\": {at}.5, \"outcome\": \"ok\"}}\n"
        )
    };
    let missing = append("[\"append\", 1, 1]", 1)
        + &append("[\"append\", 2, 1]", 2)
        + &append("[\"r\", 1, []], [\"r\", 2, [1]]", 92);
    for (level, beside) in [("serializable", Verdict::Unknown), ("strict-serializable", Verdict::Fail)] {
        let operations = read_beside_another_leader(missing.trim_end(), "append");
        let level = level.parse().expect("a level");
        check_beside_another_leader(check::list_append::check(&operations, level), &operations, beside);
    }
}

#[test]
fn a_transfer_to_an_account_that_nobody_set_up_is_no_panic() {
    let line = |f: &str, outcome: &str| {
        format!(
            "{{\"load\": \"l\", \"client\": 1, {f}, \"invoked_s\": 1, \"completed_s\": 2, \"outcome\": \"{outcome}\"}}\n"
        )
    };
    let lines =
        line("\"f\": \"bank-setup\", \"balances\": [[1, 10], [2, 0]], \"may_be_negative\": false", "ok")
            + &line("\"f\": \"bank-transfer\", \"from\": 1, \"to\": 3, \"amount\": 4", "unknown")
            + &line("\"f\": \"bank-read\", \"balances\": [[1, 6], [2, 0], [3, 4]]", "ok");
    let operations = read_beside_another_leader(lines.trim_end(), "bank");
    check_beside_another_leader(check::bank::check(&operations), &operations, Verdict::Fail);
}
