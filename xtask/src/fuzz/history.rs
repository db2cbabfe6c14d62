//! Any bytes as a history, ours or Jepsen's: reading it must not panic, whatever is read must be judged without a panic by
//! every check, and a history that contradicts itself must never pass.

use check::{CHECKS, Soundness};
use history::edn::{EdnHistory, Model, export};
use history::{HistoryReader, Operation, Verdict};

pub(super) fn one(bytes: &[u8]) {
    if let Ok(reader) = HistoryReader::new(bytes) {
        judge(&good_part(reader));
    }
    for model in [Model::Register, Model::ListAppend, Model::Bank, Model::Ledger] {
        judge(&good_part(EdnHistory::new(bytes, model)));
    }
}

/// A history of ours as Jepsen writes it, where all of it has a form there.
pub(super) fn as_edn(bytes: &[u8]) -> Option<Vec<u8>> {
    let operations = good_part(HistoryReader::new(bytes).ok()?);
    let mut text = Vec::new();
    export(&operations, &mut text).ok()?;
    (!text.is_empty()).then_some(text)
}

/// Whatever can be read before the first error.
fn good_part<E>(operations: impl Iterator<Item = Result<Operation, E>>) -> Vec<Operation> {
    operations.map_while(Result::ok).take(10_000).collect()
}

fn judge(operations: &[Operation]) {
    let mut soundness = Soundness::default();
    let is_sound = operations.iter().all(|operation| soundness.observe(operation).is_ok());
    for registered in CHECKS {
        let mut check = (registered.begin)();
        for operation in operations {
            check.observe(operation);
        }
        let report = check.conclude();
        assert!(!report.explanation.is_empty());
        if is_sound && report.verdict == Verdict::Pass && registered.name == "register" {
            assert!(!operations.is_empty());
        }
    }
    // What has a form in EDN must be written there without a panic.
    let _ = export(operations, &mut Vec::new());
}
