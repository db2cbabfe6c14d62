//! The canaries of a power-off: planted just before it, their findings taken into its record whenever they come.
//!
//! Owns the moment, and what excuses a mark that looks otherwise than it should. What the marks show `canary` judges.

use std::collections::BTreeSet;
use std::sync::Arc;

use history::{EventKind, Receipt};
use storage::{Excuse, Tell};

use super::{Faulting, lock};
use crate::disk_looks::judge::defect_in_words;

impl Faulting {
    /// Plants marks on the volumes of all VMs that are about to lose their power, all at once.
    pub(super) fn plant_canaries(&self, number: usize, vms: &[usize]) {
        std::thread::scope(|scope| {
            for vm in vms.iter().copied() {
                let (excuse, tell) = (self.excuse_of(vm), self.canary_teller(number));
                scope.spawn(move || self.datacentre.vms[vm].plant_canary(excuse, tell));
            }
        });
    }

    /// A disk fault may lose what was synced, refuse what is to be written, or have something else read.
    pub(super) fn excuse_of(&self, vm: usize) -> Excuse {
        let (datacentre, imposed) = (self.datacentre.clone(), self.imposed.clone());
        Arc::new(move || {
            let disks: BTreeSet<String> = datacentre.vms[vm].volume().disks();
            let standing = imposed.standing_on(&disks)?;
            Some(format!("a disk under its volume {}", defect_in_words(&standing)))
        })
    }

    pub(super) fn canary_teller(&self, number: usize) -> Tell {
        let (records, events) = (self.records.clone(), self.events.clone());
        Arc::new(move |finding| {
            let receipt = Receipt { verdict: finding.verdict, evidence: vec![finding.sentence.clone()] };
            events.say(EventKind::Canary { fault: number, receipt });
            lock(&records)[number].findings.push(finding);
        })
    }
}
