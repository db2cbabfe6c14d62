//! Survival by the rules held against brute force: every possible world of acknowledgements, one after the other.

use std::collections::BTreeSet;

use model::Acknowledgements;
use model::deployment::{Deployment, Level, Path, Quorum, Rules, Takeover};
use model::survival::{Action, Data, Failure, Service, Smallest, failures, outcome, survey};
use proptest::prelude::*;

fn path(text: &str) -> Path {
    text.split('/').map(str::to_owned).collect()
}

/// `x/a/h1*` holds a node; the first so marked leads. Clients stand in the region of the leader.
fn deployment(site: &str, rules: Rules) -> Deployment {
    let marked: Vec<(Path, bool)> =
        site.split_whitespace().map(|host| (path(host.trim_end_matches('*')), host.ends_with('*'))).collect();
    let nodes: Vec<usize> = (0..marked.len()).filter(|host| marked[*host].1).collect();
    let hosts: Vec<Path> = marked.into_iter().map(|(host, _)| host).collect();
    let clients = vec![vec![hosts[nodes[0]][0].clone(), "clients".to_owned()]];
    Deployment { hosts, nodes, clients, rules }
}

/// `x - y` is a cut, `|x` an edge, all else is a place without power.
fn failure(text: &str) -> Failure {
    match (text.split_once(" - "), text.strip_prefix('|')) {
        (Some((one, other)), _) => Failure::Cut(path(one), path(other)),
        (None, Some(place)) => Failure::Isolated(path(place)),
        (None, None) => Failure::Down(path(text)),
    }
}

fn check(deployment: &Deployment, failed: &[&str], service: Service, data: Data, action: Action) {
    let failures: Vec<Failure> = failed.iter().map(|text| failure(text)).collect();
    let found = outcome(deployment, &failures);
    assert_eq!((found.service, found.data, found.action), (service, data, action), "{failed:?}");
}

const THREE_RACKS: &str = "x/a/r1/h1* x/a/r1/h2 x/a/r2/h1* x/a/r2/h2 x/a/r3/h1*";

fn postgres(acknowledgements: Acknowledgements, takeover: Takeover) -> Rules {
    Rules::SingleLog { acknowledgements, takeover }
}

#[test]
fn a_promoted_synchronous_standby_has_everything_and_an_asynchronous_one_may_not() {
    let sync = deployment(THREE_RACKS, postgres(Acknowledgements::Any(1), Takeover::Promote));
    check(&sync, &["x/a/r1"], Service::ReadsAndWrites, Data::Kept, Action::Promoted);
    check(&sync, &["x/a/r1", "x/a/r2"], Service::ReadsAndWrites, Data::MayBeLost, Action::Promoted);
    check(&sync, &["x/a/r2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&sync, &["x"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    let off = deployment(THREE_RACKS, postgres(Acknowledgements::None, Takeover::Promote));
    check(&off, &["x/a/r1/h1"], Service::ReadsAndWrites, Data::MayBeLost, Action::Promoted);
}

#[test]
fn a_leader_that_hears_too_few_standbys_reads_on_and_takes_no_writes() {
    let all = deployment(THREE_RACKS, postgres(Acknowledgements::All, Takeover::None));
    check(&all, &["x/a/r2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&all, &["x/a/r1 - x/a/r2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&all, &["x/a/r1"], Service::ReadsOnly, Data::Kept, Action::None);
    let any = deployment(THREE_RACKS, postgres(Acknowledgements::Any(1), Takeover::None));
    check(&any, &["x/a/r2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&any, &["|x/a/r1"], Service::ReadsOnly, Data::Kept, Action::None);
}

#[test]
fn a_restart_needs_a_host_with_power_and_the_volume() {
    let two = deployment("x/a/h1* x/a/h2*", postgres(Acknowledgements::None, Takeover::Restart));
    check(&two, &["x/a/h1"], Service::ReadsAndWrites, Data::OnFailedOnly, Action::Restarted);
    check(&two, &["x"], Service::Unavailable, Data::OnFailedOnly, Action::None);
}

#[test]
fn two_data_centres_stop_with_either_the_link_or_the_second() {
    let site =
        deployment("dc1/a/h1* dc2/a/h1* dc2/b/h1*", postgres(Acknowledgements::Any(1), Takeover::Promote));
    check(&site, &["dc1 - dc2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&site, &["dc2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&site, &["dc1"], Service::ReadsAndWrites, Data::Kept, Action::Promoted);
    let all = failures(&site, &[], &[]);
    let found = survey(&site, &all);
    assert!(matches!(&found.stops_service, Smallest::Found { set, .. } if set.len() == 1), "{found:?}");
}

#[test]
fn raft_serves_while_a_majority_hears_each_other_and_keeps_what_a_majority_had() {
    let rules = Rules::Groups { groups: vec![vec![0, 1, 2]], quorum: Quorum::Majority };
    let raft = deployment("dc1/a/h1* dc2/a/h1* dc3/a/h1*", rules);
    check(&raft, &["dc2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&raft, &["dc2", "dc3"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    check(&raft, &["|dc1"], Service::Unavailable, Data::Kept, Action::None);
    check(&raft, &["dc1 - dc2"], Service::ReadsAndWrites, Data::Kept, Action::None);
}

fn elected(acknowledgements: Acknowledgements, takeover: Takeover) -> Rules {
    Rules::Elected { acknowledgements, takeover }
}

#[test]
fn an_elected_leader_serves_while_its_clients_and_enough_nodes_hear_it() {
    let site = "x/a/h1* x/a/h2* x/a/h3* x/a/h4";
    let any = deployment(site, elected(Acknowledgements::Any(1), Takeover::None));
    check(&any, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&any, &["|x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&any, &["x/a/h1 - x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&any, &["x/a/h2", "x/a/h3"], Service::Unavailable, Data::Kept, Action::None);
    check(&any, &["x/a/h1", "x/a/h3"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    let restarted = deployment(site, elected(Acknowledgements::Any(1), Takeover::Restart));
    check(&restarted, &["x/a/h1", "x/a/h3"], Service::ReadsAndWrites, Data::OnFailedOnly, Action::Restarted);
    let all = deployment(site, elected(Acknowledgements::All, Takeover::None));
    check(&all, &["x/a/h2"], Service::Unavailable, Data::Kept, Action::None);
    check(&all, &["x/a/h1 - x/a/h2"], Service::Unavailable, Data::Kept, Action::None);
    check(&all, &["x/a/h2 - x/a/h3"], Service::ReadsAndWrites, Data::Kept, Action::None);
}

#[test]
fn a_leader_that_acknowledges_alone_may_lose_what_its_successor_never_had() {
    let alone = deployment("x/a/h1* x/a/h2* x/a/h3*", elected(Acknowledgements::None, Takeover::None));
    check(&alone, &["x/a/h1"], Service::ReadsAndWrites, Data::MayBeLost, Action::None);
    check(&alone, &["|x/a/h1"], Service::ReadsAndWrites, Data::MayBeLost, Action::None);
    check(&alone, &["x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&alone, &["x/a/h1", "x/a/h2"], Service::Unavailable, Data::OnFailedOnly, Action::None);
}

#[test]
fn cassandra_with_a_replica_in_each_rack_outlives_a_rack_at_quorum_and_not_at_all() {
    let site = "x/a/r1/h1* x/a/r1/h2* x/a/r2/h1* x/a/r2/h2* x/a/r3/h1* x/a/r3/h2*";
    let groups = Deployment::one_replica_in_each(&[vec![0, 1], vec![2, 3], vec![4, 5]]);
    assert_eq!(groups.len(), 8);
    let rules =
        |read, write| Rules::Groups { groups: groups.clone(), quorum: Quorum::Counted { read, write } };
    let quorum = deployment(site, rules(Level::Quorum, Level::Quorum));
    check(&quorum, &["x/a/r1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&quorum, &["x/a/r1/h1", "x/a/r2/h2"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    check(&quorum, &["x/a/r1/h1", "x/a/r1/h2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    let all = deployment(site, rules(Level::One, Level::All));
    check(&all, &["x/a/r1"], Service::ReadsOnly, Data::Kept, Action::None);
    let one = deployment(site, rules(Level::All, Level::One));
    check(&one, &["x/a/r1"], Service::WritesOnly, Data::OnFailedOnly, Action::None);
}

#[test]
fn places_that_are_the_same_hosts_are_one_failure_and_contained_ones_no_pair() {
    let site =
        deployment("dc1/a/h1* dc2/a/h1* dc2/b/h1*", postgres(Acknowledgements::Any(1), Takeover::None));
    let all: Vec<String> = failures(&site, &[], &[path("dc2")]).iter().map(ToString::to_string).collect();
    let expected =
        ["dc1/a/h1", "dc2", "dc2/a/h1", "dc2/b/h1", "link dc1 - dc2", "link dc2/a - dc2/b", "edge of dc2"];
    assert_eq!(all, expected);
    let found = survey(&site, &failures(&site, &[], &[]));
    let pairs = found.doubles.expect("few enough");
    assert_eq!(pairs.len(), 6 * 5 / 2 - 2, "dc2 with either of its hosts is no pair");
}

/// The same question by enumeration, without any of the rules' arithmetic.
mod brute {
    use super::*;

    /// Every set of these.
    fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
        (0..1_u32 << of.len())
            .map(|bits| {
                of.iter().enumerate().filter(|(k, _)| bits >> k & 1 == 1).map(|(_, item)| *item).collect()
            })
            .collect()
    }

    pub struct World<'a> {
        pub deployment: &'a Deployment,
        pub failures: &'a [Failure],
    }

    impl World<'_> {
        fn within(place: &[String], of: &[String]) -> bool {
            place.len() >= of.len() && place.iter().zip(of).all(|(one, other)| one == other)
        }

        fn on(&self, host: usize) -> bool {
            let path = &self.deployment.hosts[host];
            self.failures
                .iter()
                .all(|failure| !matches!(failure, Failure::Down(place) if Self::within(path, place)))
        }

        fn passes(&self, from: &[String], to: &[String]) -> bool {
            self.failures.iter().all(|failure| match failure {
                Failure::Down(_) => true,
                Failure::Cut(a, b) => {
                    !(Self::within(from, a) && Self::within(to, b)
                        || Self::within(from, b) && Self::within(to, a))
                }
                Failure::Isolated(p) => Self::within(from, p) == Self::within(to, p),
            })
        }

        fn nodes_pass(&self, one: usize, other: usize) -> bool {
            self.passes(self.deployment.host_of(one), self.deployment.host_of(other))
        }

        fn node_on(&self, node: usize) -> bool {
            self.on(self.deployment.nodes[node])
        }

        /// Leader and standbys: every set that may have acknowledged, every set that may be further still.
        pub fn single_log(&self, wanted: usize, promote: bool) -> (Service, Data) {
            let nodes: Vec<usize> = (0..self.deployment.nodes.len()).collect();
            let standbys = &nodes[1..];
            let on: Vec<usize> = nodes.iter().copied().filter(|node| self.node_on(*node)).collect();
            let (mut service, mut data) = (Service::ReadsAndWrites, Data::Kept);
            for acknowledged in subsets(standbys).into_iter().filter(|set| set.len() >= wanted) {
                for further in subsets(&acknowledged) {
                    let holds = |node: &usize| *node == 0 || acknowledged.contains(node);
                    let somebody = on.iter().any(holds);
                    let mut leader = 0;
                    let mut needs = wanted;
                    let mut here = if somebody { Data::Kept } else { Data::OnFailedOnly };
                    let ranks = |node: &usize| usize::from(holds(node)) + usize::from(further.contains(node));
                    let most = on.iter().map(ranks).max();
                    // Of equally advanced ones any may be chosen.
                    let candidates: Vec<usize> = if promote && !self.node_on(0) && !on.is_empty() {
                        on.iter().copied().filter(|node| Some(ranks(node)) == most).collect()
                    } else {
                        vec![0]
                    };
                    for candidate in candidates {
                        if candidate != 0 {
                            leader = candidate;
                            needs = wanted.min(on.len() - 1);
                            here = if holds(&candidate) { Data::Kept } else { Data::MayBeLost };
                        }
                        service = service.min(self.served(&on, leader, needs));
                        data = data.min(here);
                    }
                }
            }
            (service, data)
        }

        fn served(&self, on: &[usize], leader: usize, needs: usize) -> Service {
            let writes = on.contains(&leader)
                && subsets(on).iter().any(|set| {
                    set.len() == needs
                        && set.iter().all(|node| *node != leader && self.nodes_pass(leader, *node))
                });
            let mut worst = Service::ReadsAndWrites;
            for client in &self.deployment.clients {
                let reaches = |node: usize| self.passes(client, self.deployment.host_of(node));
                worst = worst.min(match () {
                    () if writes && reaches(leader) => Service::ReadsAndWrites,
                    () if on.iter().any(|node| reaches(*node)) => Service::ReadsOnly,
                    () => Service::Unavailable,
                });
            }
            worst
        }

        /// An elected leader: every set that may have acknowledged, every majority that may vote.
        pub fn elected(&self, copies: usize) -> (Service, Data) {
            let nodes: Vec<usize> = (0..self.deployment.nodes.len()).collect();
            let majority = nodes.len() / 2 + 1;
            let hears = |leader: usize, node: usize| {
                self.node_on(leader)
                    && self.node_on(node)
                    && (leader == node || self.nodes_pass(leader, node))
            };
            let voters = |leader: usize| -> Vec<Vec<usize>> {
                let heard: Vec<usize> = nodes.iter().copied().filter(|node| hears(leader, *node)).collect();
                subsets(&heard)
                    .into_iter()
                    .filter(|set| set.len() >= majority && set.contains(&leader))
                    .collect()
            };
            let stays = !voters(0).is_empty();
            let (mut data, mut leaders) = (Data::Kept, BTreeSet::new());
            for had in subsets(&nodes).into_iter().filter(|set| set.contains(&0) && set.len() >= copies) {
                if !had.iter().any(|node| self.node_on(*node)) {
                    data = data.min(Data::OnFailedOnly);
                }
                for leader in nodes.iter().copied().filter(|node| if stays { *node == 0 } else { true }) {
                    // Nobody votes for a candidate that has less than itself.
                    let has = |node: &usize| had.contains(node);
                    let wins = voters(leader).iter().any(|set| has(&leader) || !set.iter().any(has));
                    if wins {
                        leaders.insert(leader);
                    }
                    if wins && !has(&leader) {
                        data = Data::MayBeLost;
                    }
                }
            }
            let serves = |leader: &usize| {
                let heard: Vec<usize> = nodes.iter().copied().filter(|node| hears(*leader, *node)).collect();
                subsets(&heard).iter().any(|set| set.contains(leader) && set.len() >= copies)
                    && self
                        .deployment
                        .clients
                        .iter()
                        .all(|client| self.passes(client, self.deployment.host_of(*leader)))
            };
            let served = !leaders.is_empty() && leaders.iter().all(serves);
            (if served { Service::ReadsAndWrites } else { Service::Unavailable }, data)
        }

        /// Groups: every set of replicas that would do.
        pub fn groups(
            &self,
            groups: &[Vec<usize>],
            read: Level,
            write: Level,
            raft: bool,
        ) -> (Service, Data) {
            let (mut service, mut data) = (Service::ReadsAndWrites, Data::Kept);
            let nodes: Vec<usize> =
                (0..self.deployment.nodes.len()).filter(|node| self.node_on(*node)).collect();
            for group in groups {
                let enough = |level: Level| -> Vec<Vec<usize>> {
                    subsets(group).into_iter().filter(|set| set.len() >= level.of(group.len())).collect()
                };
                if enough(write).iter().any(|set| !set.iter().any(|node| self.node_on(*node))) {
                    data = Data::OnFailedOnly;
                }
                for client in &self.deployment.clients {
                    let door = |node: &&usize| self.passes(client, self.deployment.host_of(**node));
                    let possible = |level: Level| {
                        enough(level).iter().any(|set| {
                            let alive = set.iter().all(|node| self.node_on(*node));
                            let heard = |by: usize| set.iter().all(|node| self.nodes_pass(by, *node));
                            alive
                                && if raft {
                                    set.iter().any(|leader| {
                                        heard(*leader)
                                            && nodes
                                                .iter()
                                                .filter(door)
                                                .any(|at| self.nodes_pass(*at, *leader))
                                    })
                                } else {
                                    nodes.iter().filter(door).any(|at| heard(*at))
                                }
                        })
                    };
                    service = service.min(match (possible(read), possible(write)) {
                        (true, true) => Service::ReadsAndWrites,
                        (true, false) => Service::ReadsOnly,
                        (false, true) => Service::WritesOnly,
                        (false, false) => Service::Unavailable,
                    });
                }
            }
            (service, data)
        }
    }
}

/// Small sites: up to two regions of two zones of two racks of two hosts, up to five nodes.
fn sites() -> impl Strategy<Value = (Vec<Path>, Vec<usize>, Path)> {
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
        let nodes = prop::collection::vec(0..hosts.len(), 1..6);
        (Just(hosts), nodes, client)
    })
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
    prop::sample::select(vec![Level::One, Level::Two, Level::Quorum, Level::All])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn every_double_failure_of_a_small_site_is_what_enumeration_says(
        (hosts, nodes, client) in sites(),
        wanted in 0..4_usize,
        (read, write) in (levels(), levels()),
        kind in 0..5_u8,
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        group in prop::collection::vec(prop::collection::btree_set(0..5_usize, 1..4), 1..3),
    ) {
        let groups: Vec<Vec<usize>> = group
            .into_iter()
            .map(|group| group.into_iter().map(|node| node % nodes.len()).collect::<BTreeSet<_>>().into_iter().collect())
            .collect();
        let rules = match kind {
            0 => postgres(Acknowledgements::Any(wanted), Takeover::None),
            1 => postgres(Acknowledgements::Any(wanted), Takeover::Promote),
            2 => Rules::Groups { groups: groups.clone(), quorum: Quorum::Majority },
            3 => elected(election(wanted), Takeover::None),
            _ => Rules::Groups { groups: groups.clone(), quorum: Quorum::Counted { read, write } },
        };
        let mut site = Deployment { hosts, nodes, clients: vec![client], rules };
        let edges: Vec<Path> = site.places().into_iter().collect();
        let all = failures(&site, &[], &edges);
        let failed: Vec<Failure> = chosen.iter().map(|index| index.get(&all).clone()).collect();
        let world = brute::World { deployment: &site, failures: &failed };
        let expected = match kind {
            0 | 1 => world.single_log(wanted.min(site.nodes.len() - 1), kind == 1),
            2 => world.groups(&groups, Level::Quorum, Level::Quorum, true),
            3 => world.elected(match election(wanted) {
                Acknowledgements::None => 1,
                Acknowledgements::Any(count) => (site.nodes.len() / 2 + 1).max((count + 1).min(site.nodes.len())),
                Acknowledgements::All => site.nodes.len(),
            }),
            _ => world.groups(&groups, read, write, false),
        };
        let found = outcome(&site, &failed);
        prop_assert_eq!((found.service, found.data), expected, "{:?}", &failed);
        // A restart is what no restart is, once every lost node stands on a host that has power.
        if kind == 0 {
            let before = found;
            site.rules = postgres(Acknowledgements::Any(wanted), Takeover::Restart);
            let restarted = outcome(&site, &failed);
            prop_assert_eq!(restarted.data, before.data);
            if restarted.action == Action::None {
                prop_assert_eq!(restarted.service, before.service);
            } else if failed.iter().all(|failure| matches!(failure, Failure::Down(_))) {
                prop_assert_eq!(restarted.service, Service::ReadsAndWrites);
            }
        }
    }
}
