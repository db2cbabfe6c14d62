//! The engine redis with real servers and Sentinels, where they are installed, over machines on this one's loopback addresses.

use std::time::Duration;

use crate::shipped::{Wanted, configuration, leader};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn sentinels_promote_a_replica_and_a_primary_that_returns_follows_it_through_a_loss_of_all_power() {
    let test = "sentinels_promote_a_replica_and_a_primary_that_returns_follows_it";
    let configuration = configuration(&[("appendfsync", "always")]);
    let wanted = Wanted { engine: "redis", is_fetched: true, nodes: 3, configuration };
    let Some((machines, engine)) = wanted.open(test) else { return };
    let engine = engine.as_ref();
    let all = machines.some(&[1, 2, 3]);
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (cluster.leader.as_deref(), cluster.followers.as_slice()),
        (Some("n1"), &["n2", "n3"].map(String::from)[..])
    );

    machines.nodes[0].power_off();
    let promoted = engine.promote(&machines.some(&[2, 3])).unwrap_or_else(|error| panic!("{error}")).leader;
    assert_ne!(promoted, "n1");
    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    let roles = engine.leader(&all);
    assert!(roles.followers.contains(&"n1".to_owned()), "it never leads again: {roles:?}");
    assert_eq!(leader(engine, &all, PATIENCE), promoted);

    // Nobody leads whom those that return could be told of: each is what its own configuration says.
    for node in &machines.nodes {
        node.power_off();
    }
    for node in &all {
        engine.start(node.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    }
    for node in &all {
        engine.wait_ready(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
    let roles = engine.leader(&all);
    assert_eq!(roles.leader(), Some(promoted.as_str()), "{roles:?}");
    for node in &all {
        engine.stop(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(engine.leader(&all).silent.len(), 3);
}
