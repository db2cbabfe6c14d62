//! `target: external`: a cluster that exists in place of a site and a database, and who may be broken there.

use history::NodeId;
use scenario::{FAULT_KINDS, FaultAction, MemberReach, NodeTarget};

use crate::reading::{read, read_and_written};

const NODES: [NodeId; 3] = [NodeId::FIRST, NodeId::new(1), NodeId::new(2)];

const BASE: &str = "name: mine
target: external
cluster:
  engine: postgres
  members:
    db1: { endpoint: \"10.0.0.1:5432\", reach: { ssh: root@db1 }, facts: { unit: postgresql.service } }
    db2: { endpoint: \"db2.example.org:5432\", reach: { local: [nsenter, --net=/run/netns/db2] } }
    db3: { endpoint: \"[fd00::3]:5432\" }
  may-break: [db2, db1]
loads: [{ workload: ledger, clients: 2 }]
schedule: [{ phase: baseline, for: 5s }, { phase: fault, for: 9s, faults: [{ external: { command: systemd-kill, of: db2 } }] }]
expect: { lost_writes: 0 }
";

#[track_caller]
fn refused(from: &str, to: &str, expected: &[&str]) {
    assert!(BASE.contains(from), "{from}");
    assert_eq!(read(&BASE.replace(from, to)).expect_err("refused"), expected, "{to}");
}

#[test]
fn a_cluster_stands_for_a_site_with_a_host_for_each_member() {
    let scenario = read(BASE).unwrap_or_else(|problems| panic!("{problems:?}"));
    let cluster = scenario.cluster.as_ref().expect("a cluster");
    assert_eq!((cluster.database.as_str(), cluster.user.as_str()), ("postgres", "postgres"));
    assert_eq!(cluster.may_break, NODES[..2]);
    assert_eq!(cluster.members[NODES[0]].reach, Some(MemberReach::Ssh("root@db1".to_owned())));
    let local = vec!["nsenter".to_owned(), "--net=/run/netns/db2".to_owned()];
    assert_eq!(cluster.members[NODES[1]].reach, Some(MemberReach::Local(local)));
    assert_eq!(cluster.members[NODES[2]].reach, None);
    let hosts: Vec<String> = scenario.site.hosts.iter().map(|host| host.path().join("/")).collect();
    assert_eq!(hosts, ["cluster/members/db1", "cluster/members/db2", "cluster/members/db3"]);
    assert!(scenario.database.nodes.iter().copied().eq(scenario.site.hosts.ids()));
    let FaultAction::External(fault) = &scenario.schedule[1].faults[0].action else {
        panic!("another fault")
    };
    assert_eq!((fault.node, fault.command.name.as_str()), (NodeTarget::Named(NODES[1]), "systemd-kill"));
}

#[test]
fn what_is_written_back_is_the_same_scenario() {
    read_and_written(BASE).unwrap_or_else(|problems| panic!("{problems:?}"));
}

#[test]
fn every_example_of_a_fault_of_machines_that_exist_is_accepted_where_it_may_strike() {
    let all = BASE.replace(
        "db3: { endpoint: \"[fd00::3]:5432\" }",
        "db3: { endpoint: \"[fd00::3]:5432\", reach: { local: [] } }",
    );
    let all = all.replace("[db2, db1]", "[db1, db2, db3]");
    let kind = FAULT_KINDS.iter().find(|kind| kind.name == "external").expect("the kind");
    for example in kind.examples {
        let fault = example.trim_start_matches("- ");
        let text =
            all.replace("{ external: { command: systemd-kill, of: db2 } }", fault).replace("9s", "30s");
        read(&text).unwrap_or_else(|problems| panic!("{problems:?}: {example}"));
    }
}

#[test]
fn nobody_is_struck_who_may_not_be_broken() {
    refused("of: db2", "of: db3", &["not-allowed `db3`"]);
    refused("of: db2", "of: n3", &["not-allowed `n3`"]);
    refused("of: db2", "of: leader", &["not-allowed `leader`"]);
    refused("[db2, db1]", "[db2, db3]", &["no-reach `db3`"]);
    refused("[db2, db1]", "[db2, db4]", &["unknown-node `db4`"]);
    refused("of: db2", "of: db4", &["unknown-node `db4`"]);
}

#[test]
fn a_lab_and_a_cluster_are_not_mixed() {
    refused("target: external\n", "", &["target `cluster`"]);
    refused(
        "{ external: { command: systemd-kill, of: db2 } }",
        "{ power-off: { host: db2 } }",
        &["wrong-target `power-off`"],
    );
    refused(
        "name: mine\n",
        "name: mine\nsite: { regions: { dc1: { zones: { a: { hosts: 1 } } } } }\n",
        &["missing-key `site`", "one-too-many `cluster`"],
    );
    let lab = "name: mine\nsite: { regions: { dc1: { zones: { a: { hosts: 1 } } } } }\ndatabase: { engine: postgres, nodes: 1 }\n\
        loads: [{ workload: ledger, clients: 2 }]\nschedule: [{ phase: baseline, for: 5s }, { phase: fault, for: 9s, faults: \
        [{ external: { command: systemd-kill, of: leader } }] }]\n";
    assert_eq!(read(lab).expect_err("refused"), ["wrong-target `external`"]);
    let external =
        lab.replace("name: mine", "name: mine\ntarget: external").replace("external: {", "pressure: {");
    assert!(read(&external).is_err());
}

#[test]
fn an_endpoint_needs_a_port_and_clients_have_no_place() {
    refused("\"10.0.0.1:5432\"", "10.0.0.1", &["bad-endpoint `10.0.0.1`"]);
    refused("\"10.0.0.1:5432\"", "\"10.0.0.1:0\"", &["bad-endpoint `\"10.0.0.1:0\"`"]);
    refused("clients: 2 }", "clients: 2, from: db1 }", &["no-such-place `db1`"]);
    refused("engine: postgres", "engine: redis", &["not-yet `redis`"]);
    refused("db1: {", "n2: {", &["bad-name `n2`"]);
}
