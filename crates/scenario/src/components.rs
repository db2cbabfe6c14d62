//! Where the components of nodes' volumes are placed: beside each node's own host, on hosts that hold the fewest.
//!
//! Owns the rule alone. What a scenario may ask for is in `storage`.

use history::{HostId, PerHost, PerNode};

use crate::resolved::{Apart, Host};

/// A host's rack; a zone without racks is one.
pub(crate) fn rack(host: &Host) -> (&str, &str, Option<&str>) {
    (&host.region, &host.zone, host.rack.as_deref())
}

/// Where components go beside each node's own host: to the hosts that hold the fewest, of those the next ones in the
/// file's order; and to none but those allowed, which are in that order.
pub(crate) fn place(
    nodes: &PerNode<HostId>,
    (hosts, allowed): (&PerHost<Host>, &[HostId]),
    replicas: usize,
    apart: Apart,
) -> PerNode<Vec<HostId>> {
    let mut held: PerHost<usize> = vec![0; hosts.len()].into();
    let may_hold = |host: &HostId| allowed.binary_search(host).is_ok();
    for host in nodes.iter().filter(|host| may_hold(host)) {
        held[*host] += 1;
    }
    let place_one = |own: &HostId| {
        let mut components: Vec<HostId> = Some(*own).filter(may_hold).into_iter().collect();
        while components.len() < replicas {
            let free = |host: &HostId| match apart {
                Apart::Hosts => !components.contains(host),
                Apart::Racks => components.iter().all(|other| rack(&hosts[*other]) != rack(&hosts[*host])),
            };
            let behind = |host: HostId| (host.index() + hosts.len() - own.index()) % hosts.len();
            let next = allowed.iter().copied().filter(free);
            let next = next.min_by_key(|host| (held[*host], behind(*host)));
            let Some(next) = next else { break };
            held[next] += 1;
            components.push(next);
        }
        components
    };
    nodes.iter().map(place_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts as `rack/host`, nodes on the first of them, and where components go: `0 1` of n1, then n2.
    fn check(site: &str, nodes: usize, replicas: usize, apart: Apart, expected: &str) {
        check_allowed(site, None, nodes, (replicas, apart), expected);
    }

    /// The same, where components may be on these hosts alone.
    fn check_allowed(
        site: &str,
        allowed: Option<&[usize]>,
        nodes: usize,
        (replicas, apart): (usize, Apart),
        expected: &str,
    ) {
        let host = |path: &str| {
            let (rack, name) = path.split_once('/').expect("a rack");
            Host { region: "r".into(), zone: "z".into(), rack: Some(rack.into()), name: name.into() }
        };
        let hosts: PerHost<Host> = site.split_whitespace().map(host).collect();
        let nodes = hosts.ids().take(nodes).collect();
        let allowed = allowed.map_or(hosts.ids().collect(), |allowed| {
            allowed.iter().copied().map(HostId::new).collect::<Vec<_>>()
        });
        let placed: Vec<String> = place(&nodes, (&hosts, &allowed), replicas, apart)
            .iter()
            .map(|of| of.iter().map(|host| host.index().to_string()).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(placed.join(", "), expected, "{site}");
    }

    #[test]
    fn components_go_to_the_hosts_that_hold_the_fewest() {
        check("a/1 a/2 b/1", 1, 2, Apart::Hosts, "0 1");
        check("a/1 a/2 b/1", 3, 2, Apart::Hosts, "0 1, 1 2, 2 0");
        check("a/1 a/2 b/1 b/2", 2, 2, Apart::Hosts, "0 2, 1 3");
        check("a/1 a/2 b/1", 2, 3, Apart::Hosts, "0 2 1, 1 2 0");
    }

    #[test]
    fn components_go_to_the_named_hosts_alone_and_a_nodes_own_comes_first_where_it_is_one() {
        check_allowed("a/1 a/2 b/1 b/2", Some(&[2, 3]), 2, (2, Apart::Hosts), "2 3, 2 3");
        check_allowed("a/1 a/2 b/1 b/2", Some(&[0, 2]), 2, (2, Apart::Hosts), "0 2, 2 0");
        check_allowed("a/1 a/2 b/1 b/2", Some(&[2, 3]), 2, (1, Apart::Hosts), "2, 3");
    }

    #[test]
    fn components_apart_by_racks_share_none() {
        check("a/1 a/2 b/1", 2, 2, Apart::Racks, "0 2, 1 2");
        check("a/1 b/1 b/2 c/1", 1, 3, Apart::Racks, "0 1 3");
    }
}
