//! Pressure on a node: a share of its processors is taken.
//!
//! Owns reading it and its bounds; when it strikes is in `schedule`.

use crate::decode::Decoder;
use crate::language::PRESSURE;
use crate::processes::node_target;
use crate::rejection::{Findings, Spanned};
use crate::resolved::PressureFault;
use crate::tree::Entry;
use crate::units::format_percent;

/// Less than that is not told from a busy machine.
const LEAST_SHARE: f64 = 0.1;
/// With more taken than that not even the node's init would answer in time.
const MOST_SHARE: f64 = 0.99;

/// A pressure fault as written.
pub(crate) struct PressureDocument {
    node: Spanned<String>,
    processor: Spanned<f64>,
}

/// Reads a pressure fault.
pub(crate) fn decode_fault(entry: &Entry, decoder: &mut Decoder) -> Option<PressureDocument> {
    let record = decoder.record(&entry.value, &PRESSURE)?;
    let node = record.get("of").and_then(|node| decoder.text(node, "a node"));
    let processor = record.get("processor").and_then(|node| decoder.percent(node, "`processor`"))?;
    let share = format_percent(processor.value);
    if processor.value < LEAST_SHARE {
        let message = format!("a neighbour that takes {share} of the processors");
        decoder.findings.add(
            "too-small",
            processor.at,
            message,
            "too little to be shown",
            "write 10% or more",
        );
    } else if processor.value > MOST_SHARE {
        let message = format!("a neighbour that takes {share} of the processors leaves nothing to run on");
        let help = "write 99% or less; `process: { how: stop }` lets a node stand still";
        decoder.findings.add("too-large", processor.at, message, "too much", help);
    }
    Some(PressureDocument { node: node?, processor })
}

impl PressureDocument {
    /// How much is taken from whom; `None` when something is wrong with it.
    pub(crate) fn resolve(&self, nodes: Option<usize>, findings: &mut Findings) -> Option<PressureFault> {
        let node = node_target(&self.node, nodes, findings)?;
        Some(PressureFault { node, processor: self.processor.value })
    }
}

/// A pressure fault as it is written.
pub(crate) fn written(fault: &PressureFault) -> String {
    format!("of: {}, processor: {}", fault.node, format_percent(fault.processor))
}
