//! What a set of failures leaves of a database: whether it serves, and where the acknowledged writes are.
//!
//! Owns the words and the judgement of one set; which sets there are is in `survey`. The worst that can follow is told:
//! acknowledgements came from the replicas that failed, the standby least suited is the one promoted.

mod aftermath;
mod elected;
mod groups;
mod single_log;
mod survey;

use std::fmt;

use crate::deployment::{Deployment, Path, Rules};
use aftermath::Aftermath;

pub use elected::copies;
pub use survey::{Smallest, Survey, failures, survey};

/// Something that fails.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// Every host of a place is off.
    Down(Path),
    /// Nothing passes between two places. One direction is as bad: a connection needs both.
    Cut(Path, Path),
    /// Nothing passes in or out of a place.
    Isolated(Path),
    /// A capacity disk refuses everything: its host's path and its name.
    Disk(Path),
    /// A cache disk refuses everything, and with it all capacity disks behind it: its host's path and its name.
    DiskGroup(Path),
    /// The databases on a host do not answer, because their processes have ended or stand still. The host itself, its disks
    /// and the way there are sound, so that the platform does not start them elsewhere.
    Silent(Path),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Down(place) => write!(f, "{}", place.join("/")),
            Failure::Cut(one, other) => write!(f, "link {} - {}", one.join("/"), other.join("/")),
            Failure::Isolated(place) => write!(f, "edge of {}", place.join("/")),
            Failure::Disk(disk) => write!(f, "disk {}", disk.join("/")),
            Failure::DiskGroup(cache) => write!(f, "disk group {}", cache.join("/")),
            Failure::Silent(host) => write!(f, "database on {}", host.join("/")),
        }
    }
}

/// What the database still does, for the clients that are worst off. Worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Nothing.
    Unavailable,
    /// Reads; from a standby they may be old.
    ReadsOnly,
    /// Writes, where a read waits for more replicas than a write.
    WritesOnly,
    /// All.
    ReadsAndWrites,
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Service::Unavailable => "unavailable",
            Service::ReadsOnly => "reads only",
            Service::WritesOnly => "writes only",
            Service::ReadsAndWrites => "reads and writes",
        })
    }
}

/// Where the acknowledged writes are. Worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Data {
    /// Somebody goes on without some of them: lost, even if all that failed returns.
    MayBeLost,
    /// Some perhaps only on volumes of what failed: kept if these survive or return.
    OnFailedOnly,
    /// On a sound disk of a host that did not fail: kept even if nothing returns.
    Kept,
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Data::MayBeLost => "may be lost",
            Data::OnFailedOnly => "only on what failed",
            Data::Kept => "kept",
        })
    }
}

/// What the platform had to do for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Nothing; or there was nothing it could do.
    None,
    /// Nodes were started on other hosts.
    Restarted,
    /// A standby was promoted.
    Promoted,
}

/// What a set of failures leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// What the database still does.
    pub service: Service,
    /// Where the acknowledged writes are.
    pub data: Data,
    /// What the platform did first.
    pub action: Action,
}

/// What these failures leave when they strike at once, after the platform has done what it does.
#[must_use]
pub fn outcome(deployment: &Deployment, failures: &[Failure]) -> Outcome {
    let aftermath = Aftermath::after(deployment, failures);
    match &deployment.rules {
        Rules::SingleLog { acknowledgements, takeover } => {
            single_log::outcome(deployment, &aftermath, *acknowledgements, *takeover)
        }
        Rules::Elected { acknowledgements, takeover } => {
            elected::outcome(deployment, &aftermath, *acknowledgements, *takeover)
        }
        Rules::Groups { groups, quorums, synced } => {
            groups::outcome(deployment, &aftermath, groups, (quorums, *synced))
        }
    }
}
