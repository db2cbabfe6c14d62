//! Findings of best practice as text: what departs first, with its remedy; what is followed by name only.

use model::practice::{Finding, Judgement};

use super::beside;

const LABEL: usize = 12;

/// Findings, worst first; rules that do not apply are left out.
pub fn practice(findings: &[Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in findings {
        if let Judgement::Departs(found) = &finding.judgement {
            lines.extend(beside("  departs", LABEL, &format!("{}: {found}", finding.id)));
            lines.extend(beside("", LABEL, &format!("remedy: {} [{}]", finding.remedy, finding.source)));
        }
    }
    for finding in findings {
        if let Judgement::Unknown(why) = &finding.judgement {
            lines.extend(beside("  unknown", LABEL, &format!("{}: {why} [{}]", finding.id, finding.source)));
        }
    }
    let followed: Vec<&str> = findings
        .iter()
        .filter(|finding| matches!(finding.judgement, Judgement::Follows(_)))
        .map(|finding| finding.id)
        .collect();
    if !followed.is_empty() {
        lines.extend(beside("  follows", LABEL, &followed.join(", ")));
    }
    lines
}
