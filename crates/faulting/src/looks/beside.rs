//! Receipts of a limit that is not the only one on its node: the kernel's counts do not say which of several held. Pure.

use history::{Receipt, Verdict};

/// It stood beside another limit: that may be the one that was felt.
pub fn doubt_standing(receipt: &mut Receipt, node: &str, what: &str) {
    receipt.verdict = receipt.verdict.and(Verdict::Unknown);
    receipt.evidence.push(in_words(node, what));
}

/// It has gone and another limit has not, or has come since: a node that is still held up may be so by that one.
pub fn doubt_healing(receipt: &mut Receipt, node: &str, what: &str) {
    if receipt.verdict == Verdict::Fail {
        receipt.verdict = Verdict::Unknown;
        receipt.evidence.push(in_words(node, what));
    }
}

fn in_words(node: &str, what: &str) -> String {
    format!("another fault or a migration limits the {what} of {node} as well")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_beside_another_is_not_shown_to_stand_nor_to_have_failed_to_go() {
        let of = |verdict| Receipt { verdict, evidence: vec!["n1 was throttled".to_owned()] };
        let (pass, unknown, fail) = (Verdict::Pass, Verdict::Unknown, Verdict::Fail);
        let stood = |verdict| {
            let mut receipt = of(verdict);
            doubt_standing(&mut receipt, "n1", "processors");
            receipt.verdict
        };
        assert_eq!([pass, unknown, fail].map(stood), [unknown, unknown, fail]);
        let healed = |verdict| {
            let mut receipt = of(verdict);
            doubt_healing(&mut receipt, "n1", "processors");
            receipt.verdict
        };
        assert_eq!([pass, unknown, fail].map(healed), [pass, unknown, unknown]);
    }
}
