//! What was seen of a fault, as the evidence of its receipts.
//!
//! Owns these sentences. What is in doubt, and what a doubt makes of a verdict, is `remote`'s.

use std::time::Duration;

use history::{Receipt, Verdict};
use remote::looks::{Seen, Sight};
use remote::receipt::Doubt;
use remote::strike::Standing;
use scenario::NodeTarget;

/// A role's member that is found within this was not waited for: connecting takes time, too.
const FOUND_AT_ONCE: Duration = Duration::from_secs(1);

/// What is to be said of a role's member that was not found at once.
pub(crate) fn waited_in_words(node: NodeTarget, due_s: f64, waited_s: f64) -> Option<String> {
    let is_asked = matches!(node, NodeTarget::Leader | NodeTarget::AFollower);
    (is_asked && waited_s >= FOUND_AT_ONCE.as_secs_f64())
        .then(|| format!("it was due at {due_s:.1} s; the leader was looked for over {waited_s:.1} s"))
}

/// What is to be said of a fault that was struck when its time was over.
pub(crate) fn late_in_words(asked_s: f64, effect_s: f64, stands: Duration) -> Option<String> {
    let (late_s, stands_s) = (effect_s - asked_s, stands.as_secs_f64());
    (late_s >= stands_s).then(|| {
        format!(
            "it was struck {late_s:.1} s after it was due, and should have been over after {stands_s:.1} s"
        )
    })
}

/// What was seen of a fault that was struck on this machine.
pub(crate) fn effect_of(standing: &Standing, host: &str) -> Receipt {
    let doubts = standing.doubts();
    let verdict = doubts.iter().map(Doubt::verdict).fold(Verdict::Pass, Verdict::and);
    let mut evidence = vec![format!("{host}: {} by {}", standing.fault().name, standing.version())];
    evidence.extend(shown(host, standing.stood()));
    evidence.extend(in_doubt(host, doubts));
    Receipt { verdict, evidence }
}

/// What was seen of a fault that was undone there. The first `known` doubts are in the receipt of its effect.
pub(crate) fn healing_of(whole: &remote::Receipt, host: &str, known: usize) -> Receipt {
    let mut evidence = shown(host, &whole.gone);
    evidence.extend(whole.timer.iter().map(|end| format!("{host}: {end}")));
    evidence.extend(in_doubt(host, &whole.doubts[known.min(whole.doubts.len())..]));
    Receipt { verdict: whole.verdict(), evidence }
}

fn shown(host: &str, looks: &[Seen]) -> Vec<String> {
    let as_wanted = looks.iter().filter(|seen| matches!(seen.what, Sight::Expected(_)));
    as_wanted.map(|seen| format!("{host}: {seen}")).collect()
}

fn in_doubt(host: &str, doubts: &[Doubt]) -> Vec<String> {
    doubts.iter().map(|doubt| format!("{host}: {doubt}")).collect()
}

#[cfg(test)]
mod tests {
    use history::NodeId;

    use super::*;

    #[test]
    fn only_a_fault_that_was_late_for_want_of_a_leader_says_that_it_waited() {
        let said = |node, waited_s| waited_in_words(node, 18.0, waited_s);
        let late = "it was due at 18.0 s; the leader was looked for over 3.2 s";
        assert_eq!(said(NodeTarget::Leader, 3.2).as_deref(), Some(late));
        assert_eq!(said(NodeTarget::AFollower, 0.3), None);
        assert_eq!(said(NodeTarget::Named(NodeId::FIRST), 3.2), None);
    }

    #[test]
    fn a_fault_that_was_struck_when_its_time_was_over_says_so() {
        let stands = Duration::from_secs(10);
        assert_eq!(late_in_words(5.0, 14.9, stands), None);
        let late = late_in_words(5.0, 15.5, stands).expect("too late");
        assert!(late.contains("10.5 s after it was due"), "{late}");
    }
}
