//! A probe of a disk: a small volume of its own on it, which is written, synced, read and put through a power-off to see
//! how the disk behaves. Knows of no defect: it tells what it met.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::Refusal;
use crate::attributes::Attributes;
use crate::block_log::BLOCK_BYTES;
use crate::disk::Disk;
use crate::on_disk::OnDisk;
use crate::store::{FolderStore, Object, Store};
use crate::tree::ROOT;
use crate::volume::{Limits, NewInode, Scope, Volume};

/// Blocks of the probe's file.
const BLOCKS: u64 = 16;

/// What can go wrong when a probe is laid.
#[derive(Debug, thiserror::Error)]
#[error("probe of disk {disk} in {folder}: {source}")]
pub struct ProbeError {
    pub disk: String,
    pub folder: PathBuf,
    /// What the operating system answered.
    pub source: std::io::Error,
}

/// How one operation went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It was done, in this time.
    Done(Duration),
    /// It was refused, after this time.
    Refused(Refusal, Duration),
    /// It was not answered in this time.
    NoAnswer(Duration),
}

/// What a look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A block overwritten.
    pub overwrite: Tried,
    /// A block appended.
    pub append: Tried,
    /// The file synced.
    pub sync: Tried,
    /// A block read.
    pub read: Tried,
    /// Further blocks read,
    pub blocks_read: u64,
    /// of which so many were not what had been written,
    pub blocks_wrong: u64,
    /// and so many reads were refused.
    pub reads_refused: u64,
    /// Whether the overwritten block was there after a power-off of the probe; nothing where it could not be written and
    /// synced.
    pub survived: Option<bool>,
}

/// A volume of its own on a disk, through which one looks at what a defect does.
#[derive(Debug)]
pub struct Probe {
    volume: Volume<OnDisk<FolderStore>>,
    file: u64,
    /// Looks taken: each writes something else.
    looks: u64,
}

impl Probe {
    /// Lays a probe on a disk, in an empty folder. Whatever is wrong with the disk does not touch the laying.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn lay(disk: &Disk, folder: &Path) -> Result<Probe, ProbeError> {
        let failed = |source: std::io::Error| ProbeError {
            disk: disk.name().to_owned(),
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let store = OnDisk::in_folder(folder, disk.clone(), true).of_probe();
        let now = SystemTime::now();
        let volume = Volume::new(store, Limits::default(), 0, 0, now);
        volume.store.go_past_defects(true);
        let lay = || {
            let attributes = Attributes::new(0o600, 0, 0, now);
            let file = volume.make(ROOT, OsStr::new("probe"), &NewInode::File, attributes)?.inode;
            for block in 0..BLOCKS {
                volume.write(file, block * BLOCK_BYTES, &content(block, 0), None, false, now)?;
            }
            volume.sync(file, Scope::All)?;
            Ok(file)
        };
        let file = lay().map_err(|refusal: Refusal| failed(refusal.into()))?;
        volume.store.go_past_defects(false);
        Ok(Probe { volume, file, looks: 0 })
    }

    /// Looks: each operation is given `patience` to be answered, and beside them `blocks` blocks are read, as far as that is
    /// done in the same time.
    pub fn look(&mut self, patience: Duration, blocks: u64) -> Seen {
        self.looks += 1;
        let (volume, file, look) = (&self.volume, self.file, self.looks);
        let write = |block: u64| {
            volume.write(file, block * BLOCK_BYTES, &content(0, look), None, false, SystemTime::now())
        };
        let overwrite = self.attempt(patience, || write(0));
        // Always further than any look before.
        let append = self.attempt(patience, || write(BLOCKS + look));
        let sync = self.attempt(patience, || volume.sync(file, Scope::All));
        let read = self.attempt(patience, || self.read(1).map(drop));
        let (mut blocks_wrong, mut reads_refused, mut blocks_read) = (0, 0, 0);
        // One that is not answered is not answered the next time either.
        if !matches!(read, Tried::NoAnswer(_)) {
            let deadline = Instant::now() + patience;
            while blocks_read < blocks && Instant::now() < deadline {
                // Block 0 is the one overwritten.
                let block = 1 + blocks_read % (BLOCKS - 1);
                match self.read(block) {
                    Ok(found) => blocks_wrong += u64::from(found != content(block, 0)),
                    Err(_) => reads_refused += 1,
                }
                blocks_read += 1;
            }
        }
        let survived = self.survived(&[overwrite, sync]);
        Seen { overwrite, append, sync, read, blocks_read, blocks_wrong, reads_refused, survived }
    }

    fn read(&self, block: u64) -> Result<Vec<u8>, Refusal> {
        let mut found = vec![0; BLOCK_BYTES as usize];
        let read = self.volume.read(self.file, block * BLOCK_BYTES, &mut found)?;
        found.truncate(read);
        Ok(found)
    }

    /// Cuts the probe's power. What is there then is read from below the disk, whose defects are not the question.
    fn survived(&self, needed: &[Tried]) -> Option<bool> {
        self.volume.power_off(None).ok()?;
        if !needed.iter().all(|tried| matches!(tried, Tried::Done(_))) {
            return None;
        }
        let mut found = vec![0; BLOCK_BYTES as usize];
        self.volume.store.store.open(self.file).and_then(|object| object.read(0, &mut found)).ok()?;
        Some(found == content(0, self.looks))
    }

    fn attempt(&self, patience: Duration, operation: impl FnOnce() -> Result<(), Refusal> + Send) -> Tried {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let (tell, told) = channel();
            scope.spawn(move || {
                let result = operation();
                // Nobody hears it who has given up.
                let _ = tell.send((result, began.elapsed()));
            });
            match told.recv_timeout(patience) {
                Ok((Ok(()), took)) => Tried::Done(took),
                Ok((Err(refusal), took)) => Tried::Refused(refusal, took),
                Err(RecvTimeoutError::Disconnected) => Tried::Refused(Refusal::EIO, began.elapsed()),
                Err(RecvTimeoutError::Timeout) => {
                    self.volume.store.interrupt(true);
                    let _ = told.recv();
                    self.volume.store.interrupt(false);
                    Tried::NoAnswer(patience)
                }
            }
        })
    }
}

/// What a look writes into a block; look 0 is the laying. No two are alike.
fn content(block: u64, look: u64) -> Vec<u8> {
    let words = (0..BLOCK_BYTES / 8).map(|word| word ^ (block << 32) ^ (look << 40));
    words.flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskGroup;
    use crate::medium::{Corruption, Defect};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn word(tried: Tried) -> String {
        match tried {
            Tried::Done(_) => "done".to_owned(),
            Tried::Refused(refusal, _) => format!("{refusal:?}"),
            Tried::NoAnswer(_) => "silence".to_owned(),
        }
    }

    /// What a look at a disk with a defect sees, as `overwrite append sync read`, and whether the write survived; and
    /// that a look after it is healed sees a sound disk.
    fn check(defect: Defect, patience: Duration, expected: &str, survived: Option<bool>) {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::alone("d1");
        let mut probe = Probe::lay(&disk, folder.path()).expect("laid");
        let told = |seen: Seen| {
            let four = [seen.overwrite, seen.append, seen.sync, seen.read].map(word);
            (four.join(" "), seen.survived)
        };
        let sound = ("done done done done".to_owned(), Some(true));
        assert_eq!(told(probe.look(PATIENCE, 30)), sound, "before {defect:?}");
        let guard = disk.impose(defect);
        assert_eq!(told(probe.look(patience, 30)), (expected.to_owned(), survived), "{defect:?}");
        drop(guard);
        let healed = probe.look(PATIENCE, 30);
        assert_eq!((healed.blocks_wrong, healed.reads_refused), (0, 0));
        assert_eq!(told(healed), sound, "after {defect:?}");
    }

    #[test]
    fn a_probe_sees_each_defect_and_that_it_is_gone() {
        let short = Duration::from_millis(50);
        check(Defect::Fail, PATIENCE, "EIO EIO EIO EIO", None);
        check(Defect::Stall, short, "silence silence silence silence", None);
        check(Defect::Full, PATIENCE, "done ENOSPC done done", Some(true));
        check(Defect::ReadOnly, PATIENCE, "EROFS EROFS EROFS done", None);
        check(Defect::LoseFlush, PATIENCE, "done done done done", Some(false));
    }

    #[test]
    fn a_probe_laid_on_a_disk_that_is_wrong_already_sees_what_is_wrong_and_that_it_is_gone() {
        for (defect, expected) in [
            (Defect::Fail, "EIO"),
            (Defect::ReadOnly, "EROFS"),
            (Defect::Stall, "silence"),
            (Defect::Corrupt(Corruption { share: 1.0, checksums: true, seed: 1 }), "done"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let disk = Disk::alone("d1");
            let guard = disk.impose(defect);
            let mut probe = Probe::lay(&disk, folder.path()).expect("laid");
            let seen = probe.look(Duration::from_millis(50), 3);
            assert_eq!(word(seen.overwrite), expected, "{defect:?}");
            drop(guard);
            let seen = probe.look(PATIENCE, 3);
            assert_eq!(
                (word(seen.overwrite).as_str(), seen.blocks_wrong, seen.reads_refused),
                ("done", 0, 0)
            );
        }
    }

    #[test]
    fn a_slow_disk_takes_at_least_as_long_as_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::alone("d1");
        let mut probe = Probe::lay(&disk, folder.path()).expect("laid");
        let slow = Duration::from_millis(30);
        let _guard = disk.impose(Defect::Slow(slow));
        let seen = probe.look(PATIENCE, 0);
        for tried in [seen.overwrite, seen.append, seen.sync, seen.read] {
            assert!(matches!(tried, Tried::Done(took) if took >= slow), "{tried:?}");
        }
    }

    #[test]
    fn wrong_blocks_are_seen_without_checksums_and_refused_with_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::alone("d1");
        let mut probe = Probe::lay(&disk, folder.path()).expect("laid");
        for checksums in [false, true] {
            let _guard = disk.impose(Defect::Corrupt(Corruption { share: 0.2, checksums, seed: 1 }));
            let seen = probe.look(PATIENCE, 500);
            let (silent, noticed) = (seen.blocks_wrong, seen.reads_refused);
            assert!(
                if checksums { silent == 0 && noticed > 50 } else { silent > 50 && noticed == 0 },
                "{seen:?}"
            );
        }
    }

    #[test]
    fn a_defect_of_a_cache_disk_is_seen_on_every_disk_behind_it_and_on_no_other_group() {
        let group = |names: &[&str], cache| {
            DiskGroup::new(&names.iter().map(ToString::to_string).collect::<Vec<_>>(), cache)
        };
        let (first, second) = (group(&["d1", "d2"], Some("c1")), group(&["d3"], Some("c2")));
        let folder = tempfile::tempdir().expect("a folder");
        let disks = first.capacity.iter().chain(&second.capacity);
        let mut probes: Vec<Probe> =
            disks.map(|disk| Probe::lay(disk, &folder.path().join(disk.name())).expect("laid")).collect();
        let _guard = first.cache.as_ref().expect("a cache disk").impose(Defect::Fail);
        let seen: Vec<String> = probes.iter_mut().map(|probe| word(probe.look(PATIENCE, 0).read)).collect();
        assert_eq!(seen, ["EIO", "EIO", "done"]);
    }

    #[test]
    fn what_was_synced_while_flushes_were_lost_is_durable_with_the_next_sync_that_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::alone("d1");
        let store =
            OnDisk::new(FolderStore::new(folder.path(), crate::store::Flush::Pretended), disk.clone());
        let now = SystemTime::now();
        let volume = Volume::new(store, Limits::default(), 0, 0, now);
        let make = |name: &str| {
            let attributes = Attributes::new(0o600, 0, 0, now);
            let file = volume.make(ROOT, OsStr::new(name), &NewInode::File, attributes).expect("made").inode;
            volume.write(file, 0, b"content", None, false, now).expect("written");
            volume.sync(file, Scope::All).expect("answered");
        };
        let guard = disk.impose(Defect::LoseFlush);
        make("lost");
        volume.power_off(None).expect("off");
        assert_eq!(volume.look_up(ROOT, OsStr::new("lost")).err(), Some(Refusal::ENOENT));
        make("kept");
        drop(guard);
        make("synced");
        volume.power_off(None).expect("off");
        for name in ["kept", "synced"] {
            assert_eq!(volume.look_up(ROOT, OsStr::new(name)).map(|status| status.size), Ok(7), "{name}");
        }
        assert_eq!((volume.store().defect_effects().flushes_lost, volume.store().disk().name()), (2, "d1"));
    }
}
