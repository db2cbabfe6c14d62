//! What a login must be allowed in a cluster for a run, and whether it is: a question to the cluster that changes nothing.
//!
//! Owns the list and the question. Who may be struck is another matter, and the run's.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::kubectl::{Kubectl, KubectlError};
use crate::sightings::NODE_LEASES;

/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(15);
/// What kubectl warns of before it asks about a resource that the cluster does not know.
const NO_RESOURCE: &str = "the server doesn't have a resource type";

/// What a run does to a cluster, beside looking at it and reaching the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A pod is deleted.
    PodDelete,
    /// A pod is evicted.
    PodEvict,
    /// A container's process is ended by a command in it.
    ContainerKill,
    /// A node takes no new pods.
    NodeCordon,
    /// A node gets a taint.
    NodeTaint,
    /// Network policies are made.
    NetworkPolicy,
    /// Chaos Mesh ends a pod.
    ChaosMeshPod,
    /// Chaos Mesh breaks a network.
    ChaosMeshNetwork,
    /// Load generators are made as pods.
    Generators,
}

/// Something that a login must be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The verb, as RBAC has it.
    pub verb: String,
    /// The resource, with its group where it is not the core's, and behind a slash its part: `pods/exec`.
    pub resource: String,
    /// Where.
    pub scope: Scope,
    /// Whether there is no run without it. Without another, something is not struck or not seen.
    pub is_required: bool,
    /// What for.
    pub why: String,
}

/// Where something must be allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// In the namespace of the pods.
    Namespace,
    /// In this one.
    NamespaceOf(String),
    /// In the whole cluster.
    Cluster,
}

impl Scope {
    /// The namespace, where the pods are in this one; none for the whole cluster.
    #[must_use]
    pub fn namespace(&self, of_pods: &str) -> Option<String> {
        match self {
            Scope::Namespace => Some(of_pods.to_owned()),
            Scope::NamespaceOf(namespace) => Some(namespace.clone()),
            Scope::Cluster => None,
        }
    }
}

/// What the cluster says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// It is allowed.
    Yes,
    /// It is not.
    No,
    /// The cluster has no such resource, whatever the login may do.
    NoResource,
}

/// What a run needs that does these, each once.
#[must_use]
pub fn needs(acts: &BTreeSet<Act>) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut add = |verbs: &[&str], resource: &str, scope: &Scope, is_required: bool, why: &str| {
        needs.extend(verbs.iter().map(|verb| Need {
            verb: (*verb).to_owned(),
            resource: resource.to_owned(),
            scope: scope.clone(),
            is_required,
            why: why.to_owned(),
        }));
    };
    let (here, cluster) = (&Scope::Namespace, &Scope::Cluster);
    let leases = &Scope::NamespaceOf(NODE_LEASES.to_owned());
    let watched = &["list", "watch"];
    add(&["get", "list", "watch"], "pods", here, true, "find the members and see them fail and recover");
    add(&["create"], "pods/portforward", here, true, "reach the members");
    add(watched, "endpointslices.discovery.k8s.io", here, false, "see when services lead to a member again");
    add(&["get", "list", "watch"], "persistentvolumeclaims", here, false, "know the members' volumes");
    add(watched, "nodes", cluster, false, "see a node that is lost");
    add(watched, "leases.coordination.k8s.io", leases, false, "see a node's lease expire");
    add(watched, "volumeattachments.storage.k8s.io", cluster, false, "see volumes move to another node");
    add(&["get"], "persistentvolumes", cluster, false, "say what the volumes are");
    add(&["get"], "storageclasses.storage.k8s.io", cluster, false, "say what the volumes are made of");
    for act in acts {
        match act {
            Act::PodDelete => add(&["delete"], "pods", here, true, "delete a pod"),
            Act::PodEvict => add(&["create"], "pods/eviction", here, true, "evict a pod"),
            Act::ContainerKill => add(&["create"], "pods/exec", here, true, "end a container's process"),
            Act::NodeCordon => add(&["get", "patch"], "nodes", cluster, true, "cordon a node and undo it"),
            Act::NodeTaint => {
                let verbs = &["get", "list", "watch", "patch"];
                add(verbs, "nodes", cluster, true, "taint a node once it is silent and undo it");
            }
            Act::NetworkPolicy => {
                let resource = "networkpolicies.networking.k8s.io";
                add(&["create", "get", "delete"], resource, here, true, "cut pods off and undo it");
            }
            Act::ChaosMeshPod => {
                let resource = "podchaos.chaos-mesh.org";
                add(&["create", "get", "delete"], resource, here, true, "let Chaos Mesh end a pod");
            }
            Act::ChaosMeshNetwork => {
                let resource = "networkchaos.chaos-mesh.org";
                add(&["create", "get", "delete"], resource, here, true, "let Chaos Mesh break a network");
            }
            Act::Generators => {
                let verbs = &["create", "get", "list", "delete"];
                add(verbs, "jobs.batch", here, true, "make agents and remove them");
                add(verbs, "services", here, true, "let agents reach the members");
                add(&["create"], "pods/exec", here, true, "speak with agents");
            }
        }
    }
    each_once(needs)
}

/// What is needed for one thing and optional for another is needed.
fn each_once(needs: Vec<Need>) -> Vec<Need> {
    let mut once: Vec<Need> = Vec::new();
    for need in needs {
        let is_same = |kept: &&mut Need| {
            (&kept.verb, &kept.resource, &kept.scope) == (&need.verb, &need.resource, &need.scope)
        };
        match once.iter_mut().find(is_same) {
            Some(kept) if need.is_required && !kept.is_required => *kept = need,
            Some(_) => {}
            None => once.push(need),
        }
    }
    once
}

/// Whether the cluster would allow it.
///
/// # Errors
/// When the cluster says neither yes nor no.
pub fn granted(kubectl: &Kubectl, need: &Need) -> Result<Grant, KubectlError> {
    let (resource, part) = need.resource.split_once('/').unwrap_or((need.resource.as_str(), ""));
    let part = format!("--subresource={part}");
    let mut arguments = vec!["auth", "can-i", need.verb.as_str(), resource];
    if need.resource.contains('/') {
        arguments.push(&part);
    }
    let answer = match &need.scope {
        Scope::Namespace => kubectl.run(&arguments, WITHIN),
        Scope::NamespaceOf(namespace) => kubectl.in_namespace(namespace).run(&arguments, WITHIN),
        Scope::Cluster => {
            // Otherwise leave in the namespace would do.
            arguments.push("--all-namespaces");
            kubectl.run(&arguments, WITHIN)
        }
    }?;
    // It ends with 1 for a no, as for an error. A reason may follow the word. Who may do anything may do it to what is not there.
    match answer.text().split_whitespace().next() {
        Some("yes" | "no") if answer.complaint.contains(NO_RESOURCE) => Ok(Grant::NoResource),
        Some("yes") => Ok(Grant::Yes),
        Some("no") => Ok(Grant::No),
        _ => Err(answer.failed(&arguments)),
    }
}
