//! Partition: nothing gets through, around a place, between two, or among the database's nodes; healed, all does again.
//!
//! Owns which node no longer hears which when nodes are split; around and between places there is nothing to decide.

use std::collections::BTreeSet;

use history::{FaultId, NodeId};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Of so many nodes at most every order is gone through.
const POSSIBLE_MAX: usize = 7;

/// How the database's nodes are split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// In two halves.
    Halves,
    /// In two halves of all but these, which see both.
    Bridge(BTreeSet<NodeId>),
    /// So that each hears a majority, and no two the same one.
    Ring,
}

/// Which node does not reach which: `(from, to)`, in order. The seed and the fault's number decide who is where.
#[must_use]
pub fn blocked(split: &Split, nodes: &[NodeId], seed: u64, fault: FaultId) -> Vec<(NodeId, NodeId)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(fault.index() as u64 + 1);
    let on_bridge = |node: &NodeId| matches!(split, Split::Bridge(bridge) if bridge.contains(node));
    let mut nodes: Vec<NodeId> = nodes.iter().copied().filter(|node| !on_bridge(node)).collect();
    nodes.shuffle(&mut random);
    in_order(split, &nodes)
}

/// Every way in which a split may come out, whatever the seed; `None` for more nodes than can be gone through.
#[must_use]
pub fn possible(split: &Split, nodes: &[NodeId]) -> Option<BTreeSet<Vec<(NodeId, NodeId)>>> {
    let on_bridge = |node: &NodeId| matches!(split, Split::Bridge(bridge) if bridge.contains(node));
    let mut nodes: Vec<NodeId> = nodes.iter().copied().filter(|node| !on_bridge(node)).collect();
    if nodes.len() > POSSIBLE_MAX {
        return None;
    }
    let mut found = BTreeSet::new();
    each_order(&mut nodes, 0, &mut |order| {
        found.insert(in_order(split, order));
    });
    Some(found)
}

fn each_order(nodes: &mut Vec<NodeId>, settled: usize, look: &mut dyn FnMut(&[NodeId])) {
    if settled + 1 >= nodes.len() {
        return look(nodes);
    }
    for next in settled..nodes.len() {
        nodes.swap(settled, next);
        each_order(nodes, settled + 1, look);
        nodes.swap(settled, next);
    }
}

/// Who is where once the nodes are in this order.
fn in_order(split: &Split, nodes: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let mut blocked = match split {
        Split::Halves | Split::Bridge(_) => between_halves(nodes),
        Split::Ring => around_ring(nodes),
    };
    blocked.sort_unstable();
    blocked
}

fn between_halves(nodes: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let (few, many) = nodes.split_at(nodes.len() / 2);
    let pairs = few.iter().flat_map(|one| many.iter().map(|other| (*one, *other)));
    pairs.flat_map(|(one, other)| [(one, other), (other, one)]).collect()
}

/// Each node hears the majority of which it is the middle: itself and its neighbours to either side. An even majority
/// has no middle, so that of two neighbours one hears the other and not the other way round; with three nodes this is
/// so of every pair.
fn around_ring(nodes: &[NodeId]) -> Vec<(NodeId, NodeId)> {
    let count = nodes.len();
    let majority = count / 2 + 1;
    let before = (majority - 1) / 2;
    let mut blocked = Vec::new();
    for (position, listener) in nodes.iter().enumerate() {
        let heard: BTreeSet<NodeId> =
            (0..majority).map(|step| nodes[(position + count - before + step) % count]).collect();
        let silent = nodes.iter().filter(|node| !heard.contains(node));
        blocked.extend(silent.map(|speaker| (*speaker, *listener)));
    }
    blocked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(count: usize) -> Vec<NodeId> {
        (0..count).map(NodeId::new).collect()
    }

    fn heard_by(listener: NodeId, nodes: &[NodeId], blocked: &[(NodeId, NodeId)]) -> BTreeSet<NodeId> {
        nodes.iter().copied().filter(|speaker| !blocked.contains(&(*speaker, listener))).collect()
    }

    #[test]
    fn what_a_seed_chooses_is_possible_and_what_is_possible_some_seed_chooses() {
        let nodes = first(5);
        for split in [Split::Halves, Split::Bridge(BTreeSet::from([NodeId::new(2)])), Split::Ring] {
            let chosen: BTreeSet<_> =
                (0..2_000).map(|seed| blocked(&split, &nodes, seed, FaultId::FIRST)).collect();
            assert_eq!(possible(&split, &nodes), Some(chosen), "{split:?}");
        }
        assert_eq!(possible(&Split::Halves, &first(8)), None);
    }

    #[test]
    fn halves_are_as_even_as_they_can_be_and_do_not_see_each_other() {
        for count in 2..9 {
            for seed in 0..20 {
                let nodes = first(count);
                let blocked = blocked(&Split::Halves, &nodes, seed, FaultId::FIRST);
                let groups: BTreeSet<BTreeSet<NodeId>> =
                    nodes.iter().map(|node| heard_by(*node, &nodes, &blocked)).collect();
                let mut sizes: Vec<usize> = groups.iter().map(BTreeSet::len).collect();
                sizes.sort_unstable();
                assert_eq!(sizes.iter().sum::<usize>(), count, "{groups:?}");
                assert!(sizes.len() == 2 && sizes[1] - sizes[0] <= 1, "{groups:?}");
            }
        }
    }

    #[test]
    fn a_bridge_sees_and_is_seen_by_all() {
        let (nodes, bridge) = (first(5), NodeId::new(3));
        let split = Split::Bridge(BTreeSet::from([bridge]));
        let blocked = blocked(&split, &nodes, 7, FaultId::new(1));
        assert!(blocked.iter().all(|(from, to)| *from != bridge && *to != bridge));
        assert_eq!(blocked.len(), 8);
        for node in nodes.iter().copied().filter(|node| *node != bridge) {
            assert_eq!(heard_by(node, &nodes, &blocked).len(), 3);
        }
    }

    #[test]
    fn in_a_ring_each_hears_a_majority_and_no_two_the_same() {
        for count in 3..10 {
            let nodes = first(count);
            let blocked = blocked(&Split::Ring, &nodes, 3, FaultId::FIRST);
            let heard: BTreeSet<BTreeSet<NodeId>> =
                nodes.iter().map(|node| heard_by(*node, &nodes, &blocked)).collect();
            assert_eq!(heard.len(), count, "{heard:?}");
            assert!(heard.iter().all(|heard| heard.len() == count / 2 + 1), "{heard:?}");
            assert!(nodes.iter().all(|node| !blocked.contains(&(*node, *node))));
        }
    }

    #[test]
    fn in_a_ring_of_five_whoever_hears_is_heard() {
        let blocked = blocked(&Split::Ring, &first(5), 11, FaultId::new(2));
        assert!(blocked.iter().all(|(from, to)| blocked.contains(&(*to, *from))), "{blocked:?}");
    }

    #[test]
    fn the_seed_and_the_fault_decide_who_is_where() {
        let split = |seed, fault| blocked(&Split::Halves, &first(3), seed, FaultId::new(fault));
        assert_eq!(split(7, 0), split(7, 0));
        assert!((0..20).any(|seed| split(seed, 0) != split(7, 0)));
        assert!((1..20).any(|fault| split(7, fault) != split(7, 0)));
    }
}
