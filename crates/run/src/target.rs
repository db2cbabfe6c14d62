//! What a run is made against, as the conductor sees it: the lab, or a cluster that exists.
//!
//! Owns the two traits between them. The lab's side is [`crate::in_the_lab`], a cluster's [`crate::external`].

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use faults::FaultRecord;
use history::{FaultId, NodeId, RecoveryStep};
use lab::attachment::AttachmentError;
use load::{Batch, Clock, Leadership, LoadCpu, LoadHandle, LoadPlan, OnThread};
use pods::PodsError;
use results::LinkResult;
use scenario::{Fault, Scenario};
use storage::Seen;
use watch::{Usage, WatchError, Watched};

use crate::chronicle::Chronicle;
use crate::directory::RunDirectory;

/// A load's place that cannot be entered.
#[derive(Debug, thiserror::Error)]
#[error("load {load}: its place: {source}")]
pub struct PlaceError {
    pub load: String,
    /// What the operating system answered.
    pub source: std::io::Error,
}

/// What a target cannot record.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// What links and hosts do.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// What undoes faults after a crash.
    #[error(transparent)]
    Journal(#[from] remote::journal::JournalError),
    /// What pods do.
    #[error(transparent)]
    Pods(#[from] PodsError),
    /// Nobody can enter the network of their control plane.
    #[error("cluster: {0}")]
    Attachment(#[from] AttachmentError),
    /// Their control plane is not there.
    #[error("cluster: the node of its control plane has no power")]
    NoControl,
}

/// A place where a database runs and faults can be made.
pub(crate) trait Target {
    /// What a load's thread does first: it moves to where its clients stand.
    ///
    /// # Errors
    /// When that place cannot be entered.
    fn enter_place(&self, load: &scenario::Load) -> Result<OnThread, PlaceError>;

    /// Starts a load where its clients stand.
    ///
    /// # Errors
    /// When that place cannot be entered.
    fn start_load(
        &self,
        (load, plan): (&scenario::Load, &LoadPlan),
        (clock, sink): (&Clock, Sender<Batch>),
        _: &Arc<Chronicle>,
    ) -> Result<LoadHandle, PlaceError> {
        Ok(load::start(plan.clone(), clock.clone(), self.enter_place(load)?, sink))
    }

    /// CPU time used up to now, as far as this target can tell: of running loads, and of `ended` ones.
    fn usage(&self, loads: &[LoadHandle], ended: LoadCpu) -> Usage;

    /// Begins to watch, and to take orders for faults. The clock's zero has just been set.
    ///
    /// # Errors
    /// When something cannot be recorded.
    fn begin(&self, run: Beginning<'_>) -> Result<Box<dyn Underway>, TargetError>;
}

/// What a target learns of the run that begins.
pub(crate) struct Beginning<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    /// Whether faults are announced only.
    pub(crate) prevented: bool,
    /// The run directory.
    pub(crate) directory: &'a RunDirectory,
    /// Where things are told.
    pub(crate) chronicle: &'a Arc<Chronicle>,
    /// The clock's zero.
    pub(crate) zero: Instant,
    /// The loads, in the scenario's order.
    pub(crate) loads: &'a Arc<Mutex<Vec<LoadHandle>>>,
    pub(crate) load_names: Vec<String>,
    /// Called once it is shown that a fault took effect: number and time.
    pub(crate) on_effect: Arc<dyn Fn(FaultId, f64) + Send + Sync>,
}

/// A run under way, from the target's side; the methods are called in this order.
pub(crate) trait Underway {
    /// Strikes a fault.
    fn strike(&mut self, number: FaultId, fault: &Fault);

    /// Strikes the faults that wait for their target, if it is known now. Whether some still wait.
    fn take_up(&mut self) -> bool {
        false
    }

    /// A phase is over: faults that wait for their target wait no longer.
    fn phase_is_over(&mut self) {}

    /// Heals a fault, if it stands.
    fn heal(&mut self, number: FaultId);

    /// The schedule is over, or was broken off.
    ///
    /// # Errors
    /// When what was counted until then cannot be recorded.
    fn schedule_is_over(&mut self) -> Result<(), TargetError>;

    /// Heals everything that still stands. In a hurry, nothing is waited for that takes long.
    fn heal_all(&mut self, in_a_hurry: bool);

    /// The loads have ended: nobody has to be watched for their sake any more.
    fn loads_have_ended(&mut self);

    /// Waits for what is under way; what is known of each fault.
    fn settle(&mut self, in_a_hurry: bool) -> Vec<FaultRecord>;

    /// The nodes that say they lead and those that do not answer, each asked by itself; none, where every node takes writes.
    fn leadership(&self) -> Leadership;

    /// What was seen, once the end has been read.
    fn finish(self: Box<Self>) -> Found;
}

/// What a target has seen of itself.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Stalls, and what strangers did.
    pub(crate) watched: Watched,
    /// What each link of the site carried.
    pub(crate) links: Vec<LinkResult>,
    /// How much memory the processes of all nodes held at most, bytes.
    pub(crate) memory_bytes_max: Option<u64>,
    /// What was seen of mirrored volumes, by the node's number.
    pub(crate) volumes: BTreeMap<NodeId, Seen>,
    /// How pods recovered, by the fault's number.
    pub(crate) recoveries: BTreeMap<FaultId, Vec<RecoveryStep>>,
}
