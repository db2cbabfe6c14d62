//! The site after failures: which hosts are on, which places still hear each other, where a lost node starts again.
//!
//! Knows nothing of quorums.

use std::cmp::Reverse;

use super::Failure;
use crate::deployment::{Deployment, Path};

/// The site after failures.
pub(super) struct Ground<'a> {
    /// By host.
    pub(super) host_is_on: Vec<bool>,
    cuts: Vec<(&'a Path, &'a Path)>,
    isolated: Vec<&'a Path>,
}

impl<'a> Ground<'a> {
    pub(super) fn after(deployment: &Deployment, failures: &'a [Failure]) -> Ground<'a> {
        let (mut down, mut cuts, mut isolated) = (Vec::new(), Vec::new(), Vec::new());
        for failure in failures {
            match failure {
                Failure::Down(place) => down.push(place),
                Failure::Cut(one, other) => cuts.push((one, other)),
                Failure::Isolated(place) => isolated.push(place),
            }
        }
        let host_is_on =
            deployment.hosts.iter().map(|host| !down.iter().any(|place| host.starts_with(place))).collect();
        Ground { host_is_on, cuts, isolated }
    }

    /// Whether packets pass both ways.
    pub(super) fn hear_each_other(&self, one: &[String], other: &[String]) -> bool {
        let cut = |(from, to): &(&Path, &Path)| {
            (one.starts_with(from) && other.starts_with(to))
                || (one.starts_with(to) && other.starts_with(from))
        };
        !self.cuts.iter().any(cut)
            && !self.isolated.iter().any(|place| one.starts_with(place) != other.starts_with(place))
    }

    /// Whether a node's own host is on.
    pub(super) fn node_is_on(&self, deployment: &Deployment, node: usize) -> bool {
        deployment.nodes.get(node).is_some_and(|host| self.host_is_on[*host])
    }

    /// The host of each node once every lost one has started elsewhere: one with power, with as few nodes as possible,
    /// as near as possible to where it was. `None` for a node that finds no host.
    pub(super) fn hosts_after_restart(&self, deployment: &Deployment) -> Vec<Option<usize>> {
        let mut hosts: Vec<Option<usize>> =
            deployment.nodes.iter().map(|host| self.host_is_on[*host].then_some(*host)).collect();
        for (node, lost) in deployment.nodes.iter().enumerate() {
            if hosts[node].is_some() {
                continue;
            }
            let shared = |host: usize| {
                let pair = deployment.hosts[host].iter().zip(&deployment.hosts[*lost]);
                pair.take_while(|(here, there)| here == there).count()
            };
            let nodes_on = |host: usize| hosts.iter().filter(|other| **other == Some(host)).count();
            hosts[node] = (0..deployment.hosts.len())
                .filter(|host| self.host_is_on[*host])
                .min_by_key(|host| (nodes_on(*host), Reverse(shared(*host)), *host));
        }
        hosts
    }
}
