//! A pod: which one it is, where it is, how far it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, ObjectError, text};

/// Says which container is meant where none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// Where the containers' states are.
const STATUSES: &str = "/status/containerStatuses";

/// What is known of a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pod {
    /// Its name, which its successor has as well.
    pub name: String,
    /// Its own, which no other pod ever has.
    pub uid: String,
    /// The node that it was scheduled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// How far it is in its life.
    pub phase: PodPhase,
    /// Whether its condition `Ready` is true.
    pub is_ready: bool,
    /// How often the container was started again.
    pub restarts: u32,
    /// Since when the container runs; none while it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_started_unix_s: Option<f64>,
    /// When it was made.
    pub created_unix_s: f64,
    /// How the container ended when it ran before, or at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<ContainerEnd>,
    /// When somebody asked for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_asked_unix_s: Option<f64>,
    /// Whether the cluster itself ends it, and says so by the condition `DisruptionTarget`: for a node that it takes for lost, for
    /// want of room, for a more important pod. Not where somebody asked for its eviction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disrupted: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The claims of the volumes that it mounts, in order of name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<String>,
    /// All its containers by name; the one of the fields above is its default, or its first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub containers: BTreeMap<String, Container>,
}

/// What is known of a container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// How often it was started again.
    pub restarts: u32,
    /// Since when it runs; none while it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<f64>,
    /// How it ended when it ran before, or at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<ContainerEnd>,
}

/// How a container ended. The times are exact to a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerEnd {
    /// Its exit code; 128 and the signal's number where a signal ended it.
    pub exit_code: i64,
    /// Why, as the cluster says it: `Error`, `Completed`, `OOMKilled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when it had run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_unix_s: Option<f64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_unix_s: Option<f64>,
}

/// How far a pod is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PodPhase {
    /// Not all of its containers were started.
    Pending,
    /// They were.
    Running,
    /// They ended and were not started again.
    Succeeded,
    /// So, and one of them with an error.
    Failed,
    /// Its node was not heard of, or it is none of these.
    Unknown,
}

impl Pod {
    /// Reads one.
    ///
    /// # Errors
    /// When a field is missing that every pod has.
    pub fn read(object: &Value) -> Result<Pod, ObjectError> {
        let fields = Fields::of("Pod", object)?;
        let containers = containers(&fields)?;
        let container = default_container(&fields).and_then(|name| containers.get(name)).cloned();
        let container = container.unwrap_or_default();
        let created = fields.time("/metadata/creationTimestamp")?;
        Ok(Pod {
            name: fields.needed("/metadata/name")?,
            uid: fields.needed("/metadata/uid")?,
            node: fields.owned("/spec/nodeName"),
            address: fields.text("/status/podIP").and_then(|address| address.parse().ok()),
            phase: phase(fields.text("/status/phase")),
            is_ready: is_ready(fields.list("/status/conditions")) == Some(true),
            restarts: container.restarts,
            container_started_unix_s: container.started_unix_s,
            last_end: container.last_end,
            created_unix_s: created.ok_or_else(|| fields.missing("/metadata/creationTimestamp"))?,
            deletion_asked_unix_s: deletion_asked(&fields)?,
            is_disrupted: is_disrupted(fields.list("/status/conditions")),
            labels: fields.named_texts("/metadata/labels"),
            claims: claims(&fields),
            containers,
        })
    }

    /// The same pod with the facts of this container in place of its default one's.
    #[must_use]
    pub fn of_container(self, name: Option<&str>) -> Pod {
        let Some(name) = name else { return self };
        let container = self.containers.get(name).cloned().unwrap_or_default();
        Pod {
            restarts: container.restarts,
            container_started_unix_s: container.started_unix_s,
            last_end: container.last_end,
            ..self
        }
    }
}

/// Whether the condition `Ready` holds; none where it is unknown or not there.
pub(super) fn is_ready(conditions: &[Value]) -> Option<bool> {
    match text(named(conditions, "Ready")?, "/status")? {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

/// Whoever asks for an eviction, as `kubectl drain` does, has the condition set too.
fn is_disrupted(conditions: &[Value]) -> bool {
    named(conditions, "DisruptionTarget").is_some_and(|condition| {
        text(condition, "/status") == Some("True")
            && text(condition, "/reason") != Some("EvictionByEvictionAPI")
    })
}

fn named<'a>(conditions: &'a [Value], name: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| text(condition, "/type") == Some(name))
}

fn phase(word: Option<&str>) -> PodPhase {
    match word {
        Some("Pending") => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        _ => PodPhase::Unknown,
    }
}

/// `deletionTimestamp` is when the time to end is over: that time later than it was asked for.
fn deletion_asked(fields: &Fields<'_>) -> Result<Option<f64>, ObjectError> {
    let grace_s = fields.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_f64).unwrap_or(0.0);
    Ok(fields.time("/metadata/deletionTimestamp")?.map(|over| over - grace_s))
}

fn default_container<'a>(fields: &Fields<'a>) -> Option<&'a str> {
    let annotations = fields.at("/metadata/annotations");
    let named =
        annotations.and_then(|annotations| annotations.get(DEFAULT_CONTAINER)).and_then(Value::as_str);
    let first = |path| fields.list(path).first().and_then(|container| text(container, "/name"));
    named.or_else(|| first("/spec/containers")).or_else(|| first(STATUSES))
}

/// Those of the specification, with what is known of their state.
fn containers(fields: &Fields<'_>) -> Result<BTreeMap<String, Container>, ObjectError> {
    let specified = fields.list("/spec/containers").iter().filter_map(|container| text(container, "/name"));
    let mut containers: BTreeMap<String, Container> =
        specified.map(|name| (name.to_owned(), Container::default())).collect();
    for status in fields.list(STATUSES) {
        let Some(name) = text(status, "/name") else { continue };
        let restarts = status.get("restartCount").and_then(Value::as_u64).unwrap_or(0);
        let started = status.pointer("/state/running/startedAt");
        let container = Container {
            restarts: u32::try_from(restarts).unwrap_or(u32::MAX),
            started_unix_s: fields.time_of(started, "/status/containerStatuses/state/running/startedAt")?,
            last_end: last_end(fields, status)?,
        };
        containers.insert(name.to_owned(), container);
    }
    Ok(containers)
}

/// The end of a container that does not run now comes before that of the one before it.
fn last_end(fields: &Fields<'_>, status: &Value) -> Result<Option<ContainerEnd>, ObjectError> {
    let ended =
        ["/state/terminated", "/lastState/terminated"].into_iter().find_map(|path| status.pointer(path));
    let Some((ended, exit_code)) = ended.and_then(|ended| Some((ended, ended.get("exitCode")?.as_i64()?)))
    else {
        return Ok(None);
    };
    let time = |name: &str| fields.time_of(ended.get(name), "/status/containerStatuses/state/terminated");
    Ok(Some(ContainerEnd {
        exit_code,
        reason: text(ended, "/reason").map(str::to_owned),
        started_unix_s: time("startedAt")?,
        finished_unix_s: time("finishedAt")?,
    }))
}

/// Also those that are made for the pod, which are named after it.
fn claims(fields: &Fields<'_>) -> Vec<String> {
    let pod = fields.text("/metadata/name").unwrap_or_default();
    let claim = |volume: &Value| {
        let made_for_it = || volume.get("ephemeral").and_then(|_| text(volume, "/name"));
        let named = text(volume, "/persistentVolumeClaim/claimName").map(str::to_owned);
        named.or_else(|| made_for_it().map(|name| format!("{pod}-{name}")))
    };
    let claims: BTreeSet<String> = fields.list("/spec/volumes").iter().filter_map(claim).collect();
    claims.into_iter().collect()
}
