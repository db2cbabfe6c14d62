//! Why a VM is started or moved: sentences from what the core `placement` gives as facts.

use history::HostId;
use paper::{obstacles_in_words, rule_in_words};
use placement::{Better, Cluster, MoveReason, Obstacle, StartReason};

/// Why this host and no other; nothing where there was no choice to make.
pub(crate) fn start(reason: &StartReason, cluster: &Cluster) -> String {
    let mut parts = Vec::new();
    let better = reason.better.map(|better| match better {
        Better::Data => "it has the node's data",
        Better::NotForStorage => "it is not a storage host",
        Better::Rules => "it breaks the fewest rules",
        Better::FewerVms => "it runs the fewest nodes",
        Better::Nearer => "it is the nearest to the previous host",
        Better::Order => "it is the first of equal candidates",
    });
    match better {
        Some(better) => parts.push(format!("best of {} hosts because {better}", reason.candidates)),
        None => parts.push("no other host can run it".to_owned()),
    }
    let limits =
        |of: &Obstacle| matches!(of, Obstacle::Memory { .. } | Obstacle::Full { .. } | Obstacle::Rule { .. });
    let in_the_way: Vec<(HostId, Obstacle)> =
        reason.obstacles.iter().filter(|(_, of)| limits(of)).copied().collect();
    if !in_the_way.is_empty() {
        parts.push(obstacles_in_words(&in_the_way, cluster));
    }
    for rule in &reason.broken {
        parts.push(format!("breaks the rule that {}", rule_in_words(&cluster.rules[*rule])));
    }
    parts.join("; ")
}

/// Why a VM that runs is moved.
pub(crate) fn moved(reason: MoveReason, cluster: &Cluster) -> String {
    match reason {
        MoveReason::RepairsRule { rule } => rule_in_words(&cluster.rules[rule]),
        MoveReason::GoesHome => "it began there, and the host is back".to_owned(),
        MoveReason::Balances { vms_here, vms_there } => {
            format!("one host runs {vms_here} nodes, the other {vms_there}")
        }
    }
}

#[cfg(test)]
mod tests {
    use history::{NodeId, PerNode};
    use placement::{Bond, Capacity, Group, Host, Left, Rule, Strength};

    use super::*;

    const H1: HostId = HostId::FIRST;
    const H2: HostId = HostId::new(1);
    const H3: HostId = HostId::new(2);

    #[test]
    fn a_reason_names_the_choice_what_was_in_the_way_and_what_gave_way() {
        let host = |name: &str| Host {
            path: ["dc1", "a", name].map(str::to_owned).to_vec(),
            capacity: Capacity::default(),
            is_on: true,
            is_isolated: false,
            is_for_storage: false,
        };
        let rule = |strength| Rule {
            bond: Bond::Apart { vms: vec![NodeId::FIRST, NodeId::new(1)], by: Group::Host },
            strength,
        };
        let cluster = Cluster {
            hosts: ["h1", "h2", "h3"].map(host).into_iter().collect(),
            vms: PerNode::default(),
            rules: vec![rule(Strength::Must), rule(Strength::Should)],
        };
        let reason = StartReason {
            left: Left::Host,
            candidates: 2,
            better: Some(Better::FewerVms),
            broken: vec![1],
            obstacles: vec![
                (H1, Obstacle::NoPower),
                (H2, Obstacle::Rule { rule: 0, with: Some(NodeId::new(1)) }),
            ],
        };
        assert_eq!(
            start(&reason, &cluster),
            "best of 2 hosts because it runs the fewest nodes; dc1/a/h2: n1, n2 must not share a host, and n2 is \
             there; breaks the rule that n1, n2 should not share a host"
        );
        assert_eq!(moved(MoveReason::RepairsRule { rule: 1 }, &cluster), "n1, n2 should not share a host");
        let short = Obstacle::Memory { free_bytes: 1 << 30, needed_bytes: 4 << 30 };
        assert_eq!(
            obstacles_in_words(&[(H1, short), (H2, Obstacle::NoPower), (H3, short)], &cluster),
            "dc1/a/h2: no power; dc1/a/h1, dc1/a/h3: 1GiB free of 4GiB needed"
        );
    }
}
