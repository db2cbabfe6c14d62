//! The engine cassandra with real servers, over machines on this one's loopback addresses. Not run unless asked for: what it
//! takes is downloaded where it is not there, and three servers in Java start.

use std::time::{Duration, Instant};

use engine::{Configuration, NodePlace};

use crate::shipped::{Wanted, configuration};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
#[ignore = "starts three servers in Java; run with --ignored"]
fn three_nodes_take_writes_and_none_leads_through_the_loss_and_return_of_one() {
    let test = "three_nodes_take_writes_and_none_leads_through_the_loss_and_return_of_one";
    let place = |rack: &str| NodePlace {
        region: "dc1".to_owned(),
        zone: "a".to_owned(),
        rack: rack.to_owned(),
        host: "h1".to_owned(),
    };
    let places = ["a-r1", "a-r2", "a-r3"].map(place).to_vec();
    let configuration = Configuration { copies: 3, places, ..configuration(&[]) };
    let wanted = Wanted { engine: "cassandra", is_fetched: true, nodes: 3, configuration };
    let Some((machines, engine)) = wanted.open(test) else { return };
    let all = machines.some(&[1, 2, 3]);
    let began = Instant::now();
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("up after {:.1} s: {:?}", began.elapsed().as_secs_f64(), cluster.steps);
    assert_eq!((cluster.leader, cluster.followers.len()), (None, 3));
    assert_eq!(engine.leader(&all).equals, ["n1", "n2", "n3"]);
    assert!(engine.promote(&all).is_err_and(|error| error.to_string().contains("none can be promoted")));

    machines.nodes[0].power_off();
    let roles = engine.leader(&all);
    assert_eq!((roles.equals.as_slice(), roles.silent.len()), (&["n2", "n3"].map(String::from)[..], 1));
    assert!(roles.leader().is_none() && !roles.is_split_brain());
    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(engine.leader(&all).equals.len(), 3);
    for node in &all {
        engine.stop(node.as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(engine.leader(&all).silent.len(), 3);
}
