//! The site after failures: which hosts are on, which disks answer, which places still hear each other, where a lost node
//! starts again and from what.
//!
//! Knows nothing of quorums. A component of a mirror that the serving one does not hear is given up and falls behind: it
//! counts as one that is not up to date, because what else fails may fail after that.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use history::{HostId, NodeId, PerNode};

use super::Failure;
use crate::deployment::{Deployment, Path};
use crate::storage::{Acknowledge, Component, Promotion, Volume};

/// The site after failures.
pub(super) struct Aftermath<'a> {
    deployment: &'a Deployment,
    /// Places without power.
    down: Vec<&'a Path>,
    /// Capacity disks that refuse, by host.
    refusing: BTreeSet<(HostId, &'a str)>,
    cuts: Vec<(&'a Path, &'a Path)>,
    isolated: Vec<&'a Path>,
    /// Hosts whose databases do not answer.
    silent: Vec<&'a Path>,
}

/// What a lost node has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// A host that has no power.
    Host,
    /// A host that has, but from which its volume cannot be reached.
    Volume,
}

/// Where a node runs, after the platform has done what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stand {
    pub(super) host: HostId,
    /// Whether it was started from a component that may lack what was acknowledged last.
    pub(super) is_stale: bool,
}

/// Where each node runs; nothing for one that does not.
pub(super) type Stands = PerNode<Option<Stand>>;

impl<'a> Aftermath<'a> {
    pub(super) fn after(deployment: &'a Deployment, failures: &'a [Failure]) -> Aftermath<'a> {
        let (mut down, mut cuts, mut isolated) = (Vec::new(), Vec::new(), Vec::new());
        let (mut refusing, mut silent) = (BTreeSet::new(), Vec::new());
        for failure in failures {
            match failure {
                Failure::Down(place) => down.push(place),
                Failure::Cut(one, other) => cuts.push((one, other)),
                Failure::Isolated(place) => isolated.push(place),
                Failure::Silent(host) => silent.push(host),
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
        Aftermath { deployment, down, refusing, cuts, isolated, silent }
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

    fn host_is_on(&self, host: HostId) -> bool {
        let path = self.deployment.hosts.get(host);
        path.is_some_and(|path| !self.down.iter().any(|place| path.starts_with(place)))
    }

    /// Whether the host that a node ran on has lost its power.
    pub(super) fn has_no_power(&self, node: NodeId) -> bool {
        self.deployment.nodes.get(node).is_none_or(|host| !self.host_is_on(*host))
    }

    /// Whether a node's database still runs where it was, and answers.
    fn runs_on(&self, node: NodeId) -> bool {
        self.may_run_on(node) && !self.silent.iter().any(|host| *host == self.deployment.host_of(node))
    }

    /// Whether nothing keeps a node's database from running where it was: its host is on, the disk under it answers, and where that is
    /// another host's, it is reached. A disk that refuses ends the database, unless service moves to another component.
    fn may_run_on(&self, node: NodeId) -> bool {
        let Some(host) = self.deployment.nodes.get(node).copied() else { return false };
        let served = self.deployment.storage.volume(node).is_none_or(|volume| {
            let serving = volume.serving(host);
            serving.is_some_and(|component| match volume.fails_with_host {
                true => {
                    let answers = self.is_usable(component) && self.reaches(host, component);
                    answers || volume.components.iter().any(|other| self.takes_over(volume, host, other))
                }
                false => !self.refuses(component),
            })
        });
        self.host_is_on(host) && served
    }

    /// Whether service moves to a component while the node runs, because the disk under the one that serves refuses: every
    /// change that was made there is handed over first, whatever is acknowledged when.
    fn takes_over(&self, volume: &Volume, node_on: HostId, component: &Component) -> bool {
        let Some(serving) = volume.serving(node_on) else { return false };
        let is_asked = self.refuses(serving)
            && self.host_is_on(serving.host)
            && self.host_is_on(node_on)
            && self.reaches(node_on, serving);
        is_asked
            && serving != component
            && self.is_usable(component)
            && self.reaches(serving.host, component)
            && self.reaches(node_on, component)
    }

    /// Whether the platform takes a node for lost, and what it has left behind: its host has no power, or that which its
    /// volume was served from, or the way between the two is cut.
    fn left(&self, node: NodeId) -> Option<Left> {
        let host = self.deployment.nodes[node];
        let volume = self.deployment.storage.volume(node).filter(|volume| volume.fails_with_host);
        let serving = volume.and_then(|volume| volume.serving(host));
        if !self.host_is_on(host) || serving.is_some_and(|of| !self.host_is_on(of.host)) {
            return Some(Left::Host);
        }
        serving.is_some_and(|of| !self.reaches(host, of)).then_some(Left::Volume)
    }

    fn is_lost(&self, node: NodeId) -> bool {
        self.left(node).is_some()
    }

    fn reaches(&self, host: HostId, component: &Component) -> bool {
        let hosts = &self.deployment.hosts;
        host == component.host || self.hear_each_other(&hosts[host], &hosts[component.host])
    }

    /// Where each node runs, before the platform does anything.
    pub(super) fn stands(&self) -> Stands {
        let of = |(node, host): (NodeId, &HostId)| {
            self.runs_on(node).then_some(Stand { host: *host, is_stale: false })
        };
        self.deployment.nodes.numbered().map(of).collect()
    }

    /// Whether all that a node had is on a sound disk of a host that is on, whether or not the node runs.
    pub(super) fn keeps(&self, node: NodeId) -> bool {
        let Some(host) = self.deployment.nodes.get(node).copied() else { return false };
        let volume = self.deployment.storage.volume(node).filter(|volume| volume.fails_with_host);
        let has_all = |volume: &Volume| volume.components.iter().any(|of| self.is_current(volume, host, of));
        volume.map_or_else(|| self.may_run_on(node), has_all)
    }

    /// Whether a component has what was acknowledged to a node on a host, and can be used.
    fn is_current(&self, volume: &Volume, node_on: HostId, component: &Component) -> bool {
        let Some(serving) = volume.serving(node_on) else { return false };
        let told = || volume.acknowledge != Acknowledge::Async && self.reaches(serving.host, component);
        self.is_usable(component)
            && (serving == component || told() || self.takes_over(volume, node_on, component))
    }

    fn is_usable(&self, component: &Component) -> bool {
        self.host_is_on(component.host) && !self.refuses(component)
    }

    /// Where each node runs once every one that was lost has started again. `None` for a node that finds no host, or whose
    /// disk refuses.
    pub(super) fn stands_after_restart(&self) -> Stands {
        let mut stands = self.stands();
        for (node, home) in self.deployment.nodes.numbered() {
            let Some(left) = self.left(node) else { continue };
            let stand = |host: HostId| Stand { host, is_stale: false };
            stands[node] = match self.deployment.storage.volume(node) {
                Some(volume) if volume.fails_with_host => self.opened(&stands, volume, (node, *home), left),
                Some(volume) if self.refuses(&volume.components[0]) => None,
                _ => self.nearest(&stands, (node, *home), &|_| true).first().copied().map(stand),
            };
        }
        stands
    }

    /// The platform tries one host after the other: where the data is comes before the way there, but hosts for storage come
    /// last. Where it is the way to the data that is lost, the data's own place needs none, and comes first. What is behind is
    /// promoted only where nothing that is up to date can be had from anywhere.
    fn opened(
        &self,
        stands: &Stands,
        volume: &Volume,
        (node, home): (NodeId, HostId),
        left: Left,
    ) -> Option<Stand> {
        let is_current = |of: &&Component| self.is_current(volume, home, of);
        let usable = volume.components.iter().filter(|of| self.is_usable(of));
        let (current, lagging): (Vec<&Component>, Vec<&Component>) = usable.partition(is_current);
        let lagging = if volume.promotion == Promotion::Forced { lagging } else { Vec::new() };
        let for_storage = |host: HostId| self.deployment.storage.for_storage.contains(&host);
        let on = |group: &[&Component], storage: bool| -> Vec<HostId> {
            group.iter().map(|of| of.host).filter(|host| for_storage(*host) == storage).collect()
        };
        let first = match left {
            Left::Volume => [on(&current, false), on(&current, true)].concat(),
            Left::Host => on(&current, false),
        };
        let bare = self.nearest(stands, (node, home), &|host| !for_storage(host));
        let hosts = [first, on(&lagging, false), bare, on(&current, true), on(&lagging, true)].concat();
        // Served by its own where that is as good as any.
        let served = |group: &[&Component], is_stale: bool| {
            let reached = |host: &&HostId| group.iter().any(|component| self.reaches(**host, component));
            hosts.iter().find(reached).map(|host| Stand { host: *host, is_stale })
        };
        served(&current, false).or_else(|| served(&lagging, true))
    }

    /// Hosts with power: those with the fewest nodes first, and of those the nearest to where the node was.
    fn nearest(
        &self,
        stands: &Stands,
        (node, home): (NodeId, HostId),
        may: &dyn Fn(HostId) -> bool,
    ) -> Vec<HostId> {
        let hosts = &self.deployment.hosts;
        let shared = |host: HostId| {
            let pair = hosts[host].iter().zip(&hosts[home]);
            pair.take_while(|(here, there)| here == there).count()
        };
        // A machine whose database has ended takes its place all the same.
        let is_there = |other: NodeId, host: HostId| {
            let stays = !self.is_lost(other) && self.deployment.nodes[other] == host;
            other != node && (stays || stands[other].is_some_and(|stand| stand.host == host))
        };
        let nodes_on = |host: HostId| stands.ids().filter(|other| is_there(*other, host)).count();
        let mut found: Vec<HostId> =
            hosts.ids().filter(|host| self.host_is_on(*host) && may(*host)).collect();
        found.sort_by_key(|host| (nodes_on(*host), Reverse(shared(*host)), *host));
        found
    }

    /// Whether a node was lost, so that the platform may start it elsewhere.
    pub(super) fn any_lost(&self) -> bool {
        self.deployment.nodes.ids().any(|node| self.is_lost(node))
    }
}

fn host_and_disk<'a>(deployment: &Deployment, path: &'a Path) -> Option<(HostId, &'a String)> {
    let (disk, host) = path.split_last()?;
    let host = deployment.hosts.find(|path| path.as_slice() == host)?;
    Some((host, disk))
}
