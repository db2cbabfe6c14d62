//! What the handle asks of the carrier's thread, in so many words. Decides nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;

use crate::bypass::{Bypass, Ways};
use crate::counters::{Counters, PairCounters};
use crate::link::LinkCounters;
use crate::overlay::ImposedId;
use crate::policy::{Path, Policy, Rule};
use crate::prefix::Prefix;
use crate::recorder::{CaptureId, Tap};
use crate::router::PortId;

/// What joins the network.
pub struct Joining {
    /// Where it is.
    pub place: Path,
    /// The addresses it answers to.
    pub addresses: Vec<IpAddr>,
    /// The interface's other end.
    pub descriptor: OwnedFd,
    /// Its way past the fabric, where it has one.
    pub bypass: Option<Box<dyn Bypass>>,
}

/// Why packets are not written down.
pub enum CaptureFailed {
    /// Their file was refused.
    File(io::Error),
    /// Not all of them can be seen: some go past the fabric and cannot be brought back.
    Bypass(io::Error),
}

/// What others ask of the thread. An answer is sent once it is done.
pub enum Command {
    /// Join a descriptor to the network.
    Attach {
        joining: Joining,
        answer: Sender<io::Result<PortId>>,
    },
    /// Take a port off the network.
    Detach {
        port: PortId,
        answer: Sender<io::Result<()>>,
    },
    /// Put a port at another place.
    Relocate {
        port: PortId,
        place: Path,
        answer: Sender<io::Result<()>>,
    },
    /// Replace all rules.
    SetPolicy {
        policy: Policy,
        answer: Sender<io::Result<()>>,
    },
    /// Lay rules over everything.
    Impose {
        rules: Vec<Rule>,
        answer: Sender<io::Result<Vec<ImposedId>>>,
    },
    /// Take imposed rules away again.
    Lift {
        ids: Vec<ImposedId>,
        answer: Sender<()>,
    },
    /// Begin to write a port's packets.
    Capture {
        tap: Tap,
        file: File,
        answer: Sender<Result<CaptureId, CaptureFailed>>,
    },
    EndCapture {
        id: CaptureId,
        answer: Sender<io::Result<u64>>,
    },
    /// Tell what has gone through.
    Counters {
        answer: Sender<Counters>,
    },
    /// Say which networks lie behind a port.
    Route {
        port: PortId,
        behind: Vec<Prefix>,
        answer: Sender<()>,
    },
    /// Begin to count the packets of pairs of places.
    Count {
        pairs: Vec<(Path, Path)>,
        answer: Sender<io::Result<Vec<usize>>>,
    },
    /// Tell what has been counted.
    Counted {
        numbers: Vec<usize>,
        answer: Sender<Vec<PairCounters>>,
    },
    EndCounts {
        numbers: Vec<usize>,
        answer: Sender<()>,
    },
    /// Tell what each link has carried.
    LinkCounters {
        answer: Sender<BTreeMap<String, LinkCounters>>,
    },
    /// Tell which way packets go.
    Ways {
        answer: Sender<Ways>,
    },
    /// End the thread.
    Stop,
}
