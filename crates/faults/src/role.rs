//! Whom a role means at the moment a fault strikes.

use history::{FaultId, NodeId};
use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// A role that a fault may be aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The node that takes the writes.
    Leader,
    /// One of the others.
    AFollower,
    /// Any node.
    Random,
}

/// The node of `nodes_up` that the role means; the seed and the fault's number decide where there is a
/// choice. `None` when there is nobody in that role now.
#[must_use]
pub fn pick(
    role: Role,
    leader: Option<NodeId>,
    nodes_up: &[NodeId],
    seed: u64,
    fault: FaultId,
) -> Option<NodeId> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(fault.index() as u64 + 1);
    match role {
        Role::Leader => leader,
        Role::Random => nodes_up.choose(&mut random).copied(),
        Role::AFollower => {
            // With no leader nobody can be called a follower.
            let leader = leader?;
            let followers: Vec<NodeId> = nodes_up.iter().copied().filter(|node| *node != leader).collect();
            followers.choose(&mut random).copied()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [NodeId; 3] = [NodeId::FIRST, NodeId::new(1), NodeId::new(2)];

    #[test]
    fn a_follower_is_never_the_leader() {
        for seed in 0..100 {
            assert_ne!(
                pick(Role::AFollower, Some(NodeId::FIRST), &NODES, seed, FaultId::FIRST),
                Some(NodeId::FIRST)
            );
        }
    }

    #[test]
    fn the_same_seed_picks_the_same_node_and_other_faults_may_pick_others() {
        let picked = |fault| pick(Role::Random, Some(NodeId::FIRST), &NODES, 7, FaultId::new(fault));
        let picks: Vec<_> = (0..20).map(picked).collect();
        assert_eq!(picks, (0..20).map(picked).collect::<Vec<_>>());
        assert!(picks.iter().any(|picked| *picked != picks[0]));
    }

    #[test]
    fn a_role_that_nobody_has_means_nobody() {
        assert_eq!(pick(Role::Leader, None, &NODES[..2], 1, FaultId::FIRST), None);
        assert_eq!(pick(Role::AFollower, None, &NODES[..2], 1, FaultId::FIRST), None);
        assert_eq!(pick(Role::Random, None, &[], 1, FaultId::FIRST), None);
    }
}
