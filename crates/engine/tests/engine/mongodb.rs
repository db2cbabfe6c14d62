//! The engine file of MongoDB, carried out with a stand-in for its program that is as strict about its command line and its
//! configuration (`stubs/mongod.py`), over machines on this one's loopback addresses.

use std::time::Duration;

use capabilities::Capabilities;
use engine::NodePlace;

use crate::stand_in::StandIn;

const PATIENCE: Duration = Duration::from_secs(60);
const FILE: &str = include_str!("../../../../engines/mongodb.yaml");

const STAND_IN: StandIn = StandIn {
    program: "mongod",
    text: include_str!("../stubs/mongod.py"),
    version: "7.0.5",
    place: |_| NodePlace::default(),
};

fn shipped() -> &'static Capabilities {
    capabilities::named("mongodb").expect("an engine that ships")
}

#[test]
fn a_replica_set_is_initiated_and_another_member_leads_when_the_primary_is_lost() {
    let test = "a_replica_set_is_initiated_and_another_member_leads";
    let Some((machines, engine, _folder)) = STAND_IN.open(test, shipped(), &[("syncdelay", "10")]) else {
        return;
    };
    let all = machines.some(&[1, 2, 3]);
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((cluster.leader.as_deref(), cluster.followers.len()), (Some("n1"), 2));

    machines.nodes[0].power_off();
    let roles = engine.leader(&all);
    assert_eq!(roles.leader(), Some("n2"));
    assert_eq!(roles.followers, ["n3"]);
    assert!(roles.silent.contains_key("n1"), "{:?}", roles.silent);
    engine.start(all[0].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[0].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert!(engine.leader(&all).silent.is_empty());
    let settings = engine.settings();
    assert!(settings["engine file"].contains("not run here; from its documentation"), "{settings:?}");
}

#[test]
fn a_wrong_flag_or_configuration_in_the_file_is_refused() {
    let test = "a_wrong_flag_or_configuration_in_the_file_is_refused";
    let soon = ("port: client\n        within: 60s", "port: client\n        within: 1s");
    for (right, wrong, told) in [
        ("--dbpath=", "--datadir=", "unrecognised option '--datadir="),
        ("--wiredTigerCacheSizeGB=0.25", "--wiredTigerCacheSizeGB=0.1", "greater than or equal to 0.25"),
        (r#""_id": "holdfast""#, r#""_id": "other""#, "the replica set name holdfast"),
        (r#""electionTimeoutMillis""#, r#""electionTimeout""#, "an unknown setting"),
        (r#""_id": {number}, "host""#, r#""host""#, "a member that is none"),
    ] {
        // The configuration is asked for again until its time is up.
        let text = FILE.replace(soon.0, soon.1);
        assert_ne!(text, FILE);
        assert!(text.contains(right), "{right}");
        let file = capabilities::file::read("wrong.yaml", &text.replace(right, wrong));
        let file = file.unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()));
        let Some((machines, engine, _folder)) = STAND_IN.open(test, file, &[]) else { return };
        let error = engine.bootstrap(&machines.some(&[1, 2, 3])).expect_err(wrong).to_string();
        assert!(error.contains(told), "{wrong}: {error}");
    }
}

#[test]
fn a_parameter_that_mongod_does_not_know_is_told_in_its_own_words() {
    let test = "a_parameter_that_mongod_does_not_know_is_told_in_its_own_words";
    let Some((machines, engine, _folder)) = STAND_IN.open(test, shipped(), &[("syncDelay", "10")]) else {
        return;
    };
    let error = engine.bootstrap(&machines.some(&[1, 2, 3])).expect_err("no such parameter").to_string();
    assert!(error.contains("Unknown --setParameter 'syncDelay'"), "{error}");
}
