//! Power-off: hosts lose their power, and the VMs on them; healed, the hosts have power again.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use faults::{FaultRecord, Finding, Struck};
use history::{EventKind, FaultId, HostId, NodeId, PlatformAction, Receipt, Verdict};
use lab::probe::NodeNamespaces;
use platform::PowerOff;
use scenario::{Fault, PowerOffFault};

use super::targets::describe;
use super::{Faulting, StandingFault, lock};
use crate::power_probe::{Observer, Subject};

/// How long power may come back late so that the hosts' silence is heard to the end, beyond the site's longest round trip.
const SILENCE_HEARD_WITHIN: Duration = Duration::from_secs(2);

/// Faults that end at one moment are healed one after the other within this.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Hosts that another fault gave power while this one kept them without.
struct Early {
    /// The other, by number.
    by: FaultId,
    hosts: Vec<HostId>,
    at: Instant,
}

/// Hosts without power. Nothing ends by dropping it: hosts return when they are given power.
struct StandingPowerOff {
    hosts: Vec<HostId>,
    /// VMs that ran there.
    vms: Vec<NodeId>,
    /// Hung up when their silence has been listened for.
    has_looked: Mutex<Receiver<()>>,
    early: Option<Early>,
}

impl StandingFault for StandingPowerOff {
    fn gets_power(&mut self, by: FaultId, hosts: &[HostId]) {
        let early: Vec<HostId> = self.hosts.iter().copied().filter(|host| hosts.contains(host)).collect();
        if self.early.is_none() && !early.is_empty() {
            self.early = Some(Early { by, hosts: early, at: Instant::now() });
        }
    }

    /// Hosts that another standing fault holds down are given power as well: the later word counts, and the other's receipt says
    /// that it ended before its time.
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, in_a_hurry: bool) {
        let name = |host: &HostId| faulting.datacentre.hosts[*host].name();
        let early = self.early.as_ref().and_then(|early| ended_early(early, early.at.elapsed(), name));
        early.into_iter().for_each(|stood| faulting.stood_teller()(number, stood));
        if !in_a_hurry {
            // A host that has its power back while its silence is still listened for would answer.
            let has_looked = self.has_looked.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = has_looked.recv_timeout(SILENCE_HEARD_WITHIN + faulting.longest_delay * 2);
        }
        for host in &self.hosts {
            if let Err(error) = faulting.datacentre.power_on_host(*host) {
                faulting.events.warn(format!("power-on: {error}"), "the lab is broken; report this");
            }
        }
        // Last, so that the time that giving power takes does not count for those that end at the same moment.
        for standing in faulting.standing.values_mut() {
            standing.gets_power(number, &self.hosts);
        }
        let mended_s = faulting.mended_now(number);
        faulting.platform.returned(&self.hosts);
        let (datacentre, longest_delay) = (faulting.datacentre.clone(), faulting.longest_delay);
        let told = faulting.healing_teller_over_the_network();
        faulting.in_background(move || {
            let Some(observer) = Observer::new(&datacentre, longest_delay) else { return };
            // In a hurry nobody starts the nodes again, so only the hosts can answer.
            let vms = if in_a_hurry { &[][..] } else { &self.vms };
            let subjects: Vec<Subject> = observer.subjects(&self.hosts, vms);
            told(number, mended_s, observer.power_is_back(&subjects, in_a_hurry));
        });
    }
}

impl Faulting {
    /// Strikes hosts with a power-off.
    pub(super) fn strike_power(&mut self, number: FaultId, fault: &Fault, action: &PowerOffFault) {
        let hosts = self.hosts_of(&action.target, number);
        let vms: Vec<NodeId> = self
            .datacentre
            .vms_on()
            .into_iter()
            .filter(|vm| hosts.contains(&self.datacentre.vms[*vm].host()))
            .collect();
        let record = FaultRecord {
            struck: Struck::Hosts(
                hosts.iter().map(|host| self.datacentre.hosts[*host].path.clone()).collect(),
            ),
            hits: hosts.iter().map(|host| self.datacentre.hosts[*host].name()).collect(),
            hosts,
            vms,
            ..self.record(fault, describe(&action.target))
        };
        self.enter(number, &record);
        if record.hosts.is_empty() {
            return self.nothing_answers(number, &record);
        }
        self.network_changes.fetch_add(1, Ordering::AcqRel);
        let (is_looking, has_looked) = channel();
        let (hosts, vms) = (record.hosts.clone(), record.vms.clone());
        let standing = StandingPowerOff { hosts, vms, has_looked: Mutex::new(has_looked), early: None };
        self.standing.insert(number, Box::new(standing));
        self.cut_power(number, &record, is_looking);
    }

    /// `is_looking` is hung up when the hosts' silence has been listened for.
    fn cut_power(&mut self, number: FaultId, record: &FaultRecord, is_looking: Sender<()>) {
        let Some(observer) = Observer::new(&self.datacentre, self.longest_delay) else { return };
        let before = observer.look_before(&observer.subjects(&record.hosts, &record.vms));
        let dying = self.datacentre.vms_dying_with(&record.hosts);
        let namespaces: Vec<(String, io::Result<NodeNamespaces>)> = dying
            .iter()
            .filter_map(|vm| Some((vm.to_string(), self.datacentre.vms[*vm].namespaces()?)))
            .collect();
        let mut effect_s = None;
        if !self.prevented {
            let on_copies = self.plant_on_copies(&record.hosts, &dying);
            self.plant_canaries(number, &dying);
            // What clients feel begins here: one host after the other loses its network and then its processes.
            effect_s = Some(self.events.now_s());
            self.platform.losing(&dying);
            let power_off = self.datacentre.power_off_hosts(&record.hosts);
            self.tell_who_died(record, &power_off);
            self.note_who_died_elsewhere(number, record, &power_off.died);
            self.note_what_stayed(number, record, &power_off.died);
            self.platform.tell_failed_rollbacks();
            self.platform.lost(&power_off.died);
            self.look_at_copies(number, on_copies);
        }
        let losses = match self.prevented {
            true => Vec::new(),
            false => self.losses(record, &record.vms),
        };
        let effect_s = effect_s.unwrap_or_else(|| self.events.now_s());
        let (datacentre, longest_delay) = (self.datacentre.clone(), self.longest_delay);
        let told = self.teller();
        self.in_background(move || {
            if let Some(observer) = Observer::new(&datacentre, longest_delay) {
                let receipt = observer.power_is_off(&before, &namespaces, losses);
                drop(is_looking);
                told(number, Some(effect_s), receipt);
            }
        });
    }

    fn tell_who_died(&self, record: &FaultRecord, power_off: &PowerOff) {
        for trouble in &power_off.troubles {
            self.events.warn(format!("power-off: {trouble}"), "the lab is broken; report this");
        }
        for vm in &power_off.died {
            let (node, on) = (vm.to_string(), self.datacentre.vms[*vm].host());
            let host = self.datacentre.hosts[on].name();
            if !record.hosts.contains(&on) {
                let what = format!(
                    "the host that served the volume of {node} on {host} is lost: its VM is switched off"
                );
                let (action, node) = (PlatformAction::Volume, node.clone());
                self.events.say(EventKind::Platform { action, node, what });
            }
            self.events.say(EventKind::NodeDown { node, host });
        }
    }

    /// Their volumes were rolled back like those of the hosts' own nodes, so the receipt has to show the same of them.
    fn note_who_died_elsewhere(&self, number: FaultId, record: &FaultRecord, died: &[NodeId]) {
        let elsewhere = died.iter().copied().filter(|vm| !record.vms.contains(vm));
        lock(&self.records).of(number).vms_elsewhere = elsewhere.collect();
    }

    /// A volume that could not be brought back to what was durable is wrong by the lab's doing, and what its database lacks
    /// may be wrong with it.
    fn note_what_stayed(&self, number: FaultId, record: &FaultRecord, died: &[NodeId]) {
        let in_doubt = self.losses(record, died).into_iter().filter(|(verdict, _)| *verdict != Verdict::Pass);
        let findings: Vec<Finding> = in_doubt
            .map(|(verdict, sentence)| Finding { node: None, verdict, sentence, lab_lost_synced: true })
            .collect();
        lock(&self.records).of(number).findings.extend(findings);
    }

    /// What a power-off took from the volumes of these nodes and from components on its hosts.
    fn losses(&self, record: &FaultRecord, vms: &[NodeId]) -> Vec<(Verdict, String)> {
        let all = self.datacentre.vms.numbered();
        let of_copies = all.flat_map(|(vm, of)| of.volume().losses_of_copies(vm, &record.hosts));
        let of_nodes =
            vms.iter().filter_map(|vm| self.datacentre.vms[*vm].volume().last_loss(&vm.to_string()));
        of_nodes.chain(of_copies).collect()
    }
}

/// What is to be said of a fault whose hosts another gave power so long before it was healed itself.
fn ended_early(early: &Early, before: Duration, name: impl Fn(&HostId) -> String) -> Option<Receipt> {
    let names: Vec<String> = early.hosts.iter().map(name).collect();
    let (by, before_s) = (early.by.ordinal(), before.as_secs_f64());
    let what =
        || format!("fault {by} gave {} power {before_s:.1} s before this one was healed", names.join(", "));
    (before > AT_ONCE).then(|| Receipt { verdict: Verdict::Unknown, evidence: vec![what()] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_off_whose_hosts_another_fault_gave_power_is_not_shown_to_have_stood() {
        let standing = |hosts: &[HostId]| StandingPowerOff {
            hosts: hosts.to_vec(),
            vms: Vec::new(),
            has_looked: Mutex::new(channel().1),
            early: None,
        };
        let mut apart = standing(&[HostId::new(3), HostId::new(4)]);
        apart.gets_power(FaultId::FIRST, &[HostId::new(1), HostId::new(2)]);
        assert!(apart.early.is_none());
        let mut beside = standing(&[HostId::new(2), HostId::new(3)]);
        beside.gets_power(FaultId::FIRST, &[HostId::new(1), HostId::new(2)]);
        beside.gets_power(FaultId::new(5), &[HostId::new(3)]);
        let early = beside.early.expect("h2 has power again");
        let told = |before_s| {
            ended_early(&early, Duration::from_secs(before_s), |host| format!("h{}", host.index()))
        };
        assert_eq!(told(0), None, "both ended at one moment");
        let receipt = told(30).expect("it ended early");
        assert_eq!(receipt.verdict, Verdict::Unknown);
        assert_eq!(receipt.evidence, ["fault 1 gave h2 power 30.0 s before this one was healed"]);
    }
}
