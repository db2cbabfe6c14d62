//! What a virtualisation platform and its operators do when a host or the way to a volume is lost and when it returns: start
//! VMs elsewhere, promote a standby, take a node back.
//!
//! Owns how steps are carried out, one at a time for each VM, and tried again. Which steps those are `decisions` says; how a
//! database does it is its engine's knowledge.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Engine, EngineError, Node};
use history::{EventKind, EventSink, Verdict};
use placement::{Cluster, Drs};
use scenario::{Failover, IsolationResponse, Scenario, node_name};
use storage::Opening;

use crate::datacentre::{Datacentre, Host};
use crate::decisions::{Decision, Occurrence, Step, View, VmView, decide, leader_to_watch};
use crate::nearness::Nearness;
use crate::placing::Placing;
use crate::processes_left::processes_left;
use crate::vm::Vm;

/// Between two attempts at something that did not work.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// How long a database may take to recover after a power-off.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(crate) struct State {
    /// The node that takes the writes, as far as the platform knows.
    leader: usize,
    /// No new work is begun from here on.
    pub(crate) stopping: bool,
    /// When a host was last lost, or came back.
    pub(crate) hosts_changed: Option<Instant>,
    /// VMs that are being switched off because their volume is lost where they run.
    losing_their_volume: BTreeSet<usize>,
    /// VMs that are off because their volume could not be reached, and are tried again when the network changes.
    pub(crate) waiting_for_their_volume: BTreeSet<usize>,
}

/// The platform.
pub struct Platform {
    pub(crate) datacentre: Arc<Datacentre>,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) failover: Failover,
    isolation: Option<IsolationResponse>,
    pub(crate) nearness: Nearness,
    /// What hosts have and which rules hold, with the VMs where they began.
    pub(crate) cluster: Cluster,
    pub(crate) placing: Mutex<Placing>,
    pub(crate) events: Arc<dyn EventSink>,
    state: Mutex<State>,
    changed: Condvar,
    /// One at a time per VM, so that a restart elsewhere and a host's return do not both start it.
    pub(crate) hands: Vec<Mutex<()>>,
    /// Whether VMs that run are moved without anybody asking.
    pub(crate) drs: Drs,
    /// Held by whoever moves them.
    pub(crate) balancing: Mutex<()>,
    work: Mutex<Vec<JoinHandle<()>>>,
}

impl Platform {
    /// A platform over a datacentre whose database is up and led by the first node.
    #[must_use]
    pub fn new(
        datacentre: Arc<Datacentre>,
        engine: Arc<dyn Engine>,
        scenario: &Scenario,
        events: Arc<dyn EventSink>,
    ) -> Arc<Platform> {
        let database = &scenario.database;
        let hands = datacentre.vms.iter().map(|_| Mutex::new(())).collect();
        let platform = Arc::new(Platform {
            datacentre,
            engine,
            failover: database.failover,
            isolation: database.platform.isolation,
            nearness: Nearness::of(&scenario.site),
            cluster: database.platform.cluster(&scenario.site, database),
            placing: Mutex::default(),
            events,
            state: Mutex::default(),
            changed: Condvar::new(),
            hands,
            drs: database.platform.drs,
            balancing: Mutex::default(),
            work: Mutex::default(),
        });
        if let Some(service) = database.platform.time_service {
            platform.keep_time(service);
        }
        if let (Some(_), Some(after)) = (database.platform.isolation, database.failover.waits()) {
            platform.watch_isolation(after);
        }
        platform
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The node that takes the writes, as far as the platform knows.
    #[must_use]
    pub fn leader(&self) -> usize {
        self.state().leader
    }

    /// Who takes the writes now, asked of the database itself: the index of the one leader, if there is one.
    #[must_use]
    pub fn leader_by_asking(&self) -> Option<usize> {
        let on: Vec<usize> = self.datacentre.vms_on();
        let nodes: Vec<Arc<dyn Node>> = on.iter().map(|vm| self.node(*vm)).collect();
        let roles = self.engine.leader(&nodes);
        on.into_iter().find(|vm| roles.leader() == Some(node_name(*vm).as_str()))
    }

    pub(crate) fn node(&self, vm: usize) -> Arc<dyn Node> {
        self.datacentre.vms[vm].clone()
    }

    /// What it knows now.
    pub(crate) fn view(&self) -> View {
        let state = self.state();
        let vm = |(number, vm): (usize, &Arc<Vm>)| VmView {
            is_on: vm.is_on(),
            host: vm.host(),
            is_mirrored: vm.volume().mirrored().is_some(),
            waits_for_volume: state.waiting_for_their_volume.contains(&number),
        };
        View {
            failover: self.failover,
            isolation: self.isolation,
            leader: state.leader,
            vms: self.datacentre.vms.iter().enumerate().map(vm).collect(),
            hosts_on: self.datacentre.hosts.iter().map(Host::is_on).collect(),
        }
    }

    /// Begins what follows from what happens.
    pub(crate) fn happens(self: &Arc<Self>, occurrence: &Occurrence) {
        let decisions = decide(&self.view(), occurrence);
        // All of them before the first is placed, so that the first in rank is.
        for decision in &decisions {
            if let Step::RestartElsewhere { vm, left } = decision.step {
                self.waits_for_a_host(vm, left);
            }
        }
        for decision in decisions {
            self.clone().begin(decision.name(), move |platform| platform.carry_out(decision));
        }
        if matches!(occurrence, Occurrence::VmsLost(_) | Occurrence::HostsReturned(_)) {
            self.balance();
        }
    }

    fn carry_out(&self, Decision { step, after }: Decision) {
        if !self.pause(after) {
            return;
        }
        match step {
            Step::RestartElsewhere { vm, left } => self.restart_elsewhere(vm, left),
            Step::Promote { lost } => self.promote(lost),
            Step::StartAtHome { vm, why } => self.start_at_home(vm, why.in_words()),
            Step::RestartDatabase { vm } => self.restart_database(vm),
            Step::StartProcesses { vm } => self.start_processes(vm),
            Step::LeaveIsolated { vm } => self.leave_isolated(vm),
            Step::SwitchOffIsolated { vm } => self.switch_off_isolated(vm),
        }
    }

    /// These VMs have just died with their hosts.
    pub fn lost(self: &Arc<Self>, vms: &[usize]) {
        self.happens(&Occurrence::VmsLost(vms.to_vec()));
    }

    /// These hosts have power again.
    pub fn returned(self: &Arc<Self>, hosts: &[usize]) {
        self.happens(&Occurrence::HostsReturned(hosts.to_vec()));
    }

    /// The network has changed for the better: VMs that are off because their volume could not be reached are tried again.
    pub fn reaches_again(self: &Arc<Self>) {
        self.happens(&Occurrence::NetworkImproved);
    }

    /// A VM's volume counts as lost on its host. The VM is switched off: its disk refuses everything, and nobody else may have
    /// the volume while it might write. Then what follows the loss of a host follows, without a further wait: it has been
    /// waited for.
    pub fn volume_is_lost(self: &Arc<Self>, vm: usize, open: Opening) {
        let mut state = self.state();
        if state.stopping || !state.losing_their_volume.insert(vm) {
            return;
        }
        drop(state);
        self.clone().begin(format!("volume of {}", node_name(vm)), move |platform| {
            let is_off = platform.fence_off_its_volume(vm, &open);
            platform.state().losing_their_volume.remove(&vm);
            if is_off {
                platform.state().waiting_for_their_volume.insert(vm);
                platform.follow(&Occurrence::VolumeFenced(vm));
            }
        });
    }

    /// Whether it is known to be off afterwards.
    fn fence_off_its_volume(&self, vm: usize, open: &Opening) -> bool {
        let node = node_name(vm);
        // Whoever is starting its database fails by that, and lets go of it.
        let Some((verdict, shown)) = self.switch_off(vm) else { return false };
        let what = format!(
            "{} has not reached {}, which serves the volume of {node}, for {:.1} s: the volume counts as lost there, \
             and the platform switches the VM off; {shown}",
            open.host,
            open.component,
            open.lost_after.unwrap_or_default().as_secs_f64()
        );
        self.events.say(EventKind::Platform { action: "fence".to_owned(), node: node.clone(), what });
        self.events.say(EventKind::NodeDown { node: node.clone(), host: open.host.clone() });
        if verdict != Verdict::Pass {
            let why = "it may still be running, and its volume may be open only once";
            self.trouble(&format!("start {node} on another host"), why);
        }
        verdict == Verdict::Pass
    }

    /// Carries out what follows, here and now.
    pub(crate) fn follow(&self, occurrence: &Occurrence) {
        for decision in decide(&self.view(), occurrence) {
            self.carry_out(decision);
        }
    }

    /// Switches a VM off; what shows that it is off. None when it was off already.
    pub(crate) fn switch_off(&self, vm: usize) -> Option<(Verdict, String)> {
        let node = node_name(vm);
        let of = &self.datacentre.vms[vm];
        let namespaces = of.namespaces()?;
        if let Err(error) = self.datacentre.power_off_vm(vm) {
            self.trouble(&format!("switch {node} off"), &error.to_string());
        }
        Some(match namespaces {
            Ok(namespaces) => processes_left(&node, &namespaces),
            Err(error) => {
                (Verdict::Unknown, format!("the namespaces of {node} could not be opened: {error}"))
            }
        })
    }

    /// The disks of these VMs' volumes have gone wrong. A leader whose database ends because of it is switched off first, so
    /// that it cannot come back beside another.
    pub fn disks_struck(self: &Arc<Self>, vms: &[usize], ended: Arc<AtomicBool>) {
        let Some(leader) = leader_to_watch(&self.view(), vms) else { return };
        self.clone().begin(format!("watch {}", node_name(leader)), move |platform| {
            while !ended.load(Ordering::Acquire) {
                if platform.has_ended(leader) {
                    platform.fence(leader, &format!("the database on {} has ended", node_name(leader)));
                    return platform.follow(&Occurrence::DatabaseFenced(leader));
                }
                if !platform.pause(RETRY) {
                    return;
                }
            }
        });
    }

    /// The disks of these VMs' volumes are sound again: databases that have ended are started again.
    pub fn disks_cleared(self: &Arc<Self>, vms: &[usize]) {
        self.happens(&Occurrence::DisksCleared(vms.to_vec()));
    }

    pub(crate) fn has_ended(&self, vm: usize) -> bool {
        let node = self.node(vm);
        matches!(self.engine.wait_ready(node.as_ref(), Duration::ZERO), Err(EngineError::Exited { .. }))
    }

    /// Switches a VM off before another is made the leader; why, as a sentence.
    pub(crate) fn fence(&self, vm: usize, why: &str) {
        let _hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
        let (node, host) = (node_name(vm), self.datacentre.hosts[self.datacentre.vms[vm].host()].name());
        let Some((_, shown)) = self.switch_off(vm) else { return };
        let what = format!(
            "{why}: fencing, the platform switches its VM off so that it cannot return as leader; {shown}"
        );
        self.events.say(EventKind::Platform { action: "fence".to_owned(), node: node.clone(), what });
        self.events.say(EventKind::NodeDown { node, host });
    }

    /// A database may take its time to end, and it is only then that it can be started again. What is done, as a sentence.
    pub(crate) fn start_once_ended(&self, vm: usize, patience: Duration, what: String) {
        let handle = self.node(vm);
        let deadline = Instant::now() + patience;
        loop {
            match self.engine.wait_ready(handle.as_ref(), Duration::ZERO) {
                Err(EngineError::Exited { .. }) => break,
                Ok(()) => return,
                Err(_) if Instant::now() >= deadline || !self.pause(RETRY) => return,
                Err(_) => {}
            }
        }
        let _hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
        if !self.datacentre.vms[vm].is_on() || !self.has_ended(vm) {
            return;
        }
        self.events.say(EventKind::Platform { action: "restart".to_owned(), node: node_name(vm), what });
        self.start_database(vm);
    }

    fn restart_database(&self, vm: usize) {
        let node = node_name(vm);
        let what =
            format!("the database on {node} had stopped; its disk is healthy, so the platform restarts it");
        self.start_once_ended(vm, RECOVERY_PATIENCE, what);
    }

    /// The marks on volumes of VMs that have not booted since they lost their power are looked for without a boot of the
    /// database; or, where that would be no use, given up.
    pub fn look_at_what_stays_off(&self, given_up: Option<&str>) {
        let is_pending = |of: &Vm| of.canary().is_pending(!of.is_on());
        for (vm, of) in self.datacentre.vms.iter().enumerate().filter(|(_, of)| is_pending(of)) {
            let _hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
            match given_up {
                Some(why) => of.canary().give_up(why),
                None => of.look_for_marks(),
            }
        }
    }

    /// Lets work under way come to its end, for `patience` at most, and begins no more. Returns what is not done.
    #[must_use]
    pub fn settle(&self, patience: Duration) -> usize {
        let deadline = Instant::now() + patience;
        loop {
            let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            work.retain(|thread| !thread.is_finished());
            let left = work.len();
            drop(work);
            if left == 0 || Instant::now() >= deadline {
                self.stop();
                return left;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Begins nothing more and wakes what waits.
    pub fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
    }

    pub(crate) fn begin(self: Arc<Self>, name: String, job: impl FnOnce(&Arc<Platform>) + Send + 'static) {
        let platform = self.clone();
        match std::thread::Builder::new().name(name.clone()).spawn(move || job(&platform)) {
            Ok(thread) => self.work.lock().unwrap_or_else(PoisonError::into_inner).push(thread),
            Err(error) => self.trouble(&name, &error.to_string()),
        }
    }

    /// Waits; false when the platform is stopped meanwhile.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut state = self.state();
        while !state.stopping {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }

    pub(crate) fn trouble(&self, doing: &str, why: &str) {
        self.events.warn(
            format!("the platform failed to {doing}: {why}"),
            "see the node's log under logs/; the platform did not restore the database in time",
        );
    }

    /// Whether somebody is up who could be promoted.
    pub(crate) fn promotion_possible(&self) -> bool {
        let leader = self.leader();
        self.datacentre.vms_on().iter().any(|vm| *vm != leader)
    }

    /// Boots the VM there and starts its database; why it could not be booted.
    pub(crate) fn start_on(
        &self,
        vm: usize,
        (host, may_force): (usize, bool),
        action: &str,
        (why, chosen): (&str, Option<&str>),
    ) -> Result<(), String> {
        let (node, place) = (node_name(vm), self.datacentre.hosts[host].name());
        if let Err(error) = self.datacentre.power_on_vm(vm, host, may_force) {
            self.did_not_boot(vm);
            return Err(format!("{place}: {error}"));
        }
        self.is_placed(vm);
        self.state().waiting_for_their_volume.remove(&vm);
        self.events.say(EventKind::NodeUp { node: node.clone(), host: place.clone() });
        let chosen = chosen.map(|chosen| format!(": {chosen}")).unwrap_or_default();
        let what = format!("{node}, {why}, boots on {place}{chosen}");
        self.events.say(EventKind::Platform { action: action.to_owned(), node: node.clone(), what });
        self.start_database(vm);
        Ok(())
    }

    pub(crate) fn start_database(&self, vm: usize) {
        let (node, handle) = (node_name(vm), self.node(vm));
        let leader = self.leader();
        let started = match self.engine.start(handle.as_ref()) {
            Err(EngineError::Fenced { .. }) if leader != vm => self.rejoin(vm, leader),
            other => other,
        };
        let ready = started.and_then(|()| self.engine.wait_ready(handle.as_ref(), RECOVERY_PATIENCE));
        match ready {
            Ok(()) => self.events.say(EventKind::Platform {
                action: "ready".to_owned(),
                node: node.clone(),
                what: format!("the database on {node} accepts connections"),
            }),
            // That it is switched off because of that is told by itself.
            Err(_) if self.is_losing_its_volume(vm) => {}
            // Whoever took its power has a reason, and it is not the platform's to restore the database before the next start.
            Err(_) if !self.datacentre.vms[vm].is_on() => {
                let what = format!("{node} lost power while its database was still starting");
                self.events.say(EventKind::Platform { action: "cut-short".to_owned(), node, what });
            }
            Err(error) => self.trouble(&format!("start the database on {node}"), &error.to_string()),
        }
    }

    fn is_losing_its_volume(&self, vm: usize) -> bool {
        let disk = self.datacentre.vms[vm].volume().mirrored();
        let is_lost = disk.is_some_and(|disk| disk.lost_where_open().is_some());
        is_lost || self.state().losing_their_volume.contains(&vm)
    }

    fn rejoin(&self, vm: usize, leader: usize) -> Result<(), EngineError> {
        let rejoined = self.engine.rejoin(self.node(vm).as_ref(), self.node(leader).as_ref())?;
        let node = node_name(vm);
        let mut what =
            format!("{node} follows {} now ({:?})", node_name(leader), rejoined.method).to_lowercase();
        for remark in rejoined.notes {
            what.push_str("; ");
            what.push_str(&remark);
        }
        self.events.say(EventKind::Platform { action: "rejoin".to_owned(), node, what });
        Ok(())
    }

    /// Standbys with the round trip to the lost leader's host, the shortest first; equals in their order.
    fn nearest_first(&self, lost: usize, standbys: Vec<usize>) -> Vec<(usize, Duration)> {
        let path = |vm: usize| self.datacentre.hosts[self.datacentre.vms[vm].host()].path.as_slice();
        let apart = |vm: &usize| (*vm, self.nearness.round_trip(path(lost), path(*vm)));
        let mut standbys: Vec<(usize, Duration)> = standbys.iter().map(apart).collect();
        standbys.sort_by_key(|(_, apart)| *apart);
        standbys
    }

    fn promote(&self, lost: usize) {
        loop {
            let standbys = self.datacentre.vms_on().into_iter().filter(|vm| *vm != lost).collect();
            let standbys = self.nearest_first(lost, standbys);
            let candidates: Vec<Arc<dyn Node>> = standbys.iter().map(|(vm, _)| self.node(*vm)).collect();
            match self.engine.promote(&candidates) {
                Ok(promotion) => {
                    let leader = (0..self.datacentre.vms.len()).find(|vm| node_name(*vm) == promotion.leader);
                    self.state().leader = leader.unwrap_or(lost);
                    let positions: Vec<String> = promotion
                        .positions
                        .iter()
                        .map(|(node, position)| format!("{node} at {position}"))
                        .collect();
                    let distances: Vec<String> = standbys
                        .iter()
                        .map(|(vm, apart)| format!("{} {:.1} ms", node_name(*vm), apart.as_secs_f64() * 1e3))
                        .collect();
                    let mut what = format!(
                        "{} promoted, the most advanced of: {}; tie-break: lowest round trip to the lost leader's \
                         host: {}",
                        promotion.leader,
                        positions.join(", "),
                        distances.join(", ")
                    );
                    for remark in promotion.notes {
                        what.push_str("; ");
                        what.push_str(&remark);
                    }
                    let node = promotion.leader.clone();
                    self.events.say(EventKind::Platform { action: "promote".to_owned(), node, what });
                    self.events.say(EventKind::Leader { node: promotion.leader });
                    return;
                }
                Err(error) => {
                    self.trouble("promote a standby", &error.to_string());
                    if !self.pause(RETRY) {
                        return;
                    }
                }
            }
        }
    }
}
