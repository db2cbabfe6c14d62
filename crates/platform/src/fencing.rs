//! VMs that are switched off so that nobody else's copy of their data is spoilt: one whose volume is lost where it runs, and a leader
//! whose database ended because of its disk.
//!
//! Owns how that is carried out and told. When it follows, and what follows from it, `decisions` says.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use history::{EventKind, NodeId, PlatformAction, Verdict};
use storage::Opening;

use crate::decisions::{Occurrence, leader_to_watch};
use crate::platform::{Platform, RETRY};
use crate::processes_left::processes_left;

impl Platform {
    /// A VM's volume counts as lost on its host. The VM is switched off: its disk refuses everything, and nobody else may have
    /// the volume while it might write. Then what follows the loss of a host follows, without a further wait: it has been
    /// waited for.
    pub fn volume_is_lost(self: &Arc<Self>, vm: NodeId, open: Opening) {
        let mut state = self.state();
        if state.stopping || !state.losing_their_volume.insert(vm) {
            return;
        }
        drop(state);
        self.clone().begin(format!("volume of {vm}"), move |platform| {
            let is_off = platform.fence_off_its_volume(vm, &open);
            platform.state().losing_their_volume.remove(&vm);
            if is_off {
                platform.state().waiting_for_their_volume.insert(vm);
                platform.follow(&Occurrence::VolumeFenced(vm));
            }
        });
    }

    /// Whether it is known to be off afterwards.
    fn fence_off_its_volume(&self, vm: NodeId, open: &Opening) -> bool {
        let node = vm.to_string();
        // Whoever is starting its database fails by that, and lets go of it.
        let Some((verdict, shown)) = self.switch_off(vm) else { return false };
        let what = format!(
            "{} has not reached {}, which serves the volume of {node}, for {:.1} s: the volume counts as lost there, \
             and the platform switches the VM off; {shown}",
            open.host,
            open.component,
            open.lost_after.unwrap_or_default().as_secs_f64()
        );
        self.events.say(EventKind::Platform { action: PlatformAction::Fence, node: node.clone(), what });
        self.events.say(EventKind::NodeDown { node: node.clone(), host: open.host.clone() });
        if verdict != Verdict::Pass {
            let why = "it may still be running, and its volume may be open only once";
            self.trouble(&format!("start {node} on another host"), why);
        }
        verdict == Verdict::Pass
    }

    /// Switches a VM off; what shows that it is off. None when it was off already.
    pub(crate) fn switch_off(&self, vm: NodeId) -> Option<(Verdict, String)> {
        let node = vm.to_string();
        let of = &self.datacentre.vms[vm];
        let namespaces = of.namespaces()?;
        if let Err(error) = self.datacentre.power_off_vm(vm) {
            self.trouble(&format!("switch {node} off"), &error.to_string());
        }
        self.tell_failed_rollbacks();
        Some(processes_left(&node, &namespaces))
    }

    /// The disks of these VMs' volumes have gone wrong. A leader whose database ends because of it is switched off first, so
    /// that it cannot come back beside another.
    pub fn disks_struck(self: &Arc<Self>, vms: &[NodeId], ended: Arc<AtomicBool>) {
        let Some(leader) = leader_to_watch(&self.view(), vms) else { return };
        self.clone().begin(format!("watch {leader}"), move |platform| {
            while !ended.load(Ordering::Acquire) {
                if platform.has_ended(leader) {
                    if platform.fence(leader, &format!("the database on {leader} has ended")) {
                        platform.follow(&Occurrence::DatabaseFenced(leader));
                    }
                    return;
                }
                if !platform.pause(RETRY) {
                    return;
                }
            }
        });
    }

    /// Switches a VM off before another is made the leader; why, as a sentence. Whether it is known to be off afterwards.
    pub(crate) fn fence(&self, vm: NodeId, why: &str) -> bool {
        let _hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
        let (node, host) = (vm.to_string(), self.datacentre.host_of(vm).name());
        let Some((verdict, shown)) = self.switch_off(vm) else { return true };
        let what = format!(
            "{why}: fencing, the platform switches its VM off so that it cannot return as leader; {shown}"
        );
        self.events.say(EventKind::Platform { action: PlatformAction::Fence, node: node.clone(), what });
        self.events.say(EventKind::NodeDown { node: node.clone(), host });
        if verdict != Verdict::Pass {
            let why = "it may still be running, and take writes beside another leader";
            self.trouble(&format!("promote a standby in the place of {node}"), why);
        }
        verdict == Verdict::Pass
    }

    pub(crate) fn is_losing_its_volume(&self, vm: NodeId) -> bool {
        let disk = self.datacentre.vms[vm].volume().mirrored();
        let is_lost = disk.is_some_and(|disk| disk.lost_where_open().is_some());
        is_lost || self.state().losing_their_volume.contains(&vm)
    }
}
