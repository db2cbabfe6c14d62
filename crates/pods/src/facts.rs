//! What is known of the pods before the first load: where each is, and what its volumes are.
//!
//! Owns the way from `kubernetes`' objects to the run's facts. What the login may not ask is told, and left out.

use std::collections::BTreeMap;

use history::{KubernetesFacts, NodeId, PodFacts, PodVolumeFacts};
use kubernetes::{Kubectl, Pod, Volume, members};
use scenario::RoleLabel;

use crate::error::PodsError;

/// Asks the cluster.
pub(crate) fn ask(
    kubectl: &Kubectl,
    (container, role): (Option<&str>, Option<&RoleLabel>),
    names: &[String],
) -> Result<KubernetesFacts, PodsError> {
    let versions = kubectl.version()?;
    let pods = members::pods(kubectl, names)?;
    let mut not_asked = Vec::new();
    let zones = zones(kubectl, &mut not_asked);
    let mut known = Vec::new();
    for (number, pod) in pods.into_iter().enumerate() {
        let volumes = members::volumes_of(kubectl, &pod).unwrap_or_else(|error| {
            not_asked.push(format!("volumes of {}: {error}", pod.name));
            Vec::new()
        });
        let pod = pod.of_container(container);
        let zone = pod.node.as_ref().and_then(|node| zones.get(node).cloned());
        known.push(PodFacts {
            name: NodeId::new(number).to_string(),
            role: role.and_then(|role| role_of(&pod, role)),
            zone,
            restarts: pod.restarts,
            volumes: volumes.into_iter().map(volume_facts).collect(),
            pod: pod.name,
            uid: pod.uid,
            node: pod.node,
        });
    }
    let (namespace, context) = (kubectl.namespace.clone(), kubectl.context.clone());
    Ok(KubernetesFacts { versions, namespace, context, pods: known, not_asked })
}

/// The zone of each node that says one.
fn zones(kubectl: &Kubectl, not_asked: &mut Vec<String>) -> BTreeMap<String, String> {
    let nodes = members::nodes(kubectl).unwrap_or_else(|error| {
        not_asked.push(format!("zones of nodes: {error}"));
        Vec::new()
    });
    nodes.into_iter().filter_map(|node| Some((node.name, node.zone?))).collect()
}

fn role_of(pod: &Pod, role: &RoleLabel) -> Option<String> {
    pod.labels.get(&role.label).cloned()
}

fn volume_facts(volume: Volume) -> PodVolumeFacts {
    PodVolumeFacts {
        claim: volume.claim,
        volume: volume.volume,
        storage_class: volume.storage_class,
        capacity: volume.capacity,
        access_modes: volume.access_modes,
        reclaim: volume.reclaim,
        provisioner: volume.provisioner,
        parameters: volume.parameters,
    }
}
