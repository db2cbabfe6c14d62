//! The engine file of CockroachDB, carried out with a stand-in for its program that is as strict about its command line
//! (`stubs/cockroach.py`), over machines on this one's loopback addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::Capabilities;
use engine::NodePlace;

use crate::stand_in::StandIn;

const PATIENCE: Duration = Duration::from_secs(60);
const FILE: &str = include_str!("../../../../engines/cockroachdb.yaml");

const STAND_IN: StandIn = StandIn {
    program: "cockroach",
    text: include_str!("../stubs/cockroach.py"),
    version: "20.1.17",
    place: |number| NodePlace {
        region: "eu".to_owned(),
        zone: format!("z{number}"),
        rack: format!("z{number}"),
        host: format!("h{number}"),
    },
};

fn shipped() -> &'static Capabilities {
    capabilities::named("cockroachdb").expect("an engine that ships")
}

#[test]
fn a_cluster_is_formed_every_node_takes_writes_and_one_that_was_lost_returns() {
    let test = "a_cluster_is_formed_every_node_takes_writes";
    let Some((machines, engine, _folder)) = STAND_IN.open(test, shipped(), &[("max-offset", "250ms")]) else {
        return;
    };
    let all = machines.some(&[1, 2, 3]);
    let cluster = engine.bootstrap(&all).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((cluster.leader, cluster.followers.len()), (None, 3));
    assert_eq!(engine.leader(&all).equals, ["n1", "n2", "n3"]);

    machines.nodes[2].power_off();
    assert!(engine.leader(&all).silent.contains_key("n3"));
    engine.start(all[2].as_ref()).unwrap_or_else(|error| panic!("{error}"));
    engine.wait_ready(all[2].as_ref(), PATIENCE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(engine.leader(&all).equals.len(), 3);
    let settings: BTreeMap<String, String> = engine.settings();
    assert!(settings["engine file"].contains("not run here; from its documentation"), "{settings:?}");
}

/// How the file has the cluster formed.
const FORM: &str = "init, \"--insecure\", \"--host={node.address}:{ports.client}\"]\n        within: 60s";

/// What booting comes to with one text of the file replaced.
fn refused(test: &str, right: &str, wrong: &str) -> Option<String> {
    assert!(FILE.contains(right), "{right}");
    let file = capabilities::file::read("wrong.yaml", &FILE.replace(right, wrong));
    let file = file.unwrap_or_else(|rejection| panic!("{:?}", rejection.problems()));
    let (machines, engine, _folder) = STAND_IN.open(test, file, &[])?;
    let error = engine.bootstrap(&machines.some(&[1, 2, 3])).expect_err(wrong);
    Some(error.to_string())
}

#[test]
fn a_wrong_flag_in_the_file_is_refused() {
    let test = "a_wrong_flag_in_the_file_is_refused";
    for (right, wrong, told) in [
        ("--advertise-addr=", "--advertise-address=", "unknown flag: --advertise-address"),
        ("--cache=64MiB", "--cache=64 MiB", "invalid argument \"64 MiB\""),
        ("--locality=region=", "--locality=", "for \"--locality\" flag"),
        // What came with a later version.
        ("--http-addr=", "--sql-addr=", "unknown flag: --sql-addr"),
        (
            FORM,
            "init, \"--insecure\", \"--hosts={node.address}\"]\n        within: 1s",
            "unknown flag: --hosts",
        ),
    ] {
        let Some(error) = refused(test, right, wrong) else { return };
        assert!(error.contains(told), "{wrong}: {error}");
    }
}
