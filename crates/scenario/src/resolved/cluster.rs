//! A cluster that exists, as a scenario names it.

use std::collections::BTreeMap;

use history::{NodeId, PerNode};
use serde::Serialize;

/// A database that is there already. Its members are the hosts of the scenario's site, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Its nodes.
    pub members: PerNode<Member>,
    /// Members that faults may strike, by their nodes.
    pub may_break: Vec<NodeId>,
    /// Machines on which loads may stand.
    pub agents: Vec<Agent>,
    /// What becomes of a load that has lost one of them.
    pub agent_lost: AgentLost,
    /// Name of the database that loads use.
    pub database: String,
    /// User that clients connect as.
    pub user: String,
    /// Absolute path of a configuration file for ssh.
    pub ssh_config: Option<String>,
    /// How pods are reached, where the members are pods.
    pub kubernetes: Option<Kubernetes>,
}

/// The Kubernetes cluster that a database's pods are in. Each pod is a member of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kubernetes {
    /// The pods' namespace.
    pub namespace: String,
    /// The context of kubectl's configuration; its current one where absent.
    pub context: Option<String>,
    /// kubectl's configuration; where kubectl looks for it where absent.
    pub kubeconfig: Option<String>,
    /// The container that the database runs in; the pod's first where absent.
    pub container: Option<String>,
    /// The port that the database listens on in the pod.
    pub port: u16,
    /// The label by which the cluster shows who leads.
    pub role: Option<RoleLabel>,
    /// Pods that are made for the run, on which loads may stand.
    pub agents: Option<PodAgents>,
}

/// Agents that are pods of the members' cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodAgents {
    /// The image with holdfast.
    pub image: String,
    /// How many there are.
    pub count: u32,
    /// Holdfast in the image, where the file says.
    pub program: Option<String>,
}

impl PodAgents {
    /// Their names in a scenario: agent-0, agent-1 ...
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        (0..self.count).map(|number| format!("agent-{number}")).collect()
    }
}

impl Cluster {
    /// The member of this name.
    #[must_use]
    pub fn member_named(&self, name: &str) -> Option<NodeId> {
        self.members.find(|member| member.name == name)
    }

    /// Names of all agents on which loads may stand.
    #[must_use]
    pub fn agent_names(&self) -> Vec<String> {
        let pods = self.kubernetes.as_ref().and_then(|kubernetes| kubernetes.agents.as_ref());
        match pods {
            Some(pods) => pods.names(),
            None => self.agents.iter().map(|agent| agent.name.clone()).collect(),
        }
    }
}

/// A label of pods by which a cluster shows who leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoleLabel {
    pub label: String,
    /// Its values on the pod that leads.
    pub leader: Vec<String>,
}

/// A node of a cluster that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    pub name: String,
    /// Address or host name, and port, as `address:port`.
    pub endpoint: String,
    /// How commands reach its machine; no fault can strike a member without.
    pub reach: Option<MemberReach>,
    /// Values for parameters of command files.
    pub facts: BTreeMap<String, String>,
}

/// A machine on which loads may stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agent {
    pub name: String,
    /// How it is reached.
    pub reach: MemberReach,
    /// Holdfast there, where the file says.
    pub program: Option<String>,
}

/// What becomes of a load that has lost an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentLost {
    /// It ends, and the run is unknown.
    #[default]
    Unknown,
    /// Its other agents go on.
    GoOn,
}

impl AgentLost {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AgentLost::Unknown => "unknown",
            AgentLost::GoOn => "go-on",
        }
    }
}

/// How commands reach a member's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberReach {
    /// By the program `ssh`, to this machine.
    Ssh(String),
    /// By a shell that this program and its arguments start; a plain shell where empty.
    Local(Vec<String>),
}
