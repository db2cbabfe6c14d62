//! Random small histories of list-append transactions: at every level the check answers as its definition does.

use std::collections::BTreeMap;

use check::Report;
use check::list_append::{self, Isolation, Level};
use history::{Key, Operation, Outcome, Step, Verdict};
use proptest::prelude::*;

use crate::list_append_by_definition::{Truth, steps, truth};
use crate::list_append_histories::history;

/// Why the check may answer `unknown` at a level, by a look at the history alone.
pub fn may_be_unknown(operations: &[Operation], level: Level) -> Option<&'static str> {
    let read = |operation: &&Operation| operation.outcome == Outcome::Ok;
    let found = || {
        operations.iter().filter(read).flat_map(steps).filter_map(|step| match step {
            Step::Read { key, values: Some(values) } if !values.is_empty() => Some((key, values)),
            _ => None,
        })
    };
    if found().next().is_none() {
        return Some("nothing was read");
    }
    let mut appends: BTreeMap<(&Key, i64), usize> = BTreeMap::new();
    let mut unread: BTreeMap<&Key, usize> = BTreeMap::new();
    for operation in operations {
        for step in steps(operation) {
            if let Step::Append { key, value } = step {
                *appends.entry((key, *value)).or_default() += 1;
                let was_read = found().any(|(of, values)| of == key && values.contains(value));
                *unread.entry(key).or_default() += usize::from(!was_read);
            }
        }
    }
    if appends.values().any(|count| *count > 1) {
        return Some("a value was appended twice");
    }
    let is_unordered = unread.values().any(|count| *count > 1);
    (level.isolation == Isolation::Snapshot && is_unordered).then_some("the order of appends is not known")
}

/// Holds a verdict against the truth.
pub fn agrees(operations: &[Operation], level: Level, truth: Truth) -> Result<Report, String> {
    let report = list_append::check(operations, level);
    let is_right = match (truth, report.verdict) {
        (Truth::Allowed, Verdict::Pass) | (Truth::Forbidden, Verdict::Fail) => true,
        (Truth::Undefined, verdict) => verdict != Verdict::Pass,
        (_, Verdict::Unknown) => may_be_unknown(operations, level).is_some(),
        _ => false,
    };
    let is_strongest = report.strongest_levels.iter().any(|strongest| *strongest == level.to_string());
    let told =
        || format!("{level} is {truth:?}, but the verdict is {}: {}", report.verdict, report.explanation);
    match is_right && (!is_strongest || report.verdict == Verdict::Pass) {
        true => Ok(report),
        false => Err(told()),
    }
}

fn agrees_at(operations: &[Operation], isolation: Isolation) -> Result<(), TestCaseError> {
    for level in Level::all().filter(|level| level.isolation == isolation) {
        agrees(operations, level, truth(operations, level)).map_err(TestCaseError::fail)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn serializability_agrees_with_brute_force(seed in any::<u64>()) {
        agrees_at(&history(seed, 5), Isolation::Serializable)?;
    }

    #[test]
    fn snapshot_isolation_agrees_with_brute_force(seed in any::<u64>()) {
        agrees_at(&history(seed, 4), Isolation::Snapshot)?;
    }

    #[test]
    fn read_committed_agrees_with_brute_force(seed in any::<u64>()) {
        agrees_at(&history(seed, 5), Isolation::ReadCommitted)?;
    }

    #[test]
    fn read_uncommitted_agrees_with_brute_force(seed in any::<u64>()) {
        agrees_at(&history(seed, 5), Isolation::ReadUncommitted)?;
    }
}

/// Found by the test above: telling of a read that is longer than the known order of its list panicked.
#[test]
fn a_read_longer_than_the_known_order_of_its_list_is_told_of() {
    let told = agrees_at(&history(868_046_853_492_535_343, 5), Isolation::Serializable);
    assert!(told.is_ok(), "{told:?}");
}
