//! A store that stands on a disk: whatever is asked of it meets the disk's defects first. And the count of what it met,
//! so that a fault can be shown to have been felt.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::Refusal;
use crate::disk::Disk;
use crate::medium::{Access, Admitted};
use crate::store::{FolderStore, Space, Store};
use crate::waits::{Waits, elsewhere};

/// A store on a disk.
#[derive(Debug)]
pub struct OnDisk<S> {
    pub(crate) store: S,
    disk: Disk,
    /// False for a probe's, whose operations are not the database's.
    counts: bool,
    /// Whether a sync takes the time of a disk whose medium is described.
    takes_sync_time: bool,
    /// The disk is not asked: while a probe is laid.
    goes_past: AtomicBool,
    interrupted: AtomicBool,
    /// Operations that the disk keeps waiting.
    waits: Waits,
    met: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    refused: AtomicU64,
    held_up: AtomicU64,
    corrupted: AtomicU64,
    flushes_lost: AtomicU64,
    kept_more: AtomicU64,
    asked: AtomicU64,
}

/// What operations of a store have met, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DefectEffects {
    /// Operations that came while a defect stood, in its own group or disk.
    pub asked: u64,
    pub refused: u64,
    pub held_up: u64,
    /// Blocks of 4096 bytes handed out wrong.
    pub corrupted: u64,
    /// Syncs answered as done without effect.
    pub flushes_lost: u64,
    /// How often something became durable although its sync may not have been done: more was not durable than a volume remembers, or
    /// a copy caught up.
    pub kept_more: u64,
}

impl DefectEffects {
    /// What came after `earlier`.
    #[must_use]
    pub fn since(self, earlier: DefectEffects) -> DefectEffects {
        DefectEffects {
            asked: self.asked.saturating_sub(earlier.asked),
            refused: self.refused.saturating_sub(earlier.refused),
            held_up: self.held_up.saturating_sub(earlier.held_up),
            corrupted: self.corrupted.saturating_sub(earlier.corrupted),
            flushes_lost: self.flushes_lost.saturating_sub(earlier.flushes_lost),
            kept_more: self.kept_more.saturating_sub(earlier.kept_more),
        }
    }
}

impl<S> OnDisk<S> {
    /// A store on a disk.
    #[must_use]
    pub fn new(store: S, disk: Disk) -> OnDisk<S> {
        OnDisk {
            store,
            disk,
            counts: true,
            takes_sync_time: false,
            goes_past: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            waits: Waits::default(),
            met: Counters::default(),
        }
    }

    /// The same for a probe, whose operations [`crate::Defect::FailAfter`] does not count.
    pub(crate) fn of_probe(self) -> OnDisk<S> {
        OnDisk { counts: false, ..self }
    }

    /// Whether the disk's defects are not met: what is to be looked at lies there whatever is wrong with the disk.
    pub(crate) fn go_past_defects(&self, goes_past: bool) {
        self.goes_past.store(goes_past, Ordering::Release);
    }

    /// Whether no defect is to be met.
    fn meets_none(&self) -> bool {
        self.disk.is_sound() || self.goes_past.load(Ordering::Acquire)
    }

    /// The disk it stands on.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// How long the operation has waited for the disk that has waited longest; zero where none waits.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        self.waits.longest()
    }

    /// What its operations have met so far.
    #[must_use]
    pub fn defect_effects(&self) -> DefectEffects {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DefectEffects {
            asked: read(&self.met.asked),
            refused: read(&self.met.refused),
            held_up: read(&self.met.held_up),
            corrupted: read(&self.met.corrupted),
            flushes_lost: read(&self.met.flushes_lost),
            kept_more: read(&self.met.kept_more),
        }
    }
}

impl OnDisk<FolderStore> {
    /// A store in a folder of the machine that stands on a disk. With `flushes` a sync takes what the disk takes: the
    /// machine's own time, or that of a medium which is described. Without it, nothing.
    #[must_use]
    pub fn in_folder(folder: &Path, disk: Disk, flushes: bool) -> OnDisk<FolderStore> {
        let store = FolderStore::new(folder, disk.flush(flushes));
        OnDisk { takes_sync_time: flushes, ..OnDisk::new(store, disk) }
    }
}

fn count(counter: &AtomicU64, times: u64) {
    counter.fetch_add(times, Ordering::Relaxed);
}

impl<S: Store> Store for OnDisk<S> {
    type Object = S::Object;

    fn create(&self, number: u64) -> io::Result<S::Object> {
        self.store.create(number)
    }

    fn open(&self, number: u64) -> io::Result<S::Object> {
        self.store.open(number)
    }

    fn adopt(&self, number: u64, file: &Path) -> io::Result<()> {
        self.store.adopt(number, file)
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        self.store.remove(number)
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        self.store.numbers()
    }

    fn space(&self) -> io::Result<Space> {
        let space = self.store.space()?;
        if self.is_sound() || !self.disk.is_full() {
            return Ok(space);
        }
        Ok(Space { blocks_free: 0, blocks_available: 0, ..space })
    }

    fn is_sound(&self) -> bool {
        self.meets_none() && self.store.is_sound()
    }

    fn admit(&self, access: Access) -> Result<Admitted, Refusal> {
        if self.meets_none() {
            return self.store.admit(access);
        }
        count(&self.met.asked, 1);
        let wait = self.waits.begin();
        let held_up = || count(&self.met.held_up, 1);
        let judged = elsewhere(|| self.disk.admit(access, self.counts, &self.interrupted, held_up));
        self.waits.end(wait);
        count(&self.met.refused, u64::from(judged.is_err()));
        match judged? {
            Admitted::InAppearance => {
                count(&self.met.flushes_lost, 1);
                Ok(Admitted::InAppearance)
            }
            Admitted::Truly => self.store.admit(access),
        }
    }

    fn note_kept_more(&self) {
        count(&self.met.kept_more, u64::from(!self.meets_none()));
        self.store.note_kept_more();
    }

    fn take_sync_time(&self, bytes: u64) -> Result<(), Refusal> {
        if self.takes_sync_time && !self.goes_past.load(Ordering::Acquire) {
            elsewhere(|| self.disk.take_sync_time(bytes, &self.interrupted))?;
        }
        self.store.take_sync_time(bytes)?;
        if self.counts {
            self.disk.count_sync(bytes);
        }
        Ok(())
    }

    fn hand_out(&self, content: &mut [u8]) -> Result<(), Refusal> {
        if !self.meets_none() {
            match self.disk.corrupt(content) {
                Ok(wrong) => count(&self.met.corrupted, wrong),
                Err(refusal) => {
                    count(&self.met.refused, 1);
                    return Err(refusal);
                }
            }
        }
        self.store.hand_out(content)?;
        if self.counts {
            self.disk.count_read(content.len() as u64);
        }
        Ok(())
    }

    fn interrupt(&self, interrupted: bool) {
        self.interrupted.store(interrupted, Ordering::Release);
        self.disk.wake();
        self.store.interrupt(interrupted);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::time::{Instant, SystemTime};

    use super::*;
    use crate::DiskGroup;
    use crate::attributes::Attributes;
    use crate::medium::{Defect, SyncTimes};
    use crate::tree::{ROOT, RenameKind};
    use crate::volume::{Limits, NewInode, Scope, Volume};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    /// A volume on a disk whose syncs take this long, with a file of one durable byte.
    fn on_modelled(folder: &Path, latency: Duration) -> (Volume<OnDisk<FolderStore>>, u64) {
        let times = SyncTimes { latency, at_once: 1, bytes_per_second: None };
        let group = DiskGroup::new(&["d1".to_owned()], None).modelled(times);
        let store = OnDisk::in_folder(folder, group.capacity[0].clone(), true);
        let volume = Volume::new(store, Limits::default(), 0, 0, NOW);
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        let file = volume.make(ROOT, OsStr::new("f"), &NewInode::File, attributes).expect("a file").inode;
        volume.write(file, 0, &[1], None, false, NOW).expect("written");
        volume.sync(ROOT, Scope::All).expect("synced");
        volume.sync(file, Scope::All).expect("synced");
        (volume, file)
    }

    fn content(volume: &Volume<OnDisk<FolderStore>>, file: u64) -> Vec<u8> {
        let mut found = [9; 4];
        let read = volume.read(file, 0, &mut found).expect("read");
        found[..read].to_vec()
    }

    #[test]
    fn a_sync_of_a_modelled_disk_is_answered_after_its_latency_and_not_before_and_is_durable_then() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let latency = Duration::from_millis(20);
        let (volume, file) = on_modelled(folder.path(), latency);
        volume.write(file, 0, &[2, 2], None, false, NOW).expect("written");
        let began = Instant::now();
        volume.sync(file, Scope::Data).expect("synced");
        assert!(began.elapsed() >= latency);
        assert_eq!(volume.store().disk().modelled_syncs().map(|syncs| syncs.count), Some(3));
        volume.power_off(None).expect("power-off");
        assert_eq!(content(&volume, file), [2, 2]);
    }

    #[test]
    fn a_disk_counts_what_it_hands_out_and_makes_durable_and_not_what_waits_for_a_sync() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_modelled(folder.path(), Duration::ZERO);
        let before = volume.store().disk().traffic();
        volume.write(file, 0, &[7; 300], None, false, NOW).expect("written");
        assert_eq!(volume.store().disk().traffic(), before);
        volume.sync(file, Scope::Data).expect("synced");
        let mut found = [0; 300];
        assert_eq!(volume.read(file, 0, &mut found), Ok(300));
        let after = volume.store().disk().traffic();
        assert_eq!((after.syncs - before.syncs, after.read_bytes - before.read_bytes), (1, 300));
        assert_eq!(after.durable_bytes - before.durable_bytes, 300);
    }

    #[test]
    fn a_write_that_is_its_own_sync_takes_the_time_of_one_although_the_kernel_asks_for_a_sync_after_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_modelled(folder.path(), Duration::ZERO);
        let before = volume.store().disk().modelled_syncs().expect("modelled").count;
        let taken = || volume.store().disk().modelled_syncs().expect("modelled").count - before;
        let write = |content: &[u8], through| {
            volume.write(file, 0, content, through, false, NOW).expect("written");
        };
        let sync = || volume.sync(file, Scope::Data).expect("synced");

        write(&[3, 4], Some(Scope::Data));
        sync();
        assert_eq!(taken(), 1);
        sync();
        assert_eq!(taken(), 2, "the program's own sync is another");

        write(&[5], Some(Scope::Data));
        write(&[6], None);
        sync();
        assert_eq!(taken(), 4, "there was something to make durable");
        write(&[7], None);
        volume.power_off(None).expect("power-off");
        assert_eq!(content(&volume, file), [6, 4]);
    }

    #[test]
    fn what_was_appended_to_a_renamed_file_and_synced_is_under_its_new_name() {
        for (appended, kept) in [(&[2, 3][..], "g"), (&[2], "f")] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (volume, file) = on_modelled(folder.path(), Duration::ZERO);
            let [f, g] = ["f", "g"].map(OsStr::new);
            volume.rename((ROOT, f), (ROOT, g), RenameKind::Replace, NOW).expect("renamed");
            volume.write(file, 0, appended, None, false, NOW).expect("written");
            volume.sync(file, Scope::Data).expect("synced");
            volume.power_off(None).expect("power-off");
            // Of the same size, its data can be synced without its inode.
            assert_eq!(volume.look_up(ROOT, OsStr::new(kept)).expect("found").inode, file);
            assert_eq!(content(&volume, file), appended);
        }
    }

    #[test]
    fn what_a_modelled_disk_had_not_answered_when_the_power_went_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_modelled(folder.path(), Duration::from_millis(20));
        volume.write(file, 0, &[2, 2], None, false, NOW).expect("written");
        volume.store().interrupt(true);
        assert_eq!(volume.sync(file, Scope::All), Err(Refusal::EIO));
        volume.power_off(None).expect("power-off");
        volume.store().interrupt(false);
        assert_eq!(content(&volume, file), [1]);
    }

    #[test]
    fn a_sync_that_was_lost_and_is_refused_when_it_is_done_after_all_is_owed_on() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_modelled(folder.path(), Duration::ZERO);
        let loses_flushes = volume.store().disk().impose(Defect::LoseFlush);
        volume.write(file, 0, &[2, 2], None, false, NOW).expect("written");
        volume.sync(file, Scope::Data).expect("in appearance");
        drop(loses_flushes);

        let (below, aside) = (folder.path().join(file.to_string()), folder.path().join("aside"));
        std::fs::rename(&below, &aside).expect("the content is moved away");
        assert_eq!(volume.sync(ROOT, Scope::All), Err(Refusal::ENOENT));
        std::fs::rename(&aside, &below).expect("it is again");
        volume.sync(ROOT, Scope::All).expect("synced");
        volume.power_off(None).expect("power-off");
        assert_eq!(content(&volume, file), [2, 2]);
    }

    #[test]
    fn a_full_disk_refuses_what_fills_a_hole_and_takes_what_has_room() {
        const MIB: u64 = 1 << 20;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_modelled(folder.path(), Duration::ZERO);
        let stretch = crate::Change { size: Some(4 * MIB), ..crate::Change::default() };
        volume.change(file, &stretch, NOW).expect("stretched");
        volume.write(file, 2 * MIB, &[1; 4096], None, false, NOW).expect("written");
        volume.allocate(file, libc::FALLOC_FL_KEEP_SIZE, 4 * MIB, MIB, NOW).expect("set aside");
        let _full = volume.store().disk().impose(Defect::Full);
        let write = |offset: u64| volume.write(file, offset, &[2; 4096], None, false, NOW);
        assert_eq!(write(MIB), Err(Refusal::ENOSPC), "a hole");
        assert_eq!(write(2 * MIB), Ok(()), "data");
        assert_eq!(write(4 * MIB), Ok(()), "behind the end, and set aside");
        assert_eq!(write(5 * MIB), Err(Refusal::ENOSPC), "behind what was set aside");
        let shrink = crate::Change { size: Some(MIB), ..crate::Change::default() };
        volume.change(file, &shrink, NOW).expect("cut");
        assert_eq!(write(4 * MIB), Err(Refusal::ENOSPC), "given back by the cut");
    }

    #[test]
    fn what_needs_no_flush_takes_no_time_of_a_modelled_disk() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let times = SyncTimes { latency: Duration::from_secs(1), at_once: 1, bytes_per_second: None };
        let group = DiskGroup::new(&["d1".to_owned()], Some("c1")).modelled(times);
        let store = OnDisk::in_folder(folder.path(), group.capacity[0].clone(), false);
        let volume = Volume::new(store, Limits::default(), 0, 0, NOW);
        volume.sync(ROOT, Scope::All).expect("synced");
        assert_eq!(group.capacity[0].modelled_syncs().map(|syncs| syncs.count), Some(0));
        assert!(group.cache.is_some_and(|cache| cache.modelled_syncs().is_none()));
    }
}
