//! Watches: what is seen of a stream in pieces, of one that ends, and of thousands of objects; and their end.

use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use kubernetes::{Change, Kind, Kubectl, KubectlError, Seen, Sighting, Watch};
use serde_json::{Value, json};

use crate::stub::{Stub, is_alive, object, stub, with};

/// Longer than a busy machine takes; nothing waits for so long where all is well.
const PATIENCE: Duration = Duration::from_secs(60);

fn event(change: &str, object: Value) -> String {
    format!("{}\n", json!({ "type": change, "object": object }))
}

fn pod(name: &str) -> Value {
    with(object("pod.json"), "/metadata/name", name)
}

fn begin(stub: &Stub, kinds: &[Kind]) -> (Watch, Receiver<Sighting>) {
    let (give, take) = mpsc::channel();
    (Watch::begin(&stub.kubectl, kinds, give).expect("kubectl"), take)
}

/// What a sighting says, shortly.
fn next(seen: &Receiver<Sighting>) -> String {
    let sighting = seen.recv_timeout(PATIENCE).expect("something is seen");
    assert!(sighting.unix_s > 0.0);
    match sighting.what {
        Seen::Pod { change: Change::Deleted, pod } => format!("without {}", pod.name),
        Seen::Pod { pod, .. } => pod.name,
        Seen::Node { node, .. } => node.name,
        Seen::Lease { node, lasts_s, .. } => format!("lease of {node} for {lasts_s:?}"),
        Seen::Endpoints { endpoints, .. } => endpoints.service,
        Seen::Attachment { volume, node, is_attached } => format!("{volume} on {node}: {is_attached}"),
        Seen::Claim { claim, volume } => format!("{claim}: {volume:?}"),
        Seen::Gap { why, .. } => format!("gap: {why}"),
    }
}

#[test]
fn each_kind_is_asked_for_in_its_namespace_and_read_as_what_it_is() {
    let stub = stub("echo \"$namespace: $*\" >> $folder/asked\ncat $folder/$2\nexec sleep 1000\n");
    for (kind, file) in [
        (Kind::Pods, "pod.json"),
        (Kind::Nodes, "node.json"),
        (Kind::Leases, "lease.json"),
        (Kind::EndpointSlices, "endpoint_slice.json"),
        (Kind::VolumeAttachments, "attachment.json"),
        (Kind::Claims, "claim.json"),
    ] {
        stub.write(kind.resource(), &event("ADDED", object(file)));
    }
    let (watch, seen) = begin(&stub, Kind::ALL);
    let mut said: Vec<String> = Kind::ALL.iter().map(|_| next(&seen)).collect();
    said.sort();
    let expected = [
        "data-pg-0: Some(\"pvc-0001\")",
        "lease of worker-1 for Some(40.0)",
        "pg-0",
        "pg-any",
        "pvc-0001 on worker-1: true",
        "worker-1",
    ];
    assert_eq!(said, expected);
    drop(watch);
    let asked = stub.read("asked");
    let flags = "--watch --output-watch-events -o json";
    assert!(asked.contains(&format!("databases: get pods {flags}\n")), "{asked}");
    assert!(asked.contains(&format!("kube-node-lease: get leases {flags}\n")), "{asked}");
}

#[test]
fn a_line_that_comes_in_pieces_is_one_sighting() {
    let script = "head -c 700 $folder/line\nsleep 0.2\ntail -c +701 $folder/line\nexec sleep 1000\n";
    let stub = stub(script);
    let line = event("ADDED", pod("pg-0"));
    assert!(line.len() > 800);
    stub.write("line", &(line + &event("DELETED", pod("pg-0"))));
    let (_watch, seen) = begin(&stub, &[Kind::Pods]);
    assert_eq!([next(&seen), next(&seen)], ["pg-0", "without pg-0"]);
}

#[test]
fn a_stream_that_ends_is_begun_again_and_the_gap_is_seen() {
    let script = "if [ -e $folder/ended ]; then cat $folder/second; exec sleep 1000; fi\ntouch $folder/ended\n\
                  cat $folder/first\necho 'error: the connection was lost' >&2\nexit 1\n";
    let stub = stub(script);
    // The last line was cut: what it would have said is not known.
    let cut = event("ADDED", pod("pg-9"));
    stub.write("first", &(event("ADDED", pod("pg-0")) + &cut[..cut.len() / 2]));
    stub.write("second", &event("ADDED", pod("pg-1")));
    let (_watch, seen) = begin(&stub, &[Kind::Pods]);
    let gap = "gap: kubectl ended with 1: error: the connection was lost";
    assert_eq!([next(&seen), next(&seen), next(&seen)], ["pg-0", gap, "pg-1"]);
}

#[test]
fn a_kind_that_may_not_be_watched_is_one_gap_however_often_it_is_tried() {
    let script = "echo again >> $folder/tries\n[ $(wc -l < $folder/tries) -lt 4 ] || { cat $folder/line; exec sleep 1000; }\n\
                  echo 'Error from server (Forbidden)' >&2\nexit 1\n";
    let stub = stub(script);
    stub.write("line", &event("ADDED", object("node.json")));
    let (_watch, seen) = begin(&stub, &[Kind::Nodes]);
    assert_eq!(
        [next(&seen), next(&seen)],
        ["gap: kubectl ended with 1: Error from server (Forbidden)", "worker-1"]
    );
}

/// kubectl ends with 0 and without a word when the cluster ends a watch, and when it loses the connection.
#[test]
fn a_watch_that_the_cluster_ends_is_a_gap_though_kubectl_has_not_failed() {
    let script = "if [ -e $folder/ended ]; then cat $folder/line; exec sleep 1000; fi\ntouch $folder/ended\n\
                  cat $folder/line\n";
    let stub = stub(script);
    stub.write("line", &event("ADDED", pod("pg-0")));
    let (_watch, seen) = begin(&stub, &[Kind::Pods]);
    let said = [next(&seen), next(&seen), next(&seen)];
    assert_eq!([said[0].as_str(), said[2].as_str()], ["pg-0", "pg-0"]);
    assert!(said[1].starts_with("gap: the watch came to its end"), "{}", said[1]);
}

#[test]
fn a_login_that_may_list_and_not_watch_has_a_gap_after_each_list() {
    let script = "cat $folder/line\necho 'Error from server (Forbidden): unknown (get nodes)' >&2\nexit 1\n";
    let stub = stub(script);
    stub.write("line", &event("ADDED", object("node.json")));
    let (_watch, seen) = begin(&stub, &[Kind::Nodes]);
    let gap = "gap: kubectl ended with 1: Error from server (Forbidden): unknown (get nodes)";
    let said = [next(&seen), next(&seen), next(&seen), next(&seen)];
    assert_eq!(said, ["worker-1", gap, "worker-1", gap]);
}

#[test]
fn what_cannot_be_read_is_a_gap_and_the_rest_is_seen() {
    let stub = stub("echo 'Warning: old' >&2\ncat $folder/lines\nexec sleep 1000\n");
    let status = json!({ "kind": "Status", "message": "too old resource version" });
    let nameless = with(object("pod.json"), "/metadata/uid", Value::Null);
    let lines = [event("ERROR", status), event("ADDED", nameless), "not JSON\n".to_owned()];
    let others = [event("BOOKMARK", json!({})), "\n".to_owned(), event("MODIFIED", pod("pg-0"))];
    stub.write("lines", &(lines.concat() + &others.concat()));
    let (_watch, seen) = begin(&stub, &[Kind::Pods]);
    assert_eq!(next(&seen), "gap: the cluster ended the watch: too old resource version");
    assert_eq!(next(&seen), "gap: Pod `pg-0` has no `metadata.uid` that can be read");
    assert!(next(&seen).starts_with("gap: a line is no event"));
    assert_eq!(next(&seen), "pg-0");
}

#[test]
fn thousands_of_pods_are_all_seen() {
    let stub = stub("cat $folder/lines\nexec sleep 1000\n");
    let line = event("ADDED", pod("pg-NUMBER"));
    let lines: String = (0..5000).map(|number| line.replace("NUMBER", &number.to_string())).collect();
    stub.write("lines", &lines);
    let (_watch, seen) = begin(&stub, &[Kind::Pods]);
    for number in 0..5000 {
        assert_eq!(next(&seen), format!("pg-{number}"));
    }
}

#[test]
fn a_watch_ends_with_its_guard_and_its_listener_knows() {
    let stub = stub("echo $$ > $folder/$2\nexec sleep 1000\n");
    let (watch, seen) = begin(&stub, &[Kind::Pods, Kind::Nodes]);
    let numbers = [stub.number("pods"), stub.number("nodes")];
    assert!(numbers.iter().all(|number| is_alive(*number)));
    drop(watch);
    assert!(!numbers.iter().any(|number| is_alive(*number)));
    assert!(seen.recv().is_err());
}

#[test]
fn without_kubectl_there_is_no_watch() {
    let program = PathBuf::from("/nowhere/kubectl");
    let kubectl = Kubectl { program, kubeconfig: None, context: None, namespace: "default".to_owned() };
    let error = Watch::begin(&kubectl, Kind::ALL, mpsc::channel().0).expect_err("not there");
    assert!(matches!(error, KubectlError::NotFound { .. }), "{error}");
}
