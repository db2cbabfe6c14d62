//! Whether a fault is aimed at whoever leads, read from the scenario and never from words.

use scenario::{DiskTarget, FaultAction, FaultTarget, NodeTarget, PartitionShape};

/// Whether a fault is aimed at whoever leads.
#[must_use]
pub fn aims_at_leader(action: &FaultAction) -> bool {
    let leads = |target: &FaultTarget| matches!(target, FaultTarget::Leader(_));
    match action {
        FaultAction::PowerOff { target } => leads(target),
        FaultAction::Network { directions, .. } => {
            directions.iter().any(|(from, to)| leads(from) || leads(to))
        }
        FaultAction::Partition { shape, .. } => match shape {
            PartitionShape::Isolate(target) | PartitionShape::Bridge(target) => leads(target),
            PartitionShape::OneWay { from: one, to: other } | PartitionShape::Between(one, other) => {
                leads(one) || leads(other)
            }
            PartitionShape::Halves | PartitionShape::Ring => false,
        },
        FaultAction::Disk { target: DiskTarget::Of { node, .. }, .. } => leads(node),
        FaultAction::Disk { target: DiskTarget::Named { .. }, .. } => false,
        FaultAction::Process(fault) => fault.node == NodeTarget::Leader,
        FaultAction::Pressure(fault) => fault.node == NodeTarget::Leader,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_whose_name_has_leader_in_it_is_not_the_leader() {
        let host = scenario::Place {
            path: ["dc1", "a", "leader-two"].map(str::to_owned).into(),
            level: scenario::Level::Host,
        };
        assert!(!aims_at_leader(&FaultAction::PowerOff { target: FaultTarget::Place(host) }));
        let leader = FaultTarget::Leader(scenario::Level::Host);
        assert!(aims_at_leader(&FaultAction::PowerOff { target: leader }));
    }
}
