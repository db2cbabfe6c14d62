//! The engine galera with real servers, over machines on this one's loopback addresses. Not run unless asked for: what it takes
//! is downloaded where it is not there.

use std::time::{Duration, Instant};

use crate::shipped::{Wanted, configuration};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
#[ignore = "downloads a server where none is, and starts three; run with --ignored"]
fn every_node_takes_writes_a_minority_says_that_it_does_not_and_all_return_after_a_loss_of_all_power() {
    let test = "every_node_takes_writes_a_minority_says_that_it_does_not";
    let wanted = Wanted { engine: "galera", is_fetched: true, nodes: 3, configuration: configuration(&[]) };
    let Some((machines, engine)) = wanted.open(test) else { return };
    let all = machines.some(&[1, 2, 3]);
    let began = Instant::now();
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("up after {:.1} s: {:?}", began.elapsed().as_secs_f64(), cluster.steps);
    assert_eq!((cluster.leader, cluster.followers.len()), (None, 3));
    assert_eq!(engine.leader(&all).equals, ["n1", "n2", "n3"]);

    // The first one as well joins the others when it returns.
    machines.nodes[0].power_off();
    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(engine.leader(&all).equals.len(), 3);

    // Two stand still: the third is alone, and knows it.
    machines.nodes[0].pause(true);
    machines.nodes[1].pause(true);
    let alone = machines.some(&[3]);
    let deadline = Instant::now() + PATIENCE;
    while engine.leader(&alone).silent.is_empty() {
        assert!(Instant::now() < deadline, "a node alone goes on");
        std::thread::sleep(Duration::from_millis(100));
    }
    machines.nodes[0].pause(false);
    machines.nodes[1].pause(false);

    for node in &machines.nodes {
        node.power_off();
    }
    for node in &all {
        engine.start(node.as_ref()).unwrap_or_else(|error| panic!("{error}"));
    }
    for node in &all {
        engine.wait_ready(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(engine.leader(&all).equals.len(), 3);
    for node in &all {
        engine.stop(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
}
