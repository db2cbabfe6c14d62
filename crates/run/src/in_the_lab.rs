//! The lab as the target of a run: its network, its platform, its watch.
//!
//! Owns what of them a run begins and ends, in which order. What they do is their own business.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Engine;
use faulting::{Faulting, Upgrade};
use faults::{FaultRecord, Planted};
use history::{EventSink, FaultId, LabPart, Stall};
use lab::attachment::{self, AttachmentError};
use load::{Leadership, LoadCpu, LoadHandle, OnThread};
use platform::{Datacentre, LeaderWatch, Platform, VolumeWatch};
use pods::{Pods, PodsOf, Watching};
use results::LinkResult;
use scenario::Fault;
use watch::captures::Captures;
use watch::{HostWatch, LinkWatch, Usage, Vigil, Watch, Watched};

use crate::chronicle::Chronicle;
use crate::directory::RunDirectory;
use crate::target::{Beginning, Found, PlaceError, Target, TargetError, Underway};

/// How long the platform may take to finish what it has begun when the schedule is over.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);

/// A datacentre with a database on it, ready for load.
pub struct Lab {
    // Order matters: captures are ended before the network they are of.
    pub(crate) captures: Arc<Captures>,
    pub datacentre: Arc<Datacentre>,
    /// The engine of its database.
    pub engine: Arc<dyn Engine>,
    /// The pods that it is in, where it is in any.
    pub(crate) pods: Option<Arc<Pods>>,
    /// Wall seconds from the first namespace to the first quorum write.
    pub boot_s: f64,
    /// Whether the database was not made but started again from a snapshot.
    pub from_snapshot: bool,
    /// What was seen of the site's links; `None` where there are none.
    pub links: Option<history::Receipt>,
    /// Why volumes are plain directories, where the scenario asks for something else.
    pub volumes_fell_back: Option<String>,
    /// What the schedule upgrades nodes to, where it does.
    pub upgrade: Option<Upgrade>,
    /// Lies planted by a test; empty in every honest run.
    pub planted: Planted,
}

/// What a load's thread does first: it moves to where its clients stand.
///
/// # Errors
/// When the place's descriptor cannot be copied.
pub fn enter_place(datacentre: &Datacentre, load: &scenario::Load) -> Result<OnThread, PlaceError> {
    let failed = |source| PlaceError { load: load.name.clone(), source };
    let place = datacentre
        .client_places
        .get(&load.from.to_string())
        .ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    let namespace = place.namespace().try_clone().map_err(failed)?;
    Ok(Box::new(move || lab::attachment::enter(&namespace)))
}

impl Target for Lab {
    fn enter_place(&self, load: &scenario::Load) -> Result<OnThread, PlaceError> {
        enter_place(&self.datacentre, load)
    }

    fn usage(&self, loads: &[LoadHandle], ended: LoadCpu) -> Usage {
        Usage::now(&self.datacentre, loads, ended)
    }

    fn begin(&self, run: Beginning<'_>) -> Result<Box<dyn Underway>, TargetError> {
        let datacentre = &self.datacentre;
        let links = LinkWatch::start(datacentre.fabric.clone(), run.directory.path(), run.zero)?;
        let hosts = HostWatch::start(datacentre.clone(), run.directory.path(), run.zero)?;
        let vigil = Vigil::start(Watch {
            lab: Some((datacentre, self.engine.clone())),
            directory: run.directory.path(),
            chronicle: run.chronicle.clone(),
            loads: run.loads.clone(),
            load_names: run.load_names,
            interference_expected: run.scenario.database.interference_expected,
            planted: &self.planted,
        });
        let platform =
            Platform::new(datacentre.clone(), self.engine.clone(), run.scenario, run.chronicle.clone());
        let nodes_elect = run.scenario.database.engine.elects();
        let leaders = LeaderWatch::start(platform.clone(), nodes_elect, run.chronicle.clone());
        let volumes = VolumeWatch::start(datacentre.clone(), platform.clone(), run.chronicle.clone());
        let mut faulting = Faulting::new(
            datacentre.clone(),
            platform.clone(),
            run.chronicle.clone(),
            &run.scenario.site,
            (run.seed, run.prevented),
            run.on_effect,
        );
        if let Some(upgrade) = self.upgrade.clone() {
            faulting.can_upgrade(upgrade);
        }
        let watching =
            self.pods.as_ref().map(|pods| self.watch(pods, (run.directory, run.zero))).transpose()?;
        Ok(Box::new(LabRun {
            watching: self.pods.clone().zip(watching),
            interference_expected: run.scenario.database.interference_expected,
            is_leaderless: run.scenario.database.engine.is_leaderless(),
            records: Vec::new(),
            faulting: Some(faulting),
            platform,
            vigil: Some(vigil),
            watched: Watched::default(),
            links: Some(links),
            hosts: Some(hosts),
            carried: Vec::new(),
            memory_bytes_max: None,
            leaders: Some(leaders),
            volumes,
            chronicle: run.chronicle.clone(),
            captures: self.captures.clone(),
        }))
    }
}

impl Lab {
    /// Watches the database's pods from where their cluster is controlled.
    fn watch(
        &self,
        pods: &Pods,
        (directory, zero): (&RunDirectory, Instant),
    ) -> Result<Watching, TargetError> {
        let namespace = self.datacentre.control.as_ref().and_then(|control| control.namespace());
        let namespace = namespace.ok_or(TargetError::NoControl)?;
        attachment::on_own_thread(|| {
            attachment::enter(&namespace).map_err(AttachmentError::Namespace)?;
            Ok(pods.watch(directory.path(), zero)?)
        })?
    }
}

/// A run in the lab.
struct LabRun {
    /// The database's pods and what is seen of them, where it is in any.
    watching: Option<(Arc<Pods>, Watching)>,
    /// What is known of each fault, once nothing is under way.
    records: Vec<FaultRecord>,
    /// None once its records have been taken.
    faulting: Option<Faulting>,
    platform: Arc<Platform>,
    /// None once the loads have ended.
    vigil: Option<Vigil>,
    watched: Watched,
    /// Whether the scenario says that strangers may be at work.
    interference_expected: bool,
    /// Whether every node of the database takes writes.
    is_leaderless: bool,
    /// None once the schedule is over.
    links: Option<LinkWatch>,
    hosts: Option<HostWatch>,
    carried: Vec<LinkResult>,
    memory_bytes_max: Option<u64>,
    /// None once the loads have ended.
    leaders: Option<LeaderWatch>,
    volumes: VolumeWatch,
    chronicle: Arc<Chronicle>,
    captures: Arc<Captures>,
}

impl Underway for LabRun {
    fn strike(&mut self, number: FaultId, fault: &Fault) {
        self.faulting.iter_mut().for_each(|faulting| faulting.strike(number, fault));
    }

    fn take_up(&mut self) -> bool {
        self.faulting.as_mut().is_some_and(Faulting::take_up)
    }

    fn phase_is_over(&mut self) {
        self.faulting.iter_mut().for_each(Faulting::call_off);
    }

    fn heal(&mut self, number: FaultId) {
        self.faulting.iter_mut().for_each(|faulting| faulting.heal(number));
    }

    fn schedule_is_over(&mut self) -> Result<(), TargetError> {
        if let Some(links) = self.links.take() {
            self.carried = links.finish()?;
        }
        if let Some(hosts) = self.hosts.take() {
            self.memory_bytes_max = hosts.finish()?;
        }
        Ok(())
    }

    fn heal_all(&mut self, in_a_hurry: bool) {
        self.faulting.iter_mut().for_each(|faulting| faulting.heal_all(in_a_hurry));
    }

    fn loads_have_ended(&mut self) {
        drop(self.leaders.take());
        if let Some(vigil) = self.vigil.take() {
            self.watched = vigil.finish();
        }
    }

    fn settle(&mut self, in_a_hurry: bool) -> Vec<FaultRecord> {
        if in_a_hurry {
            self.platform.stop();
        }
        let left = self.platform.settle(if in_a_hurry { Duration::ZERO } else { SETTLE_PATIENCE });
        if left > 0 && !in_a_hurry {
            self.chronicle.warn(
                format!("{left} of the platform's actions were unfinished when the run ended"),
                "give the recovery phase more time",
            );
        }
        let records = self.faulting.take().map(|mut faulting| faulting.records()).unwrap_or_default();
        self.captures.finish(self.chronicle.as_ref());
        self.records.clone_from(&records);
        records
    }

    fn leadership(&self) -> Leadership {
        if self.is_leaderless {
            return Leadership::default();
        }
        let roles = self.platform.roles_of_those_that_take_connections();
        Leadership {
            leaders: roles.leaders.into_iter().collect(),
            silent: roles.silent.into_keys().collect(),
        }
    }

    fn finish(mut self: Box<Self>) -> Found {
        let volumes = self.volumes.finish();
        // Also of nodes that were booted for their marks alone, and of boots that failed.
        self.platform.tell_failed_rollbacks();
        let mut recoveries = BTreeMap::new();
        if let Some((pods, watching)) = self.watching.take() {
            let seen = watching.finish(self.chronicle.as_ref());
            recoveries = pods.recoveries(&seen, &self.records);
            let strange = pods.interference(&seen, &self.records, PodsOf::Lab);
            self.watched.add_interference(strange, self.interference_expected, self.chronicle.as_ref());
            if let Some(since_s) = seen.unwatched_since_s() {
                let stall = Stall::of(vec![LabPart::Pods], since_s, self.chronicle.now_s());
                self.watched.add_stall(stall, self.chronicle.as_ref());
            }
        }
        Found {
            recoveries,
            watched: self.watched,
            links: self.carried,
            memory_bytes_max: self.memory_bytes_max,
            volumes,
        }
    }
}
