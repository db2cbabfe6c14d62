//! Phases that are too short for the figures after a fault, as lines of text.

use paper::TooShort;
use scenario::units::format_duration;

use super::beside;

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
        };
        lines.extend(beside("  ", 2, &text));
    }
    lines
}
