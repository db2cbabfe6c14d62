//! Faults as they happen: struck, shown to have taken effect, healed, shown to have healed; and the record of each.

mod canaries;
mod clocks;
mod copies;
mod disks;
mod memory;
mod migrating;
mod network;
mod power;
mod pressure;
mod processes;
mod rolling_restart;
mod targets;
mod waiting;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fabric::{Policy, Rule};
use faults::{FaultRecord, FaultRecords, ReceiptOf};
use history::{EventKind, EventSink, FaultId, HostId, NodeId, Receipt, Verdict};
use paper::network::{LinkRates, policy};
use platform::{Datacentre, Platform};
use scenario::{Fault, FaultAction, Site, Taken};

use self::network::NetworkAction;
use self::waiting::{Aim, Waiting};
use crate::datagrams::probing::RequestLog;
use crate::disk_looks::imposed::ImposedDefects;
use crate::network_watch::Changes;
use crate::process_looks::{Table, Upgrade};

/// A fault that stands. Each kind of fault has one. Dropping it ends what it does.
trait StandingFault: Send + Sync {
    /// Heals it, and begins to gather the evidence that it has healed. In a hurry, because the run is to end, nothing is
    /// waited for that takes long.
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, in_a_hurry: bool);

    /// It will not be healed any more: threads that wait for its evidence stop waiting.
    fn give_up(&mut self) {}

    /// The processes that it keeps stopped, and the number of their node.
    fn stopped(&self) -> Option<(NodeId, &Table)> {
        None
    }

    /// Another fault, by number, gives these hosts power.
    fn gets_power(&mut self, _by: FaultId, _hosts: &[HostId]) {}

    /// What it asks of the network.
    fn rules(&self) -> &[Rule] {
        &[]
    }
}

/// Strikes and heals. Dropping it waits for the evidence under way.
pub struct Faulting {
    datacentre: Arc<Datacentre>,
    platform: Arc<Platform>,
    events: Arc<dyn EventSink>,
    longest_delay: Duration,
    seed: u64,
    prevented: bool,
    /// The run is to end: nothing is waited for that takes long.
    is_hurried: bool,
    records: Arc<Mutex<FaultRecords>>,
    /// Called once it is shown that a fault took effect: number and time.
    on_effect: Arc<dyn Fn(FaultId, f64) + Send + Sync>,
    evidence: Vec<JoinHandle<()>>,
    /// The site's links, as the fabric has them.
    base_policy: Policy,
    /// What has been asked of the network since.
    request_log: Arc<RequestLog>,
    /// How often hosts or the network have been changed: what was measured across a change belongs to no moment.
    network_changes: Arc<AtomicU64>,
    /// Faults that stand, by number.
    standing: BTreeMap<FaultId, Box<dyn StandingFault>>,
    /// Network faults that stand, in the order in which they were laid over the network.
    laid: Vec<FaultId>,
    /// Faults that wait for a node to lead, by number.
    waiting: BTreeMap<FaultId, Waiting>,
    /// Of the fault that is struck now, where its target depends on who leads.
    aim: Option<Aim>,
    /// What the schedule upgrades nodes to, where it does.
    upgrade: Option<Arc<Upgrade>>,
    /// Faults of disks that stand, by disk, as looks reckon with them.
    imposed: Arc<ImposedDefects>,
}

fn lock(records: &Mutex<FaultRecords>) -> MutexGuard<'_, FaultRecords> {
    records.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faulting {
    /// Nothing struck yet.
    #[must_use]
    pub fn new(
        datacentre: Arc<Datacentre>,
        platform: Arc<Platform>,
        events: Arc<dyn EventSink>,
        site: &Site,
        (seed, prevented): (u64, bool),
        on_effect: Arc<dyn Fn(FaultId, f64) + Send + Sync>,
    ) -> Faulting {
        let records = Arc::default();
        let longest_delay =
            site.links.iter().filter_map(|link| link.conditions.delay).max().unwrap_or_default();
        let base_policy = policy(site, LinkRates::AsWritten);
        Faulting {
            datacentre,
            platform,
            events,
            longest_delay,
            seed,
            prevented,
            is_hurried: false,
            records,
            on_effect,
            evidence: Vec::new(),
            base_policy,
            request_log: Arc::default(),
            network_changes: Arc::default(),
            standing: BTreeMap::new(),
            laid: Vec::new(),
            waiting: BTreeMap::new(),
            aim: None,
            upgrade: None,
            imposed: Arc::default(),
        }
    }

    /// From now on nodes can be upgraded so.
    pub fn can_upgrade(&mut self, upgrade: Upgrade) {
        self.upgrade = Some(Arc::new(upgrade));
    }

    /// What is known of every fault asked for so far, waiting for the evidence under way. None is struck or healed after this.
    #[must_use]
    pub fn records(&mut self) -> Vec<FaultRecord> {
        self.imposed.end();
        for thread in self.evidence.drain(..) {
            // A panic there leaves the fault without a receipt, which is what it deserves.
            let _ = thread.join();
        }
        self.platform.look_at_what_stays_off(self.is_hurried.then_some("the run ended early"));
        lock(&self.records).all().to_vec()
    }

    /// The list of all kinds of faults, each with a file of its own.
    fn strike_now(&mut self, number: FaultId, fault: &Fault) {
        match &fault.action {
            FaultAction::PowerOff(action) => self.strike_power(number, fault, action),
            FaultAction::Network(action) => {
                self.strike_network(number, fault, NetworkAction::Conditions(action))
            }
            FaultAction::Partition(action) => {
                self.strike_network(number, fault, NetworkAction::Partition(action))
            }
            FaultAction::Disk(action) => self.strike_disk(number, fault, action),
            FaultAction::Process(action) => self.strike_processes(number, fault, action),
            FaultAction::RollingRestart(action) => {
                self.strike_rolling_restart(number, fault, (action, None));
            }
            FaultAction::RollingUpgrade(action) => self.strike_rolling_upgrade(number, fault, action),
            FaultAction::Pressure(action) => match action.taken {
                Taken::Processor(share) => self.strike_pressure(number, fault, action, share),
                Taken::Memory(share) => self.squeeze(number, fault, action, share),
            },
            FaultAction::ClockJump(action)
            | FaultAction::ClockDrift(action)
            | FaultAction::ClockRace(action)
            | FaultAction::ClockStop(action) => self.strike_clock(number, fault, action),
            FaultAction::Migrate(action) => self.strike_migration(number, fault, action),
            // The scenario language refuses it for a lab.
            FaultAction::External(_) => {
                let record = self.record(fault, "a machine outside the lab".to_owned());
                self.enter(number, &record);
                self.nothing_answers(number, &record);
            }
        }
    }

    /// What is known of a fault before it is known what it hits.
    fn record(&self, fault: &Fault, target: String) -> FaultRecord {
        FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target,
            aims_at_leader: fault.action.aims_at_leader(),
            asked_s: self.aim.as_ref().map_or_else(|| self.events.now_s(), |aim| aim.asked_s),
            ..FaultRecord::default()
        }
    }

    /// Tells that a fault is asked for, and begins its record.
    fn enter(&self, number: FaultId, record: &FaultRecord) {
        self.events.say(EventKind::FaultAsked {
            fault: number,
            kind: record.kind.clone(),
            target: record.target.clone(),
            hits: record.hits.clone(),
            nodes: record.vms.iter().map(|vm| vm.to_string()).collect(),
        });
        *lock(&self.records).of(number) = record.clone();
    }

    /// Heals a fault, if it stands. One that still waits is given up.
    pub fn heal(&mut self, number: FaultId) {
        self.mend(number, false);
    }

    fn mend(&mut self, number: FaultId, in_a_hurry: bool) {
        self.end_wait(number, None);
        if let Some(standing) = self.standing.remove(&number) {
            standing.mend(self, number, in_a_hurry);
            self.renew_canaries();
        }
    }

    /// Whether a fault of the network stands.
    fn is_network_faulty(&self) -> bool {
        self.standing.values().any(|standing| !standing.rules().is_empty())
    }

    /// Heals everything that still stands. In a hurry, because the run is to end, only the hosts are waited for.
    pub fn heal_all(&mut self, in_a_hurry: bool) {
        self.is_hurried |= in_a_hurry;
        self.call_off();
        let standing: Vec<FaultId> = self.standing.keys().copied().collect();
        standing.into_iter().for_each(|number| self.mend(number, in_a_hurry));
    }

    /// A fault whose target is nobody's at the moment.
    fn nothing_answers(&self, number: FaultId, record: &FaultRecord) {
        let target = &record.target;
        let evidence = vec![format!(
            "no target matches `{target}` now: there is no such node at the moment, so nothing was done"
        )];
        self.receive(number, None, Receipt { verdict: Verdict::Fail, evidence });
    }

    fn receive(&self, number: FaultId, effect_s: Option<f64>, receipt: Receipt) {
        self.teller()(number, effect_s, receipt);
    }

    /// Takes the receipt of a fault's effect into its record.
    fn teller(&self) -> impl Fn(FaultId, Option<f64>, Receipt) + Send + 'static {
        let (records, events) = (self.records.clone(), self.events.clone());
        let on_effect = self.on_effect.clone();
        let waited = self.aim.as_ref().and_then(|aim| aim.waited.clone());
        move |number, effect_s, mut receipt| {
            receipt.evidence.extend(waited.clone());
            let at_s = effect_s.unwrap_or_else(|| events.now_s());
            events.say_at(at_s, EventKind::FaultTookEffect { fault: number, receipt: receipt.clone() });
            let shown = receipt.verdict == Verdict::Pass;
            let mut records = lock(&records);
            let record = records.of(number);
            record.receipts.push((ReceiptOf::Effect, receipt));
            if let (true, Some(effect_s)) = (shown, effect_s) {
                record.took_effect_s = Some(effect_s);
                on_effect(number, effect_s);
            }
        }
    }

    /// Takes what a fault showed until it was lifted into the receipt of its effect.
    fn stood_teller(&self) -> impl Fn(FaultId, Receipt) + Send + 'static {
        let records = self.records.clone();
        move |number, stood| {
            let mut records = lock(&records);
            let receipts = &mut records.of(number).receipts;
            match receipts.iter_mut().find(|(of, _)| *of == ReceiptOf::Effect) {
                Some((_, effect)) => {
                    effect.verdict = effect.verdict.and(stood.verdict);
                    effect.evidence.extend(stood.evidence);
                }
                None => receipts.push((ReceiptOf::Standing, stood)),
            }
        }
    }

    /// The fault ends now: enters the moment and returns it.
    fn mended_now(&self, number: FaultId) -> f64 {
        let mended_s = self.events.now_s();
        lock(&self.records).of(number).mended_s = Some(mended_s);
        mended_s
    }

    /// Takes the receipt of a fault's healing into its record.
    fn healing_teller(&self) -> impl Fn(FaultId, f64, Receipt) + Send + 'static {
        let (records, events) = (self.records.clone(), self.events.clone());
        move |number, mended_s, receipt| {
            events.say_at(mended_s, EventKind::FaultHealed { fault: number, receipt: receipt.clone() });
            let mut records = lock(&records);
            let record = records.of(number);
            if receipt.verdict == Verdict::Pass {
                record.healed_s = Some(mended_s);
            }
            record.receipts.push((ReceiptOf::Healing, receipt));
        }
    }

    /// The same for what is looked at over the network. What fails to answer beside a fault of the network, or after another fault of
    /// the network or of power began or ended, may have healed.
    fn healing_teller_over_the_network(&self) -> impl Fn(FaultId, f64, Receipt) + Send + 'static {
        let (told, changes) = (self.healing_teller(), Changes::from_now(&self.network_changes));
        let is_network_faulty = self.is_network_faulty();
        move |number, mended_s, mut receipt| {
            receipt.doubt_failure(is_network_faulty || changes.have_come(), || {
                "another fault of the network or of power stood, began or ended meanwhile: this is no evidence that it did \
                 not heal"
                    .to_owned()
            });
            told(number, mended_s, receipt);
        }
    }

    fn in_background(&mut self, job: impl FnOnce() + Send + 'static) {
        match std::thread::Builder::new().name("evidence".to_owned()).spawn(job) {
            Ok(thread) => self.evidence.push(thread),
            Err(error) => self.events.warn(
                format!("no thread to gather evidence: {error}"),
                "raise the limit of processes (`ulimit -u`)",
            ),
        }
    }
}

impl Drop for Faulting {
    fn drop(&mut self) {
        self.waiting.clear();
        for standing in self.standing.values_mut() {
            standing.give_up();
        }
        let _ = self.records();
    }
}
