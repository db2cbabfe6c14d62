//! `target: kubernetes`: pods in place of members with endpoints, and what a fault of theirs cannot say.

use history::NodeId;
use scenario::{MemberReach, Scenario};

use crate::reading::{read, read_and_written};

const BASE: &str = "name: mine
target: kubernetes
cluster:
  engine: postgres
  kubernetes:
    namespace: databases
    context: kind-lab
    stateful-set: pg
    replicas: 3
    container: postgres
  may-break: [pg-0, pg-2]
loads: [{ workload: ledger, clients: 2 }]
schedule: [{ phase: baseline, for: 5s }, { phase: fault, for: 9s, faults: [{ external: { command: kubernetes-pod-delete, of: pg-2 } }] }]
expect: { lost_writes: 0 }
";

fn accepted(from: &str, to: &str) -> Scenario {
    assert!(BASE.contains(from), "{from}");
    read(&BASE.replace(from, to)).unwrap_or_else(|problems| panic!("{to}: {problems:?}"))
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &[&str]) {
    assert!(BASE.contains(from), "{from}");
    assert_eq!(read(&BASE.replace(from, to)).expect_err("refused"), expected, "{to}");
}

#[test]
fn the_pods_of_a_stateful_set_are_members_with_what_commands_ask_of_them() {
    let scenario = accepted("name: mine", "name: mine");
    let cluster = scenario.cluster.as_ref().expect("a cluster");
    let names: Vec<&str> = cluster.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["pg-0", "pg-1", "pg-2"]);
    assert_eq!(cluster.may_break, [NodeId::FIRST, NodeId::new(2)]);
    let second = &cluster.members[NodeId::new(1)];
    assert_eq!((second.endpoint.as_str(), &second.reach), ("pg-1:5432", &Some(MemberReach::Local(vec![]))));
    let facts: Vec<String> = second.facts.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(facts, ["container=postgres", "context=kind-lab", "namespace=databases", "pod=pg-1"]);
    let hosts: Vec<String> = scenario.site.hosts.iter().map(|host| host.path().join("/")).collect();
    assert_eq!(hosts, ["cluster/members/pg-0", "cluster/members/pg-1", "cluster/members/pg-2"]);
}

#[test]
fn namespace_container_and_port_have_defaults() {
    let whole = "    namespace: databases\n    context: kind-lab\n    stateful-set: pg\n    replicas: 3\n    container: postgres\n";
    let scenario = accepted(whole, "    pods: [pg-0, pg-1, pg-2]\n");
    let cluster = scenario.cluster.expect("a cluster");
    let kubernetes = cluster.kubernetes.expect("its pods");
    assert_eq!((kubernetes.namespace.as_str(), kubernetes.port), ("default", 5432));
    assert_eq!((kubernetes.context, kubernetes.kubeconfig, kubernetes.container), (None, None, None));
    let facts: Vec<&str> = cluster.members[NodeId::FIRST].facts.keys().map(String::as_str).collect();
    assert_eq!(facts, ["namespace", "pod"], "kubectl's own rules hold for what is not said");
}

#[test]
fn what_is_written_back_is_the_same_scenario() {
    let role = "container: postgres\n    port: 6432\n    kubeconfig: /etc/lab/kubeconfig\n    role: { label: cnpg.io/instanceRole, leader: [primary] }";
    let agents = "container: postgres\n    agents: { image: \"images.example.org/holdfast:1\", count: 2, program: /opt/holdfast }";
    for to in ["container: postgres", role, agents] {
        let text = BASE.replace("container: postgres", to);
        read_and_written(&text).unwrap_or_else(|problems| panic!("{to}: {problems:?}"));
    }
}

#[test]
fn pods_and_machines_are_not_mixed() {
    refused("target: kubernetes\n", "", &["target `cluster`"]);
    refused("target: kubernetes\n", "target: external\n", &["target `cluster`"]);
    let machines = "  members: { db1: { endpoint: \"10.0.0.1:5432\" } }\n  may-break: [";
    refused("  may-break: [", machines, &["target `cluster`", "one-too-many `members`"]);
    let ssh = "  ssh-config: /etc/ssh\n  agents: { a1: { reach: { ssh: a1 } } }\n  may-break: [";
    refused("  may-break: [", ssh, &["not-of-pods `ssh-config`", "not-of-pods `agents`"]);
    refused("clients: 2 }", "clients: 2, agents: [a1] }", &["no-agents `a1`"]);
}

#[test]
fn loads_may_stand_on_agents_that_are_pods_and_on_no_others() {
    let text = |agents: &str, named: &str| {
        let agents = format!("container: postgres\n    agents: {{ {agents} }}\n");
        BASE.replace("container: postgres\n", &agents)
            .replace("clients: 2 }", &format!("clients: 2, agents: [{named}] }}"))
            .replace("  may-break", "  agent-lost: go-on\n  may-break")
    };
    let scenario = read(&text("image: holdfast, count: 2", "agent-0, agent-1")).expect("sound");
    assert_eq!(scenario.loads[0].agents, ["agent-0", "agent-1"]);
    assert_eq!(scenario.cluster.expect("a cluster").agent_names(), ["agent-0", "agent-1"]);
    let problems = |agents: &str, named: &str| read(&text(agents, named)).expect_err("refused");
    assert_eq!(problems("image: holdfast, count: 1", "agent-1"), ["unknown-agent `agent-1`"]);
    assert_eq!(problems("image: -x, count: 1", "agent-0")[0], "bad-image `-x`");
    assert_eq!(problems("image: holdfast, count: 0", "agent-0")[0], "too-small `0`");
    refused("  may-break: [", "  agent-lost: go-on\n  may-break: [", &["not-of-pods `agent-lost`"]);
}

#[test]
fn a_fault_cannot_say_another_pod_than_the_one_that_it_names() {
    let with = |with: &str| format!("of: pg-2, with: {{ {with} }} ");
    for name in ["pod", "namespace", "context", "kubeconfig", "node"] {
        let expected = format!("of-the-pod `{name}`");
        refused("of: pg-2 ", &with(&format!("{name}: pg-1")), &[expected.as_str()]);
    }
    accepted("of: pg-2 ", &with("container: sidecar"));
    refused("of: pg-2", "of: pg-1", &["not-allowed `pg-1`"]);
    refused("of: pg-2", "of: leader", &["not-allowed `leader`"]);
    refused("[pg-0, pg-2]", "[pg-0, pg-3]", &["unknown-node `pg-3`", "not-allowed `pg-2`"]);
}

#[test]
fn pods_are_named_once_and_each_key_is_what_it_can_be() {
    refused("    replicas: 3\n", "", &["missing-key `stateful-set`"]);
    refused("stateful-set: pg", "pods: [pg-0]", &["missing-key `replicas`"]);
    let both = "stateful-set: pg\n    pods: [pg-0]";
    refused("stateful-set: pg", both, &["one-too-many `pods`"]);
    let of_set = "    stateful-set: pg\n    replicas: 3\n";
    refused(of_set, "", &["missing-key `kubernetes`"]);
    refused(of_set, "    pods: [pg-0, pg-2, pg-0]\n", &["duplicate-name `pg-0`"]);
    refused("replicas: 3", "replicas: 101", &["too-large `101`"]);
    let long = "p".repeat(62);
    let expected = format!("bad-name `{long}`");
    refused("stateful-set: pg", &format!("stateful-set: {long}"), &[expected.as_str()]);
    refused("context: kind-lab", "context: \"-x\"", &["bad-context `\"-x\"`"]);
    refused("context: kind-lab", "context: \"a b\"", &["bad-context `\"a b\"`"]);
    refused("context: kind-lab", "kubeconfig: kube/config", &["bad-path `kube/config`"]);
    refused("context: kind-lab", "kubeconfig: /a/../b", &["bad-path `/a/../b`"]);
    refused("container: postgres", "port: 0", &["too-small `0`"]);
    refused("container: postgres", "port: 65536", &["too-large `65536`"]);
    refused("container: postgres", "role: { label: role }", &["missing-key `role`"]);
}
