//! The pods that a run names, and what they stand on: their volumes and the cluster's nodes, asked once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use crate::kubectl::{Kubectl, KubectlError};
use crate::objects::{Node, ObjectError, Pod, Volume, items};

/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(30);

/// Why members are not known.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The cluster did not answer.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// An object cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// There is no such pod.
    #[error("there is no pod `{pod}` in namespace `{namespace}`")]
    NoPod {
        /// Its name.
        pod: String,
        /// The namespace that was looked in.
        namespace: String,
    },
    /// There is no such service, though it was made.
    #[error("there is no service `{service}` in namespace `{namespace}`")]
    NoService {
        /// As the run called it.
        service: String,
        /// The namespace that was looked in.
        namespace: String,
    },
}

/// These pods, in this order. No others are asked for, however many there are.
///
/// # Errors
/// When one is not there, or the cluster does not answer.
pub fn pods(kubectl: &Kubectl, names: &[String]) -> Result<Vec<Pod>, MemberError> {
    let mut found = BTreeMap::new();
    for object in named(kubectl, "pods", names)? {
        let pod = Pod::read(&object)?;
        found.insert(pod.name.clone(), pod);
    }
    let absent =
        |name: &String| MemberError::NoPod { pod: name.clone(), namespace: kubectl.namespace.clone() };
    names.iter().map(|name| found.get(name).cloned().ok_or_else(|| absent(name))).collect()
}

/// The volumes that a pod mounts, as far as their claims are there. What a volume and its storage class say is left out where
/// the login may not read them: both belong to the cluster, not to a namespace.
///
/// # Errors
/// When the claims may not be read, or the cluster does not answer.
pub fn volumes_of(kubectl: &Kubectl, pod: &Pod) -> Result<Vec<Volume>, MemberError> {
    let claims = named(kubectl, "persistentvolumeclaims", &pod.claims)?;
    let volumes: Vec<Volume> = claims.iter().map(Volume::read).collect::<Result<_, _>>()?;
    let bound = by_name(kubectl, "persistentvolumes", volumes.iter().filter_map(|one| one.volume.clone()))?;
    let classes =
        by_name(kubectl, "storageclasses", volumes.iter().filter_map(|one| one.storage_class.clone()))?;
    let whole = |volume: Volume| -> Result<Volume, ObjectError> {
        let (of_volume, of_class) = (volume.volume.clone(), volume.storage_class.clone());
        let volume = match of_volume.and_then(|name| bound.get(&name)) {
            Some(object) => volume.with_volume(object)?,
            None => volume,
        };
        match of_class.and_then(|name| classes.get(&name)) {
            Some(object) => volume.with_class(object),
            None => Ok(volume),
        }
    };
    Ok(volumes.into_iter().map(whole).collect::<Result<_, _>>()?)
}

/// The cluster's nodes.
///
/// # Errors
/// When they may not be read, or the cluster does not answer.
pub fn nodes(kubectl: &Kubectl) -> Result<Vec<Node>, MemberError> {
    let objects = items(kubectl.json(&["get", "nodes"], WITHIN)?);
    Ok(objects.iter().map(Node::read).collect::<Result<_, _>>()?)
}

/// Objects of these names; those that are not there are left out.
pub(crate) fn named(kubectl: &Kubectl, resource: &str, names: &[String]) -> Result<Vec<Value>, KubectlError> {
    // Without a name kubectl would list all there are.
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut arguments = vec!["get", resource];
    arguments.extend(names.iter().map(String::as_str));
    arguments.push("--ignore-not-found");
    Ok(kubectl.json_if_any(&arguments, WITHIN)?.map(items).unwrap_or_default())
}

/// Objects of the cluster by their names; none where the cluster refuses.
fn by_name(
    kubectl: &Kubectl,
    resource: &str,
    names: impl Iterator<Item = String>,
) -> Result<BTreeMap<String, Value>, KubectlError> {
    let names: Vec<String> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let objects = match named(kubectl, resource, &names) {
        Err(KubectlError::Failed { .. }) => Vec::new(),
        other => other?,
    };
    let name = |object: &Value| object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
    Ok(objects.into_iter().filter_map(|object| Some((name(&object)?, object))).collect())
}
