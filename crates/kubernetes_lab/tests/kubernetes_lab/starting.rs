//! What is started before what, what is not done twice, and what is said when a part ends.

use std::net::Ipv4Addr;
use std::path::Path;

use kubernetes_lab::files::{self, WorkerOptions};
use kubernetes_lab::pki::Authority;
use kubernetes_lab::storage::Volume;
use kubernetes_lab::{Cluster, Member, Plan, Programs, Timing, node_proxy, runtime};

use crate::noting_node::NotingNode;

fn options() -> WorkerOptions {
    let (snapshots, mode) = (runtime::Snapshots::default(), node_proxy::Mode::default());
    WorkerOptions { programs: Programs::at("/p"), snapshots, mode }
}

fn cluster() -> Cluster {
    let member = |name: &str, last: u8| Member {
        name: name.to_owned(),
        address: Ipv4Addr::new(10, 2, 0, last),
        zone: "z".to_owned(),
    };
    let plan = Plan::new(member("control", 9), vec![member("n1", 1)], Timing::SHORT).expect("a plan");
    Cluster::new(plan, options())
}

/// The lines without the arguments of what was run, each once where it was run again and again.
fn order(node: &NotingNode) -> Vec<String> {
    let mut names: Vec<String> =
        node.lines().iter().map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    names.dedup();
    names
}

#[test]
fn the_control_plane_is_started_from_the_store_upwards() {
    let node = NotingNode::new("control");
    cluster().start_control(&node).expect("started");
    let expected = [
        "start etcd",
        "run bash",
        "start kube-apiserver",
        "run kubectl",
        "start kube-controller-manager",
        "start kube-scheduler",
        "run kubectl",
    ];
    assert_eq!(order(&node), expected);
    let asked: Vec<String> =
        node.lines().into_iter().filter(|line| line.starts_with("run kubectl")).collect();
    assert!(asked[0].ends_with("get --raw=/readyz"), "{asked:?}");
    assert!(asked[1].ends_with("apply -f /v/rights.json"), "{asked:?}");
}

#[test]
fn a_part_that_ends_is_named_with_the_end_of_its_log() {
    let node = NotingNode::new("control").ending("kube-apiserver");
    let error = cluster().start_control(&node).expect_err("it ends").to_string();
    let told = "kube-apiserver on control has ended; its log ends:\nthe end of kube-apiserver.log";
    assert_eq!(error, told);
    assert!(!node.lines().contains(&"start kube-scheduler".to_owned()));
}

#[test]
fn a_node_runs_containers_before_pods_and_gets_its_images_once() {
    let node = NotingNode::new("n1");
    cluster().start_worker(&node).expect("started");
    let expected = ["start containerd", "run ctr", "start kubelet", "start kube-proxy"];
    assert_eq!(order(&node), expected);
    assert!(node.lines().iter().any(|line| line.contains(" images import ")));

    let there = "docker.io/lab/pause:1\ndocker.io/lab/shell:1\n";
    let again = NotingNode::new("n1").answering("images list", 0, there);
    cluster().start_worker(&again).expect("started");
    assert!(!again.lines().iter().any(|line| line.contains(" images import ")));
}

#[test]
fn a_node_that_is_not_in_the_plan_is_refused() {
    let node = NotingNode::new("n7");
    let error = cluster().start_worker(&node).expect_err("a stranger").to_string();
    assert_eq!(error, "n7 is no node of this cluster that runs pods");
    assert_eq!(node.lines(), [""; 0]);
}

#[test]
fn a_nodes_files_are_written_after_the_folder_that_some_are_in() {
    let (cluster, node) = (cluster(), NotingNode::new("n1"));
    let authority = Authority::make().expect("an authority");
    let worker = &cluster.plan().workers()[0];
    let made = files::for_worker(cluster.plan(), worker, &authority, (Path::new("/v"), &options()));
    cluster.prepare_worker(&node, &made.expect("files")).expect("prepared");
    assert_eq!(node.lines()[0], "run install -d -m 0755 -o 1000 -g 1000 /v/network");
    assert_eq!(node.lines()[1], "run sync /v/network /v");
    assert!(node.files().contains(&"network/10-lab.conflist".to_owned()), "{:?}", node.files());
}

#[test]
fn a_command_that_fails_is_told_with_its_words() {
    let node = NotingNode::new("n1").answering("install -d", 1, "no room\n");
    let [name, node_name, folder] = ["a", "n1", "f"].map(str::to_owned);
    let volume = Volume { name, node: node_name, folder, gibibytes: 1, claim: None };
    let error = volume.make(&node, &Programs::at("/p")).expect_err("no room").to_string();
    let told = "install -d -m 0755 -o 1000 -g 1000 /v/volumes on n1 ended with exit code 1: no room";
    assert_eq!(error, told);
}
