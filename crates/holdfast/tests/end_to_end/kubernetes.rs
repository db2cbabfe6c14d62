//! A database in pods of a real cluster on the lab's nodes: recoveries in phases, what a power-off takes, storage classes.
//!
//! Only as root, and only where the cluster's programs have been built: that takes minutes, and no test does it.

use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::contract;
use crate::engines::check;
use crate::holdfast::Desk;
use crate::traces::Before;
use crate::turns::machine;

const SCENARIO: &str = "scenarios/kubernetes.yaml";
/// A shorter time line: the host is away for long enough that the cluster takes its node for lost.
const SHORTER: [&str; 4] = ["--set", "schedule.1.for=5s", "--set", "schedule.3.for=5s"];

/// Why there can be no such cluster here, if so.
fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("nodes that start containers need root".to_owned());
    }
    let cache = engine::installation::cache_directory(|name| std::env::var_os(name)).ok()?;
    match kubernetes_lab::installed(&cache) {
        Some(_) => None,
        None => Some(
            "Kubernetes' programs are not in the cache; `cargo xtask try kubernetes` builds them".to_owned(),
        ),
    }
}

/// What a run of the scenario came to; nothing, and said so, where there can be none.
fn ran(test: &str, code: i32, more: &[&str]) -> Option<Value> {
    if let Some(why) = missing() {
        eprintln!("skipped: {test}: {why}");
        return None;
    }
    let _turn = machine();
    let desk = Desk::with_a_lab(test)?;
    let before = Before::look(&desk);
    let finished = desk.run(&[&["run"], more].concat());
    finished.ends_with(code);
    before.nothing_is_left(&[]);
    let result = finished.result();
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    Some(result)
}

/// When each phase of the first fault's recovery was seen, of the node or the pod of that name.
fn phase_s(result: &Value, phase: &str, of: &str) -> f64 {
    let phases = result["faults"][0]["phases"].as_array().expect("phases");
    let found = phases.iter().find(|step| step["phase"] == phase && step["of"] == of);
    found.and_then(|step| step["at_s"].as_f64()).unwrap_or_else(|| panic!("no {phase} of {of}: {phases:#?}"))
}

#[test]
#[ignore = "second tier: a Kubernetes cluster in a lab, a minute and a half; only where its programs have been built"]
fn the_pod_of_a_node_without_power_is_deleted_and_made_again_and_nothing_is_lost() {
    let Some(result) = ran("the_pod_of_a_node_without_power", 0, &[SCENARIO]) else { return };
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "pass", "{result:#}");
    let order = [
        ("lease-expired", "n1"),
        ("node-lost", "n1"),
        ("pod-deleted", "postgres-0"),
        ("pod-gone", "postgres-0"),
        ("container-started", "postgres-0"),
        ("pod-ready", "postgres-0"),
    ];
    let times: Vec<f64> = order.iter().map(|(phase, of)| phase_s(&result, phase, of)).collect();
    assert!(times.is_sorted(), "{times:?}");
    let pods = result["facts"]["kubernetes"]["pods"].as_array().expect("pods");
    let on: Vec<_> = pods.iter().map(|pod| (pod["pod"].clone(), pod["node"].clone())).collect();
    assert_eq!(
        on,
        [("postgres-0", "n1"), ("postgres-1", "n2"), ("postgres-2", "n3")]
            .map(|(pod, node)| (pod.into(), node.into()))
    );
    let cpu = &result["lab"]["cpu_seconds"];
    assert!(
        cpu["database"].as_f64().is_some_and(|seconds| seconds > 5.0),
        "pods count as the database's: {cpu}"
    );
}

#[test]
#[ignore = "second tier: a Kubernetes cluster in a lab, a minute and a half; only where its programs have been built"]
fn writes_that_a_pod_had_not_synced_are_lost_with_its_node_s_power_and_named() {
    let unsynced = [
        "--set",
        "database.settings.synchronous_commit=off",
        "--set",
        "database.settings.wal_writer_delay=10s",
        "--set",
        "database.settings.wal_writer_flush_after=1GB",
    ];
    let arguments = [&[SCENARIO], &SHORTER[..], &unsynced[..]].concat();
    let Some(result) = ran("writes_that_a_pod_had_not_synced", 1, &arguments) else { return };
    let ledger = check(&result, "ledger");
    assert_eq!(ledger["verdict"], "fail", "{ledger:#}");
    assert!(ledger["lost"].as_u64().is_some_and(|lost| lost > 0), "{ledger:#}");
}

#[test]
#[ignore = "second tier: a Kubernetes cluster in a lab, a minute and a half; only where its programs have been built"]
fn a_node_that_is_cut_off_keeps_its_pod_and_nothing_is_lost() {
    let cut = ["--set", "schedule.2.faults=[{partition: {isolate: leader}, at: 1s, for: 25s}]"];
    let arguments = [&[SCENARIO], &SHORTER[..], &cut[..]].concat();
    let Some(result) = ran("a_node_that_is_cut_off_keeps_its_pod", 0, &arguments) else { return };
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "pass", "{result:#}");
    assert!(phase_s(&result, "node-lost", "n1") < phase_s(&result, "pod-ready", "postgres-0"));
}

#[test]
#[ignore = "second tier: Kubernetes clusters in labs, two minutes; only where its programs have been built"]
fn killed_processes_of_a_pod_come_back_with_its_kubelet_and_those_that_were_not_killed_are_found_out() {
    let (kill, stop) = (
        "{process: {of: leader, how: kill}, at: 1s}",
        "{process: {of: leader, how: stop}, at: 10s, for: 8s}",
    );
    let faults = format!("schedule.2.faults=[{kill}, {stop}]");
    let shorter = [&SHORTER[..], &["--set", "schedule.2.for=25s", "--set", &faults]].concat();
    let arguments = [&[SCENARIO], &shorter[..]].concat();
    let Some(honest) = ran("killed_processes_of_a_pod", 0, &arguments) else { return };
    for fault in honest["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
        assert!(
            fault["target"].as_str().is_some_and(|target| target.contains("postgres alone")),
            "{fault:#}"
        );
    }
    let lying = [&arguments[..], &["--plant", "kill-nothing"]].concat();
    let Some(lying) = ran("killed_processes_of_a_pod", 2, &lying) else { return };
    assert!(lying["reasons"].to_string().contains("has no receipt"), "{lying:#}");
}

/// A signal for one of PostgreSQL's processes on a node, or all of them, chosen by this filter of their ids.
fn signal(desk: &Desk, (node, signal, which): (&str, &str, &str)) {
    let named = "for p in /proc/[0-9]*; do read c < $p/comm; [ \"$c\" = postgres ] && echo ${p#/proc/}; done";
    // One that has ended meanwhile is none of those that are meant.
    let all = format!("{named} | sort -n | {which} | xargs -n 1 kill -{signal} || :");
    desk.run(&["shell", node, "sh", "-c", &all]).ends_with(0);
}

#[test]
#[ignore = "second tier: a Kubernetes cluster in a lab, a minute; only where its programs have been built"]
fn strangers_who_kill_in_a_pod_or_delete_it_are_named_and_leave_the_verdict_unknown() {
    if let Some(why) = missing() {
        return eprintln!("skipped: strangers_who_kill_in_a_pod: {why}");
    }
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("strangers_who_kill_in_a_pod") else { return };
    let kill = "schedule.2.faults=[{process: {of: leader, how: kill}, at: 1s}]";
    let shorter = [&SHORTER[..], &["--set", "schedule.2.for=30s", "--set", kill]].concat();
    let running = desk.start(&[&["run", SCENARIO], &shorter[..]].concat());
    assert!(running.says("took effect"), "{}", running.wait().stdout);
    // A server process, of which only PostgreSQL's own log tells, and its neighbours, which stand still for a second.
    signal(&desk, ("n3", "KILL", "tail -n 1"));
    sleep(Duration::from_secs(2));
    signal(&desk, ("n3", "STOP", "cat"));
    sleep(Duration::from_secs(1));
    signal(&desk, ("n3", "CONT", "cat"));
    // The first process of a container.
    signal(&desk, ("n2", "KILL", "head -n 1"));
    sleep(Duration::from_secs(5));
    let delete = ["kubectl", "delete", "pod", "postgres-1", "--namespace", "database", "--wait=false"];
    desk.run(&[&["shell", "control"], &delete[..]].concat()).ends_with(0);
    let finished = running.wait();
    let result = finished.ends_with(2).result();
    let seen = result["lab"]["interference"].as_array().expect("interference");
    let deed = |program: &str, node: &str, done: &str| {
        let is_it = |one: &&Value| {
            one["program"].as_str().is_some_and(|name| name.contains(program))
                && one["node"] == node
                && one["done"] == done
        };
        assert_eq!(seen.iter().filter(is_it).count(), 1, "{program} on {node} {done}: {seen:#?}");
    };
    deed("PostgreSQL's", "n3", "killed");
    deed("container of pod postgres-1", "n2", "killed");
    deed("pod postgres-1", "n2", "deleted");
    assert!(seen.iter().any(|one| one["done"] == "stopped" && one["node"] == "n3"), "{seen:#?}");
    assert!(
        seen.iter().all(|one| one["node"] != "n1"),
        "what the schedule did is no interference: {seen:#?}"
    );
    assert!(finished.stdout.contains("INTERFERENCE pod postgres-1 on n2 was deleted"), "{}", finished.stdout);
    contract::holds(&result);
}

#[test]
#[ignore = "second tier: Kubernetes clusters in labs, two minutes; only where its programs have been built"]
fn volumes_of_several_copies_are_storage_classes_of_the_cluster() {
    let axes = "matrix.axes={storage: {r1: {database.storage.replicas: 1}, \
                r3: {database.storage: {replicas: 3, class: tuned}}}}";
    if let Some(why) = missing() {
        return eprintln!("skipped: volumes_of_several_copies: {why}");
    }
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("volumes_of_several_copies") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&["run", "scenarios/fr5-kubernetes.yaml", "--set", axes]);
    finished.ends_with(0);
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: Kubernetes clusters in labs, four minutes; only where its programs have been built"]
fn databases_by_a_file_run_in_pods_and_lose_nothing_to_a_power_off_and_a_kill() {
    let (off, kill) =
        ("{power-off: {host: dc1/a/h1}, at: 1s, for: 20s}", "{process: {of: n2, how: kill}, at: 33s}");
    let faults = format!("schedule.2.faults=[{off}, {kill}]");
    for engine in ["etcd", "galera"] {
        let chosen = format!("database.engine={engine}");
        let more = ["--set", &chosen, "--set", &faults];
        let Some(result) = ran("databases_by_a_file", 0, &[&[SCENARIO], &SHORTER[..], &more[..]].concat())
        else {
            return;
        };
        for fault in result["faults"].as_array().expect("faults") {
            assert_eq!(fault["receipt"]["verdict"], "pass", "{engine}: {fault:#}");
        }
        assert_eq!(check(&result, "ledger")["verdict"], "pass", "{engine}: {result:#}");
        let pod = format!("{engine}-0");
        assert!(phase_s(&result, "pod-deleted", &pod) < phase_s(&result, "pod-ready", &pod), "{engine}");
    }
}
