//! Parts of a scenario as the rest of the program sees them: every name resolved, every unit converted, every default
//! filled in.
//!
//! Owns these types, not how they are read from YAML. Faults are in `faults`.

mod cluster;
mod disks;
mod expectation;
mod load;
pub(crate) mod pace;
mod platform;
mod runs_on;
mod site;
pub(crate) mod storage;

use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::Capabilities;
use history::{HostId, PerNode};
use serde::{Serialize, Serializer};

use crate::release::Release;

pub use cluster::{Agent, AgentLost, Cluster, Kubernetes, Member, MemberReach, PodAgents, RoleLabel};
pub use disks::{DiskSync, Disks};
pub use expectation::{Comparison, Expectation, Within};
pub use load::{Consistency, ConsistencyLevel, Load, Reads, Timestamps};
pub use pace::{Arrival, Ends, Pace, Ramp, Sweep, ThinkTime};
pub use platform::{ClockCorrection, IsolationResponse, Memory, TimeService, VmPlatform};
pub use runs_on::{KubernetesTimes, RunsOn};
pub use site::{
    Conditions, Distribution, Edge, Host, IpVersion, Jitter, Level, Link, NetworkPath, Place, Queue, Site,
};
pub use storage::{Acknowledge, Apart, Promotion, Storage, StorageClass};

/// The published report that a scenario reproduces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduces {
    /// The report's id.
    pub report: String,
    /// Its figures by name, the unit last in each name.
    pub figures: BTreeMap<String, f64>,
    /// Those of its baseline.
    pub baseline: BTreeMap<String, f64>,
    /// The rows of its table, where it raised its load step by step.
    pub steps: Vec<ReportedStep>,
}

/// A row of a published report's table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReportedStep {
    /// What the report calls it.
    pub step: String,
    /// Its figures by name, the unit last in each name.
    pub figures: BTreeMap<String, f64>,
}

/// What runs on the nodes, with all defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Database {
    #[serde(serialize_with = "by_name")]
    pub engine: &'static Capabilities,
    /// Which programs of it, where that is not left to the search.
    pub release: Option<Release>,
    /// What starts its processes.
    pub on: RunsOn,
    /// The host in [`Site::hosts`] of each node; the first is the initial leader.
    pub nodes: PerNode<HostId>,
    /// Which acknowledgements a commit waits for.
    pub synchronous: Synchronous,
    /// How many nodes of each region hold each row: all of them where that is no choice.
    pub copies: u32,
    /// What the platform does when the leader's node is gone.
    pub failover: Failover,
    /// Further settings, passed to the database's own configuration as they stand.
    pub settings: BTreeMap<String, String>,
    /// CPUs each node may use; no limit when absent.
    pub cpus: Option<f64>,
    /// What the nodes' volumes are.
    pub volumes: Volumes,
    /// How they are mirrored, where anything is said of it.
    pub storage: Option<Storage>,
    /// What the placement of its nodes' VMs keeps to.
    pub platform: VmPlatform,
    /// Whether it is foreseen that somebody outside the schedule stops or kills processes of nodes.
    pub interference_expected: bool,
}

fn by_name<S: Serializer>(engine: &&'static Capabilities, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(engine.name)
}

/// What a node's volume is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Volumes {
    /// A virtual disk, which loses at a power-off what was not synced.
    #[default]
    Virtual,
    /// A virtual disk, on which some sectors of the last unsynced write survive a power-off.
    Torn,
    /// A directory of the machine's, which loses nothing.
    Directory,
}

impl Volumes {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Volumes::Virtual => "virtual",
            Volumes::Torn => "torn",
            Volumes::Directory => "directory",
        }
    }
}

/// Which acknowledgements a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Synchronous {
    /// None: the leader's own disk suffices.
    Off,
    /// That of any so many standbys.
    Any(u32),
    /// Every standby's.
    All,
}

/// What the platform does when a node's host is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failover {
    /// Nothing: the node starts again when its host returns.
    None,
    /// The node's VM is started on another host.
    HaRestart {
        /// Time from the loss to the start.
        after: Duration,
    },
    /// The most advanced standby is promoted; clients and the other standbys follow.
    Promote {
        /// Time from the loss to the promotion.
        after: Duration,
    },
}

impl Failover {
    /// How long is waited before anything is done, where anything is.
    #[must_use]
    pub fn waits(self) -> Option<Duration> {
        match self {
            Failover::None => None,
            Failover::HaRestart { after } | Failover::Promote { after } => Some(after),
        }
    }
}
