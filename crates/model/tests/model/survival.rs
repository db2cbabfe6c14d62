//! Survival by the rules, case by case. The same against brute force is in `survival_by_enumeration`.

use history::{HostId, NodeId, PerHost, PerNode};
use model::Acknowledgements;
use model::crowded;
use model::deployment::{Deployment, Level, Path, Quorum, Rules, Takeover};
use model::storage::{Acknowledge, Component, DiskGroup, Promotion, Storage, Volume};
use model::survival::{Action, Data, Failure, Service, Smallest, failures, outcome, survey};

fn path(text: &str) -> Path {
    text.split('/').map(str::to_owned).collect()
}

fn nodes(numbers: &[usize]) -> Vec<NodeId> {
    numbers.iter().copied().map(NodeId::new).collect()
}

/// `x/a/h1*` holds a node; the first so marked leads. Clients stand in the region of the leader.
fn deployment(site: &str, rules: Rules) -> Deployment {
    let marked = site.split_whitespace().map(|host| (path(host.trim_end_matches('*')), host.ends_with('*')));
    let marked: PerHost<(Path, bool)> = marked.collect();
    let nodes: PerNode<HostId> = marked.ids().filter(|host| marked[*host].1).collect();
    let hosts: PerHost<Path> = marked.into_iter().map(|(host, _)| host).collect();
    let clients = vec![vec![hosts[nodes[NodeId::FIRST]][0].clone(), "clients".to_owned()]];
    Deployment { hosts, nodes, clients, rules, storage: Storage::default() }
}

/// `x - y` is a cut, `|x` an edge, `!x/d1` a disk, `!x/c1` a disk group, all else is a place without power.
fn failure(text: &str) -> Failure {
    match (text.split_once(" - "), text.strip_prefix('|'), text.strip_prefix('!')) {
        (Some((one, other)), ..) => Failure::Cut(path(one), path(other)),
        (None, Some(place), _) => Failure::Isolated(path(place)),
        (None, None, Some(disk)) if disk.contains("/c") => Failure::DiskGroup(path(disk)),
        (None, None, Some(disk)) => Failure::Disk(path(disk)),
        (None, None, None) => Failure::Down(path(text)),
    }
}

/// Volumes with components on the hosts of these numbers, each on `d1` behind the cache disk `c1`.
fn mirrored(
    mut deployment: Deployment,
    components: &[&[usize]],
    acknowledge: Acknowledge,
    promotion: Promotion,
) -> Deployment {
    let on = |host: &usize| Component { host: HostId::new(*host), disk: "d1".to_owned() };
    let volume = |hosts: &&[usize]| Volume {
        components: hosts.iter().map(on).collect(),
        served_from: None,
        fails_with_host: true,
        acknowledge,
        promotion,
    };
    let group = DiskGroup { cache: Some("c1".to_owned()), capacity: vec!["d1".to_owned(), "d2".to_owned()] };
    deployment.storage = Storage {
        groups: vec![group],
        volumes: components.iter().map(volume).collect(),
        ..Storage::default()
    };
    deployment
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
    let rules =
        Rules::Groups { groups: vec![nodes(&[0, 1, 2])], quorums: vec![Quorum::Majority], synced: true };
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
    let groups = Deployment::one_replica_in_each(&[nodes(&[0, 1]), nodes(&[2, 3]), nodes(&[4, 5])]);
    assert_eq!(groups.len(), 8);
    let rules = |read, write| {
        let quorums = vec![Quorum::Counted { read, write }];
        Rules::Groups { groups: groups.clone(), quorums, synced: true }
    };
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
fn what_is_acknowledged_before_it_is_synced_may_be_lost_when_all_that_acknowledged_lose_power_together() {
    let site = deployment(
        "x/a/r1/h1* x/a/r2/h1* x/a/r3/h1*",
        Rules::Groups {
            groups: vec![nodes(&[0, 1, 2])],
            quorums: vec![Quorum::Counted { read: Level::Quorum, write: Level::Quorum }],
            synced: false,
        },
    );
    check(&site, &["x/a/r1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&site, &["x/a/r1", "x/a/r2"], Service::Unavailable, Data::MayBeLost, Action::None);
}

#[test]
fn the_worst_of_several_ways_to_ask_is_told() {
    let level = |level| Quorum::Counted { read: level, write: level };
    let quorums = vec![level(Level::One), level(Level::All)];
    let site = deployment(
        "x/a/r1/h1* x/a/r2/h1* x/a/r3/h1*",
        Rules::Groups { groups: vec![nodes(&[0, 1, 2])], quorums, synced: true },
    );
    // At ALL nothing is served, and at ONE the node that is lost may have been the only one that acknowledged.
    check(&site, &["x/a/r1"], Service::Unavailable, Data::OnFailedOnly, Action::None);
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

#[test]
fn local_levels_ask_the_clients_own_region_and_each_quorum_asks_every_one() {
    let site = "x/a/r1/h* x/a/r2/h* x/a/r3/h* y/a/r1/h* y/a/r2/h* y/a/r3/h*";
    let racks = |first: usize| vec![nodes(&[first]), nodes(&[first + 1]), nodes(&[first + 2])];
    let groups = Deployment::replicas_in_regions(&[(racks(0), 3), (racks(3), 3)]);
    assert_eq!(groups, [nodes(&[0, 1, 2, 3, 4, 5])]);
    let at = |level| {
        let quorums = vec![Quorum::Counted { read: level, write: level }];
        deployment(site, Rules::Groups { groups: groups.clone(), quorums, synced: true })
    };
    let none = Action::None;
    check(&at(Level::LocalQuorum), &["y"], Service::ReadsAndWrites, Data::Kept, none);
    check(&at(Level::LocalQuorum), &["x - y"], Service::ReadsAndWrites, Data::Kept, none);
    check(&at(Level::LocalQuorum), &["x"], Service::Unavailable, Data::OnFailedOnly, none);
    check(&at(Level::LocalQuorum), &["x/a/r1", "x/a/r2"], Service::Unavailable, Data::OnFailedOnly, none);
    check(&at(Level::LocalOne), &["x/a/r1", "x/a/r2"], Service::ReadsAndWrites, Data::OnFailedOnly, none);
    check(&at(Level::EachQuorum), &["y/a/r1", "x/a/r1"], Service::ReadsAndWrites, Data::Kept, none);
    check(&at(Level::EachQuorum), &["y/a/r1", "y/a/r2"], Service::Unavailable, Data::Kept, none);
    check(&at(Level::EachQuorum), &["x - y"], Service::Unavailable, Data::Kept, none);
    // Four of six in all: a region by itself is not enough, one and a node of the other are.
    check(&at(Level::Quorum), &["y"], Service::Unavailable, Data::Kept, none);
    check(&at(Level::Quorum), &["y/a/r1", "y/a/r2"], Service::ReadsAndWrites, Data::Kept, none);
}

#[test]
fn replicas_in_regions_are_kept_apart_by_racks_while_there_are_enough() {
    let racks = vec![nodes(&[0, 1]), nodes(&[2]), nodes(&[3])];
    let groups = Deployment::replicas_in_regions(&[(racks, 2), (vec![nodes(&[4, 5])], 2)]);
    let expected =
        [[0, 2, 4, 5], [1, 2, 4, 5], [0, 3, 4, 5], [1, 3, 4, 5], [2, 3, 4, 5]].map(|group| nodes(&group));
    assert_eq!(groups, expected);
}

#[test]
fn a_mirrored_node_starts_from_its_other_component_and_has_everything() {
    let one = || deployment("x/a/h1* x/a/h2 x/a/h3", postgres(Acknowledgements::None, Takeover::Restart));
    let sync = mirrored(one(), &[&[0, 1]], Acknowledge::Sync, Promotion::UpToDate);
    check(&sync, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&sync, &["x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&sync, &["x/a/h1", "x/a/h2"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    check(&sync, &["x/a/h1", "x/a/h3"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    // Given up before the host is lost, the other component is of no use.
    check(&sync, &["x/a/h1", "x/a/h1 - x/a/h2"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    let semi = mirrored(one(), &[&[0, 1]], Acknowledge::Semi, Promotion::UpToDate);
    check(&semi, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    let asynchronous = mirrored(one(), &[&[0, 1]], Acknowledge::Async, Promotion::UpToDate);
    check(&asynchronous, &["x/a/h1"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    let forced = mirrored(one(), &[&[0, 1]], Acknowledge::Async, Promotion::Forced);
    check(&forced, &["x/a/h1"], Service::ReadsAndWrites, Data::MayBeLost, Action::Restarted);
    let three = mirrored(one(), &[&[0, 1, 2]], Acknowledge::Sync, Promotion::UpToDate);
    check(&three, &["x/a/h1", "x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
}

#[test]
fn a_disk_that_fails_ends_the_database_on_it_unless_another_component_takes_over() {
    let site = "x/a/h1* x/a/h2* x/a/h3*";
    let pair: &[&[usize]] = &[&[0, 1], &[1, 2], &[2, 0]];
    let on = |takeover| deployment(site, postgres(Acknowledgements::Any(1), takeover));
    let restart = mirrored(on(Takeover::Restart), pair, Acknowledge::Sync, Promotion::UpToDate);
    check(&restart, &["!x/a/h1/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["!x/a/h1/c1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["!x/a/h1/d1", "!x/a/h2/d1"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&restart, &["!x/a/h1/d1", "x/a/h1 - x/a/h2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&restart, &["!x/a/h1/d1", "x/a/h2"], Service::ReadsOnly, Data::Kept, Action::Restarted);
    let lagging = mirrored(on(Takeover::Restart), pair, Acknowledge::Async, Promotion::UpToDate);
    check(&lagging, &["!x/a/h1/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["!x/a/h1/d2"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["!x/a/h2/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["!x/a/h2/d1", "!x/a/h3/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&restart, &["x/a/h1", "!x/a/h2/d1"], Service::ReadsOnly, Data::Kept, Action::None);
    let mut moved = mirrored(on(Takeover::Restart), pair, Acknowledge::Sync, Promotion::UpToDate);
    moved.storage.volumes[NodeId::FIRST].served_from = Some(HostId::new(1));
    check(&moved, &["!x/a/h2/d1", "x/a/h1 - x/a/h2"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&moved, &["!x/a/h1/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    let promote = mirrored(on(Takeover::Promote), pair, Acknowledge::Sync, Promotion::UpToDate);
    check(&promote, &["!x/a/h1/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&promote, &["!x/a/h1/d1", "!x/a/h2/d1"], Service::ReadsAndWrites, Data::Kept, Action::Promoted);
    let mut alone =
        mirrored(on(Takeover::Restart), &[&[0], &[1], &[2]], Acknowledge::Sync, Promotion::UpToDate);
    alone.storage.volumes = (0..3).map(|host| Volume::alone(HostId::new(host), "d1")).collect();
    check(&alone, &["!x/a/h1/d1", "!x/a/h2/d1"], Service::ReadsOnly, Data::OnFailedOnly, Action::None);
    check(&alone, &["x/a/h1", "!x/a/h1/d1"], Service::ReadsOnly, Data::Kept, Action::None);
    check(&alone, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
}

#[test]
fn standbys_that_are_ahead_of_a_leader_forced_back_acknowledge_nothing() {
    let site = "x/a/h1* x/a/h2* x/a/h3*";
    let pair: &[&[usize]] = &[&[0, 1], &[1, 2], &[2, 0]];
    let any = deployment(site, postgres(Acknowledgements::Any(1), Takeover::Restart));
    let forced = mirrored(any, pair, Acknowledge::Async, Promotion::Forced);
    check(&forced, &["x/a/h1"], Service::ReadsOnly, Data::MayBeLost, Action::Restarted);
    check(&forced, &["x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
}

#[test]
fn voters_that_were_forced_back_may_elect_somebody_without_the_last_writes() {
    let site = "x/a/h1* x/a/h2* x/a/h3*";
    let pair: &[&[usize]] = &[&[0, 1], &[1, 2], &[2, 0]];
    let any = deployment(site, elected(Acknowledgements::Any(1), Takeover::Restart));
    let forced = mirrored(any.clone(), pair, Acknowledge::Async, Promotion::Forced);
    check(&forced, &["x/a/h1"], Service::ReadsAndWrites, Data::MayBeLost, Action::Restarted);
    check(&forced, &["x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    let sync = mirrored(any, pair, Acknowledge::Sync, Promotion::UpToDate);
    check(&sync, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
}

#[test]
fn the_disks_that_can_fail_are_those_that_hold_something() {
    let two = deployment("x/a/h1* x/a/h2 x/a/h3", postgres(Acknowledgements::None, Takeover::Restart));
    let site = mirrored(two, &[&[0, 1]], Acknowledge::Sync, Promotion::UpToDate);
    let all: Vec<String> = failures(&site, &[], &[]).iter().map(ToString::to_string).collect();
    let expected = [
        "x/a",
        "x/a/h1",
        "x/a/h2",
        "x/a/h3",
        "disk x/a/h1/d1",
        "disk x/a/h2/d1",
        "disk group x/a/h1/c1",
        "disk group x/a/h2/c1",
    ];
    assert_eq!(all, expected);
    let pairs = survey(&site, &failures(&site, &[], &[])).doubles.expect("few enough");
    // The zone with each of its hosts is no pair, nor is a disk with the group it is in.
    assert_eq!(pairs.len(), 8 * 7 / 2 - 3 - 2);
}

#[test]
fn a_host_with_a_replica_and_the_mirror_of_another_is_named() {
    let rules = || postgres(Acknowledgements::Any(1), Takeover::Restart);
    let pair: &[&[usize]] = &[&[0, 1], &[1, 2]];
    let site =
        mirrored(deployment("x/a/h1* x/a/h2* x/a/h3", rules()), pair, Acknowledge::Sync, Promotion::UpToDate);
    let found: Vec<_> = crowded(&site).into_iter().map(|of| (of.host, of.nodes, of.mirrors)).collect();
    assert_eq!(found, [(HostId::new(1), nodes(&[1]), nodes(&[0]))]);
    let apart: &[&[usize]] = &[&[0, 2], &[1, 3]];
    let site = mirrored(
        deployment("x/a/h1* x/a/h2* x/a/h3 x/a/h4", rules()),
        apart,
        Acknowledge::Sync,
        Promotion::UpToDate,
    );
    assert_eq!(crowded(&site), []);
}

#[test]
fn a_node_on_a_host_without_a_component_is_served_over_the_network_and_falls_with_what_serves_it() {
    let one =
        || deployment("x/a/h1* x/a/h2 x/a/h3 x/a/h4", postgres(Acknowledgements::None, Takeover::Restart));
    let mut site = mirrored(one(), &[&[2, 3]], Acknowledge::Sync, Promotion::UpToDate);
    site.storage.for_storage = [2, 3].map(HostId::new).to_vec();
    check(&site, &["x/a/h1"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&site, &["x/a/h3"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&site, &["x/a/h1", "x/a/h2"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&site, &["x/a/h1 - x/a/h3"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&site, &["x/a/h3", "x/a/h1 - x/a/h4"], Service::ReadsAndWrites, Data::Kept, Action::Restarted);
    check(&site, &["x/a/h3", "x/a/h4"], Service::Unavailable, Data::OnFailedOnly, Action::None);
    check(&site, &["!x/a/h3/d1"], Service::ReadsAndWrites, Data::Kept, Action::None);
    check(&site, &["!x/a/h3/d1", "x/a/h1 - x/a/h4"], Service::Unavailable, Data::Kept, Action::None);
}
