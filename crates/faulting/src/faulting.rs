//! Faults as they happen: struck, shown to have taken effect, healed, shown to have healed; and the record of each.

mod aim;
mod canaries;
mod copies;
mod disks;
mod network;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use fabric::Policy;
use faults::{FaultRecord, Struck};
use faults::{Role, pick};
use history::{EventKind, EventSink, Receipt, Verdict};
use lab::probe::NodeNamespaces;
use paper::network::{LinkRates, policy};
use platform::Datacentre;
use platform::Platform;
use scenario::node_name;
use scenario::{Fault, FaultAction, FaultTarget, Level, Site};

use crate::datagrams::probing::RequestLog;
use crate::disk_looks::imposed::ImposedDefects;
use crate::power_probe::{Observer, Subject};

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
    records: Arc<Mutex<Vec<FaultRecord>>>,
    /// Called once it is shown that a fault took effect: number and time.
    on_effect: Arc<dyn Fn(usize, f64) + Send + Sync>,
    evidence: Vec<JoinHandle<()>>,
    /// The site's links, as the fabric has them.
    base_policy: Policy,
    /// What has been asked of the network since.
    request_log: Arc<RequestLog>,
    /// How often hosts or the network have been changed: what was measured across a change belongs to no moment.
    network_changes: Arc<AtomicU64>,
    /// Network faults that stand, by the fault's number.
    standing: BTreeMap<usize, network::Standing>,
    /// Disk faults that stand, by the fault's number.
    standing_disks: BTreeMap<usize, disks::StandingDisk>,
    /// The same by disk, as looks reckon with them.
    imposed: Arc<ImposedDefects>,
}

fn lock(records: &Mutex<Vec<FaultRecord>>) -> MutexGuard<'_, Vec<FaultRecord>> {
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
        on_effect: Arc<dyn Fn(usize, f64) + Send + Sync>,
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
            standing_disks: BTreeMap::new(),
            imposed: Arc::default(),
        }
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
        lock(&self.records).clone()
    }

    /// Hosts that a target means now.
    fn hosts_of(&self, target: &FaultTarget, fault: usize) -> Vec<usize> {
        let role = |role, level| {
            let on = self.datacentre.vms_on();
            let leader = self.platform.leader_by_asking();
            let picked = pick(role, leader, &on, self.seed, fault);
            picked.map_or_else(Vec::new, |vm| self.hosts_around(self.datacentre.vms[vm].host(), level))
        };
        match target {
            FaultTarget::Place(place) => self.hosts_under(&place.path),
            FaultTarget::Leader(level) => role(Role::Leader, *level),
            FaultTarget::AFollower(level) => role(Role::AFollower, *level),
            FaultTarget::Random(level) => role(Role::Random, *level),
        }
    }

    fn hosts_under(&self, path: &[String]) -> Vec<usize> {
        (0..self.datacentre.hosts.len())
            .filter(|host| self.datacentre.hosts[*host].path.starts_with(path))
            .collect()
    }

    /// The hosts of the rack, zone or region that a host stands in.
    fn hosts_around(&self, host: usize, level: Level) -> Vec<usize> {
        let path = &self.datacentre.hosts[host].path;
        self.hosts_under(&path[..self.path_length(path, level)])
    }

    /// How many names of a host's path name its region, zone, rack or itself.
    fn path_length(&self, path: &[String], level: Level) -> usize {
        let length = match level {
            Level::Region => 1,
            Level::Zone => 2,
            // A zone without racks is one rack.
            Level::Rack => path.len() - 1,
            Level::Host => path.len(),
        };
        length.min(path.len())
    }

    /// Strikes.
    pub fn strike(&mut self, number: usize, fault: &Fault) {
        match &fault.action {
            FaultAction::PowerOff { target } => self.strike_power(number, fault, target),
            FaultAction::Network { .. } | FaultAction::Partition { .. } => self.strike_network(number, fault),
            FaultAction::Disk { target, defect } => self.strike_disk(number, fault, target, defect),
        }
    }

    fn strike_power(&mut self, number: usize, fault: &Fault, target: &FaultTarget) {
        let hosts = self.hosts_of(target, number);
        let vms: Vec<usize> = self
            .datacentre
            .vms_on()
            .into_iter()
            .filter(|vm| hosts.contains(&self.datacentre.vms[*vm].host()))
            .collect();
        let record = FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target: describe(target),
            struck: Struck::Hosts(
                hosts.iter().map(|host| self.datacentre.hosts[*host].path.clone()).collect(),
            ),
            aims_at_leader: aim::aims_at_leader(&fault.action),
            hits: hosts.iter().map(|host| self.datacentre.hosts[*host].name()).collect(),
            hosts,
            vms,
            asked_s: self.events.now_s(),
            ..FaultRecord::default()
        };
        self.enter(number, &record);
        if record.hosts.is_empty() {
            return self.nothing_answers(number, &record);
        }
        self.network_changes.fetch_add(1, Ordering::AcqRel);
        self.cut_power(number, &record);
    }

    /// Tells that a fault is asked for, and begins its record.
    fn enter(&self, number: usize, record: &FaultRecord) {
        self.events.say(EventKind::FaultAsked {
            fault: number,
            kind: record.kind.clone(),
            target: record.target.clone(),
            hits: record.hits.clone(),
            nodes: record.vms.iter().map(|vm| node_name(*vm)).collect(),
        });
        let mut records = lock(&self.records);
        if records.len() <= number {
            records.resize(number + 1, FaultRecord::default());
        }
        records[number] = record.clone();
    }

    fn cut_power(&mut self, number: usize, record: &FaultRecord) {
        let Some(observer) = Observer::new(&self.datacentre, self.longest_delay) else { return };
        let before = observer.look_before(&observer.subjects(&record.hosts, &record.vms));
        let dying = self.datacentre.vms_dying_with(&record.hosts);
        let namespaces: Vec<(String, NodeNamespaces)> = dying
            .iter()
            .filter_map(|vm| Some((node_name(*vm), self.datacentre.vms[*vm].namespaces()?.ok()?)))
            .collect();
        if !self.prevented {
            let on_copies = self.plant_on_copies(&record.hosts, &dying);
            self.plant_canaries(number, &dying);
            match self.datacentre.power_off_hosts(&record.hosts) {
                Ok(died) => {
                    for vm in &died {
                        let (node, on) = (node_name(*vm), self.datacentre.vms[*vm].host());
                        let host = self.datacentre.hosts[on].name();
                        if !record.hosts.contains(&on) {
                            let what = format!(
                                "the host that served the volume of {node} on {host} is lost: its VM is switched off"
                            );
                            let (action, node) = ("volume".to_owned(), node.clone());
                            self.events.say(EventKind::Platform { action, node, what });
                        }
                        self.events.say(EventKind::NodeDown { node, host });
                    }
                    self.platform.lost(&died);
                }
                Err(error) => {
                    self.events.warn(format!("power-off: {error}"), "the lab is broken; report this")
                }
            }
            self.look_at_copies(number, on_copies);
        }
        let losses = match self.prevented {
            true => Vec::new(),
            false => self.losses(record),
        };
        let effect_s = self.events.now_s();
        let (datacentre, longest_delay) = (self.datacentre.clone(), self.longest_delay);
        let told = self.teller();
        self.in_background(move || {
            if let Some(observer) = Observer::new(&datacentre, longest_delay) {
                let receipt = observer.power_is_off(&before, &namespaces, losses);
                told(number, Some(effect_s), receipt);
            }
        });
    }

    /// What a power-off took from the volumes of its nodes and from components on its hosts.
    fn losses(&self, record: &FaultRecord) -> Vec<(Verdict, String)> {
        let all = self.datacentre.vms.iter().enumerate();
        let of_copies = all.flat_map(|(vm, of)| of.volume().losses_of_copies(vm, &record.hosts));
        let of_nodes = record.vms.iter();
        let of_nodes = of_nodes.filter_map(|vm| self.datacentre.vms[*vm].volume().last_loss(&node_name(*vm)));
        of_nodes.chain(of_copies).collect()
    }

    /// Gives the fault's hosts their power back. Hosts that another standing fault holds down are given it as well:
    /// the later word counts.
    pub fn heal(&mut self, number: usize) {
        self.mend(number, false);
    }

    fn mend(&mut self, number: usize, in_a_hurry: bool) {
        if self.mend_network(number) || self.mend_disk(number) {
            return;
        }
        let Some(record) = lock(&self.records).get(number).cloned() else { return };
        if record.mended_s.is_some() || record.hosts.is_empty() {
            return;
        }
        for host in &record.hosts {
            if let Err(error) = self.datacentre.power_on_host(*host) {
                self.events.warn(format!("power-on: {error}"), "the lab is broken; report this");
            }
        }
        let mended_s = self.events.now_s();
        lock(&self.records)[number].mended_s = Some(mended_s);
        self.platform.returned(&record.hosts);
        let (datacentre, longest_delay) = (self.datacentre.clone(), self.longest_delay);
        let told = self.healing_teller();
        self.in_background(move || {
            let Some(observer) = Observer::new(&datacentre, longest_delay) else { return };
            // In a hurry nobody starts the nodes again, so only the hosts can answer.
            let vms = if in_a_hurry { &[][..] } else { &record.vms };
            let subjects: Vec<Subject> = observer.subjects(&record.hosts, vms);
            told(number, mended_s, observer.power_is_back(&subjects, in_a_hurry));
        });
    }

    /// Heals everything that still stands. In a hurry, because the run is to end, only the hosts are waited for.
    pub fn heal_all(&mut self, in_a_hurry: bool) {
        self.is_hurried |= in_a_hurry;
        let count = lock(&self.records).len();
        for number in 0..count {
            self.mend(number, in_a_hurry);
        }
    }

    /// A fault whose target is nobody's at the moment.
    fn nothing_answers(&self, number: usize, record: &FaultRecord) {
        let evidence = vec![format!("nothing answers to `{}` at this moment", record.target)];
        self.receive(number, None, Receipt { verdict: Verdict::Fail, evidence });
    }

    fn receive(&self, number: usize, effect_s: Option<f64>, receipt: Receipt) {
        self.teller()(number, effect_s, receipt);
    }

    /// Takes the receipt of a fault's effect into its record.
    fn teller(&self) -> impl Fn(usize, Option<f64>, Receipt) + Send + 'static {
        let (records, events) = (self.records.clone(), self.events.clone());
        let on_effect = self.on_effect.clone();
        move |number, effect_s, receipt| {
            let at_s = effect_s.unwrap_or_else(|| events.now_s());
            events.say_at(at_s, EventKind::FaultTookEffect { fault: number, receipt: receipt.clone() });
            let shown = receipt.verdict == Verdict::Pass;
            let mut records = lock(&records);
            records[number].receipts.push(receipt);
            if let (true, Some(effect_s)) = (shown, effect_s) {
                records[number].took_effect_s = Some(effect_s);
                on_effect(number, effect_s);
            }
        }
    }

    /// Takes what a fault showed until it was lifted into the receipt of its effect.
    fn stood_teller(&self) -> impl Fn(usize, Receipt) + Send + 'static {
        let records = self.records.clone();
        move |number, stood| {
            let mut records = lock(&records);
            match records[number].receipts.first_mut() {
                Some(effect) => {
                    effect.verdict = effect.verdict.and(stood.verdict);
                    effect.evidence.extend(stood.evidence);
                }
                None => records[number].receipts.push(stood),
            }
        }
    }

    /// Takes the receipt of a fault's healing into its record.
    fn healing_teller(&self) -> impl Fn(usize, f64, Receipt) + Send + 'static {
        let (records, events) = (self.records.clone(), self.events.clone());
        move |number, mended_s, receipt| {
            events.say_at(mended_s, EventKind::FaultHealed { fault: number, receipt: receipt.clone() });
            let mut records = lock(&records);
            if receipt.verdict == Verdict::Pass {
                records[number].healed_s = Some(mended_s);
            }
            records[number].receipts.push(receipt);
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
        // Whoever waits for a disk that fails later waits no more.
        self.standing_disks.clear();
        // And whoever watches a network fault until it is lifted.
        for standing in self.standing.values() {
            standing.give_up();
        }
        let _ = self.records();
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Region => "region",
        Level::Zone => "zone",
        Level::Rack => "rack",
        Level::Host => "host",
    }
}

/// A target as written in a scenario: `host: leader`.
fn describe(target: &FaultTarget) -> String {
    match target {
        FaultTarget::Place(place) => format!("{}: {place}", level_name(place.level)),
        FaultTarget::Leader(level) => format!("{}: leader", level_name(*level)),
        FaultTarget::AFollower(level) => format!("{}: a-follower", level_name(*level)),
        FaultTarget::Random(level) => format!("{}: random", level_name(*level)),
    }
}
