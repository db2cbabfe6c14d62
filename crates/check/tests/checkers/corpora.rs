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
