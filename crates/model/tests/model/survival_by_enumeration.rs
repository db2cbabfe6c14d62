//! Survival by the rules held against brute force: every possible world of acknowledgements, one after the other, over
//! small sites, placements, volumes and sets of failures drawn at random.

use std::collections::BTreeSet;

use history::{HostId, NodeId, PerNode};
use model::Acknowledgements;
use model::deployment::{Deployment, Level, Path, Quorum, Rules, Takeover};
use model::storage::{Acknowledge, Component, DiskGroup, Promotion, Storage, Volume};
use model::survival::{Data, Failure, Service, failures, outcome};
use proptest::prelude::*;

/// The same question by enumeration, without any of the rules' arithmetic.
mod brute {
    use super::*;

    const LEADER: NodeId = NodeId::FIRST;

    /// Every set of these.
    fn subsets(of: &[NodeId]) -> Vec<Vec<NodeId>> {
        (0..1_u32 << of.len())
            .map(|bits| {
                of.iter().enumerate().filter(|(k, _)| bits >> k & 1 == 1).map(|(_, item)| *item).collect()
            })
            .collect()
    }

    fn within(place: &[String], of: &[String]) -> bool {
        place.len() >= of.len() && place.iter().zip(of).all(|(one, other)| one == other)
    }

    pub struct World<'a> {
        pub deployment: &'a Deployment,
        pub failures: &'a [Failure],
    }

    /// Nodes on hosts, and which of them forgot what came last.
    #[derive(Clone)]
    struct Stage {
        hosts: PerNode<Option<HostId>>,
        forgot: PerNode<bool>,
    }

    impl World<'_> {
        fn host_on(&self, host: HostId) -> bool {
            let path = &self.deployment.hosts[host];
            self.failures
                .iter()
                .all(|failure| !matches!(failure, Failure::Down(place) if within(path, place)))
        }

        fn disk_answers(&self, component: &Component) -> bool {
            let of_host = |name: &str| {
                let mut path = self.deployment.hosts[component.host].clone();
                path.push(name.to_owned());
                path
            };
            let groups = &self.deployment.storage.groups;
            let cache = groups
                .iter()
                .filter(|group| group.capacity.contains(&component.disk))
                .find_map(|group| group.cache.as_ref());
            self.failures.iter().all(|failure| match failure {
                Failure::Disk(path) => *path != of_host(&component.disk),
                Failure::DiskGroup(path) => cache.is_none_or(|cache| *path != of_host(cache)),
                _ => true,
            })
        }

        fn passes(&self, from: &[String], to: &[String]) -> bool {
            self.failures.iter().all(|failure| match failure {
                Failure::Cut(a, b) => !(within(from, a) && within(to, b) || within(from, b) && within(to, a)),
                Failure::Isolated(p) => within(from, p) == within(to, p),
                _ => true,
            })
        }

        fn hosts_pass(&self, one: HostId, other: HostId) -> bool {
            self.passes(&self.deployment.hosts[one], &self.deployment.hosts[other])
        }

        fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
            self.deployment.nodes.ids()
        }

        fn count(&self) -> usize {
            self.deployment.nodes.len()
        }

        fn components(&self, node: NodeId) -> &[Component] {
            self.deployment.storage.volumes.get(node).map_or(&[], |volume| &volume.components)
        }

        fn bound(&self, node: NodeId) -> bool {
            self.deployment.storage.volumes.get(node).is_some_and(|volume| volume.fails_with_host)
        }

        /// The component a node reads and writes where it first stands.
        fn served_by(&self, node: NodeId) -> Option<&Component> {
            let mut components: Vec<&Component> = self.components(node).iter().collect();
            let moved_to = self.deployment.storage.volumes.get(node).and_then(|of| of.served_from);
            components.sort_by_key(|of| (moved_to != Some(of.host), of.host != self.deployment.nodes[node]));
            components.first().copied()
        }

        fn reach(&self, one: HostId, other: HostId) -> bool {
            one == other || self.hosts_pass(one, other)
        }

        fn sound(&self, component: &Component) -> bool {
            self.host_on(component.host) && self.disk_answers(component)
        }

        fn before(&self) -> Stage {
            let runs = |node: NodeId| {
                let host = self.deployment.nodes[node];
                let served = match self.served_by(node) {
                    None => true,
                    Some(of) if self.bound(node) => {
                        self.sound(of) && self.reach(host, of.host) || !self.heirs(node).is_empty()
                    }
                    Some(of) => self.disk_answers(of),
                };
                (self.host_on(host) && served).then_some(host)
            };
            Stage { hosts: self.nodes().map(runs).collect(), forgot: vec![false; self.count()].into() }
        }

        /// Components that service goes to when the disk under the one that serves dies with both hosts up and talking.
        fn heirs(&self, node: NodeId) -> Vec<&Component> {
            let host = self.deployment.nodes[node];
            let all = self.components(node).iter();
            match self.served_by(node) {
                Some(of)
                    if !self.disk_answers(of)
                        && [host, of.host].iter().all(|host| self.host_on(*host))
                        && self.reach(host, of.host) =>
                {
                    let hears = |one: HostId, heir: &&Component| self.reach(one, heir.host);
                    all.filter(|heir| self.sound(heir) && hears(host, heir) && hears(of.host, heir)).collect()
                }
                _ => Vec::new(),
            }
        }

        /// Whether power was lost under a node, or under what served its volume.
        fn unpowered(&self, node: NodeId) -> bool {
            let afar = self.bound(node) && !self.served_by(node).is_none_or(|of| self.host_on(of.host));
            afar || !self.host_on(self.deployment.nodes[node])
        }

        /// The same, or whether what served its volume is out of reach.
        fn lost(&self, node: NodeId) -> bool {
            let home = self.deployment.nodes[node];
            let cut = self.bound(node) && !self.served_by(node).is_none_or(|of| self.reach(home, of.host));
            cut || self.unpowered(node)
        }

        /// Whether a component has what was acknowledged, and can be read.
        fn followed(&self, node: NodeId, component: &Component) -> bool {
            let served = self.served_by(node).expect("there is one");
            let told = match self.deployment.storage.volumes[node].acknowledge {
                Acknowledge::Sync | Acknowledge::Semi => self.reach(served.host, component.host),
                Acknowledge::Async => false,
            };
            let inherits = self.heirs(node).contains(&component);
            self.sound(component) && (served.host == component.host || told || inherits)
        }

        /// Whether what a node had acknowledged is on some disk that can be read now.
        fn readable(&self, node: NodeId) -> bool {
            if self.bound(node) {
                return self.components(node).iter().any(|of| self.followed(node, of));
            }
            self.before().hosts[node].is_some()
        }

        /// What the platform makes of it: lost machines one after the other, each to a host.
        fn restarted(&self) -> Stage {
            let mut stage = self.before();
            let mut taken: PerNode<Option<HostId>> = self
                .nodes()
                .map(|node| Some(self.deployment.nodes[node]).filter(|_| !self.lost(node)))
                .collect();
            for node in self.nodes() {
                if !self.lost(node) {
                    continue;
                }
                let home = self.deployment.nodes[node];
                let near = |host: HostId| {
                    let (here, there) = (&self.deployment.hosts[host], &self.deployment.hosts[home]);
                    (0..here.len().min(there.len())).take_while(|k| here[*k] == there[*k]).count()
                };
                let crowd = |host: HostId| taken.iter().filter(|of| **of == Some(host)).count();
                let for_storage = |host: HostId| self.deployment.storage.for_storage.contains(&host);
                // Every host that might do, each with what speaks against it.
                let mut hosts: Vec<(i32, usize, usize, i64, HostId)> = Vec::new();
                let components = self.components(node);
                let forced =
                    self.bound(node) && self.deployment.storage.volumes[node].promotion == Promotion::Forced;
                let usable: Vec<(usize, &Component)> = components
                    .iter()
                    .enumerate()
                    .filter(|(_, of)| self.bound(node) && self.sound(of))
                    .filter(|(_, of)| forced || self.followed(node, of))
                    .collect();
                let of_own = |host: HostId| usable.iter().find(|(_, of)| of.host == host);
                for host in self.deployment.hosts.ids().filter(|host| self.host_on(*host)) {
                    if !self.bound(node) {
                        if components.iter().all(|of| self.disk_answers(of)) {
                            hosts.push((0, 0, crowd(host), -(near(host) as i64), host));
                        }
                        continue;
                    }
                    match of_own(host) {
                        Some((number, of)) => {
                            let lags = usize::from(!self.followed(node, of));
                            // Out of reach of its data and nothing worse, a node goes to the data.
                            let to_data = lags == 0 && !self.unpowered(node);
                            let class = match (to_data, for_storage(host)) {
                                (true, storage) => -2 + i32::from(storage),
                                (false, storage) => 2 * i32::from(storage),
                            };
                            hosts.push((class, lags, *number, 0, host));
                        }
                        None if !for_storage(host) && !usable.is_empty() => {
                            hosts.push((1, 0, crowd(host), -(near(host) as i64), host));
                        }
                        None => {}
                    }
                }
                hosts.sort_unstable();
                // Each is tried with what has everything, then each with what has not.
                let opens = |host: HostId, whole: bool| {
                    let mut within = usable.iter().filter(|(_, of)| self.reach(host, of.host));
                    !self.bound(node) || within.any(|(_, of)| self.followed(node, of) == whole)
                };
                let tried =
                    [true, false].into_iter().flat_map(|whole| hosts.iter().map(move |of| (whole, of.4)));
                let Some((whole, host)) = tried.into_iter().find(|(whole, host)| opens(*host, *whole)) else {
                    continue;
                };
                stage.forgot[node] = self.bound(node) && !whole;
                (stage.hosts[node], taken[node]) = (Some(host), Some(host));
            }
            stage
        }

        fn any_lost(&self) -> bool {
            self.nodes().any(|node| self.lost(node))
        }

        /// Leader and standbys: every set that may have acknowledged, every set that may be further still.
        pub fn single_log(&self, wanted: usize, takeover: Takeover) -> (Service, Data) {
            let nodes: Vec<NodeId> = self.nodes().collect();
            let before = self.before();
            let on: Vec<NodeId> =
                nodes.iter().copied().filter(|node| before.hosts[*node].is_some()).collect();
            let restarts = takeover == Takeover::Restart && self.any_lost();
            let stage = if restarts { self.restarted() } else { before };
            let (mut service, mut data) = (Service::ReadsAndWrites, Data::Kept);
            for acknowledged in subsets(&nodes[1..]).into_iter().filter(|set| set.len() >= wanted) {
                let holds = |node: &NodeId| *node == LEADER || acknowledged.contains(node);
                for further in subsets(&acknowledged) {
                    let somebody = nodes.iter().any(|node| holds(node) && self.readable(*node));
                    let mut here = if somebody { Data::Kept } else { Data::OnFailedOnly };
                    let ranks =
                        |node: &NodeId| usize::from(holds(node)) + usize::from(further.contains(node));
                    let most = on.iter().map(ranks).max();
                    if takeover == Takeover::Promote && !on.contains(&LEADER) && !on.is_empty() {
                        // Of equally advanced ones any may be chosen.
                        for leader in on.iter().filter(|node| Some(ranks(node)) == most) {
                            let needs = wanted.min(on.len() - 1);
                            service = service.min(self.served(&stage, *leader, needs, &[]));
                            data = data.min(if holds(leader) { Data::Kept } else { Data::MayBeLost });
                        }
                        continue;
                    }
                    // A leader that forgot is behind whoever did not, and is not followed by them.
                    let ahead: Vec<NodeId> =
                        if stage.forgot[LEADER] { acknowledged.clone() } else { Vec::new() };
                    if stage.forgot[LEADER] {
                        here = Data::MayBeLost;
                    }
                    service = service.min(self.served(&stage, LEADER, wanted, &ahead));
                    data = data.min(here);
                }
            }
            (service, data)
        }

        fn served(&self, stage: &Stage, leader: NodeId, needs: usize, deaf: &[NodeId]) -> Service {
            let on: Vec<NodeId> = self.nodes().filter(|node| stage.hosts[*node].is_some()).collect();
            let host = |node: NodeId| stage.hosts[node].expect("it is on");
            let writes = on.contains(&leader)
                && subsets(&on).iter().any(|set| {
                    set.len() == needs
                        && set.iter().all(|node| {
                            *node != leader
                                && !deaf.contains(node)
                                && self.hosts_pass(host(leader), host(*node))
                        })
                });
            let mut worst = Service::ReadsAndWrites;
            for client in &self.deployment.clients {
                let reaches = |node: NodeId| self.passes(client, &self.deployment.hosts[host(node)]);
                worst = worst.min(match () {
                    () if writes && reaches(leader) => Service::ReadsAndWrites,
                    () if on.iter().any(|node| reaches(*node)) => Service::ReadsOnly,
                    () => Service::Unavailable,
                });
            }
            worst
        }

        fn hears(&self, stage: &Stage, one: NodeId, other: NodeId) -> bool {
            match (stage.hosts[one], stage.hosts[other]) {
                (Some(here), Some(there)) => one == other || self.hosts_pass(here, there),
                _ => false,
            }
        }

        fn heard(&self, stage: &Stage, by: NodeId) -> Vec<NodeId> {
            self.nodes().filter(|node| self.hears(stage, by, *node)).collect()
        }

        /// Every set that may vote for a node.
        fn voters(&self, stage: &Stage, leader: NodeId) -> Vec<Vec<NodeId>> {
            let majority = self.count() / 2 + 1;
            let sets = subsets(&self.heard(stage, leader)).into_iter();
            sets.filter(|set| set.len() >= majority && set.contains(&leader)).collect()
        }

        /// An elected leader: every set that may have acknowledged, every majority that may vote, now and later.
        pub fn elected(&self, copies: usize, takeover: Takeover) -> (Service, Data) {
            let nodes: Vec<NodeId> = self.nodes().collect();
            let before = self.before();
            let stays = !self.voters(&before, LEADER).is_empty();
            let restarts = takeover == Takeover::Restart && self.any_lost();
            let mut stages = vec![before.clone()];
            stages.extend(restarts.then(|| self.restarted()));
            let mut data = Data::Kept;
            for had in subsets(&nodes).into_iter().filter(|set| set.contains(&LEADER) && set.len() >= copies)
            {
                if !had.iter().any(|node| self.readable(*node)) {
                    data = data.min(Data::OnFailedOnly);
                }
                for (stage, leader) in
                    stages.iter().flat_map(|stage| nodes.iter().map(move |of| (stage, *of)))
                {
                    // Nobody votes for a candidate that has less than itself.
                    let has = |node: &NodeId| had.contains(node) && !stage.forgot[*node];
                    let mut wins = self.voters(stage, leader).into_iter();
                    if !stays && !has(&leader) && wins.any(|set| !set.iter().any(has)) {
                        data = Data::MayBeLost;
                    }
                }
            }
            let last = stages.last().expect("there is one");
            let can_lead: Vec<NodeId> =
                nodes.iter().copied().filter(|node| !self.voters(last, *node).is_empty()).collect();
            let leaders = if before.hosts[LEADER].is_some() && can_lead.contains(&LEADER) {
                vec![LEADER]
            } else {
                can_lead
            };
            let serves = |leader: &NodeId| {
                let heard = self.heard(last, *leader);
                let host = last.hosts[*leader].expect("it leads");
                subsets(&heard).iter().any(|set| set.contains(leader) && set.len() >= copies)
                    && self
                        .deployment
                        .clients
                        .iter()
                        .all(|client| self.passes(client, &self.deployment.hosts[host]))
            };
            let served = !leaders.is_empty() && leaders.iter().all(serves);
            (if served { Service::ReadsAndWrites } else { Service::Unavailable }, data)
        }

        /// Whether a set of a group's nodes is enough, asked from a region.
        fn enough(&self, level: Level, set: &[NodeId], group: &[NodeId], from: &str) -> bool {
            let region = |node: &NodeId| self.deployment.host_of(*node)[0].clone();
            let more_than_half = |place: &str| {
                let all = group.iter().filter(|node| region(node) == place).count();
                let there = set.iter().filter(|node| region(node) == place).count();
                all > 0 && 2 * there > all
            };
            match level {
                Level::One => !set.is_empty(),
                Level::Two => set.len() > 1,
                Level::Quorum => 2 * set.len() > group.len(),
                Level::All => set.len() == group.len(),
                Level::LocalOne => set.iter().any(|node| region(node) == from),
                Level::LocalQuorum => more_than_half(from),
                Level::EachQuorum => group.iter().all(|node| more_than_half(&region(node))),
            }
        }

        /// Groups: every set of replicas that would do, every node that may be asked.
        pub fn groups(
            &self,
            groups: &[Vec<NodeId>],
            (read, write): (Level, Level),
            raft: bool,
        ) -> (Service, Data) {
            let (mut service, mut data) = (Service::ReadsAndWrites, Data::Kept);
            let stage = self.before();
            let nodes: Vec<NodeId> = self.nodes().collect();
            let region = |node: NodeId| &self.deployment.host_of(node)[0];
            for (group, client) in
                groups.iter().flat_map(|group| self.deployment.clients.iter().map(move |of| (group, of)))
            {
                let asked = |level: Level| -> Vec<NodeId> {
                    let local = matches!(level, Level::LocalOne | Level::LocalQuorum);
                    let home: Vec<NodeId> =
                        nodes.iter().copied().filter(|node| *region(*node) == client[0]).collect();
                    if local && !home.is_empty() { home } else { nodes.clone() }
                };
                for set in subsets(group) {
                    let enough = asked(write).iter().any(|at| self.enough(write, &set, group, region(*at)));
                    if enough && !set.iter().any(|node| self.readable(*node)) {
                        data = Data::OnFailedOnly;
                    }
                }
                let possible = |level: Level| {
                    let door = |at: &&NodeId| {
                        stage.hosts[**at].is_some() && self.passes(client, self.deployment.host_of(**at))
                    };
                    asked(level).iter().filter(door).any(|at| {
                        subsets(group).iter().any(|set| {
                            let heard = |by: NodeId| set.iter().all(|node| self.hears(&stage, by, *node));
                            self.enough(level, set, group, region(*at))
                                && if raft {
                                    set.iter()
                                        .any(|leader| heard(*leader) && self.hears(&stage, *at, *leader))
                                } else {
                                    heard(*at)
                                }
                        })
                    })
                };
                service = service.min(match (possible(read), possible(write)) {
                    (true, true) => Service::ReadsAndWrites,
                    (true, false) => Service::ReadsOnly,
                    (false, true) => Service::WritesOnly,
                    (false, false) => Service::Unavailable,
                });
            }
            (service, data)
        }
    }
}

/// Small sites: up to two regions of two zones of two racks of two hosts, up to five nodes.
fn sites() -> impl Strategy<Value = (Vec<Path>, PerNode<HostId>, Path, Storage)> {
    let place = (0..2_u8, 0..2_u8, prop::option::of(0..2_u8), 0..2_u8);
    let host = |(region, zone, rack, host): (u8, u8, Option<u8>, u8)| {
        let mut path = vec![format!("g{region}"), format!("z{zone}")];
        path.extend(rack.map(|rack| format!("r{rack}")));
        path.push(format!("h{host}"));
        path
    };
    prop::collection::btree_set(place, 1..7).prop_flat_map(move |places| {
        let hosts: Vec<Path> = places.into_iter().map(host).collect();
        let client = prop::sample::select(hosts.clone()).prop_flat_map(|host| {
            (1..=host.len()).prop_map(move |length| {
                let mut client = host[..length].to_vec();
                client.push("clients".to_owned());
                client
            })
        });
        let count = hosts.len();
        let nodes = prop::collection::vec(0..count, 1..6);
        nodes.prop_flat_map(move |nodes| {
            let nodes: PerNode<HostId> = nodes.into_iter().map(HostId::new).collect();
            (Just(hosts.clone()), Just(nodes.clone()), client.clone(), storages(nodes, count))
        })
    })
}

/// No disks at all, a volume for each node on one disk, or mirrors of two or three components.
fn storages(nodes: PerNode<HostId>, hosts: usize) -> impl Strategy<Value = Storage> {
    let of_node = prop::collection::vec(any::<prop::sample::Index>(), 3);
    let disks = prop::collection::vec(prop::sample::select(vec!["d1", "d2", "d3"]), 3);
    let drawn = prop::collection::vec((of_node, disks), nodes.len());
    let acknowledge = prop::sample::select(vec![Acknowledge::Sync, Acknowledge::Semi, Acknowledge::Async]);
    let promotion = prop::sample::select(vec![Promotion::UpToDate, Promotion::Forced]);
    (0..4_usize, drawn, acknowledge, promotion, (any::<bool>(), any::<bool>(), 0..64_u32)).prop_map(
        move |(replicas, drawn, acknowledge, promotion, (cache, afar, storage))| {
            let group = |name: &str, capacity: &[&str]| DiskGroup {
                cache: cache.then(|| name.to_owned()),
                capacity: capacity.iter().map(|disk| (*disk).to_owned()).collect(),
            };
            let volume = |(home, (places, disks)): (&HostId, (Vec<prop::sample::Index>, Vec<&str>))| {
                let mut components: Vec<Component> = Vec::new();
                // A volume may lie on none of its node's hosts.
                let on = |place: &prop::sample::Index| HostId::new(place.index(hosts));
                let first = if afar { on(&places[0]) } else { *home };
                let wanted = std::iter::once(first).chain(places.iter().map(on));
                for (host, disk) in wanted.zip(disks.iter().cycle()) {
                    if components.len() < replicas && components.iter().all(|of| of.host != host) {
                        components.push(Component { host, disk: (*disk).to_owned() });
                    }
                }
                // One that has moved stands on another than the first.
                components.rotate_left(usize::from(cache && replicas > 1));
                let fails_with_host = replicas > 1 || cache;
                // Service may have moved before anything failed that is asked about.
                let moved = storage % 3 == 0 && replicas > 1;
                let served_from = components.last().filter(|_| moved).map(|of| of.host);
                Volume { components, served_from, fails_with_host, acknowledge, promotion }
            };
            let groups = vec![group("c1", &["d1", "d2"]), group("c2", &["d3"])];
            let volumes = if replicas == 0 {
                PerNode::default()
            } else {
                nodes.iter().zip(drawn).map(volume).collect()
            };
            let for_storage = (0..hosts).filter(|host| afar && storage >> host & 1 == 1).map(HostId::new);
            let for_storage = for_storage.filter(|host| !nodes.contains(host)).collect();
            Storage { groups, volumes, for_storage }
        },
    )
}

/// What an elected leader waits for, by a number.
fn election(wanted: usize) -> Acknowledgements {
    match wanted {
        0 => Acknowledgements::None,
        3 => Acknowledgements::All,
        count => Acknowledgements::Any(count),
    }
}

fn levels() -> impl Strategy<Value = Level> {
    use Level::{All, EachQuorum, LocalOne, LocalQuorum, One, Quorum, Two};
    prop::sample::select(vec![One, Two, Quorum, All, LocalOne, LocalQuorum, EachQuorum])
}

fn takeovers() -> impl Strategy<Value = Takeover> {
    prop::sample::select(vec![Takeover::None, Takeover::Restart, Takeover::Promote])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn every_set_of_failures_of_a_small_site_leaves_what_enumeration_says(
        (hosts, nodes, client, storage) in sites(),
        wanted in 0..4_usize,
        levels in (levels(), levels()),
        (kind, takeover) in (0..4_u8, takeovers()),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        group in prop::collection::vec(prop::collection::btree_set(0..5_usize, 1..4), 1..3),
    ) {
        let number = |node: usize| NodeId::new(node % nodes.len());
        let groups: Vec<Vec<NodeId>> = group
            .into_iter()
            .map(|group| group.into_iter().map(number).collect::<BTreeSet<_>>().into_iter().collect())
            .collect();
        let acknowledgements = if kind == 0 { Acknowledgements::Any(wanted) } else { election(wanted) };
        let rules = match kind {
            0 => Rules::SingleLog { acknowledgements, takeover },
            1 => Rules::Elected { acknowledgements, takeover },
            2 => Rules::Groups { groups: groups.clone(), quorums: vec![Quorum::Majority], synced: true },
            _ => Rules::Groups {
                groups: groups.clone(),
                quorums: vec![Quorum::Counted { read: levels.0, write: levels.1 }],
                synced: true,
            },
        };
        let site = Deployment { hosts: hosts.into(), nodes, clients: vec![client], rules, storage };
        let edges: Vec<Path> = site.places().into_iter().collect();
        let all = failures(&site, &[], &edges);
        let failed: Vec<Failure> = chosen.iter().map(|index| index.get(&all).clone()).collect();
        let world = brute::World { deployment: &site, failures: &failed };
        let count = site.nodes.len();
        let expected = match kind {
            0 => world.single_log(wanted.min(count - 1), takeover),
            1 => {
                let copies = match election(wanted) {
                    Acknowledgements::None => 1,
                    Acknowledgements::Any(others) => (count / 2 + 1).max((others + 1).min(count)),
                    Acknowledgements::All => count,
                };
                world.elected(copies, takeover)
            }
            2 => world.groups(&groups, (Level::Quorum, Level::Quorum), true),
            _ => world.groups(&groups, levels, false),
        };
        let found = outcome(&site, &failed);
        prop_assert_eq!((found.service, found.data), expected, "{:?}", &failed);
    }
}
