//! The engine repmgr with real servers, over machines on this one's loopback addresses. Not run unless asked for: what it takes
//! is downloaded where it is not there.

use std::time::{Duration, Instant};

use crate::shipped::{Wanted, configuration, leader};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
#[ignore = "downloads a server where none is, and starts three; run with --ignored"]
fn a_primary_that_wakes_beside_a_promoted_standby_leads_as_well_until_it_is_restarted() {
    let test = "a_primary_that_wakes_beside_a_promoted_standby_leads_as_well";
    let wanted = Wanted { engine: "repmgr", is_fetched: true, nodes: 3, configuration: configuration(&[]) };
    let Some((machines, engine)) = wanted.open(test) else { return };
    let engine = engine.as_ref();
    let all = machines.some(&[1, 2, 3]);
    let began = Instant::now();
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("up after {:.1} s: {:?}", began.elapsed().as_secs_f64(), cluster.steps);
    assert_eq!(
        (cluster.leader.as_deref(), cluster.followers.as_slice()),
        (Some("n1"), &["n2", "n3"].map(String::from)[..])
    );

    machines.nodes[0].pause(true);
    let promoted = engine.promote(&machines.some(&[2, 3])).unwrap_or_else(|error| panic!("{error}")).leader;
    assert_ne!(promoted, "n1");
    machines.nodes[0].pause(false);
    let deadline = Instant::now() + PATIENCE;
    while !engine.leader(&all).is_split_brain() {
        assert!(Instant::now() < deadline, "the old primary is not told: {:?}", engine.leader(&all));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(engine.leader(&all).leaders, ["n1", promoted.as_str()]);

    engine.stop(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    let logs = || machines.nodes.iter().map(|node| node.log("repmgrd")).collect::<Vec<_>>().join("\n\n");
    let failed = |error| -> () { panic!("{error}\n{}", logs()) };
    engine.start(all[0].as_ref()).unwrap_or_else(failed);
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(failed);
    assert_eq!(leader(engine, &all, PATIENCE), promoted);
}

#[test]
#[ignore = "downloads a server where none is, and starts three; run with --ignored"]
fn a_primary_that_lost_power_follows_whom_repmgrd_promoted_meanwhile() {
    let test = "a_primary_that_lost_power_follows_whom_repmgrd_promoted";
    let configuration = configuration(&[("reconnect_attempts", "2")]);
    let wanted = Wanted { engine: "repmgr", is_fetched: true, nodes: 3, configuration };
    let Some((machines, engine)) = wanted.open(test) else { return };
    let engine = engine.as_ref();
    let all = machines.some(&[1, 2, 3]);
    engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));

    machines.nodes[0].power_off();
    let promoted = engine.promote(&machines.some(&[2, 3])).unwrap_or_else(|error| panic!("{error}")).leader;
    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    let roles = engine.leader(&all);
    assert!(roles.followers.contains(&"n1".to_owned()), "it never leads again: {roles:?}");
    assert_eq!(roles.leader(), Some(promoted.as_str()), "{roles:?}");
}
