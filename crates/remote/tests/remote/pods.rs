//! Command files of pods against a stand-in for kubectl: a script that keeps a state in a file and knows the words of kubectl(1)
//! that the files use. This shows that the commands fit together, not that a cluster does what its manual says.

use history::Verdict;
use remote::receipt::Claim;
use remote::strike::StrikeError;
use remote::{Journal, Receipt};

use crate::stand_ins::{machine, receipt};
use crate::striking::{LATE, SHORT, shipped, tried};

/// The pod pg-0 on the node worker-1, with a controller that makes it again at once, and Chaos Mesh. What is cut off is so if
/// `@HOLDS@`, and what is deleted or killed ends if it does. The state is the pod's UID, what was made, how its container and its
/// node are. As of a cluster with a broken extension, every answer comes with a complaint that has the time in it; and a pod that was
/// just made is not found at first.
const KUBECTL: &str = r#"#!/bin/sh
state=@FOLDER@/unit
read -r uid made container node < "$state"
put() { echo "$*" > "$state"; }
refuse() { echo "error: $*" >&2; exit 1; }
complain() { echo "E1125 10:00:00.$$ $$ memcache.go:265] couldn't get resource list for metrics.k8s.io/v1beta1" >&2; }
one='pod pg-0 --namespace default'
case "$1 $2" in
  'version --client') echo 'Client Version: v1.31.0'; exit ;;
  '@FLAGS@') shift 2 ;;
  *) refuse "other flags: $*" ;;
esac
complain
case "$*" in
  "delete $one --now --wait=false --interactive=false") if @HOLDS@; then put new-uid "$made" "$container" "$node"; fi ;;
  "wait $one --for=condition=Ready --timeout=240s")
    [ "$uid" = old-uid ] || [ -e @FOLDER@/was-there ] || { : > @FOLDER@/was-there; refuse 'pods "pg-0" not found'; } ;;
  "get $one --ignore-not-found --output jsonpath={.metadata.uid}") printf %s "$uid" ;;
  "get $one --ignore-not-found --output jsonpath={.metadata.uid} {.metadata.deletionTimestamp}") printf '%s ' "$uid" ;;
  "get $one --output jsonpath=to end:{.metadata.deletionTimestamp}") printf 'to end:' ;;
  "get $one --output jsonpath={.status.conditions[?(@.type=='Ready')].status}") printf True ;;
  "get $one --output jsonpath={.metadata.annotations."*default-container}) ;;
  "get $one --output jsonpath={.spec.containers[0].name}") printf db ;;
  "get $one --output jsonpath={.status.containerStatuses[*].state}") printf '%s exporter-%s' "$container" $$ ;;
  "get $one --output jsonpath={.status.containerStatuses[?(@.name=='db')].state}") printf %s "$container" ;;
  'exec pg-0 --namespace default --container='*' -- sh -c kill -s "$1" 1 sh QUIT')
    if @HOLDS@; then
      put "$uid" "$made" began-anew "$node"; echo 'command terminated with exit code 137' >&2; exit 137
    fi ;;
  'create --filename /etc/isolate.yaml') put "$uid" policy "$container" "$node" ;;
  'delete --filename /etc/isolate.yaml --ignore-not-found --interactive=false') put "$uid" nothing "$container" "$node" ;;
  'get --filename /etc/isolate.yaml')
    [ "$made" = policy ] || refuse 'Error from server (NotFound): networkpolicies "isolate" not found' ;;
  'get --filename /etc/isolate.yaml --ignore-not-found --output name')
    [ "$made" != policy ] || echo networkpolicy.networking.k8s.io/isolate ;;
  'get --filename /etc/with-a-namespace.yaml --ignore-not-found --output name') echo namespace/databases ;;
  'delete --filename /etc/with-a-namespace.yaml --ignore-not-found --interactive=false') put all is gone now ;;
  'exec pg-0 --namespace default --container=db -- nc -z -w 2 10.0.0.2 5432')
    if @HOLDS@ && [ "$made" != nothing ]; then echo 'command terminated with exit code 1' >&2; exit 1; fi ;;
  'exec pg-0 --namespace default --container=db -- nc -z -w 2 kubernetes.default.svc 443') ;;
  'cordon worker-1') put "$uid" "$made" "$container" cordoned ;;
  'uncordon worker-1') put "$uid" "$made" "$container" ready ;;
  'get node worker-1 --output jsonpath={.spec.unschedulable}') [ "$node" != cordoned ] || printf true ;;
  'get node worker-1 --output jsonpath=unschedulable:{.spec.unschedulable}')
    printf unschedulable:; [ "$node" != cordoned ] || printf true ;;
  'create --raw /api/v1/namespaces/default/pods/pg-0/eviction --filename -')
    [ "$(cat)" = '{ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "pg-0", "namespace": "default" } }' ] ||
      refuse 'another eviction'
    put new-uid "$made" "$container" "$node" ;;
  'wait node worker-1 --for=condition=Ready=Unknown --timeout=120s') [ "$node" = silent ] || refuse 'timed out' ;;
  'taint node worker-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute')
    put new-uid "$made" "$container" out-of-service ;;
  'taint node worker-1 node.kubernetes.io/out-of-service:NoExecute-')
    [ "$node" = out-of-service ] || refuse 'taint "node.kubernetes.io/out-of-service" not found'
    put "$uid" "$made" "$container" silent ;;
  'get node worker-1 --output jsonpath={.spec.taints[*].key}' | 'get node worker-1 --output jsonpath=taints:{.spec.taints[*].key}')
    case $5 in jsonpath=taints*) printf taints: ;; esac
    [ "$node" != out-of-service ] || printf node.kubernetes.io/out-of-service ;;
  'create --filename -')
    object=$(cat)
    case "$object" in *'"pods": { "default": ["pg-0"] }'*) ;; *) refuse "not of the pod: $object" ;; esac
    case "$object" in
      *'"kind": "PodChaos"'*'"action": "pod-kill"'*) put new-uid podchaos "$container" "$node" ;;
      *'"kind": "NetworkChaos"'*'"direction": "to", "externalTargets": ["10.0.0.2"]'*)
        put "$uid" networkchaos "$container" "$node" ;;
      *) refuse "another object: $object" ;;
    esac ;;
  'delete podchaos holdfast-'*' --namespace default --ignore-not-found --interactive=false' | \
    'delete networkchaos holdfast-'*' --namespace default --ignore-not-found --interactive=false') put "$uid" nothing "$container" "$node" ;;
  'get podchaos holdfast-'*' --namespace default --ignore-not-found --output name' | \
    'get networkchaos holdfast-'*' --namespace default --ignore-not-found --output name')
    [ "$2" != "$made" ] || echo "$2.chaos-mesh.org/$3" ;;
  *) refuse "unknown command $*" ;;
esac
"#;

/// What becomes of a fault of the pod, and the state while it stands.
fn of_pod(name: &str, given: &[(&str, &str)], holds: bool, node: &str) -> (Receipt, String) {
    let of = |name: &str| given.iter().find(|(given, _)| *given == name).map_or("", |(_, value)| *value);
    let flags = format!("--kubeconfig={} --context={}", of("kubeconfig"), of("context"));
    let kubectl = KUBECTL.replace("@HOLDS@", &holds.to_string()).replace("@FLAGS@", &flags);
    let given = [given, &[("pod", "pg-0")]].concat();
    let (receipt, stood) =
        receipt(name, &given, &[("kubectl", &kubectl)], &format!("old-uid nothing running {node}"));
    (receipt, stood.trim().to_owned())
}

#[track_caller]
fn passes(name: &str, given: &[(&str, &str)], node: &str, stands_as: &str) {
    let (receipt, stood) = of_pod(name, given, true, node);
    assert_eq!(stood, stands_as);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_pod_is_deleted_and_another_of_its_name_is_there() {
    passes("kubernetes-pod-delete", &[], "ready", "new-uid nothing running ready");
}

#[test]
fn the_context_and_the_configuration_of_kubectl_are_those_that_were_given() {
    let given = [("context", "kind-lab"), ("kubeconfig", "/etc/lab/kubeconfig")];
    passes("kubernetes-pod-delete", &given, "ready", "new-uid nothing running ready");
}

#[test]
fn a_network_policy_that_nobody_enforces_is_no_partition() {
    let given =
        [("manifest", "/etc/isolate.yaml"), ("container", "db"), ("address", "10.0.0.2"), ("port", "5432")];
    passes("kubernetes-network-policy", &given, "ready", "old-uid policy running ready");
    let (ignored, stood) = of_pod("kubernetes-network-policy", &given, false, "ready");
    assert_eq!(stood, "old-uid policy running ready", "kubectl ended with 0 all the same");
    assert_ne!(ignored.verdict(), Verdict::Pass);
}

#[test]
fn a_manifest_with_something_that_is_there_is_not_struck_and_nothing_of_it_is_deleted() {
    let given = [
        ("manifest", "/etc/with-a-namespace.yaml"),
        ("pod", "pg-0"),
        ("container", "db"),
        ("address", "10.0.0.2"),
        ("port", "5432"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let kubectl = KUBECTL.replace("@HOLDS@", "true").replace("@FLAGS@", "--kubeconfig= --context=");
    let reach = machine(folder.path(), &[("kubectl", &kubectl)], "old-uid nothing running ready");
    let journal = Journal::open(folder.path()).expect("a journal");
    let fault = shipped("kubernetes-network-policy", &given);
    let error = tried(fault, &reach, &journal, (LATE, SHORT)).expect_err("the namespace is not ours");
    assert!(matches!(error, StrikeError::NoBaseline { .. }), "{error}");
    let state = std::fs::read_to_string(folder.path().join("unit")).expect("the state");
    assert_eq!(state.trim(), "old-uid nothing running ready");
}

#[test]
fn a_container_that_ends_before_the_command_in_it_was_killed_all_the_same() {
    let given = [("container", "db")];
    passes("kubernetes-container-kill", &given, "ready", "old-uid nothing began-anew ready");
}

#[test]
fn where_no_container_is_named_the_one_is_looked_at_that_kubectl_chooses() {
    passes("kubernetes-container-kill", &[], "ready", "old-uid nothing began-anew ready");
}

/// Neither what kubectl complains of nor another container is taken for it.
#[test]
fn a_pod_and_a_container_that_go_on_were_not_struck() {
    for name in ["kubernetes-pod-delete", "kubernetes-container-kill"] {
        let (receipt, stood) = of_pod(name, &[], false, "ready");
        assert_eq!(stood, "old-uid nothing running ready", "kubectl ended with 0 all the same");
        assert_ne!(receipt.verdict(), Verdict::Pass, "{name}");
    }
}

#[test]
fn a_pod_is_evicted_from_a_node_that_takes_pods_again_afterwards() {
    passes("kubernetes-evict", &[("node", "worker-1")], "ready", "new-uid nothing running cordoned");
}

#[test]
fn only_a_node_that_is_silent_is_taken_out_of_service() {
    let given = [("node", "worker-1")];
    passes("kubernetes-out-of-service", &given, "silent", "new-uid nothing running out-of-service");
    let (answers, stood) = of_pod("kubernetes-out-of-service", &given, true, "ready");
    assert_eq!(stood, "old-uid nothing running ready", "it has no taint");
    assert_ne!(answers.verdict(), Verdict::Pass);
    assert!(answers.undo.iter().all(Claim::is_success), "what was not struck is undone: {:?}", answers.undo);
}

#[test]
fn chaos_mesh_is_asked_for_the_very_pod_and_the_pods_own_tries_tell() {
    passes("kubernetes-chaos-pod-kill", &[], "ready", "new-uid podchaos running ready");
    let given = [("container", "db"), ("peer", "10.0.0.2"), ("port", "5432")];
    passes("kubernetes-chaos-partition", &given, "ready", "old-uid networkchaos running ready");
    let (ignored, stood) = of_pod("kubernetes-chaos-partition", &given, false, "ready");
    assert_eq!(stood, "old-uid networkchaos running ready", "Chaos Mesh has the experiment all the same");
    assert_ne!(ignored.verdict(), Verdict::Pass);
}
