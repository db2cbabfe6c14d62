//! Network: between two places, one way or both, packets get a delay, are lost, or whatever else the scenario asks;
//! healed, the network is again what the links make it.

use crate::Evidence;
use crate::registry::FaultKindEntry;

/// Its line in the list.
pub const ENTRY: FaultKindEntry = FaultKindEntry {
    name: "network",
    summary: "between two places, one way or both: delay, jitter, loss, duplicates, reordering, corruption, rate",
    example: "faults: [{ network: { from: dc1, to: dc2, delay: 50ms }, for: 20s }]",
};

/// What a network fault changes that a probe can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// How long packets take.
    pub delay: bool,
    /// Whether they arrive: loss, and corruption, because whoever gets a broken packet throws it away.
    pub loss: bool,
}

/// What must be seen before it counts as having taken effect. Nothing at all where neither changes: no probe shows
/// duplicates, reordering, a rate or a queue yet, and such a fault alone has no receipt.
#[must_use]
pub fn took_effect(changes: Changes) -> Vec<Evidence> {
    seen(changes, Evidence::RoundTripChanged, Evidence::LossSeen)
}

/// What must be seen before it counts as healed.
#[must_use]
pub fn healed(changes: Changes) -> Vec<Evidence> {
    seen(changes, Evidence::RoundTripRestored, Evidence::LossGone)
}

fn seen(changes: Changes, of_delay: Evidence, of_loss: Evidence) -> Vec<Evidence> {
    [(changes.delay, of_delay), (changes.loss, of_loss)]
        .into_iter()
        .filter_map(|(changed, evidence)| changed.then_some(evidence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_its_own_evidence_and_no_change_has_none() {
        let (delay, loss) = (Changes { delay: true, loss: false }, Changes { delay: false, loss: true });
        assert_eq!(took_effect(delay), [Evidence::RoundTripChanged]);
        assert_eq!(healed(loss), [Evidence::LossGone]);
        let both = Changes { delay: true, loss: true };
        assert_eq!(took_effect(both), [Evidence::RoundTripChanged, Evidence::LossSeen]);
        assert_eq!(healed(both), [Evidence::RoundTripRestored, Evidence::LossGone]);
        assert_eq!(took_effect(Changes::default()), []);
    }
}
