//! Databases on VMs: started with their VM, started again, and let in behind the leader.
//!
//! Owns the order of these steps and what is told of them. How a database does each is its engine's knowledge.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::EngineError;
use history::{EventKind, HostId, NodeId, PlatformAction};

use crate::platform::{Platform, Promotions, RETRY};

/// How long a database may take to recover after a power-off.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(120);

impl Platform {
    pub(crate) fn has_ended(&self, vm: NodeId) -> bool {
        let node = self.node(vm);
        matches!(self.engine.wait_ready(node.as_ref(), Duration::ZERO), Err(EngineError::Exited { .. }))
    }

    /// A database may take its time to end, and it is only then that it can be started again. What is done, as a sentence.
    pub(crate) fn start_once_ended(&self, vm: NodeId, patience: Duration, what: String) {
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
        self.events.say(EventKind::Platform { action: PlatformAction::Restart, node: vm.to_string(), what });
        self.start_database(vm);
    }

    pub(crate) fn restart_database(&self, vm: NodeId) {
        let node = vm.to_string();
        let what =
            format!("the database on {node} had stopped; its disk is healthy, so the platform restarts it");
        self.start_once_ended(vm, RECOVERY_PATIENCE, what);
    }

    /// Boots the VM there and starts its database; why it could not be booted. Whoever waits for the turn goes on once the VM has power.
    pub(crate) fn start_on(
        &self,
        vm: NodeId,
        (host, may_force): (HostId, bool),
        (action, why, chosen): (PlatformAction, &str, Option<&str>),
        turn: Option<MutexGuard<'_, Promotions>>,
    ) -> Result<(), String> {
        let (node, place) = (vm.to_string(), self.datacentre.hosts[host].name());
        if let Err(error) = self.datacentre.power_on_vm(vm, host, may_force) {
            self.did_not_boot(vm);
            return Err(format!("{place}: {error}"));
        }
        drop(turn);
        self.is_placed(vm);
        self.state().waiting_for_their_volume.remove(&vm);
        self.events.say(EventKind::NodeUp { node: node.clone(), host: place.clone() });
        let chosen = chosen.map(|chosen| format!(": {chosen}")).unwrap_or_default();
        let what = format!("{node}, {why}, boots on {place}{chosen}");
        self.events.say(EventKind::Platform { action, node: node.clone(), what });
        self.start_database(vm);
        Ok(())
    }

    pub(crate) fn start_database(&self, vm: NodeId) {
        let (node, handle) = (vm.to_string(), self.node(vm));
        let leader = self.leader();
        let started = match self.engine.start(handle.as_ref()) {
            Err(EngineError::Fenced { .. }) if leader != vm => self.rejoin(vm, leader),
            other => other,
        };
        let ready = started.and_then(|()| self.engine.wait_ready(handle.as_ref(), RECOVERY_PATIENCE));
        match ready {
            Ok(()) => self.events.say(EventKind::Platform {
                action: PlatformAction::Ready,
                node: node.clone(),
                what: format!("the database on {node} accepts connections"),
            }),
            // That it is switched off because of that is told by itself.
            Err(_) if self.is_losing_its_volume(vm) => {}
            // Whoever took its power has a reason, and it is not the platform's to restore the database before the next start.
            Err(_) if !self.datacentre.vms[vm].is_on() => {
                let what = format!("{node} lost power while its database was still starting");
                self.events.say(EventKind::Platform { action: PlatformAction::CutShort, node, what });
            }
            Err(error) => self.trouble(&format!("start the database on {node}"), &error.to_string()),
        }
    }

    fn rejoin(&self, vm: NodeId, leader: NodeId) -> Result<(), EngineError> {
        let rejoined = self.engine.rejoin(self.node(vm).as_ref(), self.node(leader).as_ref())?;
        let node = vm.to_string();
        let mut what = format!("{node} follows {leader} now ({:?})", rejoined.method).to_lowercase();
        for remark in rejoined.notes {
            what.push_str("; ");
            what.push_str(&remark);
        }
        self.events.say(EventKind::Platform { action: PlatformAction::Rejoin, node, what });
        Ok(())
    }
}
