//! What a virtualisation platform and its operators do when a host or the way to a volume is lost and when it returns: start
//! VMs elsewhere, promote a standby, take a node back.
//!
//! Owns how steps are carried out, one at a time for each VM, and tried again. Which steps those are `decisions` says; how a
//! database does it is its engine's knowledge.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::{Engine, Node, Roles};
use history::{EventSink, HostId, NodeId, PerNode};
use placement::{Cluster, Drs};
use scenario::{Failover, IsolationResponse, Scenario};

use crate::datacentre::{Datacentre, Host};
use crate::decisions::{Decision, Occurrence, Step, View, VmView, decide};
use crate::nearness::Nearness;
use crate::placing::Placing;
use crate::vm::Vm;

/// Between two attempts at something that did not work.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// How long a node that does not say whether it leads may take to turn a connection down.
const CONNECT_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct State {
    /// The node that takes the writes, as far as the platform knows.
    pub(crate) leader: NodeId,
    /// No new work is begun from here on.
    pub(crate) stopping: bool,
    /// When a host was last lost, or came back.
    pub(crate) hosts_changed: Option<Instant>,
    /// VMs that are being switched off because their volume is lost where they run.
    pub(crate) losing_their_volume: BTreeSet<NodeId>,
    /// VMs that are off because their volume could not be reached, and are tried again when the network changes.
    pub(crate) waiting_for_their_volume: BTreeSet<NodeId>,
    /// When each VM was last lost with its host.
    pub(crate) lost_at: BTreeMap<NodeId, Instant>,
    /// Hosts that count as isolated now.
    pub(crate) isolated: BTreeSet<HostId>,
}

/// What has become of promotions in place of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Promotions {
    /// Nobody was asked to lead in its place.
    #[default]
    None,
    /// Somebody was, and may lead already: whether it does is not known.
    Begun,
}

/// What gives VMs their hosts: boots, restarts, moves and promotes.
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
    pub(crate) hands: PerNode<Mutex<()>>,
    /// Whether VMs that run are moved without anybody asking.
    pub(crate) drs: Drs,
    /// Held by whoever moves them.
    pub(crate) balancing: Mutex<()>,
    /// Held by whoever promotes a standby, and by a leader that returns.
    pub(crate) promoting: Mutex<Promotions>,
    work: Mutex<Vec<JoinHandle<()>>>,
    /// How many VMs are being moved, whoever asked for it.
    pub(crate) migrations: AtomicUsize,
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
            promoting: Mutex::default(),
            work: Mutex::default(),
            migrations: AtomicUsize::default(),
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
    pub fn leader(&self) -> NodeId {
        self.state().leader
    }

    /// Who takes the writes now, asked of the database itself: the one leader, if there is one.
    #[must_use]
    pub fn leader_by_asking(&self) -> Option<NodeId> {
        self.leader_by(&self.roles())
    }

    /// The one leader that these answers name, if there is one.
    #[must_use]
    pub fn leader_by(&self, roles: &Roles) -> Option<NodeId> {
        self.datacentre.vms_on().into_iter().find(|vm| roles.leader() == Some(vm.to_string().as_str()))
    }

    /// The nodes' roles, each asked by itself; silent are those alone that take connections of clients all the same.
    #[must_use]
    pub fn roles_of_those_that_take_connections(&self) -> Roles {
        let mut roles = self.roles();
        roles.silent.retain(|name, _| {
            let named = self.datacentre.vms_on().into_iter().find(|vm| vm.to_string() == *name);
            named.is_some_and(|vm| {
                !self.engine.turns_connections_down(self.node(vm).as_ref(), CONNECT_PATIENCE)
            })
        });
        roles
    }

    /// Whether the nodes say that every one of them takes writes and none leads.
    #[must_use]
    pub fn is_of_equals(&self) -> bool {
        !self.roles().equals.is_empty()
    }

    /// What each node that is on says of itself.
    #[must_use]
    pub fn roles(&self) -> Roles {
        let on: Vec<NodeId> = self.datacentre.vms_on();
        let nodes: Vec<Arc<dyn Node>> = on.iter().map(|vm| self.node(*vm)).collect();
        self.engine.leader(&nodes)
    }

    pub(crate) fn node(&self, vm: NodeId) -> Arc<dyn Node> {
        self.datacentre.vms[vm].clone()
    }

    /// What it knows now.
    pub(crate) fn view(&self) -> View {
        let state = self.state();
        let vm = |(number, vm): (NodeId, &Arc<Vm>)| VmView {
            is_on: vm.is_on(),
            host: vm.host(),
            is_mirrored: vm.volume().mirrored().is_some(),
            waits_for_volume: state.waiting_for_their_volume.contains(&number),
        };
        View {
            failover: self.failover,
            isolation: self.isolation,
            leader: state.leader,
            vms: self.datacentre.vms.numbered().map(vm).collect(),
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
        let began = Instant::now();
        if !self.pause(after) {
            return;
        }
        match step {
            Step::RestartElsewhere { vm, .. } if self.was_lost_since(vm, began) => {}
            Step::RestartElsewhere { vm, left } => self.restart_elsewhere(vm, left, began),
            Step::Promote { lost } => self.promote(lost),
            Step::StartAtHome { vm, why } => self.start_at_home(vm, why),
            Step::RestartDatabase { vm } => self.restart_database(vm),
            Step::StartProcesses { vm } => self.start_processes(vm),
            Step::LeaveIsolated { vm } => self.leave_isolated(vm),
            Step::SwitchOffIsolated { vm } => self.switch_off_isolated(vm),
        }
    }

    pub(crate) fn was_lost_since(&self, vm: NodeId, began: Instant) -> bool {
        self.state().lost_at.get(&vm).is_some_and(|lost_at| *lost_at > began)
    }

    /// These VMs are about to die with their hosts: nobody who has waited to start one does it at once.
    pub fn losing(&self, vms: &[NodeId]) {
        let now = Instant::now();
        self.state().lost_at.extend(vms.iter().map(|vm| (*vm, now)));
    }

    /// These VMs have just died with their hosts.
    pub fn lost(self: &Arc<Self>, vms: &[NodeId]) {
        self.losing(vms);
        self.happens(&Occurrence::VmsLost(vms.to_vec()));
    }

    /// These hosts have power again.
    pub fn returned(self: &Arc<Self>, hosts: &[HostId]) {
        self.happens(&Occurrence::HostsReturned(hosts.to_vec()));
    }

    /// The network has changed for the better: VMs that are off because their volume could not be reached are tried again.
    pub fn reaches_again(self: &Arc<Self>) {
        self.happens(&Occurrence::NetworkImproved);
    }

    /// Carries out what follows, here and now.
    pub(crate) fn follow(&self, occurrence: &Occurrence) {
        for decision in decide(&self.view(), occurrence) {
            self.carry_out(decision);
        }
    }

    /// The disks of these VMs' volumes are sound again: databases that have ended are started again.
    pub fn disks_cleared(self: &Arc<Self>, vms: &[NodeId]) {
        self.happens(&Occurrence::DisksCleared(vms.to_vec()));
    }

    /// The marks on volumes of VMs that have not booted since they lost their power are looked for without a boot of the
    /// database; or, where that would be no use, given up.
    pub fn look_at_what_stays_off(&self, given_up: Option<&str>) {
        let is_pending = |of: &Vm| of.canary().is_pending(!of.is_on());
        for (vm, of) in self.datacentre.vms.numbered().filter(|(_, of)| is_pending(of)) {
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
            let left = work.len() + self.migrations.load(Ordering::Acquire);
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
}
