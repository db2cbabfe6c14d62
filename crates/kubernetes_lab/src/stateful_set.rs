//! The objects of a database in pods: a StatefulSet with its files, its volumes and its services, from what the engine says that its
//! pods run.
//!
//! Owns the objects' forms. The pod with the number of a node is the node's own: its claim is bound to that node's volume beforehand.
//! Clients reach it at the node's address, which is the pod's own, or which a service leads to the pod as long as it is there and ready.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use engine::pods::{FILES, MEMBER};
use engine::{PodNetwork, PodPlan, Readiness};
use serde_json::{Value, json};

use crate::pieces::SHELL_IMAGE;
use crate::plan::{Member, SERVICES};
use crate::storage::{self, Claim, Class, Volume};

/// The ordinary user of the image and of the volumes.
const USER: u32 = 1000;
/// The claim of each pod, whose name the pod's is appended to.
const CLAIM: &str = "data";
/// The number of the first pod's service within the range of services.
const FIRST: u32 = 100;
/// How long a pod that is deleted has to end.
const GRACE_S: u32 = 5;
/// Folders of the machine that pods see, and their paths there: on Debian the others are links into the first.
const MACHINE: [(&str, &str); 3] = [("usr", "/usr"), ("lib", "/usr/lib"), ("lib64", "/usr/lib64")];
/// The same of its shells, for databases whose own scripts name one: in place of the image's.
const SHELLS: (&str, &str) = ("bin", "/usr/bin");

/// A database in pods, one on each of some nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatefulSet {
    pub namespace: String,
    /// Its name, which those of its pods begin with.
    pub name: String,
    /// The name of its container.
    pub container: String,
    /// What stands in the name and the description of its storage class.
    pub class: ClassFacts,
    /// The nodes, whose pods have their numbers.
    pub nodes: Vec<Member>,
}

/// What a storage class of the lab says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassFacts {
    pub name: String,
    /// What it is, for a person to read.
    pub description: String,
}

impl StatefulSet {
    /// The address at which the first node's pod is reached, wherever it is: the cluster has no names.
    #[must_use]
    pub fn first_address() -> Ipv4Addr {
        SERVICES.address(FIRST)
    }

    /// The names of its pods, in the order of its nodes.
    #[must_use]
    pub fn pods(&self) -> Vec<String> {
        (0..self.nodes.len()).map(|number| self.pod(number)).collect()
    }

    fn pod(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// The volumes of its pods, each on a node of its own.
    #[must_use]
    pub fn storage_class(&self) -> Class {
        let volume = |(number, node): (usize, &Member)| Volume {
            name: format!("{}-{}", self.class.name, node.name),
            node: node.name.clone(),
            folder: self.class.name.clone(),
            gibibytes: 1,
            claim: Some(Claim {
                namespace: self.namespace.clone(),
                name: format!("{CLAIM}-{}", self.pod(number)),
            }),
        };
        Class {
            name: self.class.name.clone(),
            description: self.class.description.clone(),
            volumes: self.nodes.iter().enumerate().map(volume).collect(),
        }
    }

    /// Where each of its volumes lies, relative to its node's.
    #[must_use]
    pub fn volume(&self) -> PathBuf {
        self.storage_class().volumes.first().map(Volume::path).unwrap_or_default()
    }

    /// All objects, one list. `volume` is where each node finds its volume.
    #[must_use]
    pub fn objects(&self, plan: &PodPlan, volume: &Path) -> Value {
        let mut items =
            vec![json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace } })];
        items.extend(storage::objects_of(&self.storage_class(), volume));
        if !plan.files.is_empty() {
            items.push(self.files(plan));
        }
        items.push(self.service(&self.name, &json!({ "app": self.name }), plan, &json!({})));
        if plan.network == PodNetwork::Own {
            items.extend(self.ways_to_pods(plan));
        }
        items.push(self.stateful_set(plan));
        json!({ "apiVersion": "v1", "kind": "List", "items": items })
    }

    /// The services that lead to single pods whose addresses are not their nodes'.
    fn ways_to_pods(&self, plan: &PodPlan) -> Vec<Value> {
        let mut items = Vec::new();
        let first = json!({ "clusterIP": StatefulSet::first_address() });
        items.push(self.service(&format!("{}-first", self.name), &of_pod(&self.pod(0)), plan, &first));
        for (number, node) in self.nodes.iter().enumerate() {
            // Whoever asks a node is answered by the pod on it or by nobody, and seen by the pod as who he is.
            let outside = json!({
                "externalIPs": [node.address],
                "externalTrafficPolicy": "Local",
            });
            let name = format!("{}-{}", self.name, node.name);
            items.push(self.service(&name, &of_pod(&self.pod(number)), plan, &outside));
        }
        items
    }

    fn metadata(&self, name: &str) -> Value {
        json!({ "name": name, "namespace": self.namespace, "labels": { "app": self.name } })
    }

    fn files(&self, plan: &PodPlan) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": self.metadata(&self.name),
            "data": plan.files,
        })
    }

    fn service(&self, name: &str, selector: &Value, plan: &PodPlan, more: &Value) -> Value {
        let mut spec = json!({ "selector": selector, "ports": [{ "name": "clients", "port": plan.port }] });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(name), "spec": spec })
    }

    fn stateful_set(&self, plan: &PodPlan) -> Value {
        let claim = json!({
            "metadata": { "name": CLAIM },
            "spec": {
                "storageClassName": self.class.name,
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": self.metadata(&self.name),
            "spec": {
                "serviceName": self.name,
                "replicas": self.nodes.len(),
                "podManagementPolicy": "Parallel",
                "selector": { "matchLabels": { "app": self.name } },
                "volumeClaimTemplates": [claim],
                "template": {
                    "metadata": { "labels": { "app": self.name } },
                    "spec": self.pod_spec(plan),
                },
            },
        })
    }

    fn pod_spec(&self, plan: &PodPlan) -> Value {
        let mut mounts = vec![json!({ "name": CLAIM, "mountPath": plan.volume })];
        let mut volumes = Vec::new();
        if !plan.files.is_empty() {
            mounts.push(json!({ "name": "files", "mountPath": FILES, "readOnly": true }));
            volumes.push(json!({ "name": "files", "configMap": { "name": self.name } }));
        }
        for (number, folder) in shown(plan).into_iter().enumerate() {
            let Shown { inside, path, is_writable } = folder;
            let name = format!("shown-{number}");
            mounts.push(json!({ "name": name, "mountPath": inside, "readOnly": !is_writable }));
            volumes.push(json!({ "name": name, "hostPath": { "path": path, "type": "Directory" } }));
        }
        json!({
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "hostNetwork": plan.network == PodNetwork::Node,
            "securityContext": { "runAsUser": USER, "runAsGroup": USER },
            "containers": [container(&self.container, plan, &mounts)],
            "volumes": volumes,
        })
    }
}

/// A folder of a node that pods see.
struct Shown {
    /// Its path in the pod.
    inside: PathBuf,
    path: PathBuf,
    is_writable: bool,
}

fn shown(plan: &PodPlan) -> Vec<Shown> {
    let shells = (plan.network == PodNetwork::Node).then_some(&SHELLS);
    let machine = MACHINE.iter().chain(shells).map(|(name, path)| Shown {
        inside: Path::new("/").join(name),
        path: PathBuf::from(path),
        is_writable: false,
    });
    let under_its_path =
        |path: &PathBuf, is_writable| Shown { inside: path.clone(), path: path.clone(), is_writable };
    let beside = |path: &&PathBuf| !path.starts_with("/usr");
    let readable = plan.readable.iter().filter(beside).map(|path| under_its_path(path, false));
    let writable = plan.writable.iter().map(|path| under_its_path(path, true));
    machine.chain(readable).chain(writable).collect()
}

fn of_pod(pod: &str) -> Value {
    json!({ "statefulset.kubernetes.io/pod-name": pod })
}

fn container(name: &str, plan: &PodPlan, mounts: &[Value]) -> Value {
    let mut environment: Vec<Value> =
        plan.environment.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let node = json!({ "fieldRef": { "fieldPath": "spec.nodeName" } });
    environment.push(json!({ "name": MEMBER, "valueFrom": node }));
    json!({
        "name": name,
        "image": SHELL_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", plan.script],
        "env": environment,
        "ports": [{ "containerPort": plan.port }],
        "readinessProbe": probe(plan),
        "volumeMounts": mounts,
    })
}

fn probe(plan: &PodPlan) -> Value {
    let mut probe = match &plan.ready {
        Readiness::Command(command) => json!({ "exec": { "command": command } }),
        Readiness::Port => json!({ "tcpSocket": { "port": plan.port } }),
    };
    probe["periodSeconds"] = 1.into();
    probe["timeoutSeconds"] = 5.into();
    probe
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::tests::member;

    fn set() -> StatefulSet {
        StatefulSet {
            namespace: "database".to_owned(),
            name: "store".to_owned(),
            container: "database".to_owned(),
            class: ClassFacts { name: "lab".to_owned(), description: "as it is".to_owned() },
            nodes: vec![member("n1", 1), member("n2", 2), member("n3", 3)],
        }
    }

    fn plan(programs: &str) -> PodPlan {
        PodPlan {
            script: "exec server".to_owned(),
            environment: BTreeMap::from([("TZ".to_owned(), "UTC".to_owned())]),
            files: BTreeMap::from([("n1".to_owned(), "a = 1".to_owned())]),
            volume: "/data".into(),
            ready: Readiness::Command(vec!["ask".to_owned()]),
            port: 7000,
            network: PodNetwork::Own,
            readable: vec![programs.into()],
            writable: Vec::new(),
        }
    }

    fn items_of(plan: &PodPlan) -> Vec<Value> {
        set().objects(plan, Path::new("/v"))["items"].as_array().expect("a list").clone()
    }

    fn items(programs: &str) -> Vec<Value> {
        items_of(&plan(programs))
    }

    fn of_kind<'a>(items: &'a [Value], kind: &str) -> Vec<&'a Value> {
        items.iter().filter(|item| item["kind"] == kind).collect()
    }

    #[test]
    fn the_pod_of_a_number_gets_the_volume_of_that_node() {
        let items = items("/usr/lib/store");
        let volumes = of_kind(&items, "PersistentVolume");
        assert_eq!(volumes.len(), 3);
        let spec = &volumes[1]["spec"];
        assert_eq!(spec["claimRef"]["name"], "data-store-1");
        assert_eq!(spec["claimRef"]["namespace"], "database");
        assert_eq!(spec["local"]["path"], "/v/volumes/lab");
        let set = of_kind(&items, "StatefulSet")[0];
        assert_eq!(set["spec"]["replicas"], 3);
        assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"], "lab");
    }

    #[test]
    fn a_node_s_address_leads_to_its_own_pod_and_to_no_other() {
        let items = items("/usr/lib/store");
        let services = of_kind(&items, "Service");
        let outside: Vec<_> = services.iter().filter(|one| one["spec"]["externalIPs"].is_array()).collect();
        assert_eq!(outside.len(), 3);
        let second = &outside[1]["spec"];
        assert_eq!(second["externalIPs"][0], "10.2.0.2");
        assert_eq!(second["externalTrafficPolicy"], "Local");
        assert_eq!(second["selector"]["statefulset.kubernetes.io/pod-name"], "store-1");
        assert_eq!(second["ports"][0]["port"], 7000);
        let first = services.iter().find(|one| one["spec"]["clusterIP"] == "10.96.0.100");
        let first = first.expect("the first pod's");
        assert_eq!(first["spec"]["selector"]["statefulset.kubernetes.io/pod-name"], "store-0");
    }

    #[test]
    fn programs_that_are_not_the_machine_s_are_shown_under_their_own_path() {
        let mounts = |programs: &str| {
            let items = items(programs);
            let spec = &of_kind(&items, "StatefulSet")[0]["spec"]["template"]["spec"];
            let paths = spec["containers"][0]["volumeMounts"].as_array().expect("mounts").clone();
            paths.iter().map(|mount| mount["mountPath"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(mounts("/usr/lib/store"), ["/data", "/files", "/usr", "/lib", "/lib64"]);
        assert_eq!(mounts("/run/node/programs").last().map(String::as_str), Some("/run/node/programs"));
    }

    #[test]
    fn a_pod_on_its_node_s_network_has_the_node_s_folders_and_no_service_of_its_own() {
        let on_nodes = PodPlan {
            volume: set().volume(),
            files: BTreeMap::new(),
            ready: Readiness::Port,
            network: PodNetwork::Node,
            writable: vec!["/run/sockets".into()],
            ..plan("/run/node/programs")
        };
        let items = items_of(&on_nodes);
        assert_eq!(of_kind(&items, "Service").len(), 1, "all pods together");
        assert!(of_kind(&items, "ConfigMap").is_empty());
        let spec = &of_kind(&items, "StatefulSet")[0]["spec"]["template"]["spec"];
        assert_eq!(spec["hostNetwork"], true);
        let container = &spec["containers"][0];
        assert_eq!(container["readinessProbe"]["tcpSocket"]["port"], 7000);
        let mounts = container["volumeMounts"].as_array().expect("mounts");
        let at = |path: &str| mounts.iter().find(|mount| mount["mountPath"] == path).expect("mounted");
        assert_eq!(at("volumes/lab")["name"], "data");
        assert_eq!(at("/run/node/programs")["readOnly"], true);
        assert_eq!(at("/run/sockets")["readOnly"], false);
    }
}
