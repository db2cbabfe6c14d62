//! The handle others hold on the running fabric: commands to its thread, and guards that take them back when dropped.
//!
//! Decides nothing and touches no packet.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::time::{ClockId, clock_gettime};

use crate::bypass::{Bypass, Ways};
use crate::carrier::Carrier;
use crate::commands::{CaptureFailed, Command, Joining};
use crate::counters::{Counters, PairCounters};
use crate::link::LinkCounters;
use crate::options::Options;
use crate::overlay::ImposedId;
use crate::policy::{Path, Policy, Rule};
use crate::prefix::Prefix;
use crate::recorder::{CaptureId, Tap};
use crate::router::PortId;

/// What can go wrong with the fabric.
#[derive(Debug, thiserror::Error)]
pub enum FabricError {
    /// The thread could not be set up.
    #[error("fabric set-up: {0}")]
    SetUp(#[source] io::Error),
    /// The thread is gone.
    #[error("fabric thread is gone")]
    Gone,
    /// A descriptor could not be watched.
    #[error("fabric attach of {place}: {source}")]
    Attach {
        /// The place, its names joined by `/`.
        place: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A pair of places cannot be brought back from the kernel's own path, on which nothing that is asked of it holds.
    #[error("fabric: the kernel's own path could not be left: {0}")]
    Bypass(#[source] io::Error),
    /// A capture could not be written to its end.
    #[error("fabric capture: {0}")]
    Capture(#[source] io::Error),
}

impl From<CaptureFailed> for FabricError {
    fn from(failed: CaptureFailed) -> FabricError {
        match failed {
            CaptureFailed::File(source) => FabricError::Capture(source),
            CaptureFailed::Bypass(source) => FabricError::Bypass(source),
        }
    }
}

/// The running fabric. Dropping it stops the thread and closes every descriptor it was given.
#[derive(Debug)]
pub struct Fabric {
    line: Line,
    thread: Option<JoinHandle<()>>,
    delivery_ns: Arc<AtomicU64>,
}

/// A line to the thread; guards hold copies.
#[derive(Debug, Clone)]
struct Line {
    commands: Sender<Command>,
    wake: Arc<EventFd>,
}

impl Line {
    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Result<T, FabricError> {
        let (answer, answered) = mpsc::channel();
        self.send(command(answer))?;
        answered.recv().map_err(|_| FabricError::Gone)
    }

    fn send(&self, command: Command) -> Result<(), FabricError> {
        self.commands.send(command).map_err(|_| FabricError::Gone)?;
        self.wake.write(1).map_err(|_| FabricError::Gone).map(|_| ())
    }
}

impl Fabric {
    /// Starts the thread with options that need no thought.
    ///
    /// # Errors
    /// When the kernel gives no event descriptor or no thread.
    pub fn start() -> Result<Fabric, FabricError> {
        Fabric::start_with(Options::default())
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// When the kernel gives no event descriptor or no thread.
    pub fn start_with(options: Options) -> Result<Fabric, FabricError> {
        let set_up = |error: nix::Error| FabricError::SetUp(error.into());
        let wake = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(set_up)?;
        let wake = Arc::new(wake);
        let (commands, received) = mpsc::channel();
        let delivery_ns = Arc::default();
        let carrier =
            Carrier::new(wake.clone(), received, options, Arc::clone(&delivery_ns)).map_err(set_up)?;
        let thread = std::thread::Builder::new()
            .name("fabric".to_owned())
            .spawn(move || carrier.carry())
            .map_err(FabricError::SetUp)?;
        Ok(Fabric { line: Line { commands, wake }, thread: Some(thread), delivery_ns })
    }

    /// Joins a TUN interface (non-blocking, with virtio-net header) to the network. What it has sent before is not carried.
    ///
    /// # Errors
    /// When the descriptor cannot be watched, or the thread is gone.
    pub fn attach(&self, place: Path, addresses: Vec<IpAddr>, tun: OwnedFd) -> Result<PortId, FabricError> {
        self.join(Joining { place, addresses, descriptor: tun, bypass: None })
    }

    /// Joins a TUN interface whose place has a way past the network: what it sends to others that have one goes that way
    /// for as long as nothing is asked of the pair. All ways past one fabric lead to the same routing namespace.
    ///
    /// # Errors
    /// As [`Fabric::attach`].
    pub fn attach_with_bypass(
        &self,
        place: Path,
        addresses: Vec<IpAddr>,
        tun: OwnedFd,
        bypass: Box<dyn Bypass>,
    ) -> Result<PortId, FabricError> {
        self.join(Joining { place, addresses, descriptor: tun, bypass: Some(bypass) })
    }

    fn join(&self, joining: Joining) -> Result<PortId, FabricError> {
        let name = joining.place.join("/");
        self.line
            .ask(|answer| Command::Attach { joining, answer })?
            .map_err(|source| FabricError::Attach { place: name, source })
    }

    /// Says which networks lie behind a port, such as that of a host's containers, in place of those that did. Packets to their
    /// addresses go to it, and it may send from them. Returns once that is so.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn route(&self, port: PortId, behind: Vec<Prefix>) -> Result<(), FabricError> {
        self.line.ask(|answer| Command::Route { port, behind, answer })
    }

    /// Takes a port off the network; packets on their way to it are lost. Returns once that is so.
    ///
    /// # Errors
    /// When the thread is gone, or the port cannot be brought back from the kernel's own path.
    pub fn detach(&self, port: PortId) -> Result<(), FabricError> {
        self.line.ask(|answer| Command::Detach { port, answer })?.map_err(FabricError::Bypass)
    }

    /// Puts a port at another place: from here on the rules of that place are its own, and it keeps its addresses. Returns once
    /// that is so.
    ///
    /// # Errors
    /// When the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn relocate(&self, port: PortId, place: Path) -> Result<(), FabricError> {
        self.line.ask(|answer| Command::Relocate { port, place, answer })?.map_err(FabricError::Bypass)
    }

    /// Replaces all rules; what is imposed stands. Returns once they hold.
    ///
    /// # Errors
    /// When the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn set_policy(&self, policy: Policy) -> Result<(), FabricError> {
        self.line.ask(|answer| Command::SetPolicy { policy, answer })?.map_err(FabricError::Bypass)
    }

    /// Lays a rule over the policy and over what was imposed before. Returns once it holds; it is lifted when the guard
    /// is dropped.
    ///
    /// # Errors
    /// When the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn impose(&self, rule: Rule) -> Result<RuleGuard, FabricError> {
        self.impose_all(vec![rule])
    }

    /// Lays several rules over everything at one moment, later ones over earlier ones, as one fault.
    ///
    /// # Errors
    /// When the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn impose_all(&self, rules: Vec<Rule>) -> Result<RuleGuard, FabricError> {
        let imposed = self.line.ask(|answer| Command::Impose { rules, answer })?;
        let ids = imposed.map_err(FabricError::Bypass)?;
        Ok(RuleGuard { line: self.line.clone(), ids })
    }

    /// Writes what a tap sees to a file, as pcap, until the guard is dropped.
    ///
    /// # Errors
    /// When the file cannot be written, the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn capture(&self, tap: Tap, file: File) -> Result<CaptureGuard, FabricError> {
        let id = self.line.ask(|answer| Command::Capture { tap, file, answer })??;
        Ok(CaptureGuard { line: self.line.clone(), id })
    }

    /// What has gone through so far.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn counters(&self) -> Result<Counters, FabricError> {
        self.line.ask(|answer| Command::Counters { answer })
    }

    /// What each link has carried so far: shared links and rules with a rate, by name or, without one, by number.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn link_counters(&self) -> Result<BTreeMap<String, LinkCounters>, FabricError> {
        self.line.ask(|answer| Command::LinkCounters { answer })
    }

    /// Counts the packets of pairs of places from now on, until the guard is dropped.
    ///
    /// # Errors
    /// When the thread is gone, or a pair cannot be brought back from the kernel's own path.
    pub fn count(&self, pairs: Vec<(Path, Path)>) -> Result<CountGuard, FabricError> {
        let counting = self.line.ask(|answer| Command::Count { pairs, answer })?;
        let numbers = counting.map_err(FabricError::Bypass)?;
        Ok(CountGuard { line: self.line.clone(), numbers })
    }

    /// Which pairs of places go past the network now, and how often that has changed.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn ways(&self) -> Result<Ways, FabricError> {
        self.line.ask(|answer| Command::Ways { answer })
    }

    /// CPU time the thread has used so far in the network stacks of the receivers, by samples. Without a fabric the sender of a
    /// packet uses it.
    #[must_use]
    pub fn cpu_time_of_receivers(&self) -> Duration {
        Duration::from_nanos(self.delivery_ns.load(Ordering::Relaxed))
    }

    /// CPU time the thread has used so far.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let Some(thread) = &self.thread else { return Duration::ZERO };
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the thread has not been joined, so its pthread_t is valid; `clock` is a live local.
        let found = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) };
        if found != 0 {
            return Duration::ZERO;
        }
        clock_gettime(ClockId::from_raw(clock)).map_or(Duration::ZERO, Duration::from)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let sent = self.line.send(Command::Stop).is_ok();
        if let (true, Some(thread)) = (sent, self.thread.take()) {
            // A panic of the thread has been printed by then; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// Rules that hold until this is dropped.
#[derive(Debug)]
#[must_use = "the rules are lifted as soon as this is dropped"]
pub struct RuleGuard {
    line: Line,
    ids: Vec<ImposedId>,
}

impl RuleGuard {
    /// Lifts the rules. Returns once they hold no more.
    ///
    /// # Errors
    /// When the thread is gone, and all rules with it.
    pub fn lift(mut self) -> Result<(), FabricError> {
        self.lift_now()
    }

    fn lift_now(&mut self) -> Result<(), FabricError> {
        let ids = std::mem::take(&mut self.ids);
        if ids.is_empty() {
            return Ok(());
        }
        self.line.ask(|answer| Command::Lift { ids, answer })
    }
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        // Without its thread there is no network that could still be broken.
        let _ = self.lift_now();
    }
}

/// Counts that go on until this is dropped.
#[derive(Debug)]
#[must_use = "the counts end as soon as this is dropped"]
pub struct CountGuard {
    line: Line,
    numbers: Vec<usize>,
}

impl CountGuard {
    /// What has been counted so far, in the order of the pairs.
    ///
    /// # Errors
    /// When the thread is gone.
    pub fn counted(&self) -> Result<Vec<PairCounters>, FabricError> {
        let numbers = self.numbers.clone();
        self.line.ask(|answer| Command::Counted { numbers, answer })
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        // Without its thread there is nothing left to count.
        let numbers = std::mem::take(&mut self.numbers);
        let _ = self.line.ask(|answer| Command::EndCounts { numbers, answer });
    }
}

/// A capture that is written until this is dropped.
#[derive(Debug)]
#[must_use = "the capture ends as soon as this is dropped"]
pub struct CaptureGuard {
    line: Line,
    id: CaptureId,
}

impl CaptureGuard {
    /// Ends the capture: how many packets it holds.
    ///
    /// # Errors
    /// When the file could not be written to its end, or the thread is gone.
    pub fn finish(self) -> Result<u64, FabricError> {
        self.line.ask(|answer| Command::EndCapture { id: self.id, answer })?.map_err(FabricError::Capture)
    }
}

impl Drop for CaptureGuard {
    fn drop(&mut self) {
        // A capture that has been finished is not found again; one whose end nobody asks for has nobody to tell.
        let _ = self.line.ask(|answer| Command::EndCapture { id: self.id, answer });
    }
}
