//! Disk faults: a disk under a node's volume gets a defect, and loses it again. What a probe must see is in `looks`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{DefectEffects, DefectGuard, Disk};
use faults::{Role, pick};
use history::{FaultId, NodeId, Receipt, Verdict};
use platform::Datacentre;
use scenario::{DiskDefect, DiskFault, DiskTarget, Fault, FaultTarget};
use storage::VolumePart;

use crate::disk_looks::Subject;
use crate::disk_looks::defect::made;
use crate::disk_looks::imposed::Place;
use crate::disk_looks::judge::{defect_effects_in_words, defect_in_words, kept_more_in_words};
use crate::faulting::{Faulting, StandingFault};

/// Disks probed of a group: what holds for so many is not chance.
const PROBED_MAX: usize = 4;
/// How often a disk that fails later is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// A disk fault that stands. Dropping it heals it.
struct StandingDisk {
    guard: Option<DefectGuard>,
    subject: Subject,
    /// The names of all disks that are hit.
    struck: BTreeSet<String>,
    /// The VMs whose volumes are served from a disk that is hit.
    vms: Vec<NodeId>,
    /// What lies on these disks, with what that had met before.
    parts: Vec<(VolumePart, DefectEffects)>,
    /// Set once it is healed: whoever still waits for an effect gives up.
    ended: Arc<AtomicBool>,
}

impl StandingFault for StandingDisk {
    fn mend(self: Box<Self>, faulting: &mut Faulting, number: FaultId, _: bool) {
        faulting.mend_disk(number, *self);
    }

    /// Whoever waits for a disk that fails later waits no more.
    fn give_up(&mut self) {
        self.ended.store(true, Ordering::Release);
        drop(self.guard.take());
    }
}

impl Drop for StandingDisk {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

/// A disk that is struck: itself, the capacity disks that go with it.
type Struck = (Disk, Vec<Disk>);

impl Faulting {
    /// Strikes a disk.
    pub(super) fn strike_disk(
        &mut self,
        number: FaultId,
        fault: &Fault,
        DiskFault { target, defect }: &DiskFault,
    ) {
        let target_words = format!("{}: {}", target_in_words(target), defect_in_words(defect));
        let mut record = self.record(fault, target_words);
        let Some((disk, behind)) = self.disk_of(number, target) else {
            self.enter(number, &record);
            return self.nothing_answers(number, &record);
        };
        record.struck = faults::Struck::disk(disk.name());
        record.hits = vec![disk.name().to_owned()];
        let struck: BTreeSet<String> = behind.iter().map(|disk| disk.name().to_owned()).collect();
        record.vms = self.vms_over(&struck).collect();
        self.enter(number, &record);
        self.plant_canaries_early(number, &self.vms_with_any_on(&struck));
        let probed: Vec<Disk> = behind.into_iter().take(PROBED_MAX).collect();
        let mut subject = Subject { probed, defect: defect.clone(), place: Place::NEXT };
        let before = subject.look_before(&self.datacentre.disks, &self.imposed);
        let parts = self.parts_on(&struck);
        let seed = self.seed.wrapping_add(number.index() as u64);
        let impose = || (!self.prevented).then(|| disk.impose(made(defect, seed)));
        let (place, guard) = self.imposed.impose(defect, &struck, impose);
        subject.place = place;
        let remembered = self.forget_what_was_read(defect, &record.vms);
        let effect_s = self.events.now_s();
        let ended = Arc::<AtomicBool>::default();
        self.platform.disks_struck(&record.vms, ended.clone());
        let waits = Waits { datacentre: self.datacentre.clone(), parts: parts.clone(), ended: ended.clone() };
        let (vms, of_looks) = (record.vms, subject.clone());
        let standing = StandingDisk { guard, subject, struck, vms, parts, ended };
        self.standing.insert(number, Box::new(standing));
        let (told, events, imposed) = (self.teller(), self.events.clone(), self.imposed.clone());
        self.in_background(move || {
            let fails_later = matches!(of_looks.defect, DiskDefect::FailAfter { .. });
            let over = waits.ended.clone();
            let (mut waits, mut effect_s) = (waits, effect_s);
            let is_over = || over.load(Ordering::Acquire);
            let gives_up = |changed: bool| is_over() || (!changed && imposed.is_over());
            let mut receipt = loop {
                if fails_later && !waits.until_refused() {
                    let evidence =
                        vec!["the fault was healed before the disk served that many operations".to_owned()];
                    return told(number, None, Receipt { verdict: Verdict::Unknown, evidence });
                } else if fails_later {
                    effect_s = events.now_s();
                }
                let receipt =
                    of_looks.look_at_effect(&waits.datacentre.disks, &imposed, (&before, &gives_up));
                // Another fault may have refused the operation.
                if !fails_later || receipt.verdict != Verdict::Fail || is_over() {
                    break receipt;
                }
            };
            receipt.doubt_failure(is_over(), || {
                "the fault was healed while the disk was being probed".to_owned()
            });
            if before.receipt.verdict != Verdict::Pass {
                receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                receipt.evidence.push(format!("before the fault: {}", before.receipt.evidence.join("; ")));
            }
            stand_on_disks(&waits.datacentre, &mut receipt);
            receipt.evidence.extend(remembered);
            told(number, Some(effect_s), receipt);
        });
    }

    /// Clears a disk fault.
    fn mend_disk(&mut self, number: FaultId, mut standing: StandingDisk) {
        standing.ended.store(true, Ordering::Release);
        // Cleared before anybody looks.
        self.imposed.clear(standing.subject.place, || drop(standing.guard.take()));
        let mended_s = self.mended_now(number);
        let at_the_strike = standing.vms.iter().copied();
        // A node that was started there meanwhile waits for the disk as well.
        let hit: BTreeSet<NodeId> = at_the_strike.chain(self.vms_over(&standing.struck)).collect();
        let hit: Vec<NodeId> = hit.into_iter().collect();
        let remembered = self.forget_what_was_read(&standing.subject.defect, &hit);
        self.platform.disks_cleared(&hit);
        let met: Vec<(String, DefectEffects)> = standing
            .parts
            .iter()
            .filter_map(|(part, before)| {
                let met = self.datacentre.vms[part.vm].volume().defect_effects_on(part)?.since(*before);
                Some((part.in_words(), met))
            })
            .collect();
        let (datacentre, told) = (self.datacentre.clone(), self.healing_teller());
        let (imposed, subject) = (self.imposed.clone(), standing.subject.clone());
        self.in_background(move || {
            let gives_up = |changed: bool| !changed && imposed.is_over();
            let mut receipt = subject.look_at_healing(&datacentre.disks, &imposed, &gives_up);
            stand_on_disks(&datacentre, &mut receipt);
            for (what, met) in &met {
                receipt.evidence.push(defect_effects_in_words(what, met));
                if let Some(doubt) = kept_more_in_words(&subject.defect, what, met) {
                    receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                    receipt.evidence.push(doubt);
                }
            }
            receipt.evidence.extend(remembered);
            told(number, mended_s, receipt);
        });
    }

    /// What of all volumes lies on these disks, with what it has met so far.
    fn parts_on(&self, disks: &BTreeSet<String>) -> Vec<(VolumePart, DefectEffects)> {
        let of = |vm: NodeId| {
            let volume = self.datacentre.vms[vm].volume();
            let parts = volume.parts_on(vm, disks).into_iter();
            parts
                .filter_map(|part| volume.defect_effects_on(&part).map(|met| (part, met)))
                .collect::<Vec<_>>()
        };
        self.datacentre.vms.ids().flat_map(of).collect()
    }

    /// The VMs whose volumes are served from one of these disks now.
    fn vms_over<'a>(&'a self, disks: &'a BTreeSet<String>) -> impl Iterator<Item = NodeId> + 'a {
        let on_it = |vm: &NodeId| {
            let volume = self.datacentre.vms[*vm].volume();
            volume.disk().is_some_and(|under| disks.contains(under.name()))
        };
        self.datacentre.vms.ids().filter(on_it)
    }

    /// VMs that are on with any component of their volumes on one of these disks.
    fn vms_with_any_on(&self, disks: &BTreeSet<String>) -> Vec<NodeId> {
        let mut on = self.datacentre.vms_on();
        on.retain(|vm| !self.datacentre.vms[*vm].volume().disks().is_disjoint(disks));
        on
    }

    /// The disk that is meant now.
    fn disk_of(&self, number: FaultId, target: &DiskTarget) -> Option<Struck> {
        let disks = &self.datacentre.disks;
        match target {
            DiskTarget::Named { host, disk } => disks.named(&format!("{host}/{disk}")),
            DiskTarget::Of { node, cache } => {
                let role = match node {
                    FaultTarget::Leader(_) => Role::Leader,
                    FaultTarget::AFollower(_) => Role::AFollower,
                    FaultTarget::Coordinator(_) | FaultTarget::Random(_) => Role::Random,
                    FaultTarget::Place(_) => return None,
                };
                let leader = self.leader();
                let vm = pick(role, leader, &self.datacentre.vms_on(), self.seed, number)?;
                let under = self.datacentre.vms[vm].volume().disk()?;
                if *cache { disks.cache_before(under.name()) } else { disks.named(under.name()) }
            }
        }
    }

    /// Wrong reads are only met where the disk is read, and only forgotten where it is read again: what the nodes' kernel
    /// keeps of the volumes is thrown away. Tells where that could not be done.
    fn forget_what_was_read(&self, defect: &DiskDefect, vms: &[NodeId]) -> Vec<String> {
        if !matches!(defect, DiskDefect::Corrupt { .. }) || self.prevented {
            return Vec::new();
        }
        let failed = |vm: &NodeId| {
            let error = self.datacentre.vms[*vm].forget_what_was_read().err()?;
            Some(format!("the page cache of {vm} may still hold earlier reads: {error}"))
        };
        vms.iter().filter(|vm| self.datacentre.vms[**vm].is_on()).filter_map(failed).collect()
    }
}

/// What is waited for until a disk fails that fails later.
struct Waits {
    datacentre: Arc<Datacentre>,
    parts: Vec<(VolumePart, DefectEffects)>,
    ended: Arc<AtomicBool>,
}

impl Waits {
    /// Whether an operation of what lies on it was refused, since it was last asked, before the fault was healed.
    fn until_refused(&mut self) -> bool {
        loop {
            // Asked in this order, so that what was refused last is not missed.
            let ended = self.ended.load(Ordering::Acquire);
            let mut is_refused = false;
            for (part, before) in &mut self.parts {
                let met = self.datacentre.vms[part.vm].volume().defect_effects_on(part);
                let met = met.unwrap_or(*before);
                is_refused |= met.since(*before).refused > 0;
                *before = met;
            }
            if is_refused {
                return true;
            }
            if ended {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Without volumes on disks a fault of a disk is none.
fn stand_on_disks(datacentre: &Datacentre, receipt: &mut Receipt) {
    if !datacentre.vms.iter().any(|vm| vm.volume().disk().is_some()) {
        receipt.verdict = receipt.verdict.and(Verdict::Unknown);
        receipt.evidence.push("no volume is on a disk: they are plain directories".to_owned());
    }
}

fn target_in_words(target: &DiskTarget) -> String {
    match target {
        DiskTarget::Named { host, disk } => format!("disk {host}/{disk}"),
        DiskTarget::Of { node, cache } => {
            let role = match node {
                FaultTarget::Leader(_) => "the leader",
                FaultTarget::AFollower(_) => "a follower",
                FaultTarget::Coordinator(_) => "a coordinator",
                FaultTarget::Random(_) => "a random node",
                FaultTarget::Place(place) => &format!("the node on {place}"),
            };
            let part = if *cache { " (cache)" } else { "" };
            format!("disk{part} of {role}")
        }
    }
}
