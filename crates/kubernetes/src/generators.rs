//! Load generators as pods: the objects by which they stand in a cluster, and what is known of them once they do.
//!
//! Owns the objects' names and fields. Who makes and removes them is the caller: nothing here changes a cluster.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::members::{MemberError, named};
use crate::objects::{Fields, ObjectError, Pod, PodPhase, items};

/// The container in each of their pods.
pub const CONTAINER: &str = "holdfast";
/// The label by which a service leads to one pod of a StatefulSet, which is its name.
pub const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label that all objects of one run have.
const INSTANCE: &str = "app.kubernetes.io/instance";
/// The label that tells the pods of a Job apart, since Kubernetes 1.28.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How many of a Job's pods may be lost. With the first beyond it the cluster ends all the others.
const MOST_LOST: u32 = 1_000_000;
/// How long the cluster keeps the Job once its time is over.
const KEPT_S: u32 = 60;
/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(30);

/// Load generators of one run: a Job, and a service for each pod that they reach. A service keeps its address when the pod behind
/// it is another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generators {
    /// The Job's name, with which the names of all other objects begin.
    pub name: String,
    pub image: String,
    /// How many there are.
    pub count: u32,
    /// How long they live at most.
    pub lives: Duration,
    /// The pods that they reach.
    pub members: Vec<String>,
    /// The port of those pods.
    pub port: u16,
}

impl Generators {
    /// What is to be made, as one list.
    #[must_use]
    pub fn objects(&self) -> Value {
        let services = self.members.iter().enumerate().map(|(number, member)| self.service(number, member));
        let items: Vec<Value> = std::iter::once(self.job()).chain(services).collect();
        json!({ "apiVersion": "v1", "kind": "List", "items": items })
    }

    /// What selects all that was made, and the Job's pods.
    #[must_use]
    pub fn selector(&self) -> String {
        format!("{INSTANCE}={}", self.name)
    }

    /// Their pods that run and are not about to end, by their numbers.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub fn running(&self, kubectl: &Kubectl) -> Result<BTreeMap<u32, Pod>, MemberError> {
        let answer = kubectl.json(&["get", "pods", "--selector", &self.selector()], WITHIN)?;
        let mut running = BTreeMap::new();
        for object in items(answer) {
            let pod = Pod::read(&object)?;
            let number: Option<u32> = pod.labels.get(INDEX).and_then(|number| number.parse().ok());
            let stays = pod.phase == PodPhase::Running && pod.is_ready && pod.deletion_asked_unix_s.is_none();
            if let Some(number) = number.filter(|number| stays && *number < self.count) {
                running.insert(number, pod);
            }
        }
        Ok(running)
    }

    /// Where they reach the members, in the members' order.
    ///
    /// # Errors
    /// When a service is not there or has no address, or the cluster does not answer.
    pub fn addresses(&self, kubectl: &Kubectl) -> Result<Vec<SocketAddr>, MemberError> {
        let names: Vec<String> = (0..self.members.len()).map(|number| self.service_name(number)).collect();
        let objects = named(kubectl, "services", &names)?;
        let is_called = |object: &Value, name: &str| {
            object.pointer("/metadata/name").and_then(Value::as_str) == Some(name)
        };
        let absent = |name: &String| {
            let (service, namespace) = (name.clone(), kubectl.namespace.clone());
            MemberError::NoService { service, namespace }
        };
        let address = |name: &String| match objects.iter().find(|object| is_called(object, name)) {
            Some(object) => address_of(object).map_err(MemberError::from),
            None => Err(absent(name)),
        };
        names.iter().map(address).collect()
    }

    fn labels(&self) -> Value {
        json!({ "app.kubernetes.io/managed-by": "holdfast", INSTANCE: self.name })
    }

    /// Its pods wait to be spoken to. One that is lost ends no other: the cluster makes another in its place, to which nobody speaks.
    fn job(&self) -> Value {
        let lives_s = self.lives.as_secs();
        let spread = json!({
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": { "matchLabels": { INSTANCE: self.name } }
        });
        let container = json!({
            "name": CONTAINER,
            "image": self.image,
            "command": ["sleep", lives_s.to_string()],
            "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } }
        });
        let pod = json!({
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "topologySpreadConstraints": [spread],
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": { "type": "RuntimeDefault" }
            },
            "containers": [container]
        });
        json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": self.name, "labels": self.labels() },
            "spec": {
                "completionMode": "Indexed",
                "completions": self.count,
                "parallelism": self.count,
                "backoffLimit": MOST_LOST,
                "activeDeadlineSeconds": lives_s,
                "ttlSecondsAfterFinished": KEPT_S,
                "template": { "metadata": { "labels": self.labels() }, "spec": pod }
            }
        })
    }

    fn service_name(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    /// It leads to its pod also while that is not ready: whether the database answers is for clients to see.
    fn service(&self, number: usize, member: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": self.service_name(number), "labels": self.labels() },
            "spec": {
                "selector": { POD_NAME: member },
                "publishNotReadyAddresses": true,
                "ports": [{ "name": "database", "port": self.port, "targetPort": self.port }]
            }
        })
    }
}

/// The address that the cluster gave a service.
fn address_of(service: &Value) -> Result<SocketAddr, ObjectError> {
    let fields = Fields::of("Service", service)?;
    let address: Option<IpAddr> = fields.text("/spec/clusterIP").and_then(|address| address.parse().ok());
    let address = address.ok_or_else(|| fields.missing("/spec/clusterIP"))?;
    let port = fields.at("/spec/ports/0/port").and_then(Value::as_u64);
    let port = port.and_then(|port| u16::try_from(port).ok());
    Ok(SocketAddr::new(address, port.ok_or_else(|| fields.missing("/spec/ports/0/port"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generators() -> Generators {
        Generators {
            name: "holdfast-0a1b2c3d".to_owned(),
            image: "images.example.org/holdfast:1".to_owned(),
            count: 3,
            lives: Duration::from_secs(90),
            members: vec!["pg-0".to_owned(), "pg-1".to_owned()],
            port: 5432,
        }
    }

    #[test]
    fn all_objects_of_a_run_have_its_name_and_are_found_by_it() {
        let objects = items(generators().objects());
        assert_eq!(generators().selector(), "app.kubernetes.io/instance=holdfast-0a1b2c3d");
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        let names: Vec<String> = objects.iter().filter_map(name).collect();
        assert_eq!(names, ["holdfast-0a1b2c3d", "holdfast-0a1b2c3d-0", "holdfast-0a1b2c3d-1"]);
        let template = &objects[0]["spec"]["template"]["metadata"]["labels"];
        for labels in objects.iter().map(|object| &object["metadata"]["labels"]).chain([template]) {
            assert_eq!(labels["app.kubernetes.io/managed-by"], "holdfast");
            assert_eq!(labels["app.kubernetes.io/instance"], "holdfast-0a1b2c3d");
        }
        assert_eq!(objects[0]["spec"]["completions"], 3);
        assert_eq!(objects[0]["spec"]["activeDeadlineSeconds"], 90);
        assert_eq!(objects[0]["spec"]["ttlSecondsAfterFinished"], 60, "nobody has to remove what has ended");
        assert_eq!(objects[2]["spec"]["selector"][POD_NAME], "pg-1");
    }

    #[test]
    fn a_pod_that_is_lost_ends_no_other() {
        let job = generators().job();
        assert!(job["spec"]["backoffLimit"].as_u64() > Some(1_000), "the Job would have failed: {job}");
    }

    #[test]
    fn a_service_has_an_address_once_the_cluster_gave_it_one() {
        let service = |address: &str| {
            json!({ "kind": "Service", "metadata": { "name": "a" },
                    "spec": { "clusterIP": address, "ports": [{ "port": 5432 }] } })
        };
        let address = address_of(&service("10.96.0.7")).expect("an address");
        assert_eq!(address.to_string(), "10.96.0.7:5432");
        let error = address_of(&service("None")).expect_err("none");
        assert_eq!(error.to_string(), "Service `a` has no `spec.clusterIP` that can be read");
    }
}
