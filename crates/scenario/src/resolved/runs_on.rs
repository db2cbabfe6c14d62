//! What starts the database's processes, as the rest of the program sees it.

use serde::Serialize;

/// What starts the database's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunsOn {
    /// The engine, on the nodes themselves.
    #[default]
    Nodes,
    /// A Kubernetes cluster of the nodes, in pods.
    Kubernetes(KubernetesTimes),
}

/// How long the parts of a cluster wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubernetesTimes {
    /// As Kubernetes is shipped: a silent node is lost after 50 s, and its pods are deleted after 5 minutes more.
    #[default]
    Shipped,
    /// For runs of a minute: 8 s, and 5 s more.
    Short,
}

impl KubernetesTimes {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KubernetesTimes::Shipped => "shipped",
            KubernetesTimes::Short => "short",
        }
    }
}

impl RunsOn {
    /// How long its cluster's parts wait for each other; none where it is in no cluster.
    #[must_use]
    pub fn kubernetes(self) -> Option<KubernetesTimes> {
        match self {
            RunsOn::Nodes => None,
            RunsOn::Kubernetes(times) => Some(times),
        }
    }
}
