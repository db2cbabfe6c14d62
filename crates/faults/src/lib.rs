//! From the schedule and the seed to timed actions: what is broken when, and which evidence must show it.
//!
//! Owns when faults strike and heal, whom a role means, and what receipt each kind needs. Breaks nothing itself:
//! `run` carries the actions out and gathers the evidence. One file per kind of fault. Pure.

pub mod disk;
pub mod network;
pub mod partition;
pub mod power_off;
pub mod registry;
pub mod role;
pub mod timeline;

pub use registry::{FaultKindEntry, KINDS};
pub use role::{Role, pick};
pub use timeline::{Action, PlannedFault, PlannedPhase, TimedAction, timeline};

/// A piece of evidence that a fault needs, either that it took effect or that it healed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// No process is left of any node that ran there.
    NoProcessLeft,
    /// The addresses of the hosts and their nodes answered before and answer no more.
    AddressesSilent,
    /// The hosts' addresses answer.
    HostsAnswer,
    /// The nodes that ran there answer again, wherever they run now.
    NodesAnswer,
    /// What is sent in a blocked direction does not arrive.
    DirectionSilent,
    /// What is sent in a direction that is not blocked, or no longer, arrives.
    DirectionOpen,
    /// A round trip takes as much longer, or less long, as the fault asks.
    RoundTripChanged,
    /// A round trip takes what it took before.
    RoundTripRestored,
    /// Of many probes as many are lost as the fault asks.
    LossSeen,
    /// Of many probes no more are lost than before.
    LossGone,
    /// A probe of the disk meets what the fault asks: refusals, delays, silence, wrong blocks, syncs that do not hold.
    DiskBehavesAsAsked,
    /// A probe of the disk is written, synced and read as on a sound disk, and outlives a power-off.
    DiskIsSound,
}
