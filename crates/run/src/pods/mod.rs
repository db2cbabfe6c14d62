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
use history::{EventSink, KubernetesFacts, PodFacts, RecoveryStep};
use kubernetes::{Forward, ForwardError, Kubectl, KubectlError, MemberError, members};
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
        let kubectl = kubectl(kubernetes);
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

    /// Watches the cluster from now on.
    pub(crate) fn watch(&self, directory: &RunDirectory, zero: Instant) -> Result<Watching, PodsError> {
        Watching::begin((&self.kubectl, self.container.clone()), self.ways.clone(), directory, zero)
    }

    /// How pods recovered from the faults that took effect, by the fault's number.
    pub(crate) fn recoveries(
        &self,
        seen: &Seen,
        faults: &[FaultRecord],
    ) -> BTreeMap<usize, Vec<RecoveryStep>> {
        let hit = |(number, fault): (usize, &FaultRecord)| {
            let pod = self.names.get(*fault.vms.first()?)?;
            Some(Hit { fault: number, pod: pod.clone(), effect_s: fault.took_effect_s? })
        };
        let hits: Vec<Hit> = faults.iter().enumerate().filter_map(hit).collect();
        recoveries(&seen.sightings, seen.zero_unix_s, &hits)
    }
}
