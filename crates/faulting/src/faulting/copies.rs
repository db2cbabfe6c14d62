//! The marks on copies of mirrored volumes whose hosts lose their power while the volume's node goes on.
//!
//! Owns the moment, and that a mark which had not reached a copy shows nothing. It is seen on the copy before the power-off and
//! looked for after it, while nobody can tell the copy anything; both times in its content, which the disk's own account of
//! what it lost has no part in. What the marks show `canary` judges.

use std::time::{Duration, Instant};

use disk::mirror::Acknowledge;
use history::{FaultId, HostId, NodeId};
use lab::canary::{self, Mark, Marks, Seen};
use storage::MirroredDisk;

use super::Faulting;

/// How long a power-off waits for a mark to reach a copy. What nothing holds up arrives in milliseconds.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// A copy about to lose its power.
pub(super) struct OnCopy {
    vm: NodeId,
    component: usize,
    in_words: String,
    /// Nonces of the mark that it has; or why it has none.
    planted: Result<(u64, u64), NoMark>,
}

/// Why a copy has no mark.
#[derive(Debug, Clone)]
enum NoMark {
    /// Nothing is wrong: what is written is not there yet.
    Behind(&'static str),
    /// It should have one.
    Missing(String),
}

impl Faulting {
    /// Has the nodes that go on write a mark for each copy on these hosts, and sees it arrive there.
    pub(super) fn plant_on_copies(&self, hosts: &[HostId], dying: &[NodeId]) -> Vec<OnCopy> {
        let stay = self.datacentre.vms_on().into_iter().filter(|vm| !dying.contains(vm));
        std::thread::scope(|scope| {
            let planting: Vec<_> =
                stay.map(|vm| (vm, scope.spawn(move || self.plant_on_copies_of(vm, hosts)))).collect();
            let planted = planting.into_iter();
            planted.flat_map(|(vm, thread)| thread.join().unwrap_or_else(|_| vec![panicked(vm)])).collect()
        })
    }

    fn plant_on_copies_of(&self, vm: NodeId, hosts: &[HostId]) -> Vec<OnCopy> {
        let Some(disk) = self.datacentre.vms[vm].volume().mirrored() else { return Vec::new() };
        let (live, others): (Vec<_>, Vec<_>) =
            disk.peers_on(vm, hosts).into_iter().partition(|(_, _, is_live)| *is_live);
        let of = |(component, in_words, _), planted| OnCopy { vm, component, in_words, planted };
        let behind = NoMark::Behind("it is not up to date, so no node is started from it");
        let mut all: Vec<OnCopy> = others.into_iter().map(|copy| of(copy, Err(behind.clone()))).collect();
        if live.is_empty() {
            return all;
        }
        let planted = self.datacentre.vms[vm].plant_for_copies(self.excuse_of(vm)());
        let deadline = Instant::now() + ARRIVES_WITHIN;
        all.extend(live.into_iter().map(|copy| {
            let arrived = planted.clone().and_then(|nonces| arrives(disk, copy.0, nonces, deadline));
            of(copy, arrived.map_err(|why| self.no_mark(disk, why)))
        }));
        all
    }

    /// Whether a mark is missing from a copy, or cannot be there yet.
    fn no_mark(&self, disk: &MirroredDisk, why: String) -> NoMark {
        if self.is_network_faulty() {
            NoMark::Missing(format!("{why}; a network fault is active"))
        } else if disk.acknowledges() == Acknowledge::Async {
            NoMark::Behind("no acknowledged write waits for it (`acknowledge: async`)")
        } else {
            NoMark::Missing(why)
        }
    }

    /// Looks for the marks on copies that have just lost their power.
    pub(super) fn look_at_copies(&self, number: FaultId, copies: Vec<OnCopy>) {
        for OnCopy { vm, component, in_words, planted } in copies {
            let vm = &self.datacentre.vms[vm];
            let marks = match planted {
                Ok(nonces) => match vm.volume().mirrored() {
                    Some(disk) => look(disk, component, nonces),
                    None => Err("the volume has no copies".to_owned()),
                },
                Err(NoMark::Missing(why)) => Err(why),
                Err(NoMark::Behind(why)) => {
                    self.canary_teller(number)(storage::not_yet_on_copy(&in_words, why));
                    continue;
                }
            };
            self.canary_teller(number)(vm.canary().judge_copy(&in_words, marks.as_ref()));
        }
    }
}

/// Whatever copies a VM's volume has on the hosts: nobody knows what is on them.
fn panicked(vm: NodeId) -> OnCopy {
    let in_words = format!("the copies of the volume of {vm}");
    let why = "the thread that writes their marks panicked".to_owned();
    OnCopy { vm, component: 0, in_words, planted: Err(NoMark::Missing(why)) }
}

fn look(disk: &MirroredDisk, component: usize, (boot, fault): (u64, u64)) -> Result<Marks, String> {
    let read = disk.read_on(component, (canary::FOLDER, canary::FILE), canary::KEPT_BYTES);
    let (names, begins) = read.map_err(|refusal| refusal.to_string())?;
    Ok(canary::on_copy(names.iter().map(AsRef::as_ref), &begins, boot, fault))
}

/// Waits until the mark that is not synced is on the copy. What was synced at boot was told to it before.
fn arrives(
    disk: &MirroredDisk,
    component: usize,
    nonces: (u64, u64),
    deadline: Instant,
) -> Result<(u64, u64), String> {
    loop {
        if look(disk, component, nonces)?[&Mark::Created] == Seen::After {
            return Ok(nonces);
        }
        if Instant::now() >= deadline {
            return Err(format!("no mark arrived within {} s", ARRIVES_WITHIN.as_secs()));
        }
        std::thread::sleep(LOOK);
    }
}
