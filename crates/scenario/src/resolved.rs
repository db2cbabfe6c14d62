//! The scenario as the rest of the program sees it: every name resolved, every unit converted, every default filled in.
//!
//! Owns these types, not how they are read from YAML.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// A checked scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Scenario {
    /// Its name: also the name of its folder under `runs/`.
    pub name: String,
    /// What it shows.
    pub description: String,
    /// The published report it reproduces.
    pub reproduces: Option<Reproduces>,
    /// The seed; drawn at the start of the run where the file gives none.
    pub seed: Option<u64>,
    /// The site.
    pub site: Site,
    /// The database.
    pub database: Database,
    /// The loads.
    pub loads: Vec<Load>,
    /// Phases in order, each with its faults.
    pub schedule: Vec<Phase>,
    /// What must hold.
    pub expect: Vec<Expectation>,
}

/// The published report that a scenario reproduces.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduces {
    /// The report's id.
    pub report: String,
    /// Its figures by name, the unit last in each name.
    pub figures: BTreeMap<String, f64>,
}

/// Hosts and what lies between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Site {
    /// Every host, in the file's order.
    pub hosts: Vec<Host>,
    /// Delays and rates, one entry per direction, in the file's order. The delay of a pair is that of the most specific
    /// entry that covers it, its rate that of the most specific one that has a rate; of equals, the last.
    pub links: Vec<Link>,
}

/// A level of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A region.
    Region,
    /// A zone within a region.
    Zone,
    /// A rack within a zone.
    Rack,
    /// A host.
    Host,
}

/// A place of the site by its full path, outermost first: `["dc1", "a", "r1", "h2"]`. A zone without racks has
/// hosts straight in it, whose path is one shorter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Place {
    /// What kind of place.
    pub level: Level,
    /// Names from the region down.
    pub path: Vec<String>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.path.join("/"))
    }
}

/// A host of the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Region's name.
    pub region: String,
    /// Zone's name.
    pub zone: String,
    /// Rack's name, where the zone has racks.
    pub rack: Option<String>,
    /// Its own name.
    pub name: String,
}

impl Host {
    /// Names from the region down, ending with the host's own.
    #[must_use]
    pub fn path(&self) -> Vec<String> {
        let mut path = vec![self.region.clone(), self.zone.clone()];
        path.extend(self.rack.clone());
        path.push(self.name.clone());
        path
    }

    /// Whether the host stands in `place` (or is it).
    #[must_use]
    pub fn is_in(&self, place: &Place) -> bool {
        self.path().starts_with(&place.path)
    }
}

/// What lies between two places, one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Where packets leave.
    pub from: Place,
    /// Where they arrive.
    pub to: Place,
    /// How long they take.
    pub delay: Duration,
    /// What the link carries in this direction, shared by everything that crosses it. When absent that of a less specific
    /// link, or no limit.
    pub rate_bits_per_s: Option<u64>,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Database {
    /// The engine's name.
    pub engine: String,
    /// An explicit path of the database's `bin` folder.
    pub path: Option<String>,
    /// Index into [`Site::hosts`] for each node `n1`, `n2` ...; the first is the initial leader.
    pub nodes: Vec<usize>,
    /// Which acknowledgements a commit waits for.
    pub synchronous: Synchronous,
    /// What the platform does when the leader's node is gone.
    pub failover: Failover,
    /// Further settings, passed to the database's own configuration as they stand.
    pub settings: BTreeMap<String, String>,
    /// CPUs each node may use; no limit when absent.
    pub cpus: Option<f64>,
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

/// A workload at a number of clients, from a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Unique name; the workload's own where the file gives none.
    pub name: String,
    /// The workload's name.
    pub workload: String,
    /// Closed loop: clients.
    pub clients: u32,
    /// Scale factor (tpcb: 1 = 100,000 accounts).
    pub scale: u32,
    /// Where the clients stand; a place of any level.
    pub from: Place,
    /// How long a client waits for an answer.
    pub timeout: Duration,
}

/// A stretch of the run's time line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Its name. `warm-up` is left out of totals, `baseline` is what recovery is measured against.
    pub name: String,
    /// How long it lasts; whole seconds.
    pub length: Duration,
    /// Faults that begin in it, in order of time.
    pub faults: Vec<Fault>,
}

/// A fault, when it strikes and how long it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What is broken.
    pub kind: FaultKind,
    /// What it is aimed at.
    pub target: FaultTarget,
    /// From the start of its phase.
    pub at: Duration,
    /// How long until it is healed (the host's power returns); until the end of its phase when absent.
    pub length: Option<Duration>,
}

/// Kinds of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// Every host of the target loses power.
    PowerOff,
}

impl FaultKind {
    /// Its name in files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::PowerOff => "power-off",
        }
    }
}

/// What a fault is aimed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTarget {
    /// A place by name.
    Place(Place),
    /// The place of this level where the leader is when the fault strikes.
    Leader(Level),
    /// The place of this level where a follower is; which one, the seed decides.
    AFollower(Level),
    /// A place of this level that holds a node; which one, the seed decides.
    Random(Level),
}

/// A gate: a quantity, a comparison and a bound.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expectation {
    /// The quantity's name: `lost_writes`, `invented_writes`, `recovery`, `recovery_95_percent`, `errors`,
    /// `throughput_per_s`, `latency_p99`, `throughput_ratio_during`, `lab_cpu_share`.
    pub name: String,
    /// As written, for messages: `< 30s`.
    pub wanted: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The bound, in the quantity's base unit: seconds, writes, transactions per second, microseconds for
    /// latencies, or a ratio (1 = 100 %).
    pub bound: f64,
}

/// How a measured value is held against its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Below.
    Less,
    /// At most.
    AtMost,
    /// Above.
    Greater,
    /// At least.
    AtLeast,
}
