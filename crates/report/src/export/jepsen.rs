//! The operations of a load as a history of Jepsen's. The form itself is `history`'s.

use std::collections::BTreeMap;
use std::io::Write;

use history::Operation;
use history::edn::{self, ExportError as EdnError};

use super::ExportError;

/// Writes the only load that has a form.
pub(super) fn write(operations: &[Operation], sink: &mut impl Write) -> Result<(), ExportError> {
    let mut loads: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        loads.entry(&operation.load).or_default().push(operation.clone());
    }
    let mut written: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut without = Vec::new();
    for (load, operations) in &loads {
        let mut text = Vec::new();
        match edn::export(operations, &mut text) {
            Ok(()) => written.push((load, text)),
            Err(error @ EdnError::NoForm { .. }) => without.push(error.to_string()),
            Err(EdnError::Io(error)) => return Err(error.into()),
        }
    }
    match written.as_slice() {
        [(_, text)] => Ok(sink.write_all(text)?),
        [] if without.is_empty() => Err(ExportError::NoForm { why: "the history is empty".to_owned() }),
        [] => Err(ExportError::NoForm { why: without.join("; ") }),
        several => {
            let loads: Vec<&str> = several.iter().map(|(load, _)| *load).collect();
            Err(ExportError::SeveralLoads { loads: loads.join(", ") })
        }
    }
}
