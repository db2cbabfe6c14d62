//! The pods of a cluster that exists: the ways to them, what is known of them before a run, and what is seen of them while it
//! lasts.
//!
//! Owns what only pods have; the run itself, with its strikes, is that of every cluster that exists. How kubectl is called, and
//! what its answers say, is `kubernetes`' business.

mod facts;
mod fleet;
mod leave;
mod manifests;
mod recovery;
mod sightings;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use faults::FaultRecord;
use history::{EventSink, FaultId, KubernetesFacts, PodFacts, RecoveryStep};
pub use kubernetes::Grant;
use kubernetes::{Forward, ForwardError, Kubectl, KubectlError, MemberError, members};
use remote::parameter::Kind;
use scenario::{Cluster, Kubernetes, Member, RoleLabel};

pub(crate) use self::fleet::{Fleet, fleet_plan};
pub use self::fleet::{FleetError, planned_fleet};
pub use self::leave::{Asked, Leave, leave};
pub use self::manifests::{Manifests, Wanted, manifests};
use self::recovery::{Hit, recoveries};
use self::sightings::Seen;
pub(crate) use self::sightings::Watching;
use crate::directory::RunDirectory;

/// The program, which is looked for where programs are.
const PROGRAM: &str = "kubectl";
/// How long a way to a pod may take to open.
const WAY_WITHIN: Duration = Duration::from_secs(20);
/// The parameter of command files that is the pod's node.
pub(crate) const NODE: &str = "node";
/// The parameter of command files that is the context.
pub(crate) const CONTEXT: &str = "context";

/// Why there are no pods to run against.
#[derive(Debug, thiserror::Error)]
pub enum PodsError {
    /// The cluster does not answer.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
    /// The members are not there.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// They cannot be reached.
    #[error(transparent)]
    Way(#[from] ForwardError),
    /// Commands cannot be held to the context that is current.
    #[error(
        "kubectl's current context `{context}` cannot be given to commands, which need letters, digits and \
         `._@:/-`; `kubectl config rename-context` renames it"
    )]
    Context {
        /// Its name.
        context: String,
    },
    /// Nobody can write down what is seen of them.
    #[error(
        "no thread records what is seen of the pods: {source}; raise the limit of processes (`ulimit -u`)"
    )]
    Thread {
        /// What the operating system answered.
        source: io::Error,
    },
    /// What is seen of them cannot be written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
}

/// Why a pod's node is not struck.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// The cluster does not say where the pod is.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// The pod is nowhere.
    #[error("pod {pod} is on no node now")]
    NotScheduled {
        /// The pod.
        pod: String,
    },
    /// Somebody else would be struck.
    #[error("member {other} is on node {node} as well, and is not under `may-break`")]
    NotAllowed {
        /// The node.
        node: String,
        /// The member that may not be broken.
        other: String,
    },
}

/// The pods of a run, each with a way to it. Dropping it closes the ways.
pub(crate) struct Pods {
    kubectl: Kubectl,
    container: Option<String>,
    /// The members' names in their order, which are the pods'.
    names: Vec<String>,
    facts: KubernetesFacts,
    ways: Arc<Ways>,
}

/// The ways, by pod.
type Ways = BTreeMap<String, Forward>;

/// kubectl, as a scenario has it called.
fn kubectl(kubernetes: &Kubernetes) -> Kubectl {
    Kubectl {
        program: PROGRAM.into(),
        kubeconfig: kubernetes.kubeconfig.as_ref().map(PathBuf::from),
        context: kubernetes.context.clone(),
        namespace: kubernetes.namespace.clone(),
    }
}

/// kubectl, held to the context that is current now where the scenario names none: another may be by the time that a fault is struck or
/// undone. Within a pod of the cluster there may be none.
fn held(kubectl: Kubectl) -> Result<Kubectl, PodsError> {
    if kubectl.context.is_some() {
        return Ok(kubectl);
    }
    let Some(context) = kubectl.current_context()? else { return Ok(kubectl) };
    if Kind::OptionalName.accepted(&context).is_none() {
        return Err(PodsError::Context { context });
    }
    Ok(Kubectl { context: Some(context), ..kubectl })
}

/// What stands in commands that are shown and not run for what is known of a pod only when a fault strikes it; nothing of a
/// machine.
pub(crate) fn values_on_paper(cluster: &Cluster, member: &Member) -> BTreeMap<String, String> {
    let node = cluster.kubernetes.as_ref().map(|_| (NODE.to_owned(), node_on_paper(&member.name)));
    node.into_iter().collect()
}

/// What stands for the node of a member's pod in commands that are shown and not run.
#[must_use]
pub fn node_on_paper(member: &str) -> String {
    format!("node-of-{member}")
}

impl Pods {
    /// Asks for the members' pods, and opens a way to each.
    pub(crate) fn open(kubernetes: &Kubernetes, cluster: &Cluster) -> Result<Pods, PodsError> {
        let kubectl = held(kubectl(kubernetes))?;
        let names: Vec<String> = cluster.members.iter().map(|member| member.name.clone()).collect();
        let facts = facts::ask(&kubectl, kubernetes, &names)?;
        let mut ways = Ways::new();
        for name in &names {
            ways.insert(name.clone(), Forward::open(&kubectl, name, kubernetes.port, WAY_WITHIN)?);
        }
        let container = kubernetes.container.clone();
        Ok(Pods { kubectl, container, names, facts, ways: Arc::new(ways) })
    }

    /// Where a member's pod is reached on this machine.
    pub(crate) fn address_of(&self, member: &str) -> Option<SocketAddr> {
        self.ways.get(member).map(Forward::address)
    }

    /// The context that commands about them are held to, if there is any.
    pub(crate) fn context(&self) -> Option<&str> {
        self.kubectl.context.as_deref()
    }

    /// What was known of them when the ways were opened.
    pub(crate) fn facts(&self) -> &KubernetesFacts {
        &self.facts
    }

    /// Tells where the label that the scenario names shows another leader than the database says.
    pub(crate) fn compare_roles(
        &self,
        role: Option<&RoleLabel>,
        leader: Option<&str>,
        events: &dyn EventSink,
    ) {
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
    pub(crate) fn node_of(&self, member: &str, may_break: &BTreeSet<&str>) -> Result<String, NodeError> {
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
    pub(crate) fn tell_ended_ways(&self, faults: &[FaultRecord], events: &dyn EventSink) {
        let struck = faults.iter().flat_map(|fault| fault.vms.iter().copied()).collect();
        let way = |pod: &str| self.ways.get(pod).map(|way| (way.restarts(), way.last_words()));
        for what in ended_ways(&self.names, &struck, way) {
            events.warn(what, "start it where the connection to the cluster's API server holds");
        }
    }

    /// Watches the cluster from now on.
    pub(crate) fn watch(&self, directory: &RunDirectory, zero: Instant) -> Result<Watching, PodsError> {
        Watching::begin((&self.kubectl, self.container.clone()), self.ways.clone(), directory, zero)
    }

    /// How pods recovered from the faults that took effect, by the fault's number.
    pub(crate) fn recoveries(
        &self,
        seen: &Seen,
        faults: &[FaultRecord],
    ) -> BTreeMap<FaultId, Vec<RecoveryStep>> {
        let hit = |(number, fault): (FaultId, &FaultRecord)| {
            let pod = self.names.get(*fault.vms.first()?)?;
            Some(Hit { fault: number, pod: pod.clone(), effect_s: fault.took_effect_s? })
        };
        let hits: Vec<Hit> = FaultId::of_each(faults).filter_map(hit).collect();
        recoveries(&seen.sightings, seen.zero_unix_s, &hits)
    }
}

/// Warnings of ways that ended, by how often each was opened again and why, but for those to pods that were struck.
fn ended_ways(
    pods: &[String],
    struck: &BTreeSet<usize>,
    way: impl Fn(&str) -> Option<(u64, String)>,
) -> Vec<String> {
    let not_struck = pods.iter().enumerate().filter(|(number, _)| !struck.contains(number));
    let told = |(_, pod): (usize, &String)| {
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
        let pods = ["pg-0", "pg-1", "pg-2"].map(str::to_owned);
        let way = |pod: &str| Some((u64::from(pod != "pg-2"), "lost connection to pod".to_owned()));
        let told = ended_ways(&pods, &BTreeSet::from([0]), way);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("pg-1") && told[0].ends_with("lost connection to pod"), "{told:?}");
    }
}
