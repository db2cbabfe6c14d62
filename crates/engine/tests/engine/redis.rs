//! The engine redis with real servers and Sentinels, where they are installed, over machines on this one's loopback addresses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Configuration, Engine, Node, Synchronous};

use crate::loopback::Machines;

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until every node answers and one of them leads.
fn leader(engine: &dyn Engine, nodes: &[Arc<dyn Node>]) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let roles = engine.leader(nodes);
        match roles.leader() {
            Some(leader) if roles.silent.is_empty() => return leader.to_owned(),
            _ => assert!(Instant::now() < deadline, "{roles:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sentinels_promote_a_replica_and_a_primary_that_returns_follows_it_through_a_loss_of_all_power() {
    let test = "sentinels_promote_a_replica_and_a_primary_that_returns_follows_it";
    let redis = engine::registry::named("redis").expect("an engine that ships");
    let found = redis.find(None).or_else(|_| redis.install(&mut |what| eprintln!("{what}")));
    let installation = match found {
        Ok(installation) => installation,
        Err(error) => {
            eprintln!("skipped: {test}: {error}");
            return;
        }
    };
    let machines = Machines::new(3);
    let configuration = Configuration {
        synchronous: Synchronous::Off,
        settings: BTreeMap::from([("appendfsync".to_owned(), "always".to_owned())]),
        port: machines.port,
        max_connections: 200,
        copies: 1,
        places: Vec::new(),
    };
    let installation = machines.reachable(installation);
    let engine = redis.open(installation, configuration).unwrap_or_else(|error| panic!("{error}"));
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
    assert_eq!(leader(engine, &all), promoted);

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
