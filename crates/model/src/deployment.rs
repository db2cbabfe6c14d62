//! A database on a site, as far as survival needs it: hosts as paths, nodes on hosts, clients, the rules of its quorums.
//!
//! Owns these types and which places there are. What a failure does to them is in `survival`, what nodes keep their data
//! on in `storage`.

use std::collections::{BTreeMap, BTreeSet};

use history::{HostId, NodeId, PerHost, PerNode};

use crate::commit::Acknowledgements;
use crate::storage::Storage;

/// A place by its names, outermost first: region, zone, perhaps rack, host.
pub type Path = Vec<String>;

/// A database on a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Every host.
    pub hosts: PerHost<Path>,
    /// The host of each node.
    pub nodes: PerNode<HostId>,
    /// Where clients stand. They are taken to live on whatever fails; what cuts their place off cuts them off.
    pub clients: Vec<Path>,
    /// What the database needs in order to serve.
    pub rules: Rules,
    /// What the nodes keep their data on.
    pub storage: Storage,
}

/// What a database needs in order to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rules {
    /// One write-ahead log: node 0 leads and writes it, the others are its standbys. PostgreSQL.
    SingleLog {
        /// What a commit waits for.
        acknowledgements: Acknowledgements,
        /// What the platform does when a node's host is gone.
        takeover: Takeover,
    },
    /// One log whose leader a majority of the nodes elects; node 0 leads when failures strike. A single Raft group.
    Elected {
        /// What a commit waits for: never less than a majority, unless for nobody.
        acknowledgements: Acknowledgements,
        /// What the platform does when a node's host is gone; promotion is the nodes' own.
        takeover: Takeover,
    },
    /// Groups of replicas, each with its own quorum; the nodes of each. Every group must serve.
    Groups {
        /// The replicas of each group, by their nodes.
        groups: Vec<Vec<NodeId>>,
        /// What a group needs, for each way in which it is asked: the loads may ask in several.
        quorums: Vec<Quorum>,
        /// Whether a replica syncs a write before it acknowledges it. Where not, what loses its power loses the last writes.
        synced: bool,
    },
}

/// What the platform does when a node's host is gone. It acts on lost power, never on a partition: from outside it
/// cannot tell a leader that is cut off from one that serves others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// Nothing.
    None,
    /// The node's machine starts on another host, with its volume.
    Restart,
    /// The most advanced standby leads.
    Promote,
}

/// What a group of replicas needs in order to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quorum {
    /// A majority of replicas that hear each other, for reads as for writes. Raft.
    Majority,
    /// A coordinator that hears so many. Cassandra's consistency levels.
    Counted {
        /// Replicas that a read waits for.
        read: Level,
        /// Replicas that a write waits for.
        write: Level,
    },
}

/// How many replicas must answer. What Cassandra calls a data centre is a region here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    One,
    Two,
    /// More than half.
    Quorum,
    /// Every one.
    All,
    /// One in the coordinator's region.
    LocalOne,
    /// More than half of those in the coordinator's region.
    LocalQuorum,
    /// More than half of those in each region that has any.
    EachQuorum,
}

impl Level {
    /// Whether it speaks of the coordinator's region.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, Level::LocalOne | Level::LocalQuorum)
    }

    /// Whether so many answers from each region are enough, of so many replicas there, for a coordinator in this region.
    /// Without a replica there a local level is never met.
    #[must_use]
    pub fn is_met(
        self,
        answers: &BTreeMap<&str, usize>,
        replicas: &BTreeMap<&str, usize>,
        local: Option<&str>,
    ) -> bool {
        let count = |of: &BTreeMap<&str, usize>, region: &str| of.get(region).copied().unwrap_or(0);
        let (all, there): (usize, usize) = (replicas.values().sum(), answers.values().sum());
        let in_local = |least: &dyn Fn(usize) -> usize| {
            local.is_some_and(|region| {
                let replicas = count(replicas, region);
                replicas > 0 && count(answers, region) >= least(replicas)
            })
        };
        match self {
            Level::One => there >= 1,
            Level::Two => there >= 2,
            Level::Quorum => there > all / 2,
            Level::All => there >= all,
            Level::LocalOne => in_local(&|_| 1),
            Level::LocalQuorum => in_local(&|replicas| replicas / 2 + 1),
            Level::EachQuorum => {
                replicas.iter().all(|(region, replicas)| count(answers, region) > replicas / 2)
            }
        }
    }
}

impl Deployment {
    /// Every place that holds a host, itself included, outermost first.
    #[must_use]
    pub fn places(&self) -> BTreeSet<Path> {
        let prefixes =
            |host: &Path| (1..=host.len()).map(|length| host[..length].to_vec()).collect::<Vec<_>>();
        self.hosts.iter().flat_map(prefixes).collect()
    }

    /// What kind of place this is.
    #[must_use]
    pub fn kind(&self, place: &[String]) -> &'static str {
        match place.len() {
            1 => "region",
            2 => "zone",
            _ if self.hosts.iter().any(|host| host == place) => "host",
            _ => "rack",
        }
    }

    /// The same with another node in the first place, which is the leader's. The two change their ids.
    #[must_use]
    pub fn led_by(mut self, node: NodeId) -> Deployment {
        if node.index() < self.nodes.len() {
            self.nodes.swap(0, node.index());
            if node.index() < self.storage.volumes.len() {
                self.storage.volumes.swap(0, node.index());
            }
        }
        self
    }

    /// The hosts in a place.
    #[must_use]
    pub fn hosts_in(&self, place: &[String]) -> Vec<HostId> {
        self.hosts.ids().filter(|host| self.hosts[*host].starts_with(place)).collect()
    }

    /// Every node but the first.
    pub fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.nodes.ids().skip(1)
    }

    /// The path of a node's host; empty for a node that does not exist.
    #[must_use]
    pub fn host_of(&self, node: NodeId) -> &[String] {
        self.nodes.get(node).and_then(|host| self.hosts.get(*host)).map_or(&[], Vec::as_slice)
    }

    /// The replica groups of a database that keeps one replica in each of so many places (racks), one group for every
    /// way to choose them: whatever the hash of a key, its group is among these.
    #[must_use]
    pub fn one_replica_in_each(places: &[Vec<NodeId>]) -> Vec<Vec<NodeId>> {
        places.iter().fold(vec![Vec::new()], |groups, nodes| {
            let with = |group: &Vec<NodeId>| {
                nodes.iter().map(|node| [group.as_slice(), &[*node]].concat()).collect::<Vec<_>>()
            };
            groups.iter().flat_map(with).collect()
        })
    }

    /// The same with so many replicas in each region, of which no two share a rack while there are racks enough. A
    /// region's racks are given with the nodes in each.
    #[must_use]
    pub fn replicas_in_regions(regions: &[(Vec<Vec<NodeId>>, usize)]) -> Vec<Vec<NodeId>> {
        let of_region = |(racks, replicas): &(Vec<Vec<NodeId>>, usize)| -> Vec<Vec<NodeId>> {
            // With fewer racks than replicas nothing is kept apart.
            let nodes = || racks.iter().flatten().map(|node| vec![*node]).collect();
            let racks: Vec<Vec<NodeId>> = if racks.len() < *replicas { nodes() } else { racks.clone() };
            let chosen = |bits: &u32| bits.count_ones() as usize == *replicas;
            (0..1_u32 << racks.len().min(20))
                .filter(chosen)
                .flat_map(|bits| {
                    let taken = racks.iter().enumerate().filter(|(rack, _)| bits >> rack & 1 == 1);
                    let taken: Vec<Vec<NodeId>> = taken.map(|(_, nodes)| nodes.clone()).collect();
                    Deployment::one_replica_in_each(&taken)
                })
                .collect()
        };
        regions.iter().map(of_region).fold(vec![Vec::new()], |groups, region| {
            let with = |group: &Vec<NodeId>| {
                region.iter().map(|more| [group.as_slice(), more].concat()).collect::<Vec<_>>()
            };
            groups.iter().flat_map(with).collect()
        })
    }
}
