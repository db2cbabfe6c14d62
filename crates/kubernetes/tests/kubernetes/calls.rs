//! Calls of kubectl that end: what is asked, what is made of the answer, and of a kubectl that hangs, fails or talks too much.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use kubernetes::permit::{granted, needs};
use kubernetes::{Act, Grant, Kubectl, KubectlError, MemberError, Need, Scope, members};
use serde_json::json;

use crate::stub::{is_alive, object, stub, wait_until, with};

/// Longer than a busy machine takes; nothing waits for so long where all is well.
const WITHIN: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_is_given_stands_before_the_words_and_the_form_behind_them() {
    let kubectl = Kubectl {
        program: PathBuf::from("kubectl"),
        kubeconfig: Some(PathBuf::from("/etc/lab")),
        context: Some("kind-lab".to_owned()),
        namespace: "databases".to_owned(),
    };
    assert_eq!(
        kubectl.words(&["get", "pods"]).join(" "),
        "kubectl --kubeconfig /etc/lab --context kind-lab --namespace databases get pods"
    );
    let stub = stub("echo \"{ \\\"asked\\\": \\\"$namespace: $*\\\" }\"\n");
    let answer = stub.kubectl.in_namespace("other").json(&["get", "pods"], WITHIN).expect("JSON");
    assert_eq!(answer, json!({ "asked": "other: get pods -o json" }));
}

#[test]
fn warnings_beside_an_answer_are_no_part_of_it() {
    let stub = stub("echo 'Warning: v1 is old' >&2\necho '{ \"a\": 1 }'\n");
    assert_eq!(stub.kubectl.json(&["get", "x"], WITHIN).expect("JSON"), json!({ "a": 1 }));
}

#[test]
fn a_kubectl_that_fails_is_told_with_its_code_and_its_last_words() {
    let stub = stub("echo half\necho 'error: the server is asleep' >&2\nexit 3\n");
    let error = stub.kubectl.text(&["get", "pods"], WITHIN).expect_err("failed");
    assert_eq!(error.to_string(), "`kubectl get pods` failed with 3: error: the server is asleep");
}

#[test]
fn an_answer_that_is_not_json_is_an_error() {
    let stub = stub("echo 'No resources found'\n");
    let error = stub.kubectl.json(&["get", "pods"], WITHIN).expect_err("no JSON");
    assert!(matches!(error, KubectlError::NotJson { .. }), "{error}");
}

#[test]
fn a_kubectl_that_hangs_is_ended_with_all_that_it_started() {
    let stub = stub("echo $$ > $folder/kubectl.pid\nsleep 1000 &\necho $! > $folder/login.pid\nwait\n");
    let error = stub.kubectl.json(&["get", "pods"], SHORT).expect_err("no answer");
    assert!(matches!(error, KubectlError::TimedOut { .. }), "{error}");
    // It may have been ended before it had written a number.
    for file in ["kubectl.pid", "login.pid"] {
        if let Ok(number) = stub.read(file).trim().parse() {
            wait_until(file, || !is_alive(number));
        }
    }
}

#[test]
fn an_answer_that_is_too_long_is_not_read_to_its_end() {
    let stub = stub("exec cat /dev/zero\n");
    let error = stub.kubectl.text(&["get", "pods"], WITHIN).expect_err("too much");
    assert!(matches!(error, KubectlError::TooMuch { .. }), "{error}");
}

#[test]
fn a_machine_without_kubectl_is_told_so() {
    let program = PathBuf::from("/nowhere/kubectl");
    let kubectl = Kubectl { program, kubeconfig: None, context: None, namespace: "default".to_owned() };
    let error = kubectl.version().expect_err("not there");
    assert!(matches!(error, KubectlError::NotFound { .. }), "{error}");
}

#[test]
fn both_versions_are_known_and_a_cluster_that_does_not_answer_has_none() {
    let script = "[ \"$*\" = 'version -o json' ] || exit 9\ncat $folder/version\n[ ! -e $folder/down ]\n";
    let stub = stub(script);
    let client = json!({ "gitVersion": "v1.31.0" });
    let both = json!({ "clientVersion": client, "serverVersion": { "gitVersion": "v1.35.4" } });
    stub.write("version", &both.to_string());
    assert_eq!(stub.kubectl.version().expect("versions"), "client v1.31.0, server v1.35.4");
    stub.write("down", "");
    assert!(matches!(stub.kubectl.version(), Err(KubectlError::Failed { code: 1, .. })));
}

#[test]
fn the_current_context_is_known_where_there_is_one() {
    let script = "[ \"$*\" = 'config current-context' ] || exit 9\n\
                  [ -e $folder/context ] || { echo 'error: current-context is not set' >&2; exit 1; }\n\
                  cat $folder/context\n";
    let stub = stub(script);
    assert_eq!(stub.kubectl.current_context().expect("an answer"), None);
    stub.write("context", "kind-lab\n");
    assert_eq!(stub.kubectl.current_context().expect("an answer").as_deref(), Some("kind-lab"));
}

#[test]
fn pods_are_asked_for_by_name_and_come_in_the_order_of_the_names() {
    let stub = stub("echo \"$*\" >> $folder/asked\ncat $folder/answer\n");
    let one = |name: &str| with(object("pod.json"), "/metadata/name", name);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [one("pg-0"), one("pg-1")] });
    stub.write("answer", &list.to_string());
    let pods = members::pods(&stub.kubectl, &names(&["pg-1", "pg-0"])).expect("pods");
    assert_eq!(pods.iter().map(|pod| pod.name.as_str()).collect::<Vec<_>>(), ["pg-1", "pg-0"]);
    assert_eq!(stub.read("asked"), "get pods pg-1 pg-0 --ignore-not-found -o json\n");
    let absent = members::pods(&stub.kubectl, &names(&["pg-0", "pg-2"])).expect_err("pg-2 is not there");
    assert_eq!(absent.to_string(), "there is no pod `pg-2` in namespace `databases`");
}

#[test]
fn a_single_pod_is_no_list_and_no_pod_is_no_answer() {
    let stub = stub("cat $folder/answer\n");
    stub.write("answer", &object("pod.json").to_string());
    assert_eq!(members::pods(&stub.kubectl, &names(&["pg-0"])).expect("a pod").len(), 1);
    stub.write("answer", "");
    let absent = members::pods(&stub.kubectl, &names(&["pg-0"])).expect_err("none");
    assert!(matches!(absent, MemberError::NoPod { .. }), "{absent}");
}

#[test]
fn without_names_nothing_is_asked() {
    let stub = stub("echo asked > $folder/asked\necho '{}'\n");
    assert!(members::pods(&stub.kubectl, &[]).expect("none").is_empty());
    assert_eq!(stub.read("asked"), "");
}

#[test]
fn volumes_are_known_as_far_as_the_login_may_read_them() {
    let script = "case \"$2\" in\n  persistentvolumeclaims) cat $folder/claim ;;\n  persistentvolumes) cat $folder/volume ;;\n  \
                  *) echo 'Error from server (Forbidden)' >&2; exit 1 ;;\nesac\n";
    let stub = stub(script);
    stub.write("claim", &object("claim.json").to_string());
    stub.write("volume", &object("volume.json").to_string());
    let pod = kubernetes::Pod::read(&object("pod.json")).expect("a pod");
    let volumes = members::volumes_of(&stub.kubectl, &pod).expect("volumes");
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes[0].reclaim.as_deref(), Some("Delete"));
    assert!(volumes[0].parameters.is_empty());
    fs::remove_file(stub.file("claim")).expect("removed");
    assert!(
        members::volumes_of(&stub.kubectl, &pod).is_err(),
        "claims are in the namespace: not to be left out"
    );
}

#[test]
fn nodes_are_those_of_a_list() {
    let stub = stub("cat $folder/answer\n");
    let list = json!({ "kind": "NodeList", "items": [object("node.json"), object("node.json")] });
    stub.write("answer", &list.to_string());
    assert_eq!(members::nodes(&stub.kubectl).expect("nodes").len(), 2);
}

#[test]
fn leave_is_asked_for_where_it_is_needed_and_only_a_yes_is_one() {
    let script = "echo \"$namespace: $*\" >> $folder/asked\n[ ! -e $folder/warning ] || cat $folder/warning >&2\n\
                  cat $folder/answer\nexit $(cat $folder/code)\n";
    let stub = stub(script);
    let ask = |answer: &str, code: &str, need: &Need| {
        stub.write("answer", answer);
        stub.write("code", code);
        granted(&stub.kubectl, need)
    };
    let need = |verb: &str, resource: &str, scope: Scope| Need {
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        scope,
        is_required: true,
        why: String::new(),
    };
    let forward = need("create", "pods/portforward", Scope::Namespace);
    assert_eq!(ask("yes\n", "0", &forward).expect("an answer"), Grant::Yes);
    let patch = need("patch", "nodes", Scope::Cluster);
    assert_eq!(ask("no\n", "1", &patch).expect("an answer"), Grant::No);
    let leases = need("watch", "leases", Scope::NamespaceOf("kube-node-lease".to_owned()));
    assert_eq!(ask("no - no such role\n", "1", &leases).expect("an answer"), Grant::No);
    assert!(ask("", "1", &forward).is_err(), "a cluster that is not reached has not said no");
    let asked = stub.read("asked");
    let asked: Vec<&str> = asked.lines().take(3).collect();
    assert_eq!(
        asked,
        [
            "databases: auth can-i create pods --subresource=portforward",
            "databases: auth can-i patch nodes --all-namespaces",
            "kube-node-lease: auth can-i watch leases",
        ]
    );
    let warning = "Warning: the server doesn't have a resource type 'podchaos' in group 'chaos-mesh.org'\n";
    stub.write("warning", warning);
    let chaos = need("create", "podchaos.chaos-mesh.org", Scope::Namespace);
    let answer = ask("yes\n", "0", &chaos).expect("an answer");
    assert_eq!(answer, Grant::NoResource, "who may do anything may do it to what is not there");
    assert!(ask("", "1", &chaos).is_err(), "without an answer it is not known what is there");
}

#[test]
fn a_fault_needs_more_than_looking_on() {
    let of = |acts: &[Act]| needs(&acts.iter().copied().collect::<BTreeSet<_>>());
    let has = |needs: &[Need], verb: &str, resource: &str| {
        needs.iter().any(|need| need.verb == verb && need.resource == resource && need.is_required)
    };
    let looks = of(&[]);
    assert!(has(&looks, "create", "pods/portforward") && has(&looks, "watch", "pods"));
    assert!(looks.iter().all(|need| need.verb != "delete" && need.verb != "patch"));
    assert!(has(&of(&[Act::PodDelete]), "delete", "pods"));
    let taint = of(&[Act::NodeTaint]);
    assert!(has(&taint, "patch", "nodes") && has(&taint, "watch", "nodes"), "the strike waits for the node");
    let watched = taint.iter().filter(|need| need.verb == "watch" && need.resource == "nodes");
    assert_eq!(watched.count(), 1, "it is not optional as well");
    assert!(has(&of(&[Act::ChaosMeshNetwork]), "create", "networkchaos.chaos-mesh.org"));
    let generators = of(&[Act::Generators]);
    for resource in ["jobs.batch", "services"] {
        assert!(has(&generators, "create", resource) && has(&generators, "delete", resource), "{resource}");
    }
}
