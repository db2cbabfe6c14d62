//! Disk faults: a disk under a node's volume gets a defect, and loses it again. What a probe must see is in `looks`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use disk::{Corruption, Defect, DefectGuard, Disk, Met};
use faults::{Role, pick};
use history::{Receipt, Verdict};
use scenario::{DiskDefect, DiskTarget, Fault, FaultTarget};

use crate::datacentre::{Datacentre, node_name};
use crate::faulting::looks::disk as looks;
use crate::faulting::{FaultRecord, Faulting, lock};

/// Disks probed of a group: what holds for so many is not chance.
const PROBED_MAX: usize = 4;
/// How long a probe waits for a disk that ought to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a disk must be silent.
const SILENCE: Duration = Duration::from_millis(400);
/// How often a disk that fails later is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// A disk fault that stands. Dropping it heals it.
pub(super) struct StandingDisk {
    guard: Option<DefectGuard>,
    defect: DiskDefect,
    /// The disks that are probed.
    probed: Vec<Disk>,
    /// The names of all that are hit.
    struck: BTreeSet<String>,
    /// The VMs whose volumes are hit, each with what it had met before.
    vms: Vec<(usize, Met)>,
    /// Set once it is healed: whoever still waits for an effect gives up.
    ended: Arc<AtomicBool>,
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
        number: usize,
        fault: &Fault,
        target: &DiskTarget,
        defect: &DiskDefect,
    ) {
        let target_words = format!("{}: {}", target_in_words(target), defect_in_words(defect));
        let mut record = FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target: target_words,
            asked_s: self.chronicle.now_s(),
            ..FaultRecord::default()
        };
        let Some((disk, behind)) = self.disk_of(number, target) else {
            self.enter(number, &record);
            let evidence = vec![format!("nothing answers to `{}` at this moment", record.target)];
            self.receive(number, None, Receipt { verdict: Verdict::Fail, evidence });
            return;
        };
        record.hits = vec![disk.name().to_owned()];
        let struck: BTreeSet<String> = behind.iter().map(|disk| disk.name().to_owned()).collect();
        record.vms = self.vms_over(&struck).collect();
        self.enter(number, &record);
        let probed: Vec<Disk> = behind.into_iter().take(PROBED_MAX).collect();
        let before = look_sound(&self.datacentre, &probed, 1);
        let vms = record.vms.iter().filter_map(|vm| Some((*vm, self.datacentre.vms[*vm].volume().met()?)));
        let vms: Vec<(usize, Met)> = vms.collect();
        let guard = (!self.prevented).then(|| disk.impose(self.defect(number, defect)));
        let remembered = self.forget_what_was_read(defect, &record.vms);
        let effect_s = self.chronicle.now_s();
        let ended = Arc::<AtomicBool>::default();
        self.platform.disks_struck(&record.vms, ended.clone());
        let waits = Waits { datacentre: self.datacentre.clone(), vms: vms.clone(), ended: ended.clone() };
        let standing =
            StandingDisk { guard, defect: defect.clone(), probed: probed.clone(), struck, vms, ended };
        self.standing_disks.insert(number, standing);
        let (told, chronicle, defect) = (self.teller(), self.chronicle.clone(), defect.clone());
        self.in_background(move || {
            let fails_later = matches!(defect, DiskDefect::FailAfter { .. });
            let effect_s = match fails_later {
                false => effect_s,
                true if waits.until_refused() => chronicle.now_s(),
                true => {
                    let evidence =
                        vec!["the fault was healed before the disk had been asked that often".to_owned()];
                    return told(number, None, Receipt { verdict: Verdict::Unknown, evidence });
                }
            };
            let patience = if defect == DiskDefect::Stall { SILENCE } else { PATIENCE };
            let mut receipt =
                look(&waits.datacentre, &probed, patience, looks::blocks_to_read(&defect), |disk, seen| {
                    looks::took_effect(disk, &defect, seen)
                });
            if receipt.verdict == Verdict::Fail && waits.ended.load(Ordering::Acquire) {
                receipt.verdict = Verdict::Unknown;
                receipt.evidence.push("the fault was healed while the disk was being looked at".to_owned());
            }
            if before.verdict != Verdict::Pass {
                receipt.verdict = receipt.verdict.and(Verdict::Unknown);
                receipt.evidence.push(format!("before the fault: {}", before.evidence.join("; ")));
            }
            receipt.evidence.extend(remembered);
            told(number, Some(effect_s), receipt);
        });
    }

    /// Clears a disk fault, when this is one. Whether it is.
    pub(super) fn mend_disk(&mut self, number: usize) -> bool {
        let Some(mut standing) = self.standing_disks.remove(&number) else { return false };
        standing.ended.store(true, Ordering::Release);
        // Cleared before anybody looks.
        drop(standing.guard.take());
        let mended_s = self.chronicle.now_s();
        lock(&self.records)[number].mended_s = Some(mended_s);
        let at_the_strike = standing.vms.iter().map(|(vm, _)| *vm);
        // A node that was started there meanwhile waits for the disk as well.
        let hit: BTreeSet<usize> = at_the_strike.chain(self.vms_over(&standing.struck)).collect();
        let hit: Vec<usize> = hit.into_iter().collect();
        let remembered = self.forget_what_was_read(&standing.defect, &hit);
        self.platform.disks_cleared(&hit);
        let met: Vec<String> = standing
            .vms
            .iter()
            .filter_map(|(vm, before)| {
                let met = self.datacentre.vms[*vm].volume().met()?.since(*before);
                Some(looks::met_in_words(&node_name(*vm), &met))
            })
            .collect();
        let (datacentre, told) = (self.datacentre.clone(), self.healing_teller());
        let blocks = looks::blocks_to_read(&standing.defect);
        self.in_background(move || {
            let mut receipt = look_sound(&datacentre, &standing.probed, blocks);
            receipt.evidence.extend(met);
            receipt.evidence.extend(remembered);
            told(number, mended_s, receipt);
        });
        true
    }

    /// The VMs whose volumes are served from one of these disks now.
    fn vms_over<'a>(&'a self, disks: &'a BTreeSet<String>) -> impl Iterator<Item = usize> + 'a {
        let on_it = |vm: &usize| {
            let volume = self.datacentre.vms[*vm].volume();
            volume.disk().is_some_and(|under| disks.contains(under.name()))
        };
        (0..self.datacentre.vms.len()).filter(on_it)
    }

    /// The disk that is meant now.
    fn disk_of(&self, number: usize, target: &DiskTarget) -> Option<Struck> {
        let disks = &self.datacentre.disks;
        match target {
            DiskTarget::Named { host, disk } => disks.named(&format!("{host}/{disk}")),
            DiskTarget::Of { node, cache } => {
                let role = match node {
                    FaultTarget::Leader(_) => Role::Leader,
                    FaultTarget::AFollower(_) => Role::AFollower,
                    FaultTarget::Random(_) => Role::Random,
                    FaultTarget::Place(_) => return None,
                };
                let leader = self.platform.leader_by_asking();
                let vm = pick(role, leader, &self.datacentre.vms_on(), self.seed, number)?;
                let under = self.datacentre.vms[vm].volume().disk()?;
                if *cache { disks.cache_before(under.name()) } else { disks.named(under.name()) }
            }
        }
    }

    fn defect(&self, number: usize, defect: &DiskDefect) -> Defect {
        match defect {
            DiskDefect::Fail => Defect::Fail,
            DiskDefect::FailAfter { operations } => Defect::FailAfter(*operations),
            DiskDefect::Slow { by } => Defect::Slow(*by),
            DiskDefect::Stall => Defect::Stall,
            DiskDefect::Full => Defect::Full,
            DiskDefect::Corrupt { share, checksums } => Defect::Corrupt(Corruption {
                share: *share,
                checksums: *checksums,
                seed: self.seed.wrapping_add(number as u64),
            }),
            DiskDefect::LoseFlush => Defect::LoseFlush,
            DiskDefect::ReadOnly => Defect::ReadOnly,
        }
    }

    /// Wrong reads are only met where the disk is read, and only forgotten where it is read again: what the nodes' kernel
    /// keeps of the volumes is thrown away. Tells where that could not be done.
    fn forget_what_was_read(&self, defect: &DiskDefect, vms: &[usize]) -> Vec<String> {
        if !matches!(defect, DiskDefect::Corrupt { .. }) || self.prevented {
            return Vec::new();
        }
        let failed = |vm: &usize| {
            let error = self.datacentre.vms[*vm].forget_what_was_read().err()?;
            Some(format!("what {} had read before may still be in its memory: {error}", node_name(*vm)))
        };
        vms.iter().filter(|vm| self.datacentre.vms[**vm].is_on()).filter_map(failed).collect()
    }
}

/// What is waited for until a disk fails that fails later.
struct Waits {
    datacentre: Arc<Datacentre>,
    vms: Vec<(usize, Met)>,
    ended: Arc<AtomicBool>,
}

impl Waits {
    /// Whether an operation of a volume on it was refused before the fault was healed.
    fn until_refused(&self) -> bool {
        let refused = |(vm, before): &(usize, Met)| {
            let met = self.datacentre.vms[*vm].volume().met();
            met.is_some_and(|met| met.since(*before).refused > 0)
        };
        loop {
            // Asked in this order, so that what was refused last is not missed.
            let ended = self.ended.load(Ordering::Acquire);
            if self.vms.iter().any(refused) {
                return true;
            }
            if ended {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Looks at disks on which nothing should be wrong. While another fault stands on them that cannot be told.
fn look_sound(datacentre: &Datacentre, probed: &[Disk], blocks: u64) -> Receipt {
    if let Some(disk) = probed.iter().find(|disk| !disk.is_sound()) {
        let evidence = vec![format!("another fault stands on disk {} or its group", disk.name())];
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    look(datacentre, probed, PATIENCE, blocks, looks::is_sound)
}

fn look(
    datacentre: &Datacentre,
    probed: &[Disk],
    patience: Duration,
    blocks: u64,
    judge: impl Fn(&str, &disk::Seen) -> (Verdict, String),
) -> Receipt {
    let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    for disk in probed {
        let (verdict, sentence) = match datacentre.disks.look(disk, patience, blocks) {
            Ok(seen) => judge(disk.name(), &seen),
            Err(why) => (Verdict::Unknown, why),
        };
        receipt.verdict = receipt.verdict.and(verdict);
        receipt.evidence.push(sentence);
    }
    if !datacentre.vms.iter().any(|vm| vm.volume().disk().is_some()) {
        receipt.verdict = receipt.verdict.and(Verdict::Unknown);
        receipt.evidence.push("no volume stands on any disk: they are plain directories".to_owned());
    }
    receipt
}

fn target_in_words(target: &DiskTarget) -> String {
    match target {
        DiskTarget::Named { host, disk } => format!("disk {host}/{disk}"),
        DiskTarget::Of { node, cache } => {
            let role = match node {
                FaultTarget::Leader(_) => "the leader",
                FaultTarget::AFollower(_) => "a follower",
                _ => "a node",
            };
            let disk = if *cache { "the cache disk" } else { "the disk" };
            format!("{disk} of {role}")
        }
    }
}

/// A defect as a person would say it.
fn defect_in_words(defect: &DiskDefect) -> String {
    match defect {
        DiskDefect::Fail => "fails".to_owned(),
        DiskDefect::FailAfter { operations } => format!("fails after {operations} operations"),
        DiskDefect::Slow { by } => format!("is {} ms slower", by.as_secs_f64() * 1e3),
        DiskDefect::Stall => "stalls".to_owned(),
        DiskDefect::Full => "is full".to_owned(),
        DiskDefect::Corrupt { share, checksums } => {
            let noticed = if *checksums { "and notices" } else { "and does not notice" };
            format!("reads {} % of its blocks wrongly {noticed}", share * 100.0)
        }
        DiskDefect::LoseFlush => "loses flushes".to_owned(),
        DiskDefect::ReadOnly => "is read-only".to_owned(),
    }
}
