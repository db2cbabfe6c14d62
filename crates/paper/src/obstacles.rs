//! What stands against a node on a host, in words: for `check` and for the run alike.

use std::collections::BTreeMap;

use history::{HostId, NodeId};
use placement::{Bond, Cluster, Group, Obstacle, Rule, Strength};
use scenario::units::format_size;

/// Of hosts with the same obstacle, so many are named.
const NAMED_HOSTS: usize = 3;

/// What stands against hosts, those with the same taken together. Where a rule excludes many hosts, the nodes there are left out.
#[must_use]
pub fn obstacles_in_words(obstacles: &[(HostId, Obstacle)], cluster: &Cluster) -> String {
    let mut hosts: BTreeMap<Obstacle, Vec<String>> = BTreeMap::new();
    for (host, obstacle) in obstacles {
        let path = cluster.hosts[*host].path.join("/");
        hosts.entry(told_for_all(*obstacle, obstacles)).or_default().push(path);
    }
    let told = |(obstacle, hosts): (&Obstacle, &Vec<String>)| {
        let named = match hosts.as_slice() {
            [one, two, three, rest @ ..] if !rest.is_empty() => {
                format!("{one}, {two}, {three} and {} more", rest.len())
            }
            few => few.join(", "),
        };
        format!("{named}: {}", in_words(*obstacle, cluster))
    };
    hosts.iter().map(told).collect::<Vec<_>>().join("; ")
}

/// A rule that excludes more hosts than are named is the same obstacle on all of them, whichever node runs there.
fn told_for_all(obstacle: Obstacle, all: &[(HostId, Obstacle)]) -> Obstacle {
    let Obstacle::Rule { rule, .. } = obstacle else { return obstacle };
    let is_same =
        |(_, of): &&(HostId, Obstacle)| matches!(of, Obstacle::Rule { rule: other, .. } if *other == rule);
    let count = all.iter().filter(is_same).count();
    if count > NAMED_HOSTS { Obstacle::Rule { rule, with: None } } else { obstacle }
}

fn in_words(obstacle: Obstacle, cluster: &Cluster) -> String {
    match obstacle {
        Obstacle::NoPower => "no power".to_owned(),
        Obstacle::Isolated => "reaches no other host".to_owned(),
        Obstacle::LeftThere => "the node was lost there".to_owned(),
        Obstacle::Memory { free_bytes, needed_bytes } => {
            format!("{} free of {} needed", format_size(free_bytes), format_size(needed_bytes))
        }
        Obstacle::Full { vms } => format!("already runs its maximum of {vms} nodes"),
        Obstacle::Rule { rule, with } => {
            let rule = rule_in_words(&cluster.rules[rule]);
            match with {
                Some(with) => format!("{rule}, and {with} is there"),
                None => rule,
            }
        }
        Obstacle::NoData => "no component of its volume is reachable".to_owned(),
        Obstacle::ForStorage => "storage host without this volume".to_owned(),
        Obstacle::Tried => "just tried".to_owned(),
    }
}

/// A rule, as what holds.
#[must_use]
pub fn rule_in_words(Rule { bond, strength }: &Rule) -> String {
    let verb = if *strength == Strength::Must { "must" } else { "should" };
    match bond {
        Bond::Apart { vms, by } => {
            let by = match by {
                Group::Host => "host",
                Group::Rack => "rack",
                Group::Zone => "zone",
            };
            format!("{} {verb} not share a {by}", nodes(vms))
        }
        Bond::Within { vms, .. } => format!("{} {verb} stay within their places", nodes(vms)),
    }
}

fn nodes(vms: &[NodeId]) -> String {
    match vms {
        [one, two, three, rest @ ..] if !rest.is_empty() => {
            format!("{one}, {two}, {three} and {} more", rest.len())
        }
        few => few.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use placement::{Capacity, Host};

    use super::*;

    #[test]
    fn a_rule_that_excludes_many_hosts_is_told_once_and_one_that_excludes_few_with_the_nodes_there() {
        let host = |name: &str| Host {
            path: ["dc1", "a", name].map(str::to_owned).to_vec(),
            capacity: Capacity::default(),
            is_on: true,
            is_isolated: false,
            is_for_storage: false,
        };
        let apart = Bond::Apart { vms: (0..5).map(NodeId::new).collect(), by: Group::Host };
        let cluster = Cluster {
            hosts: ["h1", "h2", "h3", "h4", "h5"].map(host).into_iter().collect(),
            vms: Vec::new().into(),
            rules: vec![Rule { bond: apart, strength: Strength::Must }],
        };
        let in_the_way = |number: usize| {
            (HostId::new(number), Obstacle::Rule { rule: 0, with: Some(NodeId::new(number)) })
        };
        let many: Vec<(HostId, Obstacle)> = (1..5).map(in_the_way).collect();
        assert_eq!(
            obstacles_in_words(&many, &cluster),
            "dc1/a/h2, dc1/a/h3, dc1/a/h4 and 1 more: n1, n2, n3 and 2 more must not share a host"
        );
        assert_eq!(
            obstacles_in_words(&many[..2], &cluster),
            "dc1/a/h2: n1, n2, n3 and 2 more must not share a host, and n2 is there; dc1/a/h3: n1, n2, \
             n3 and 2 more must not share a host, and n3 is there"
        );
    }
}
