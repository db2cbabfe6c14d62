//! What is read of objects as the API documents them, and of those from which something is missing.

use std::collections::BTreeSet;
use std::time::Duration;

use kubernetes::{Container, Endpoints, Generators, Node, Pod, PodPhase, Volume};
use serde_json::{Value, json};

use crate::stub::{object, stub, with};

/// 2026-03-01T10:00:00Z.
const CREATED: f64 = 1_772_359_200.0;

fn pod(object: &Value) -> Pod {
    Pod::read(object).expect("a pod")
}

#[test]
fn a_pod_is_read_with_its_default_containers_state() {
    let pod = pod(&object("pod.json"));
    assert_eq!((pod.name.as_str(), pod.uid.as_str()), ("pg-0", "5d3e1d6e-0000-4000-8000-000000000010"));
    assert_eq!(pod.node.as_deref(), Some("worker-1"));
    assert_eq!(pod.address, "10.244.1.7".parse().ok());
    assert_eq!((pod.phase, pod.is_ready, pod.restarts), (PodPhase::Running, true, 2));
    assert_eq!((pod.created_unix_s, pod.container_started_unix_s), (CREATED, Some(CREATED + 10.0)));
    assert_eq!(pod.deletion_asked_unix_s, None);
    assert_eq!(pod.labels["role"], "primary");
    assert_eq!(pod.claims, ["data-pg-0", "pg-0-scratch"]);
    assert_eq!(pod.containers["exporter"], Container { restarts: 7, started_unix_s: None, last_end: None });
}

#[test]
fn another_container_of_a_pod_may_be_meant() {
    let pod = pod(&object("pod.json"));
    let of = |name| {
        let pod = pod.clone().of_container(name);
        (pod.restarts, pod.container_started_unix_s)
    };
    assert_eq!(of(None), (2, Some(CREATED + 10.0)));
    assert_eq!(of(Some("exporter")), (7, None));
    assert_eq!(of(Some("nowhere")), (0, None));
}

#[test]
fn without_a_default_the_first_container_of_the_specification_is_meant() {
    let pod = pod(&with(object("pod.json"), "/metadata/annotations", Value::Null));
    assert_eq!((pod.restarts, pod.container_started_unix_s), (7, None));
}

#[test]
fn a_deletion_was_asked_for_before_its_time_to_end_is_over() {
    let mut object = object("pod.json");
    object["metadata"]["deletionTimestamp"] = json!("2026-03-01T10:01:30Z");
    object["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    assert_eq!(pod(&object).deletion_asked_unix_s, Some(CREATED + 60.0));
    object["metadata"]["deletionTimestamp"] = json!("soon");
    assert!(Pod::read(&object).is_err(), "a deletion that cannot be read is not taken for none");
}

#[test]
fn a_pod_that_was_just_made_has_no_state() {
    let metadata = json!({ "name": "pg-0", "uid": "1", "creationTimestamp": "2026-03-01T10:00:00Z" });
    let pod = pod(&json!({ "metadata": metadata }));
    assert_eq!((pod.phase, pod.is_ready, pod.node), (PodPhase::Unknown, false, None));
    assert!(pod.containers.is_empty() && pod.claims.is_empty());
}

#[test]
fn a_pod_without_what_every_pod_has_is_refused_by_the_fields_name() {
    for (path, name) in [
        ("/metadata/uid", "metadata.uid"),
        ("/metadata/name", "metadata.name"),
        ("/metadata/creationTimestamp", "metadata.creationTimestamp"),
        ("/kind", "kind"),
    ] {
        let absent = if path == "/kind" { json!("Status") } else { Value::Null };
        let error = Pod::read(&with(object("pod.json"), path, absent)).expect_err(name);
        assert_eq!(error.missing, name);
    }
}

#[test]
fn a_node_that_is_not_heard_of_is_lost_and_not_known_to_be_unready() {
    let node = Node::read(&object("node.json")).expect("a node");
    assert_eq!((node.is_ready, node.is_cordoned, node.zone.as_deref()), (None, true, Some("eu-a")));
    assert_eq!(node.taints, ["node.kubernetes.io/unreachable:NoSchedule", "dedicated=databases:NoExecute"]);
    assert_eq!(node.boot_id.as_deref(), Some("0f2f5e3a-0000-4000-8000-000000000030"));
    assert!(node.is_lost());
    let ready = with(object("node.json"), "/status/conditions/1/status", "True");
    assert!(Node::read(&ready).expect("a node").is_lost(), "it is tainted still");
    let back = Node::read(&with(ready, "/spec/taints", Value::Null)).expect("a node");
    assert!(back.is_ready == Some(true) && !back.is_lost());
}

#[test]
fn a_volume_is_what_claim_volume_and_class_say_but_for_secrets() {
    let volume = Volume::read(&object("claim.json")).expect("a claim");
    assert_eq!((volume.claim.as_str(), volume.volume.as_deref()), ("data-pg-0", Some("pvc-0001")));
    assert_eq!((volume.capacity.as_deref(), volume.storage_class.as_deref()), (Some("10Gi"), Some("fast")));
    assert_eq!(volume.access_modes, ["ReadWriteOnce"]);
    let volume = volume.with_volume(&object("volume.json")).expect("a volume");
    assert_eq!(
        (volume.reclaim.as_deref(), volume.provisioner.as_deref()),
        (Some("Delete"), Some("csi.example"))
    );
    let volume = volume.with_class(&object("class.json")).expect("a class");
    assert_eq!(volume.parameters.keys().collect::<Vec<_>>(), ["replicas", "type"]);
}

#[test]
fn endpoints_are_the_pods_that_take_connections() {
    let endpoints = Endpoints::read(&object("endpoint_slice.json")).expect("a slice");
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!((endpoints.service.as_str(), endpoints.slice.as_str()), ("pg-any", "pg-any-x7k2p"));
    assert_eq!(endpoints.ready, set(&["pg-0", "pg-1"]), "what does not say is ready");
    assert_eq!(endpoints.ready_uids, set(&["uid-0", "uid-1"]));
    let none = with(object("endpoint_slice.json"), "/endpoints", Value::Null);
    assert_eq!(Endpoints::read(&none).expect("a slice").ready, set(&[]));
}

#[test]
fn generators_are_those_of_their_pods_that_run_in_the_order_of_their_numbers() {
    let of = |number: &str, phase: &str| {
        json!({
            "kind": "Pod",
            "metadata": {
                "name": format!("load-{number}"), "uid": number, "creationTimestamp": "2026-11-25T09:00:00Z",
                "labels": { "batch.kubernetes.io/job-completion-index": number }
            },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": "True" }] }
        })
    };
    let mut ending = of("1", "Running");
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-25T10:00:00Z");
    let pods = [of("2", "Running"), ending, of("1", "Pending"), of("0", "Running"), of("3", "Running")];
    let stub = stub("cat $folder/pods.json\n");
    stub.write("pods.json", &json!({ "kind": "List", "items": pods }).to_string());
    let generators = Generators {
        name: "load".to_owned(),
        image: "holdfast".to_owned(),
        count: 3,
        lives: Duration::from_secs(60),
        members: Vec::new(),
        port: 5432,
    };
    let running = generators.running(&stub.kubectl).expect("an answer");
    let names: Vec<&str> = running.values().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["load-0", "load-2"]);
}
