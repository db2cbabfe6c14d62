//! What a run was: the site as built, the loads, the phases planned. Written into the first event of every run,
//! so that a report can be made from the run directory alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::kubernetes::KubernetesFacts;

/// A host of the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Full path, outermost first: `dc1/a/r1/h2`.
    pub path: String,
    /// Region's name.
    pub region: String,
    /// Zone's name.
    pub zone: String,
    /// Rack's name; absent where hosts stand straight in a zone.
    pub rack: Option<String>,
    /// The host's own name.
    pub name: String,
    /// Its address in the lab.
    pub address: String,
}

/// A node of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// Its name: `n1`.
    pub name: String,
    /// Path of the host it started on.
    pub host: String,
    /// Its address, which it keeps wherever it runs.
    pub address: String,
    /// The role it started in: `leader`, `follower`, `coordinator` or [`NodeFacts::VOLUME`].
    pub role: String,
}

impl NodeFacts {
    /// The role of a node that has a volume and no database on it.
    pub const VOLUME: &str = "volume";
}

impl SiteFacts {
    /// Whether there is a database on the nodes, and not their volumes alone.
    #[must_use]
    pub fn has_database(&self) -> bool {
        !self.nodes.iter().any(|node| node.role == NodeFacts::VOLUME)
    }
}

/// A delay and a rate between two places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// Path of the place packets leave.
    pub from: String,
    /// Path of the place packets reach.
    pub to: String,
    /// One-way delay, microseconds.
    pub delay_us: u64,
    /// What it carries, bits a second, from the first load on; no limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bits_per_s: Option<u64>,
    /// All its conditions in words: `delay 50 ms, loss 1 %`.
    #[serde(default)]
    pub conditions: String,
}

/// What everything that leaves or enters a place shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeFacts {
    /// As the scenario names it, for links and receipts that go through it.
    pub name: String,
    /// Path of the place it stands around.
    pub around: String,
    /// What it carries each way, bits a second, from the first load on.
    pub rate_bits_per_s: u64,
}

/// The site as built.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteFacts {
    /// Hosts, in the scenario's order.
    pub hosts: Vec<HostFacts>,
    /// Database nodes, in order.
    pub nodes: Vec<NodeFacts>,
    /// Delays, one entry per direction.
    pub links: Vec<LinkFacts>,
    /// What places share on their way in and out.
    #[serde(default)]
    pub edges: Vec<EdgeFacts>,
}

/// A load as planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// Its name, unique in the run.
    pub name: String,
    /// The workload's name: `tpcb`.
    pub workload: String,
    /// Closed loop: number of clients. Open loop: the most connections at once.
    pub clients: u32,
    /// Open loop: the lowest and the highest rate at which operations are due, a second. Absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_range_per_s: Option<[f64; 2]>,
    /// Path of the place its clients stand in.
    pub from: String,
    /// The operation whose rate is the load's throughput (for `tpcb` the transaction, `ledger` the insert).
    pub transaction: String,
    /// The names of the statements within a transaction, in their order; empty when it is a single statement.
    pub statements: Vec<String>,
}

/// Begins the names of phases that no figure counts.
pub const WARM_UP: &str = "warm-up";
/// The phase that others are compared with.
pub const BASELINE: &str = "baseline";

/// A phase as planned or as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseFacts {
    /// Its name: `warm-up`, `baseline`, `fault`, `recovery`, or any other.
    pub name: String,
    /// When it begins, seconds.
    pub from_s: f64,
    /// When it ends, seconds.
    pub to_s: f64,
}

/// Everything known before the first load starts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// Holdfast's version.
    pub holdfast: String,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's description.
    #[serde(default)]
    pub description: String,
    /// What every random choice of the run was drawn from.
    pub seed: u64,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// The database engine's name: `postgres`.
    pub engine: String,
    /// The database's own version string.
    pub engine_version: String,
    /// How the engine was set up, in words and figures: `synchronous` -> `any 1`, `failover` -> `ha-restart after 5 s` ...
    pub engine_settings: BTreeMap<String, String>,
    /// The machine: `kernel`, `cpu`, `cores`, `memory_bytes`, `user` (root or ordinary), `cpu_limit` ...
    pub machine: BTreeMap<String, String>,
    /// What was built, or is there.
    pub site: SiteFacts,
    /// In the scenario's order.
    pub loads: Vec<LoadFacts>,
    /// The phases planned.
    pub phases: Vec<PhaseFacts>,
    /// Lies that a test planted in the lab, by name; empty in every honest run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planted: Vec<String>,
    /// Whether it ran on a cluster that exists, and no lab was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_external: bool,
    /// The Kubernetes cluster, where the members are pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesFacts>,
}
