//! Faults, as the rest of the program sees them.
//!
//! Owns these types, not how they are read from YAML.

use std::time::Duration;

use serde::Serialize;

use super::disks::{DiskDefect, DiskTarget};
use super::pressure::PressureFault;
use super::processes::{ProcessDeed, ProcessFault};
use super::site::{Conditions, Level, Place};

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
    /// Something is done to the processes of a node.
    Process(ProcessFault),
    /// A node gets less of what it runs on.
    Pressure(PressureFault),
}

impl FaultAction {
    /// How long it stands by its own nature, whatever the schedule says; `None` where the schedule says it.
    #[must_use]
    pub fn own_length(&self) -> Option<Duration> {
        match self {
            FaultAction::Process(ProcessFault { how: ProcessDeed::Kill { restart_after }, .. }) => {
                *restart_after
            }
            _ => None,
        }
    }

    /// The kind's name in files and reports.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            FaultAction::PowerOff { .. } => "power-off",
            FaultAction::Network { .. } => "network",
            FaultAction::Partition { .. } => "partition",
            FaultAction::Disk { .. } => "disk",
            FaultAction::Process(_) => "process",
            FaultAction::Pressure(_) => "pressure",
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
    /// Their senders get an error at once: a reset for TCP.
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
    /// The place of this level where one of the nodes is that take writes, none of which leads; which one, the seed decides.
    Coordinator(Level),
    /// A place of this level that holds a node; which one, the seed decides.
    Random(Level),
}
