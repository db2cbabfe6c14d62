//! The site after failures: which hosts are on, which disks answer, which places still hear each other, where a lost node
//! starts again and from what.
//!
//! Knows nothing of quorums. A component of a mirror that the serving one does not hear is given up and falls behind: it
//! counts as one that is not up to date, because what else fails may fail after that.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Failure;
use crate::deployment::{Deployment, Path};
use crate::storage::{Acknowledge, Component, Promotion, Volume};

/// The site after failures.
pub(super) struct Ground<'a> {
    deployment: &'a Deployment,
    /// By host.
    host_is_on: Vec<bool>,
    /// Capacity disks that refuse, by host.
    refusing: BTreeSet<(usize, &'a str)>,
    cuts: Vec<(&'a Path, &'a Path)>,
    isolated: Vec<&'a Path>,
}

/// Where a node runs, after the platform has done what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stand {
    /// Its host.
    pub(super) host: usize,
    /// Whether it was started from a component that may lack what was acknowledged last.
    pub(super) is_stale: bool,
}

impl<'a> Ground<'a> {
    pub(super) fn after(deployment: &'a Deployment, failures: &'a [Failure]) -> Ground<'a> {
        let (mut down, mut cuts, mut isolated) = (Vec::new(), Vec::new(), Vec::new());
        let mut refusing = BTreeSet::new();
        for failure in failures {
            match failure {
                Failure::Down(place) => down.push(place),
                Failure::Cut(one, other) => cuts.push((one, other)),
                Failure::Isolated(place) => isolated.push(place),
                Failure::Disk(path) => {
                    let found = host_and_disk(deployment, path);
                    refusing.extend(found.map(|(host, disk)| (host, disk.as_str())));
                }
                Failure::DiskGroup(path) => {
                    let Some((host, cache)) = host_and_disk(deployment, path) else { continue };
                    let behind = deployment.storage.behind(cache).iter();
                    refusing.extend(behind.map(|disk| (host, disk.as_str())));
                }
            }
        }
        let host_is_on =
            deployment.hosts.iter().map(|host| !down.iter().any(|place| host.starts_with(place))).collect();
        Ground { deployment, host_is_on, refusing, cuts, isolated }
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

    fn refuses(&self, component: &Component) -> bool {
        // Of most sites no disk has failed.
        !self.refusing.is_empty() && self.refusing.contains(&(component.host, component.disk.as_str()))
    }

    fn host_is_on(&self, host: usize) -> bool {
        self.host_is_on.get(host).copied().unwrap_or(false)
    }

    /// Whether a node's database still runs where it was: its host is on, and the disk under it answers. A disk that
    /// refuses ends the database, even where the volume has another component.
    fn runs_on(&self, node: usize) -> bool {
        let Some(host) = self.deployment.nodes.get(node).copied() else { return false };
        let refused = self.deployment.storage.volume(node).is_some_and(|volume| {
            volume.serving(host).is_none_or(|serving| self.refuses(&volume.components[serving]))
        });
        self.host_is_on(host) && !refused
    }

    /// Where each node runs, before the platform does anything.
    pub(super) fn stands(&self) -> Vec<Option<Stand>> {
        let of = |(node, host): (usize, &usize)| {
            self.runs_on(node).then_some(Stand { host: *host, is_stale: false })
        };
        self.deployment.nodes.iter().enumerate().map(of).collect()
    }

    /// Whether all that a node had is on a sound disk of a host that is on, whether or not the node runs.
    pub(super) fn keeps(&self, node: usize) -> bool {
        let Some(host) = self.deployment.nodes.get(node).copied() else { return false };
        let has_all = |volume: &Volume| {
            volume.is_mirrored()
                && volume.components.iter().any(|of| of.host != host && self.is_current(volume, host, of))
        };
        self.runs_on(node) || self.deployment.storage.volume(node).is_some_and(has_all)
    }

    /// Whether a component has what was acknowledged by the one that served on a host, and can be used.
    fn is_current(&self, volume: &Volume, served: usize, component: &Component) -> bool {
        let hosts = &self.deployment.hosts;
        volume.acknowledge != Acknowledge::Async
            && self.is_usable(component)
            && self.hear_each_other(&hosts[served], &hosts[component.host])
    }

    fn is_usable(&self, component: &Component) -> bool {
        self.host_is_on(component.host) && !self.refuses(component)
    }

    /// Where each node runs once every one that was lost with its host has started elsewhere. `None` for a node that finds
    /// no host, or whose disk refuses.
    pub(super) fn stands_after_restart(&self) -> Vec<Option<Stand>> {
        let mut stands = self.stands();
        for (node, lost) in self.deployment.nodes.iter().enumerate() {
            if self.host_is_on(*lost) {
                continue;
            }
            stands[node] = match self.deployment.storage.volume(node) {
                Some(volume) if volume.is_mirrored() => self.on_component(volume, *lost),
                Some(volume) if self.refuses(&volume.components[0]) => None,
                _ => self.nearest(&stands, *lost),
            };
        }
        stands
    }

    /// On the first component's host that is up to date, else by force on the first there is.
    fn on_component(&self, volume: &Volume, lost: usize) -> Option<Stand> {
        let others = || volume.components.iter().filter(|of| of.host != lost);
        let current = others().find(|of| self.is_current(volume, lost, of));
        let forced = || others().find(|of| volume.promotion == Promotion::Forced && self.is_usable(of));
        match current {
            Some(component) => Some(Stand { host: component.host, is_stale: false }),
            None => forced().map(|component| Stand { host: component.host, is_stale: true }),
        }
    }

    /// A host with power, with as few nodes as possible, as near as possible to where the node was.
    fn nearest(&self, stands: &[Option<Stand>], lost: usize) -> Option<Stand> {
        let hosts = &self.deployment.hosts;
        let shared = |host: usize| {
            let pair = hosts[host].iter().zip(&hosts[lost]);
            pair.take_while(|(here, there)| here == there).count()
        };
        // A machine whose database has ended takes its place all the same.
        let is_there = |(stand, home): (&Option<Stand>, &usize), host: usize| {
            (self.host_is_on(*home) && *home == host) || stand.is_some_and(|stand| stand.host == host)
        };
        let nodes_on = |host: usize| {
            stands.iter().zip(&self.deployment.nodes).filter(|node| is_there(*node, host)).count()
        };
        let host = (0..hosts.len())
            .filter(|host| self.host_is_on(*host))
            .min_by_key(|host| (nodes_on(*host), Reverse(shared(*host)), *host));
        host.map(|host| Stand { host, is_stale: false })
    }

    /// Whether a node was lost with its host, so that the platform may start it elsewhere.
    pub(super) fn any_host_lost(&self) -> bool {
        self.deployment.nodes.iter().any(|host| !self.host_is_on(*host))
    }
}

fn host_and_disk<'a>(deployment: &Deployment, path: &'a Path) -> Option<(usize, &'a String)> {
    let (disk, host) = path.split_last()?;
    let host = deployment.hosts.iter().position(|path| path.as_slice() == host)?;
    Some((host, disk))
}
