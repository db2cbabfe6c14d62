//! PostgreSQL as a StatefulSet: the first pod is the primary, the others follow it, each on a node and a volume of its own.
//!
//! Owns the objects. They are those that `scenarios/kubernetes-postgres.yaml` names. The pods run the machine's own PostgreSQL, in an
//! image that has nothing but a shell. Nobody promotes a standby: the primary comes back with its volume.

use std::path::Path;

use kubernetes_lab::pieces::SHELL_IMAGE;
use kubernetes_lab::storage::{self, Class, Volume};
use serde_json::{Value, json};

/// The namespace of all of it.
pub(super) const NAMESPACE: &str = "databases";
/// The name of the StatefulSet, and of its service.
pub(super) const NAME: &str = "pg";
/// The storage class of its volumes.
const CLASS: &str = "lab-local";
/// The ordinary user of the image and of the volumes.
const USER: u32 = 1000;
/// Where the primary is reached, whichever address its pod has: there are no names in the cluster.
const PRIMARY: &str = "10.96.0.100";
/// Makes the database where there is none, and becomes its server. What it makes is synced before anything is acknowledged.
const COMMAND: &str = "make() {
  case $POD in
  *-0) PROGRAMS/initdb -D /data/new -U postgres --auth=trust --locale=C -E UTF8 >/dev/null &&
    printf 'host all all all trust\nhost replication all all trust\n' >>/data/new/pg_hba.conf ;;
  *) PROGRAMS/pg_basebackup -D /data/new -R -c fast -d 'host=PRIMARY user=postgres connect_timeout=2' ;;
  esac
}
[ -s /data/d/PG_VERSION ] || {
  until rm -rf /data/new && make; do sleep 1; done
  chmod 700 /data/new && mv /data/new /data/d && /usr/bin/sync /data /data/d/pg_hba.conf
} || exit 1
exec PROGRAMS/postgres -D /data/d -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB";

/// Names of its pods.
pub(super) fn pods(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{NAME}-{number}")).collect()
}

/// A volume on each node.
pub(super) fn class(nodes: &[String]) -> Class {
    let volume = |node: &String| Volume { name: format!("{CLASS}-{node}"), node: node.clone(), gibibytes: 1 };
    Class {
        name: CLASS.to_owned(),
        description: "the node's own volume: a power-off takes what was not synced".to_owned(),
        volumes: nodes.iter().map(volume).collect(),
    }
}

/// All objects, one list. `volume` is where each node finds its volume.
pub(super) fn objects(nodes: &[String], volume: &Path, programs: &Path) -> Value {
    let mut list = storage::objects(&[class(nodes)], volume);
    if let Some(items) = list["items"].as_array_mut() {
        items
            .insert(0, json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }));
        let first = json!({ "statefulset.kubernetes.io/pod-name": format!("{NAME}-0") });
        items.extend([
            service(NAME, &json!({ "app": NAME }), None),
            service(&format!("{NAME}-primary"), &first, Some(PRIMARY)),
            stateful_set(nodes.len(), programs),
        ]);
    }
    list
}

fn service(name: &str, selector: &Value, address: Option<&str>) -> Value {
    let mut spec = json!({ "selector": selector, "ports": [{ "name": "sql", "port": 5432 }] });
    if let Some(address) = address {
        spec["clusterIP"] = json!(address);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { "app": NAME } },
        "spec": spec,
    })
}

fn stateful_set(replicas: usize, programs: &Path) -> Value {
    let programs = programs.display().to_string();
    let machine = ["usr", "lib", "lib64"];
    let mounts =
        machine.map(|name| json!({ "name": name, "mountPath": format!("/{name}"), "readOnly": true }));
    // On Debian the other two are links into the first.
    let paths = ["/usr", "/usr/lib", "/usr/lib64"];
    let volumes: Vec<Value> = machine
        .iter()
        .zip(paths)
        .map(|(name, path)| json!({ "name": name, "hostPath": { "path": path, "type": "Directory" } }))
        .collect();
    let ready =
        [format!("{programs}/pg_isready"), "-h".into(), "127.0.0.1".into(), "-U".into(), "postgres".into()];
    let container = json!({
        "name": "postgres",
        "image": SHELL_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", COMMAND.replace("PROGRAMS", &programs).replace("PRIMARY", PRIMARY)],
        "env": [{ "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        "ports": [{ "containerPort": 5432 }],
        "readinessProbe": { "exec": { "command": ready }, "periodSeconds": 1, "timeoutSeconds": 5 },
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }, mounts[0], mounts[1], mounts[2]],
    });
    let apart = json!({
        "requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": { "matchLabels": { "app": NAME } },
            "topologyKey": "kubernetes.io/hostname",
        }],
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "spec": {
            "serviceName": NAME,
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": NAME } },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": {
                    "storageClassName": CLASS,
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": "1Gi" } },
                },
            }],
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "securityContext": { "runAsUser": USER, "runAsGroup": USER },
                    "affinity": { "podAntiAffinity": apart },
                    "containers": [container],
                    "volumes": volumes,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pod_has_a_volume_and_a_node_of_its_own() {
        let nodes = ["n1", "n2", "n3"].map(str::to_owned);
        let list = objects(&nodes, Path::new("/v"), Path::new("/usr/lib/postgresql/15/bin"));
        let items = list["items"].as_array().expect("a list");
        let of_kind = |kind: &str| items.iter().filter(|item| item["kind"] == kind).count();
        assert_eq!((of_kind("PersistentVolume"), of_kind("StatefulSet")), (3, 1));
        let set = items.iter().find(|item| item["kind"] == "StatefulSet").expect("a set");
        assert_eq!(set["spec"]["replicas"], 3);
        let primary = items.iter().find(|item| item["spec"]["clusterIP"] == PRIMARY).expect("its service");
        assert_eq!(primary["spec"]["selector"]["statefulset.kubernetes.io/pod-name"], "pg-0");
        let claim = &set["spec"]["volumeClaimTemplates"][0]["spec"];
        assert_eq!(claim["storageClassName"], items[1]["metadata"]["name"]);
        let command = set["spec"]["template"]["spec"]["containers"][0]["command"][2].as_str();
        assert!(
            command.is_some_and(|text| !text.contains("PROGRAMS") && !text.contains("PRIMARY")),
            "{command:?}"
        );
    }
}
