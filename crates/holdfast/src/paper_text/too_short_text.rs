//! Phases that are too short for some figures, as lines of text.

use paper::TooShort;
use scenario::units::format_duration;

use super::{beside, counted};

/// What is too short and what to write instead; nothing where all phases are long enough.
pub fn too_short(phases: &[TooShort]) -> Vec<String> {
    let mut lines = Vec::new();
    if !phases.is_empty() {
        lines.extend([String::new(), "Too short for some figures".to_owned()]);
    }
    for phase in phases {
        let text = match phase {
            TooShort::Baseline { length, needed } => format!(
                "the baseline lasts {}, too short to measure how long throughput is low after a fault; make it {} or \
                 longer",
                format_duration(*length),
                format_duration(*needed)
            ),
            TooShort::AfterLastFault { phase, length, needed } => format!(
                "only {} are left after the fault of `{phase}` is healed, which may be too short to show sustained \
                 recovery; allow {} or more, for example with `{{ phase: recovery, for: 10s }}`",
                format_duration(*length),
                format_duration(*needed)
            ),
            TooShort::Paced { load, pauses, clients, transactions, needed } => format!(
                "{load}: with its pauses a client makes a transaction in {:.0} s, so {} make about {transactions} in the baseline; a \
                 p99 needs {}: use more clients or a longer baseline",
                pauses.as_secs_f64(),
                counted(*clients as usize, "client", "clients"),
                report::with_thousands(*needed),
            ),
        };
        lines.extend(beside("  ", 2, &text));
    }
    lines
}
