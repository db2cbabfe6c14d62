//! The log of extents that are being written: what a component notes before it writes to a stretch it has not written to
//! lately, so that after a power-off it knows where it may differ from the others.
//!
//! Owns what noting costs, which is one write to the log, flushed where it has no device of its own, for each extent of
//! 4 MiB that is not among the last 1237: DRBD's defaults (drbd.conf(5), `al-extents`). What differs after a power-off is
//! known better here, from the logs of what is not durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use crate::disk::Disk;
use crate::store::Flush;

/// An extent has so many bits of offset.
const EXTENT_SHIFT: u32 = 22;
/// Extents that are remembered.
const EXTENTS_MAX: usize = 1237;
/// Bytes of one entry: a block, which disks write whole.
const ENTRY_BYTES: usize = 4096;

/// The log of one component.
#[derive(Debug)]
pub struct ExtentLog {
    file: File,
    /// The disk that each entry is brought to.
    flushed_to: Option<Disk>,
    active: Mutex<Active>,
}

#[derive(Debug, Default)]
struct Active {
    used: BTreeMap<(u64, u64), u64>,
    by_use: BTreeMap<u64, (u64, u64)>,
    uses: u64,
    entries: u64,
}

impl Active {
    /// Uses an extent. Returns whether it was not among the remembered ones.
    fn touch(&mut self, extent: (u64, u64)) -> bool {
        self.uses += 1;
        let before = self.used.insert(extent, self.uses);
        if let Some(before) = before {
            self.by_use.remove(&before);
        }
        self.by_use.insert(self.uses, extent);
        if self.used.len() > EXTENTS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_none()
    }
}

impl ExtentLog {
    /// An empty log in a new file. Where a disk is given, every entry is brought to it before the write that it is about.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path, flushed_to: Option<Disk>) -> io::Result<ExtentLog> {
        Ok(ExtentLog { file: File::create(path)?, flushed_to, active: Mutex::default() })
    }

    /// Notes that `bytes` of an object are about to be written from `offset` on.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub fn note(&self, number: u64, offset: u64, bytes: u64) -> io::Result<()> {
        let last = offset.saturating_add(bytes.saturating_sub(1)) >> EXTENT_SHIFT;
        for extent in offset >> EXTENT_SHIFT..=last {
            let entry = {
                let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
                if !active.touch((number, extent)) {
                    continue;
                }
                active.entries += 1;
                active.entries
            };
            let mut block = [0; ENTRY_BYTES];
            block[..8].copy_from_slice(&number.to_le_bytes());
            block[8..16].copy_from_slice(&extent.to_le_bytes());
            let place = entry % EXTENTS_MAX as u64 * ENTRY_BYTES as u64;
            self.file.write_all_at(&block, place)?;
            let Some(disk) = &self.flushed_to else { continue };
            match disk.flush(true) {
                Flush::Real => self.file.sync_data()?,
                Flush::Pretended => disk.take_sync_time(block.len() as u64, &AtomicBool::new(false))?,
            }
        }
        Ok(())
    }

    /// Entries written so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(writes: &[(u64, u64, u64)], expected: u64) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = ExtentLog::create(&folder.path().join("extents"), Some(Disk::alone("d1"))).expect("a log");
        for (number, offset, bytes) in writes {
            log.note(*number, *offset, *bytes).expect("noted");
        }
        assert_eq!(log.entries(), expected, "{writes:?}");
    }

    #[test]
    fn an_extent_is_noted_once() {
        check(&[(1, 0, 8192), (1, 8192, 8192), (1, (4 << 20) - 1, 1)], 1);
        check(&[(1, 0, 8192), (2, 0, 8192)], 2);
        check(&[(1, (4 << 20) - 1, 2)], 2);
    }

    #[test]
    fn an_extent_that_was_long_not_written_to_is_noted_again() {
        let others = (1..=EXTENTS_MAX as u64).map(|extent| (1, extent << 22, 1));
        let writes: Vec<(u64, u64, u64)> = [(1, 0, 1)].into_iter().chain(others).chain([(1, 0, 1)]).collect();
        check(&writes, EXTENTS_MAX as u64 + 2);
    }
}
