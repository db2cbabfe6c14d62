//! A store that stands on a disk: whatever is asked of it meets the disk's defects first. And the count of what it met,
//! so that a fault can be shown to have been felt.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::Refusal;
use crate::disk::Disk;
use crate::medium::{Access, Admitted};
use crate::store::{Space, Store};
use crate::waits::{Waits, elsewhere};

/// A store on a disk.
#[derive(Debug)]
pub struct OnDisk<S> {
    pub(crate) store: S,
    disk: Disk,
    /// False for a probe's, whose operations are not the database's.
    counts: bool,
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
    asked: AtomicU64,
}

/// What operations of a store have met, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DefectEffects {
    /// Operations that came while a defect stood, in its own group or disk.
    pub asked: u64,
    /// Refused.
    pub refused: u64,
    /// Held up.
    pub held_up: u64,
    /// Blocks of 4096 bytes handed out wrong.
    pub corrupted: u64,
    /// Syncs answered as done without effect.
    pub flushes_lost: u64,
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
            goes_past: AtomicBool::new(false),
            interrupted: AtomicBool::new(false),
            waits: Waits::default(),
            met: Counters::default(),
        }
    }

    /// The store of a probe on a disk, which [`crate::Defect::FailAfter`] does not count.
    pub(crate) fn of_probe(store: S, disk: Disk) -> OnDisk<S> {
        OnDisk { counts: false, ..OnDisk::new(store, disk) }
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
        }
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
        self.store.hand_out(content)
    }

    fn interrupt(&self, interrupted: bool) {
        self.interrupted.store(interrupted, Ordering::Release);
        self.disk.wake();
        self.store.interrupt(interrupted);
    }
}
