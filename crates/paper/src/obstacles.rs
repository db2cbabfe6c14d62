//! What stands against a node on a host, in words: for `check` and for the run alike.

use std::collections::BTreeMap;

use placement::{Bond, Cluster, Group, Obstacle, Rule, Strength};
use scenario::node_name;
use scenario::units::format_size;

/// What stands against hosts, those with the same taken together.
#[must_use]
pub fn obstacles_in_words(obstacles: &[(usize, Obstacle)], cluster: &Cluster) -> String {
    let mut hosts: BTreeMap<Obstacle, Vec<String>> = BTreeMap::new();
    for (host, obstacle) in obstacles {
        hosts.entry(*obstacle).or_default().push(cluster.hosts[*host].path.join("/"));
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

fn in_words(obstacle: Obstacle, cluster: &Cluster) -> String {
    match obstacle {
        Obstacle::NoPower => "no power".to_owned(),
        Obstacle::LeftThere => "the node was lost there".to_owned(),
        Obstacle::Memory { free_bytes, needed_bytes } => {
            format!("{} free of {} needed", format_size(free_bytes), format_size(needed_bytes))
        }
        Obstacle::Full { vms } => format!("already runs its maximum of {vms} nodes"),
        Obstacle::Rule { rule, with } => {
            let rule = rule_in_words(&cluster.rules[rule]);
            match with {
                Some(with) => format!("{rule}, and {} is there", node_name(with)),
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

fn nodes(vms: &[usize]) -> String {
    match vms {
        [one, two, three, rest @ ..] if !rest.is_empty() => {
            format!("{}, {}, {} and {} more", node_name(*one), node_name(*two), node_name(*three), rest.len())
        }
        few => few.iter().map(|vm| node_name(*vm)).collect::<Vec<_>>().join(", "),
    }
}
