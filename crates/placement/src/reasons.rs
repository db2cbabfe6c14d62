//! Decisions, and why they were made: facts, of which others make sentences.

use history::{HostId, NodeId};

/// What a VM has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Its host, which is lost.
    Host,
    /// A host that stands, but from which its volume can no longer be reached.
    Volume,
    /// A host that is back, on which others run now.
    Room,
}

/// What is to be done with a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Start {
        /// Which.
        vm: NodeId,
        /// Where.
        host: HostId,
        /// Why there.
        reason: StartReason,
    },
    /// Leave it off until something changes: no host can have it.
    Wait {
        /// Which.
        vm: NodeId,
        /// What stands against each host, in their order.
        obstacles: Vec<(HostId, Obstacle)>,
    },
    /// Move it while it runs.
    Move {
        /// Which.
        vm: NodeId,
        /// From where.
        from: HostId,
        /// Where to.
        to: HostId,
        /// What the move is good for.
        reason: MoveReason,
    },
}

/// Why a VM is started where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartReason {
    /// What it has left behind.
    pub left: Left,
    /// Hosts that could have had it.
    pub candidates: usize,
    /// What tells this one from the next best; none where it is the only one.
    pub better: Option<Better>,
    /// Rules that are broken although they should not be.
    pub broken: Vec<usize>,
    /// What stood against each other host.
    pub obstacles: Vec<(HostId, Obstacle)>,
}

/// What makes a host better than another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// It has the VM's data, or more of it.
    Data,
    /// It is there to run VMs, not for storage alone.
    NotForStorage,
    /// It breaks fewer rules that should hold.
    Rules,
    /// Fewer VMs run there.
    FewerVms,
    /// It is nearer to where the VM ran.
    Nearer,
    /// Nothing but its place in the site.
    Order,
}

/// Why a host cannot have a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// It has no power.
    NoPower,
    /// It reaches no other host.
    Isolated,
    /// It is where the VM was lost.
    LeftThere,
    /// Its memory is short.
    Memory {
        /// What is free.
        free_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
    },
    /// It runs as many VMs as it may.
    Full {
        /// As many.
        vms: usize,
    },
    /// A rule that must hold.
    Rule {
        /// Its number.
        rule: usize,
        /// The VM that is in the way.
        with: Option<NodeId>,
    },
    /// The VM's data cannot be had there.
    NoData,
    /// It is there for storage alone, and has nothing of this VM's.
    ForStorage,
    /// It was tried just now, in vain.
    Tried,
}

/// Why a VM is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveReason {
    /// A rule is broken where it is.
    RepairsRule {
        /// Its number.
        rule: usize,
    },
    /// The host that it belongs to is back.
    GoesHome,
    /// The hosts are loaded unevenly.
    Balances {
        /// VMs where it is.
        vms_here: usize,
        /// VMs where it goes.
        vms_there: usize,
    },
}
