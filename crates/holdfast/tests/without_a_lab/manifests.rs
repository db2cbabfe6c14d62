//! `holdfast manifests`, and what `deploy/kubernetes` holds: it is read as YAML, and allows what `holdfast check` names, no more and
//! no less. No cluster has taken it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use yaml::{Field, Language, Node, Value};

use crate::folder::Folder;

const SCENARIO: &str = "name: mine
target: kubernetes
cluster:
  engine: postgres
  kubernetes: { namespace: databases, stateful-set: pg, replicas: 2 }
  may-break: [pg-0, pg-1]
loads: [{ workload: ledger, clients: 2 }]
schedule:
  - { phase: baseline, for: 4s }
  - { phase: fault, for: 8s, faults: [{ external: { COMMAND }, at: 1s, for: 4s }] }
expect: { lost_writes: 0 }
";

/// Every command file of pods, with the values that it must be given.
const COMMANDS: &[(&str, &str)] = &[
    ("kubernetes-chaos-partition", ", with: { peer: 10.0.0.2, port: \"5432\" }"),
    ("kubernetes-chaos-pod-kill", ""),
    ("kubernetes-container-kill", ""),
    ("kubernetes-evict", ""),
    (
        "kubernetes-network-policy",
        ", with: { manifest: /etc/isolate.yaml, address: 10.0.0.2, port: \"5432\" }",
    ),
    ("kubernetes-out-of-service", ""),
    ("kubernetes-pod-delete", ""),
];

/// A command file of the scenario's own.
const MARKER: &str = "fault: marker
summary: a file is there
written-for: { tool: coreutils, version: \"9\", asked-by: { run: [touch, --version] } }
do: [{ run: [touch, mark] }]
undo: [{ run: [rm, -f, mark] }]
stands: [{ run: [test, -e, mark] }]
gone: [{ run: [test, -e, mark], exit: 1 }]
tested: { here: false, from: this test }
";

/// A manifest, as the reader of YAML is to call it.
static MANIFEST: Language =
    Language { family: "manifest", noun: "manifest", begin: "", shorten: "", example: no_example };

fn no_example(_: &Field) -> Option<String> {
    None
}

fn scenario(command: &str, with: &str) -> String {
    SCENARIO.replace("COMMAND", &format!("command: {command}, of: pg-0{with}"))
}

/// Where no program is found, so that no cluster can be asked: the exit code, standard output and standard error.
fn said(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let nowhere = folder.path().join("no-programs");
    let output = folder.command(arguments).env("PATH", nowhere).output().expect("the program starts");
    let Output { status, stdout, stderr } = output;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code().expect("an exit code"), text(stdout), text(stderr))
}

/// What is printed where nothing is complained of.
#[track_caller]
fn printed(folder: &Folder, arguments: &[&str]) -> String {
    let (code, text, complaint) = said(folder, arguments);
    assert_eq!((code, complaint.as_str()), (0, ""), "{text}");
    text
}

fn documents(text: &str) -> Vec<Node> {
    let read = |document: &str| yaml::tree::read(document, 0, 0, &MANIFEST).expect("YAML");
    text.split("\n---\n").map(read).collect()
}

fn word<'a>(node: &'a Node, path: &str) -> Option<&'a str> {
    match &node.value_at(path)?.value {
        Value::Scalar { text, .. } => Some(text.as_str()),
        Value::List(_) | Value::Map(_) => None,
    }
}

fn list<'a>(node: &'a Node, path: &str) -> &'a [Node] {
    match node.value_at(path).map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}

fn words(node: &Node, path: &str) -> Vec<String> {
    let text = |item: &Node| match &item.value {
        Value::Scalar { text, .. } => text.clone(),
        other => panic!("{path} has no word here: {other:?}"),
    };
    list(node, path).iter().map(text).collect()
}

/// What the roles among these objects allow, in the words of `holdfast check`.
fn allowed(objects: &[Node]) -> BTreeSet<String> {
    let is_role = |object: &&Node| matches!(word(object, "kind"), Some("Role" | "ClusterRole"));
    let mut allowed = BTreeSet::new();
    for role in objects.iter().filter(is_role) {
        let place = word(role, "metadata.namespace").map(|name| format!("namespace {name}"));
        let place = place.unwrap_or_else(|| "the whole cluster".to_owned());
        for rule in list(role, "rules") {
            let (groups, resources) = (words(rule, "apiGroups"), words(rule, "resources"));
            assert_eq!((groups.len(), resources.len()), (1, 1), "{rule:?}");
            let group = if groups[0].is_empty() { String::new() } else { format!(".{}", groups[0]) };
            let resource = match resources[0].split_once('/') {
                Some((whole, part)) => format!("{whole}{group}/{part}"),
                None => format!("{}{group}", resources[0]),
            };
            let verbs = words(rule, "verbs").into_iter();
            allowed.extend(verbs.map(|verb| format!("{verb} {resource} in {place}")));
        }
    }
    allowed
}

/// What `holdfast check` says is needed, and what it says is optional.
fn named_by_check(folder: &Folder) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = printed(folder, &["check", "mine.yaml"]);
    let (mut needed, mut optional) = (BTreeSet::new(), BTreeSet::new());
    let lines = text.lines().filter_map(|line| line.strip_prefix("  not asked  ")?.split_once(": "));
    for (what, why) in lines {
        let names = if why.starts_with("needed to ") { &mut needed } else { &mut optional };
        names.insert(what.to_owned());
    }
    (needed, optional)
}

#[test]
fn the_roles_allow_what_check_names_for_every_command_file_and_nothing_else() {
    let shipped = remote::shipped().iter().map(|file| file.name.as_str());
    let of_pods: BTreeSet<&str> = shipped.filter(|name| name.starts_with("kubernetes-")).collect();
    assert_eq!(COMMANDS.iter().map(|(command, _)| *command).collect::<BTreeSet<&str>>(), of_pods);
    for (command, with) in COMMANDS {
        let folder = Folder::with(&scenario(command, with));
        let (needed, optional) = named_by_check(&folder);
        assert!(needed.contains("create pods/portforward in namespace databases"), "{command}: {needed:?}");
        let named: BTreeSet<String> = needed.union(&optional).cloned().collect();
        let all = documents(&printed(&folder, &["manifests", "mine.yaml"]));
        assert_eq!(allowed(&all), named, "{command}");
        let some = documents(&printed(&folder, &["manifests", "mine.yaml", "--only-needed"]));
        assert_eq!(allowed(&some), needed, "{command}");
    }
}

#[test]
fn the_roles_allow_what_agents_as_pods_need() {
    let on_agents = scenario("kubernetes-pod-delete", "")
        .replace("replicas: 2 }", "replicas: 2, agents: { image: holdfast, count: 2 } }")
        .replace("clients: 2 }", "clients: 2, agents: [agent-0, agent-1] }");
    let folder = Folder::with(&on_agents);
    let (needed, _) = named_by_check(&folder);
    assert!(needed.contains("create jobs.batch in namespace databases"), "{needed:?}");
    let some = documents(&printed(&folder, &["manifests", "mine.yaml", "--only-needed"]));
    assert_eq!(allowed(&some), needed);
}

#[test]
fn every_role_is_bound_to_the_account_and_in_its_own_place() {
    let folder = Folder::with(&scenario("kubernetes-evict", ""));
    let arguments = ["manifests", "mine.yaml", "--account", "tester", "--namespace", "tests"];
    let text = printed(&folder, &arguments);
    let objects = documents(&text);
    assert_eq!(objects.len(), 7, "{text}");
    let account = ["kind", "metadata.name", "metadata.namespace"].map(|path| word(&objects[0], path));
    assert_eq!(account, [Some("ServiceAccount"), Some("tester"), Some("tests")], "{text}");
    for pair in objects[1..].chunks(2) {
        let [role, binding] = pair else { panic!("a role without a binding: {text}") };
        let kind = word(role, "kind").expect("a kind");
        assert_eq!(word(binding, "kind"), Some(format!("{kind}Binding").as_str()));
        assert_eq!(word(binding, "metadata.namespace"), word(role, "metadata.namespace"));
        let reference = ["kind", "name"].map(|key| word(binding, &format!("roleRef.{key}")));
        assert_eq!(reference, [Some(kind), word(role, "metadata.name")]);
        let subject = ["kind", "name", "namespace"].map(|key| word(binding, &format!("subjects.0.{key}")));
        assert_eq!(subject, account, "{text}");
    }
}

#[test]
fn of_a_matrix_the_roles_are_those_of_all_its_combinations() {
    let axes = "matrix: { axes: { cluster.kubernetes.namespace: [databases, staging] } }\n";
    let folder = Folder::with(&format!("{}{axes}", scenario("kubernetes-pod-delete", "")));
    let allowed = allowed(&documents(&printed(&folder, &["manifests", "mine.yaml"])));
    for namespace in ["databases", "staging"] {
        assert!(allowed.contains(&format!("delete pods in namespace {namespace}")), "{allowed:?}");
    }
}

#[test]
fn of_a_command_file_of_ones_own_it_is_said_that_its_needs_are_not_known() {
    let folder = Folder::with(&scenario("marker.yaml", ""));
    fs::write(folder.path().join("marker.yaml"), MARKER).expect("written");
    let (code, text, complaint) = said(&folder, &["manifests", "mine.yaml"]);
    assert_eq!(code, 0, "{complaint}");
    assert!(
        complaint.contains("other permissions that the commands of marker.yaml need are unknown"),
        "{complaint}"
    );
    assert!(allowed(&documents(&text)).contains("list pods in namespace databases"), "{text}");
}

#[test]
fn a_scenario_without_pods_and_a_name_that_is_none_are_refused() {
    let folder = Folder::with(&scenario("kubernetes-pod-delete", ""));
    let of_a_lab = root().join("scenarios/clock-jump.yaml").display().to_string();
    let (code, text, complaint) = said(&folder, &["manifests", &of_a_lab]);
    assert_eq!((code, text.as_str()), (254, ""), "{complaint}");
    assert!(complaint.contains("it has no pods as members"), "{complaint}");
    let (code, _, complaint) = said(&folder, &["manifests", "mine.yaml", "--namespace", "My Tests"]);
    assert!(code == 254 && complaint.contains("`My Tests` is no name there"), "{code}: {complaint}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn deployed(file: &str) -> String {
    let path = root().join("deploy/kubernetes").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn of_kind<'a>(objects: &'a [Node], kind: &str) -> &'a Node {
    let found = objects.iter().find(|object| word(object, "kind") == Some(kind));
    found.unwrap_or_else(|| panic!("no {kind}"))
}

#[test]
fn the_roles_that_are_deployed_are_those_of_the_scenario_beside_them() {
    let folder = Folder::with("");
    let scenario = root().join("deploy/kubernetes/scenario.yaml").display().to_string();
    let text = printed(&folder, &["manifests", &scenario, "--namespace", "holdfast"]);
    assert_eq!(
        deployed("access.yaml"),
        text,
        "stale: write it anew by `holdfast manifests deploy/kubernetes/scenario.yaml --namespace holdfast`"
    );
}

#[test]
fn what_is_deployed_is_all_there_and_its_job_runs_its_scenario() {
    let kustomization = documents(&deployed("kustomization.yaml")).remove(0);
    let files = words(&kustomization, "resources");
    let objects: Vec<Node> = files.iter().flat_map(|file| documents(&deployed(file))).collect();
    for object in &objects {
        let known = ["apiVersion", "kind", "metadata.name"].map(|path| word(object, path));
        assert!(known.iter().all(|word| word.is_some_and(|word| !word.is_empty())), "{object:?}");
    }
    let [job, account, claim] =
        ["Job", "ServiceAccount", "PersistentVolumeClaim"].map(|kind| of_kind(&objects, kind));
    let namespace = word(of_kind(&objects, "Namespace"), "metadata.name");
    for object in [job, account, claim] {
        assert_eq!(word(object, "metadata.namespace"), namespace, "{object:?}");
    }
    let of_pod = |path: &str| word(job, &format!("spec.template.spec.{path}"));
    assert_eq!(of_pod("serviceAccountName"), word(account, "metadata.name"));
    assert_eq!(of_pod("volumes.1.persistentVolumeClaim.claimName"), word(claim, "metadata.name"));
    let made = |path: &str| word(&kustomization, &format!("configMapGenerator.0.{path}"));
    assert_eq!((made("name"), made("namespace")), (of_pod("volumes.0.configMap.name"), namespace));
    assert_eq!(made("files.0"), Some("scenario.yaml"));
    let scenario = documents(&deployed("scenario.yaml")).remove(0);
    let name = word(&scenario, "name").expect("a name");
    assert_eq!(
        words(job, "spec.template.spec.containers.0.args"),
        ["run", "/scenario/scenario.yaml", "--yes-break", name, "--out", "/runs"]
    );
}
