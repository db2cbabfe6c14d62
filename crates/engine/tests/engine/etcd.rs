//! The engine etcd with a real server, where one is installed, over machines on this one's loopback addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::Engine;

use crate::loopback::Machines;
use crate::shipped::{Wanted, configuration, leader};

const PATIENCE: Duration = Duration::from_secs(60);

/// Machines and an engine over them; nothing, and said so, where there is no etcd.
fn engine(test: &str, nodes: u8, settings: &[(&str, &str)]) -> Option<(Machines, Box<dyn Engine>)> {
    Wanted { engine: "etcd", is_fetched: false, nodes, configuration: configuration(settings) }.open(test)
}

#[test]
fn the_first_node_leads_and_when_it_is_lost_another_does_until_it_returns_to_follow() {
    let test = "the_first_node_leads_and_when_it_is_lost_another_does";
    let Some((machines, engine)) =
        engine(test, 3, &[("heartbeat-interval", "50"), ("election-timeout", "500")])
    else {
        return;
    };
    let all = machines.some(&[1, 2, 3]);
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (cluster.leader.as_deref(), cluster.followers.as_slice()),
        (Some("n1"), &["n2", "n3"].map(String::from)[..])
    );
    assert_eq!(leader(engine.as_ref(), &all, PATIENCE), "n1");
    assert!(engine.start(all[0].as_ref()).is_err_and(|error| error.to_string().contains("running already")));

    machines.nodes[0].power_off();
    let left = machines.some(&[2, 3]);
    let promoted = engine.promote(&left).unwrap_or_else(|error| panic!("{error}"));
    assert_ne!(promoted.leader, "n1");
    assert!(engine.leader(&all).silent.contains_key("n1"));

    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert!(left.iter().any(|node| node.name() == leader(engine.as_ref(), &all, PATIENCE)));
    for node in &all {
        engine.stop(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(engine.leader(&all).silent.len(), 3);
}

#[test]
fn a_flag_that_etcd_does_not_know_is_told_in_its_own_words() {
    let test = "a_flag_that_etcd_does_not_know_is_told_in_its_own_words";
    let Some((machines, engine)) = engine(test, 1, &[("no-such-flag", "1")]) else { return };
    let error = engine.bootstrap(&machines.some(&[1])).expect_err("no such flag").to_string();
    assert!(error.contains("ended before it was ready") && error.contains("no-such-flag"), "{error}");
    assert_eq!(engine.settings().get("no-such-flag").map(String::as_str), Some("1"));
    let environment: BTreeMap<String, String> = engine.shell_environment(None, &machines.some(&[1]));
    assert_eq!(environment["ETCDCTL_ENDPOINTS"], format!("http://127.0.0.2:{}", machines.port));
}
