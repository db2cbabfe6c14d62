//! The members' pods of a run, each with a way to it.
//!
//! Owns what is asked of them as a run goes on: where they are, which of their ways ended, how they recovered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faults::FaultRecord;
use history::{EventSink, FaultId, Interference, KubernetesFacts, NodeId, PerNode, PodFacts, RecoveryStep};
use kubernetes::{Forward, Kubectl, MemberError, members};
use scenario::{Cluster, Kubernetes, RoleLabel};

use crate::error::PodsError;
use crate::facts;
use crate::kubectl::{held, kubectl};
use crate::recovery::{Hit, recoveries};
use crate::sightings::{Seen, Watching, Ways};
use crate::strangers;

/// How long a way to a pod may take to open.
const WAY_WITHIN: Duration = Duration::from_secs(20);

/// Why a pod's node is not struck.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The cluster does not say where the pod is.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The pod is nowhere.
    #[error("pod {pod} is on no node now")]
    NotScheduled { pod: String },
    /// Somebody else would be struck.
    #[error("member {other} is on node {node} as well, and is not under `may-break`")]
    NotAllowed {
        node: String,
        /// The member that may not be broken.
        other: String,
    },
}

/// The pods of a run, each with a way to it. Dropping it closes the ways.
pub struct Pods {
    pub(crate) kubectl: Kubectl,
    container: Option<String>,
    /// The members' names in their order, which are the pods'.
    names: PerNode<String>,
    facts: KubernetesFacts,
    ways: Arc<Ways>,
}

impl Pods {
    /// Asks for the members' pods, and opens a way to each.
    ///
    /// # Errors
    /// When the cluster does not answer, a pod is not there or cannot be reached, or nothing can be held to the current context.
    pub fn open(kubernetes: &Kubernetes, cluster: &Cluster) -> Result<Pods, PodsError> {
        let kubectl = held(kubectl(kubernetes))?;
        let names: PerNode<String> = cluster.members.iter().map(|member| member.name.clone()).collect();
        let said = (kubernetes.container.as_deref(), kubernetes.role.as_ref());
        let facts = facts::ask(&kubectl, said, &names)?;
        let mut ways = Ways::new();
        for name in &names {
            ways.insert(name.clone(), Forward::open(&kubectl, name, kubernetes.port, WAY_WITHIN)?);
        }
        let container = kubernetes.container.clone();
        Ok(Pods { kubectl, container, names, facts, ways: Arc::new(ways) })
    }

    /// Those of a cluster on nodes of a lab, which clients reach without ways. Whoever asks, or watches
    /// them, stands where kubectl reaches the cluster.
    ///
    /// # Errors
    /// When the cluster does not answer, or a pod is not there.
    pub fn of_a_lab(kubectl: Kubectl, container: &str, names: PerNode<String>) -> Result<Pods, PodsError> {
        let facts = facts::ask(&kubectl, (Some(container), None), &names)?;
        let (container, ways) = (Some(container.to_owned()), Arc::default());
        Ok(Pods { kubectl, container, names, facts, ways })
    }

    /// Where a member's pod is reached on this machine.
    #[must_use]
    pub fn address_of(&self, member: &str) -> Option<SocketAddr> {
        self.ways.get(member).map(Forward::address)
    }

    /// The context that commands about them are held to, if there is any.
    #[must_use]
    pub fn context(&self) -> Option<&str> {
        self.kubectl.context.as_deref()
    }

    /// What was known of them when the ways were opened.
    #[must_use]
    pub fn facts(&self) -> &KubernetesFacts {
        &self.facts
    }

    /// Tells where the label that the scenario names shows another leader than the database says.
    pub fn compare_roles(&self, role: Option<&RoleLabel>, leader: Option<&str>, events: &dyn EventSink) {
        let (Some(role), Some(leader)) = (role, leader) else { return };
        let leads = |pod: &&PodFacts| pod.role.as_ref().is_some_and(|value| role.leader.contains(value));
        let by_label: Vec<&str> = self.facts.pods.iter().filter(leads).map(|pod| pod.name.as_str()).collect();
        if by_label == [leader] {
            return;
        }
        let shown = if by_label.is_empty() { "no leader".to_owned() } else { by_label.join(", ") };
        let label = &role.label;
        let what = format!("the database says that {leader} leads, and the label `{label}` shows {shown}");
        events.warn(what, "let the cluster settle before the run, or correct `role` in the scenario");
    }

    /// The node that a pod is on now, to be struck with all that is on it.
    ///
    /// # Errors
    /// When the cluster does not say it, the pod is on none, or a member that may not be broken is on it as well.
    pub fn node_of(&self, member: &str, may_break: &BTreeSet<&str>) -> Result<String, NodeError> {
        let node = self.node_now(member)?;
        let node = node.ok_or_else(|| NodeError::NotScheduled { pod: member.to_owned() })?;
        for other in self.names.iter().filter(|name| !may_break.contains(name.as_str())) {
            if self.node_now(other)?.as_deref() == Some(node.as_str()) {
                return Err(NodeError::NotAllowed { node, other: other.clone() });
            }
        }
        Ok(node)
    }

    /// Nothing of a pod that is not there.
    fn node_now(&self, pod: &str) -> Result<Option<String>, MemberError> {
        match members::pods(&self.kubectl, &[pod.to_owned()]) {
            Ok(pods) => Ok(pods.into_iter().find_map(|pod| pod.node)),
            Err(MemberError::NoPod { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells of the ways to pods that no fault was for, where they ended: what failed at their clients then was not the database.
    pub fn tell_ended_ways(&self, faults: &[FaultRecord], events: &dyn EventSink) {
        let struck = faults.iter().flat_map(|fault| fault.vms.iter().copied()).collect();
        let way = |pod: &str| self.ways.get(pod).map(|way| (way.restarts(), way.last_words()));
        for what in ended_ways(&self.names, &struck, way) {
            events.warn(what, "start it where the connection to the cluster's API server holds");
        }
    }

    /// Watches the cluster from now on, and writes what is seen into this directory, the run's. The run's clock is zero at `zero`.
    ///
    /// # Errors
    /// When kubectl cannot be started, or there is no file or no thread for what is seen.
    pub fn watch(&self, directory: &Path, zero: Instant) -> Result<Watching, PodsError> {
        Watching::begin((&self.kubectl, self.container.clone()), self.ways.clone(), directory, zero)
    }

    /// How pods recovered from the faults that took effect, by the fault's number.
    #[must_use]
    pub fn recoveries(&self, seen: &Seen, faults: &[FaultRecord]) -> BTreeMap<FaultId, Vec<RecoveryStep>> {
        let hit = |(number, fault): (FaultId, &FaultRecord)| {
            let pod = self.names.get(*fault.vms.first()?)?;
            Some(Hit { fault: number, pod: pod.clone(), effect_s: fault.took_effect_s? })
        };
        let hits: Vec<Hit> = FaultId::of_each(faults).filter_map(hit).collect();
        recoveries(&seen.sightings, seen.zero_unix_s, &hits)
    }

    /// What somebody outside the schedule did to them, with the moment on the run's clock, seconds.
    #[must_use]
    pub fn interference(&self, seen: &Seen, faults: &[FaultRecord], of: PodsOf) -> Vec<(f64, Interference)> {
        match of {
            PodsOf::Lab => strangers::in_a_lab(seen, faults, &self.names),
            PodsOf::ExistingCluster => strangers::before_any_fault(seen, faults, &self.names),
        }
    }
}

/// Of what kind of target the pods are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodsOf {
    /// The lab's own cluster, which nobody but the run uses.
    Lab,
    /// A cluster that exists, whose operators end pods as well.
    ExistingCluster,
}

/// Warnings of ways that ended, by how often each was opened again and why, but for those to pods that were struck.
fn ended_ways(
    pods: &PerNode<String>,
    struck: &BTreeSet<NodeId>,
    way: impl Fn(&str) -> Option<(u64, String)>,
) -> Vec<String> {
    let not_struck = pods.numbered().filter(|(node, _)| !struck.contains(node));
    let told = |(_, pod): (NodeId, &String)| {
        let (times, why) = way(pod).filter(|(times, _)| *times > 0)?;
        Some(format!(
            "the way to {pod}, which no fault was for, was opened again (times: {times}), and its clients lost \
             their connections; the last time: {why}"
        ))
    };
    not_struck.filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_ended_is_told_of_a_pod_that_no_fault_was_for() {
        let pods = ["pg-0", "pg-1", "pg-2"].map(str::to_owned).into_iter().collect();
        let way = |pod: &str| Some((u64::from(pod != "pg-2"), "lost connection to pod".to_owned()));
        let told = ended_ways(&pods, &BTreeSet::from([NodeId::FIRST]), way);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("pg-1") && told[0].ends_with("lost connection to pod"), "{told:?}");
    }
}
