//! The canaries of a power-off: planted just before it, or before a fault that may hold the volume up. Their findings are
//! taken into its record whenever they come.
//!
//! Owns the moment, and what excuses a mark that looks otherwise than it should. What the marks show `canary` judges.

use std::collections::BTreeSet;
use std::sync::Arc;

use history::{EventKind, FaultId, NodeId, Receipt};
use platform::Vm;
use storage::{Excuse, Excused, Tell};

use super::{Faulting, lock};
use crate::disk_looks::judge::defect_in_words;

impl Faulting {
    /// Plants marks on the volumes of all VMs that are about to lose their power, all at once.
    pub(super) fn plant_canaries(&self, number: FaultId, vms: &[NodeId]) {
        self.on_all_at_once(number, vms, Vm::plant_canary);
    }

    /// Plants marks on the volumes of VMs that a fault of disks or of the network is about to hold up, all at once: while it
    /// stands none may be written, and a power-off that skips the rollback on just these volumes would go unseen.
    pub(super) fn plant_canaries_early(&self, number: FaultId, vms: &[NodeId]) {
        if !self.prevented {
            self.on_all_at_once(number, vms, Vm::plant_canary_early);
        }
    }

    fn on_all_at_once(&self, number: FaultId, vms: &[NodeId], plant: fn(&Vm, Excuse, Tell)) {
        std::thread::scope(|scope| {
            for vm in vms.iter().copied() {
                let (excuse, tell) = (self.excuse_of(vm), self.canary_teller(number));
                scope.spawn(move || plant(&self.datacentre.vms[vm], excuse, tell));
            }
        });
    }

    /// Makes marks anew on volumes that nothing holds up any more.
    pub(super) fn renew_canaries(&mut self) {
        let datacentre = self.datacentre.clone();
        let mut free = datacentre.vms_on();
        free.retain(|vm| datacentre.vms[*vm].canary().is_pending(true) && self.excuse_of(*vm)().is_none());
        if free.is_empty() {
            return;
        }
        self.in_background(move || free.iter().for_each(|vm| datacentre.vms[*vm].renew_canary()));
    }

    /// VMs that are on and whose volumes may be served over the network.
    pub(super) fn vms_with_copies(&self) -> Vec<NodeId> {
        let mut on = self.datacentre.vms_on();
        on.retain(|vm| self.datacentre.vms[*vm].volume().mirrored().is_some());
        on
    }

    /// A disk fault may lose what was synced, refuse what is to be written, or have something else read. A network fault
    /// may hold up a volume that is served over the network.
    pub(super) fn excuse_of(&self, vm: NodeId) -> Excuse {
        let (datacentre, imposed) = (self.datacentre.clone(), self.imposed.clone());
        let is_network_faulty = self.is_network_faulty();
        Arc::new(move || {
            let vm = &datacentre.vms[vm];
            let disks: BTreeSet<String> = vm.volume().disks();
            if let Some(standing) = imposed.standing_on(&disks) {
                let why = format!("a disk under its volume {}", defect_in_words(&standing));
                return Some(Excused { why, loses_synced: standing.may_lose_synced() });
            }
            let served_from = vm.volume().mirrored().and_then(storage::MirroredDisk::serving_host);
            let is_remote = served_from.is_some_and(|host| host != vm.host());
            (is_network_faulty && is_remote).then(|| Excused {
                why: "a network fault is active, and its volume is served over the network".to_owned(),
                loses_synced: false,
            })
        })
    }

    pub(super) fn canary_teller(&self, number: FaultId) -> Tell {
        let (records, events) = (self.records.clone(), self.events.clone());
        Arc::new(move |finding| {
            let receipt = Receipt { verdict: finding.verdict, evidence: vec![finding.sentence.clone()] };
            events.say(EventKind::Canary { fault: number, receipt });
            lock(&records).of(number).findings.push(finding);
        })
    }
}
