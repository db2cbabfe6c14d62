//! Recoveries told in phases: what is told of a pod that is deleted, a node that is lost and a container that is killed, and what is
//! not, since it held before, belongs to another, or may have been missed.

use kubernetes::{Change, Endpoints, Kind, Node, Phase, Pod, Seen, Sighting, Step, told};

use crate::stub::{object, with};

/// When the fault struck.
const FAULT: f64 = 100.0;
/// Until when its recovery is looked at.
const END: f64 = 1000.0;

/// A pod that is ready on worker-1.
fn pod(uid: &str) -> Pod {
    Pod::read(&with(object("pod.json"), "/metadata/uid", uid)).expect("a pod")
}

/// A pod that was just made.
fn new_pod(uid: &str) -> Pod {
    Pod { node: None, is_ready: false, restarts: 0, container_started_unix_s: None, ..pod(uid) }
}

fn added(pod: Pod) -> Seen {
    Seen::Pod { change: Change::Added, pod }
}

fn modified(pod: Pod) -> Seen {
    Seen::Pod { change: Change::Modified, pod }
}

fn deleted(pod: Pod) -> Seen {
    Seen::Pod { change: Change::Deleted, pod }
}

/// A node that is heard of, or is not.
fn node(name: &str, is_ready: bool) -> Seen {
    let node = Node::read(&with(object("node.json"), "/metadata/name", name)).expect("a node");
    let node = Node { is_ready: is_ready.then_some(true), taints: Vec::new(), ..node };
    Seen::Node { change: Change::Modified, node }
}

fn lease(node: &str, renewed_unix_s: f64) -> Seen {
    Seen::Lease { node: node.to_owned(), renewed_unix_s, lasts_s: Some(40.0) }
}

fn service(name: &str, pods: &[(&str, &str)]) -> Seen {
    let endpoints = Endpoints {
        slice: format!("{name}-1"),
        service: name.to_owned(),
        ready: pods.iter().map(|(pod, _)| (*pod).to_owned()).collect(),
        ready_uids: pods.iter().map(|(_, uid)| (*uid).to_owned()).collect(),
    };
    Seen::Endpoints { change: Change::Modified, endpoints }
}

fn attachment(volume: &str, node: &str, is_attached: bool) -> Seen {
    Seen::Attachment { volume: volume.to_owned(), node: node.to_owned(), is_attached }
}

fn claim(claim: &str, volume: &str) -> Seen {
    Seen::Claim { claim: claim.to_owned(), volume: Some(volume.to_owned()) }
}

fn gap(kind: Kind) -> Seen {
    Seen::Gap { kind, why: "planted".to_owned() }
}

fn steps(sightings: Vec<(f64, Seen)>) -> Vec<Step> {
    let sightings: Vec<Sighting> =
        sightings.into_iter().map(|(unix_s, what)| Sighting { unix_s, what }).collect();
    told(&sightings, "pg-0", FAULT, END)
}

/// Of each step the phase, the time, and whether it may have held earlier.
fn phases(sightings: Vec<(f64, Seen)>) -> Vec<(Phase, f64, bool)> {
    steps(sightings).into_iter().map(|step| (step.phase, step.unix_s, step.after_gap)).collect()
}

#[test]
fn a_pod_that_is_deleted_is_followed_to_its_successor_in_service() {
    let asked = Pod { deletion_asked_unix_s: Some(101.0), ..pod("a") };
    let other = ("pg-1", "z");
    let scheduled = Pod { node: Some("worker-2".to_owned()), ..new_pod("b") };
    let started = Pod { container_started_unix_s: Some(105.0), ..scheduled.clone() };
    let found = phases(vec![
        (1.0, added(pod("a"))),
        (1.0, service("pg-any", &[("pg-0", "a"), other])),
        (101.0, modified(asked.clone())),
        (102.0, service("pg-any", &[other])),
        (103.0, deleted(asked)),
        (104.0, added(new_pod("b"))),
        (105.0, modified(scheduled)),
        (106.0, modified(started)),
        (107.0, modified(pod("b"))),
        (108.0, service("pg-any", &[("pg-0", "b"), other])),
        // A second time is none of the first.
        (200.0, modified(new_pod("b"))),
        (201.0, modified(pod("b"))),
    ]);
    let expected = [
        (Phase::PodDeleted, 101.0),
        (Phase::PodGone, 103.0),
        (Phase::PodCreated, 104.0),
        (Phase::PodScheduled, 105.0),
        (Phase::ContainerStarted, 106.0),
        (Phase::PodReady, 107.0),
        (Phase::EndpointUpdated, 108.0),
    ];
    assert_eq!(found, expected.map(|(phase, unix_s)| (phase, unix_s, false)));
}

#[test]
fn a_node_that_is_lost_takes_its_lease_and_gives_its_volume_to_another() {
    let found = steps(vec![
        (1.0, node("worker-1", true)),
        (1.0, node("worker-2", true)),
        (1.0, claim("data-pg-0", "pvc-1")),
        (1.0, added(pod("a"))),
        (1.0, attachment("pvc-1", "worker-1", true)),
        (1.0, attachment("pvc-9", "worker-1", true)),
        (98.0, lease("worker-1", 97.9)),
        (139.0, lease("worker-2", 138.9)),
        (140.0, node("worker-1", false)),
        (141.0, node("worker-2", false)),
        (400.0, attachment("pvc-1", "worker-1", false)),
        (401.0, attachment("pvc-9", "worker-1", false)),
        (410.0, attachment("pvc-1", "worker-2", true)),
    ]);
    let found: Vec<_> = found.iter().map(|step| (step.phase, step.of.as_str(), step.unix_s)).collect();
    let expected = [
        (Phase::LeaseExpired, "worker-1", 138.0),
        (Phase::NodeLost, "worker-1", 140.0),
        (Phase::VolumeDetached, "pvc-1", 400.0),
        (Phase::VolumeAttached, "pvc-1", 410.0),
    ];
    assert_eq!(found, expected, "neither another's node nor another's volume");
}

#[test]
fn a_container_that_is_killed_is_started_again_in_the_same_pod() {
    let down = Pod { is_ready: false, container_started_unix_s: None, ..pod("a") };
    let up = Pod { is_ready: false, container_started_unix_s: Some(103.0), restarts: 3, ..pod("a") };
    let found = phases(vec![
        (1.0, added(pod("a"))),
        (1.0, service("pg-any", &[("pg-0", "a")])),
        (101.0, modified(down)),
        (101.5, service("pg-any", &[])),
        (103.0, modified(up.clone())),
        (104.0, modified(Pod { is_ready: true, ..up })),
        (105.0, service("pg-any", &[("pg-0", "a")])),
    ]);
    let expected =
        [(Phase::ContainerStarted, 103.0), (Phase::PodReady, 104.0), (Phase::EndpointUpdated, 105.0)];
    assert_eq!(found, expected.map(|(phase, unix_s)| (phase, unix_s, false)));
}

#[test]
fn a_service_that_turns_to_another_pod_is_told_and_one_that_never_led_to_the_pod_is_not() {
    let found = steps(vec![
        (1.0, service("leader", &[("pg-0", "a")])),
        (1.0, service("elsewhere", &[("pg-1", "b")])),
        (101.0, service("elsewhere", &[("pg-2", "c")])),
        (102.0, service("leader", &[])),
        (103.0, service("leader", &[("pg-1", "b")])),
    ]);
    let found: Vec<_> = found.iter().map(|step| (step.phase, step.of.as_str(), step.unix_s)).collect();
    assert_eq!(found, [(Phase::EndpointUpdated, "leader", 103.0)]);
}

#[test]
fn the_old_pod_that_is_ready_once_more_is_not_its_successor() {
    let unready = Pod { is_ready: false, ..pod("a") };
    let found = phases(vec![
        (1.0, added(pod("a"))),
        (140.0, modified(unready)),
        (150.0, modified(pod("a"))),
        (160.0, deleted(pod("a"))),
        (161.0, added(new_pod("b"))),
        // Late news of the old one.
        (162.0, modified(pod("a"))),
        (170.0, modified(pod("b"))),
    ]);
    let ready: Vec<_> = found.iter().filter(|(phase, ..)| *phase == Phase::PodReady).collect();
    assert_eq!(ready, [&(Phase::PodReady, 170.0, false)]);
}

#[test]
fn what_held_before_the_fault_or_came_too_late_is_none_of_its_recovery() {
    let nothing: Vec<(Phase, f64, bool)> = Vec::new();
    let same = || modified(pod("a"));
    let lost = node("worker-1", false);
    assert_eq!(
        phases(vec![(1.0, added(pod("a"))), (1.0, lost.clone()), (101.0, same()), (102.0, lost)]),
        nothing
    );
    // Nothing is known of a pod that is seen for the first time.
    assert_eq!(phases(vec![(101.0, added(pod("a")))]), nothing);
    assert_eq!(phases(vec![(1.0, added(pod("a"))), (END + 1.0, deleted(pod("a")))]), nothing);
    let other = Pod { name: "pg-1".to_owned(), ..pod("x") };
    assert_eq!(phases(vec![(1.0, added(other.clone())), (101.0, deleted(other))]), nothing);
}

#[test]
fn a_successor_that_appears_after_a_gap_may_have_been_there_before() {
    let found = phases(vec![
        (1.0, added(pod("a"))),
        (101.0, gap(Kind::Nodes)),
        (102.0, modified(Pod { deletion_asked_unix_s: Some(102.0), ..pod("a") })),
        (103.0, gap(Kind::Pods)),
        (110.0, added(new_pod("b"))),
        (120.0, modified(pod("b"))),
    ]);
    let expected = [
        (Phase::PodDeleted, 102.0, false),
        (Phase::PodGone, 110.0, true),
        (Phase::PodCreated, 110.0, true),
        (Phase::PodScheduled, 120.0, false),
        (Phase::ContainerStarted, 120.0, false),
        (Phase::PodReady, 120.0, false),
    ];
    assert_eq!(found, expected);
}

/// When the lease of worker-1 expired, of which this was seen after it was renewed at 98.
fn expiry(seen: Vec<(f64, Seen)>) -> Option<f64> {
    let mut sightings = vec![(1.0, added(pod("a"))), (98.0, lease("worker-1", 98.0))];
    sightings.extend(seen);
    steps(sightings).iter().find(|step| step.phase == Phase::LeaseExpired).map(|step| step.unix_s)
}

#[test]
fn a_lease_expires_only_where_the_watch_would_have_shown_a_renewal() {
    let other = |renewed_unix_s| lease("worker-2", renewed_unix_s);
    assert_eq!(expiry(vec![(150.0, other(150.0))]), Some(138.0), "the watch went on");
    assert_eq!(expiry(vec![(200.0, lease("worker-1", 200.0))]), Some(138.0), "it came back too late");
    assert_eq!(
        expiry(vec![(130.0, lease("worker-1", 130.0)), (150.0, other(150.0))]),
        None,
        "it was renewed"
    );
    assert_eq!(expiry(vec![]), None, "a watch that shows nothing shows nothing");
    assert_eq!(expiry(vec![(120.0, other(120.0))]), None, "it ended before");
    let interrupted = |seen: Seen| expiry(vec![(120.0, gap(Kind::Leases)), (150.0, seen)]);
    assert_eq!(interrupted(other(150.0)), None, "it may have been renewed meanwhile");
    assert_eq!(interrupted(lease("worker-1", 149.0)), None, "so it was");
    assert_eq!(interrupted(lease("worker-1", 98.0)), Some(138.0), "it was not");
}

#[test]
fn a_watch_that_was_held_up_and_tells_all_at_once_shows_no_expiry() {
    let other = (150.0, lease("worker-2", 108.0));
    let in_time = (150.1, lease("worker-1", 108.0));
    assert_eq!(expiry(vec![other.clone(), in_time]), None, "its renewal stood behind the other's");
    let late = (150.1, lease("worker-1", 139.0));
    assert_eq!(expiry(vec![other, late]), Some(138.0), "it was renewed, and too late");
}

#[test]
fn a_renewal_that_a_partition_held_up_takes_no_expiry_back() {
    let other = (150.0, lease("worker-2", 149.9));
    let held_up = (165.0, lease("worker-1", 99.0));
    let back = (165.1, lease("worker-1", 165.0));
    assert_eq!(expiry(vec![other, held_up, back]), Some(138.0));
}

#[test]
fn the_order_in_which_threads_tell_is_of_no_account() {
    let mut seen = vec![
        (1.0, added(pod("a"))),
        (1.5, claim("data-pg-0", "pvc-1")),
        (2.0, attachment("pvc-1", "worker-1", true)),
        (103.0, deleted(pod("a"))),
        (104.0, added(new_pod("b"))),
        (105.0, attachment("pvc-1", "worker-1", false)),
    ];
    let in_order = phases(seen.clone());
    assert_eq!(in_order.len(), 3);
    seen.reverse();
    assert_eq!(phases(seen), in_order);
}
