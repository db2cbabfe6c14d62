//! The scenario as the rest of the program sees it: every name resolved, every unit converted, every default filled in.
//!
//! Owns these types, not how they are read from YAML.

use std::collections::BTreeMap;
use std::time::Duration;

use capabilities::Capabilities;
use serde::{Serialize, Serializer};

pub use crate::resolved_disks::{DiskDefect, DiskTarget, Disks};
pub use crate::resolved_expectation::{Comparison, Expectation, Within};
use crate::storage::Storage;

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
    /// What lies between places, one entry per direction, in the file's order. For each condition by itself the most
    /// specific pair that speaks of it wins; of equals, the last.
    pub links: Vec<Link>,
    /// What everything that leaves or enters a place shares, in the file's order.
    pub edges: Vec<Edge>,
    /// How long the fabric looks for packets without sleeping; zero: it sleeps at once.
    pub busy_poll: Duration,
    /// The version of IP that the database and its clients speak. Every place has an address of both.
    pub ip: IpVersion,
    /// The disks of every host.
    pub disks: Disks,
}

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    #[serde(rename = "4")]
    V4,
    /// IPv6.
    #[serde(rename = "6")]
    V6,
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

impl Place {
    /// Whether one is the other, or contains it.
    #[must_use]
    pub fn overlaps(&self, other: &Place) -> bool {
        self.path.starts_with(&other.path) || other.path.starts_with(&self.path)
    }
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Where packets leave.
    pub from: Place,
    /// Where they arrive.
    pub to: Place,
    /// What happens to them on the way.
    pub conditions: Conditions,
}

/// What everything that leaves a place shares, and what everything that enters it shares: an edge router, a host's
/// network card. A packet crosses every edge on its way, besides what the links do to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// Its name in the report.
    pub name: String,
    /// The place it stands around.
    pub around: Place,
    /// What it carries each way.
    pub rate_bits_per_s: u64,
    /// How much waits for that, each way, before packets are dropped.
    pub queue: Option<Queue>,
}

/// How much waits for a rate before packets are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// Bytes of IP packets.
    Bytes(u64),
    /// Packets, whatever their size.
    Packets(u64),
}

/// What happens to packets on their way in one direction. What is absent is not spoken of: on a link it is whatever a
/// wider link says and nothing where none does; in a fault it stays as the links have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Conditions {
    /// How long they take.
    pub delay: Option<Duration>,
    /// How much that differs from packet to packet; only beside a delay.
    pub jitter: Option<Jitter>,
    /// Share of packets that are lost, 0 to 1.
    pub loss: Option<f64>,
    /// Share of packets that arrive twice, 0 to 1.
    pub duplicate: Option<f64>,
    /// Share of packets that take no delay and so overtake those before them, 0 to 1.
    pub reorder: Option<f64>,
    /// Share of packets that arrive with a bit flipped, 0 to 1.
    pub corrupt: Option<f64>,
    /// What the direction carries, shared by everything that crosses it.
    pub rate_bits_per_s: Option<u64>,
    /// How much waits for that rate before packets are dropped.
    pub queue: Option<Queue>,
    /// Bytes of the largest IP packet that passes.
    pub mtu_bytes: Option<u32>,
}

/// How much the delay of one packet differs from that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Jitter {
    /// How far delays spread: what it measures depends on the distribution.
    pub spread: Duration,
    /// Its shape.
    pub distribution: Distribution,
}

/// The shape of jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Evenly from the delay less the spread to the delay plus the spread.
    Uniform,
    /// The spread is the standard deviation.
    Normal,
    /// The spread is the mean of what is added to the delay.
    Exponential,
    /// A heavy tail above the delay, as netem's table has it.
    Pareto,
}

/// The database.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Database {
    /// The engine.
    #[serde(serialize_with = "by_name")]
    pub engine: &'static Capabilities,
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
    /// What the nodes' volumes are.
    pub volumes: Volumes,
    /// How they are mirrored, where anything is said of it.
    pub storage: Option<Storage>,
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

/// How much a load's clients ask.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Pace {
    /// Open loop: operations due a second. Closed where neither this nor a sweep gives one.
    pub rate_per_s: Option<f64>,
    /// Open loop: how they are spread.
    pub arrival: Arrival,
    /// Closed loop: how long each client thinks between an answer and its next operation.
    pub think_time: ThinkTime,
    /// A value for each phase beside warm-up, which takes the first.
    pub sweep: Option<Sweep>,
    /// What rises or falls evenly once the warm-up has ended; not beside a sweep.
    pub ramp: Option<Ramp>,
}

/// A rise or a fall.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ramp {
    /// Of what, from where to where.
    pub ends: Ends,
    /// In what time.
    pub over: Duration,
}

/// What a ramp changes, and between which values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// The number of clients.
    Clients {
        /// At first.
        from: u32,
        /// At last.
        to: u32,
    },
    /// Operations due a second.
    Rate {
        /// At first.
        from_per_s: f64,
        /// At last.
        to_per_s: f64,
    },
}

/// How the operations of an open loop are spread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly.
    #[default]
    Constant,
    /// As independent users come.
    Poisson,
}

/// How long a client thinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkTime {
    /// Not at all.
    #[default]
    None,
    /// Always so long.
    Constant(Duration),
    /// Exponentially, with this mean.
    Exponential(Duration),
}

/// What changes from phase to phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sweep {
    /// The number of clients.
    Clients(Vec<u32>),
    /// Operations due a second.
    Rate(Vec<f64>),
}

impl Load {
    /// What is asked from when on: seconds from the start, clients, and in an open loop the rate a second.
    #[must_use]
    pub fn steps(&self, schedule: &[Phase]) -> Vec<(Duration, u32, Option<f64>)> {
        crate::pace::steps(&self.pace, self.clients, schedule)
    }
}

/// A workload at a number of clients, from a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Unique name; the workload's own where the file gives none.
    pub name: String,
    /// The workload's name.
    pub workload: String,
    /// Closed loop: clients. Open loop: the most connections at once.
    pub clients: u32,
    /// How much they ask.
    pub pace: Pace,
    /// Scale factor (tpcb: 1 = 100,000 accounts).
    pub scale: u32,
    /// Where the clients stand; a place of any level.
    pub from: Place,
    /// Where reads go.
    pub reads: Reads,
    /// How long a client waits for an answer.
    pub timeout: Duration,
    /// Options of the workload as text, by dotted name (`read`, `scripts.0.text`), defaults included.
    pub options: BTreeMap<String, String>,
}

/// Where the reads of a load go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Reads {
    /// Where its writes go.
    #[default]
    Leader,
    /// To replicas only.
    Replicas,
    /// To any node, the leader among them.
    Any,
}

impl Reads {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Reads::Leader => "leader",
            Reads::Replicas => "replicas",
            Reads::Any => "any",
        }
    }
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
    pub action: FaultAction,
    /// From the start of its phase.
    pub at: Duration,
    /// How long until it is healed (the host's power returns); until the end of its phase when absent.
    pub length: Option<Duration>,
    /// Whether it comes and goes until it is healed; only network faults and partitions do.
    pub flap: Option<Flap>,
}

/// How a fault comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Flap {
    /// How long the fault stands each time; it stands first.
    pub down: Duration,
    /// How long everything is as it was in between.
    pub up: Duration,
}

/// What a fault does, and to what.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultAction {
    /// Every host of the target loses power.
    PowerOff {
        /// What loses it.
        target: FaultTarget,
    },
    /// The network between places changes.
    Network {
        /// The directions that change, each from one place to another; a fault between two places has both.
        directions: Vec<(FaultTarget, FaultTarget)>,
        /// What they become. What is given replaces the links' own; what is absent stays as the links have it.
        conditions: Conditions,
    },
    /// Nothing gets through.
    Partition {
        /// Between whom.
        shape: PartitionShape,
        /// What becomes of packets that do not get through.
        answer: BlockAnswer,
    },
    /// A disk goes wrong.
    Disk {
        /// Which.
        target: DiskTarget,
        /// How.
        defect: DiskDefect,
    },
}

impl FaultAction {
    /// The kind's name in files and reports.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            FaultAction::PowerOff { .. } => "power-off",
            FaultAction::Network { .. } => "network",
            FaultAction::Partition { .. } => "partition",
            FaultAction::Disk { .. } => "disk",
        }
    }
}

/// Who is cut off from whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionShape {
    /// A place from everything outside it, clients too, both ways.
    Isolate(FaultTarget),
    /// What leaves one place never reaches another; the way back is open.
    OneWay {
        /// Where packets leave.
        from: FaultTarget,
        /// Where they do not arrive.
        to: FaultTarget,
    },
    /// Two places from each other.
    Between(FaultTarget, FaultTarget),
    /// The database's nodes in two halves, as even as they can be; which node is where, the seed decides. Clients reach all.
    Halves,
    /// The same without the nodes of this place, which see both halves.
    Bridge(FaultTarget),
    /// Each of the database's nodes hears a majority of them, and no two the same majority. Clients reach all.
    Ring,
}

/// What becomes of packets that do not get through a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockAnswer {
    /// They vanish, and their senders wait.
    #[default]
    Silence,
    /// Their senders are told so at once: a reset for TCP.
    Reset,
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
