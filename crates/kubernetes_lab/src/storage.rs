//! Storage classes of a cluster whose volumes are the lab's own: each a folder on the volume of one node, with what that volume does
//! at a power-off.
//!
//! Owns the objects that say so, and the folders. A volume stays with its node, as a local disk does: whoever mounts it is bound to
//! that node. Volumes that are attached elsewhere are not there yet.

use std::path::{Path, PathBuf};

use engine::Node;
use serde_json::{Value, json};

use crate::on_node::{OnNode, StartError};
use crate::pieces::Programs;

/// Where on a node's volume the cluster's volumes are.
const FOLDER: &str = "volumes";

/// A storage class: its volumes, all of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its name, which claims give.
    pub name: String,
    /// What the lab does to what is written there, in words, for whoever asks the cluster.
    pub description: String,
    pub volumes: Vec<Volume>,
}

/// A volume on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name in the whole cluster.
    pub name: String,
    pub node: String,
    /// The name of its folder, which others on other nodes may have as well.
    pub folder: String,
    /// What it is said to hold. Nobody holds a pod to it: the node's volume is what is full.
    pub gibibytes: u32,
    /// The claim that it is kept for, where not any of its class may have it.
    pub claim: Option<Claim>,
}

/// A claim on a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
}

impl Volume {
    /// Where it lies, relative to the node's volume.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.folder)
    }

    /// Makes its folder, which a later boot finds again.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(&self, node: &dyn Node, programs: &Programs) -> Result<(), StartError> {
        let on = OnNode { node, programs };
        on.make_folder(&on.volume(FOLDER), "0755")?;
        // Databases refuse a folder that others can read.
        on.make_folder(&node.data_directory().join(self.path()), "0700")
    }
}

/// The objects of a class and of all its volumes. All nodes see their volumes at `volume`.
#[must_use]
pub fn objects_of(class: &Class, volume: &Path) -> Vec<Value> {
    let own = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": class.name,
            "annotations": { "kubernetes.io/description": class.description },
        },
        "provisioner": "kubernetes.io/no-provisioner",
        // A pod is given a node first: a volume that is chosen before may be where the pod cannot run.
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    let volumes = class.volumes.iter().map(|one| of_volume(one, &class.name, volume));
    std::iter::once(own).chain(volumes).collect()
}

fn of_volume(one: &Volume, class: &str, volume: &Path) -> Value {
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": one.name },
        "spec": {
            "capacity": { "storage": format!("{}Gi", one.gibibytes) },
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": { "path": volume.join(one.path()) },
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{
                        "matchExpressions": [{
                            "key": "kubernetes.io/hostname",
                            "operator": "In",
                            "values": [one.node],
                        }],
                    }],
                },
            },
        },
    });
    if let Some(Claim { namespace, name }) = &one.claim {
        object["spec"]["claimRef"] = json!({ "namespace": namespace, "name": name });
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, nodes: &[&str]) -> Class {
        let volume = |node: &&str| Volume {
            name: format!("{name}-{node}"),
            node: (*node).to_owned(),
            folder: format!("{name}-{node}"),
            gibibytes: 1,
            claim: None,
        };
        Class {
            name: name.to_owned(),
            description: "as it is".to_owned(),
            volumes: nodes.iter().map(volume).collect(),
        }
    }

    #[test]
    fn each_volume_is_of_its_class_and_stays_with_its_node() {
        let items = objects_of(&class("local", &["n1", "n2"]), Path::new("/v"));
        let kinds: Vec<_> = items.iter().map(|item| item["kind"].as_str()).collect();
        assert_eq!(kinds, [Some("StorageClass"), Some("PersistentVolume"), Some("PersistentVolume")]);
        let second = &items[2];
        assert_eq!(second["metadata"]["name"], "local-n2");
        assert_eq!(second["spec"]["storageClassName"], items[0]["metadata"]["name"]);
        assert_eq!(second["spec"]["local"]["path"], "/v/volumes/local-n2");
        let terms = &second["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
        assert_eq!(terms[0]["matchExpressions"][0]["values"][0], "n2");
    }

    #[test]
    fn a_volume_that_is_kept_for_a_claim_says_so() {
        let mut local = class("local", &["n1"]);
        let none = &objects_of(&local, Path::new("/v"))[1]["spec"]["claimRef"];
        assert!(none.is_null(), "{none}");
        let claim = Claim { namespace: "database".to_owned(), name: "data-db-0".to_owned() };
        local.volumes[0].claim = Some(claim);
        assert_eq!(objects_of(&local, Path::new("/v"))[1]["spec"]["claimRef"]["name"], "data-db-0");
    }
}
