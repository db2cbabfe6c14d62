//! Which host each database node starts on: as asked, otherwise spread as widely as the site allows, one node a host.
//!
//! Deterministic: the same site and wishes give the same hosts. Pure; messages are the caller's.

use std::collections::{BTreeMap, BTreeSet};

use history::{HostId, PerHost};

use crate::resolved::{Host, Place};

/// Hosts as a tree, each branch knowing how many nodes it holds and which of its children can take another.
pub(crate) struct Spread {
    branches: Vec<Branch>,
    by_path: BTreeMap<Vec<String>, usize>,
}

struct Branch {
    parent: Option<usize>,
    host: Option<HostId>,
    nodes: usize,
    /// Children with a free host, fewest nodes first, in the file's order among equals.
    ready: BTreeSet<(usize, usize)>,
}

impl Spread {
    /// All hosts free.
    pub(crate) fn new(hosts: &PerHost<Host>) -> Self {
        let mut spread = Spread { branches: vec![Branch::new(None)], by_path: BTreeMap::new() };
        spread.by_path.insert(Vec::new(), 0);
        for (number, host) in hosts.numbered() {
            let path = host.path();
            let mut above = 0;
            for length in 1..=path.len() {
                above = spread.child(above, &path[..length]);
            }
            spread.branches[above].host = Some(number);
        }
        spread
    }

    fn child(&mut self, parent: usize, path: &[String]) -> usize {
        if let Some(index) = self.by_path.get(path) {
            return *index;
        }
        let index = self.branches.len();
        self.branches.push(Branch::new(Some(parent)));
        self.branches[parent].ready.insert((0, index));
        self.by_path.insert(path.to_vec(), index);
        index
    }

    /// Takes a free host in the place (anywhere when absent): in the region with the fewest nodes, there in the zone
    /// with the fewest, and so on down. `None` when every host there holds a node.
    pub(crate) fn take(&mut self, place: Option<&Place>) -> Option<HostId> {
        let mut at = match place {
            None => 0,
            Some(place) => *self.by_path.get(&place.path)?,
        };
        while let Some((_, child)) = self.branches[at].ready.first() {
            at = *child;
        }
        let host = self.branches[at].host.filter(|_| self.branches[at].nodes == 0)?;
        self.occupy(at);
        Some(host)
    }

    fn occupy(&mut self, leaf: usize) {
        let mut at = leaf;
        loop {
            let before = self.branches[at].nodes;
            self.branches[at].nodes = before + 1;
            // A host that holds a node is full, a place is full when nothing in it is ready.
            let full = self.branches[at].ready.is_empty();
            let Some(parent) = self.branches[at].parent else { break };
            self.branches[parent].ready.remove(&(before, at));
            if !full {
                self.branches[parent].ready.insert((before + 1, at));
            }
            at = parent;
        }
    }
}

impl Branch {
    fn new(parent: Option<usize>) -> Self {
        Branch { parent, host: None, nodes: 0, ready: BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::resolved::Level;

    fn hosts(paths: &str) -> PerHost<Host> {
        let host = |path: &str| {
            let parts: Vec<String> = path.split('/').map(str::to_owned).collect();
            let rack = (parts.len() == 4).then(|| parts[2].clone());
            Host {
                region: parts[0].clone(),
                zone: parts[1].clone(),
                rack,
                name: parts[parts.len() - 1].clone(),
            }
        };
        paths.split_whitespace().map(host).collect()
    }

    fn check(site: &str, wishes: &[Option<&str>], expected: &str) {
        let hosts = hosts(site);
        let mut spread = Spread::new(&hosts);
        let taken: Vec<String> = wishes
            .iter()
            .map(|wish| {
                let place = wish.map(|path| Place {
                    level: Level::Rack,
                    path: path.split('/').map(str::to_owned).collect(),
                });
                spread.take(place.as_ref()).map_or("-".to_owned(), |host| hosts[host].path().join("/"))
            })
            .collect();
        assert_eq!(taken.join(" "), expected);
    }

    #[test]
    fn nodes_spread_over_regions_before_zones_before_racks_before_hosts() {
        let site = "x/a/r1/h1 x/a/r1/h2 x/a/r2/h1 x/b/r1/h1 y/a/h1";
        check(site, &[None; 6], "x/a/r1/h1 y/a/h1 x/b/r1/h1 x/a/r2/h1 x/a/r1/h2 -");
    }

    #[test]
    fn the_leaders_place_comes_first_and_counts() {
        check("x/a/h1 x/a/h2 y/a/h1 y/b/h1", &[Some("y/b"), None, None], "y/b/h1 x/a/h1 x/a/h2");
    }

    #[test]
    fn a_full_place_gives_nothing() {
        check("x/a/r1/h1 x/a/r2/h1", &[Some("x/a/r1"), Some("x/a/r1"), Some("x/a/r9")], "x/a/r1/h1 - -");
    }

    proptest! {
        #[test]
        fn every_host_is_taken_exactly_once_and_racks_stay_within_one_of_each_other(racks in 1_usize..6, each in 1_usize..5) {
            let paths: Vec<_> = (0..racks).flat_map(|r| (0..each).map(move |h| format!("x/a/r{r}/h{h}"))).collect();
            let hosts = hosts(&paths.join(" "));
            let mut spread = Spread::new(&hosts);
            let mut seen = BTreeSet::new();
            let mut count = vec![0_usize; racks];
            for _ in 0..hosts.len() {
                let host = spread.take(None).unwrap();
                prop_assert!(seen.insert(host));
                count[host.index() / each] += 1;
                prop_assert!(count.iter().max().unwrap() - count.iter().min().unwrap() <= 1);
            }
            prop_assert_eq!(spread.take(None), None);
        }
    }
}
