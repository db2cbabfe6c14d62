//! A host's disks: capacity disks in groups, each group behind a cache disk or behind none, and the defects they get.
//!
//! Owns waiting for a slow disk or one that does not answer; what a defect does to an operation is `medium`'s business,
//! and what lies on a disk its stores'. Dropping what [`Disk::impose`] returns clears the defect.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Refusal;
use crate::medium::{Access, Admitted, Defect, Delay, Medium, Reach};

/// A group: what its disks share.
#[derive(Debug, Default)]
struct Group {
    /// Whether any defect stands: a sound disk costs an operation the look at this.
    has_defects: AtomicBool,
    medium: Mutex<Medium>,
    changed: Condvar,
}

impl Group {
    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the defects and tells everybody who waits.
    fn change<R>(&self, change: impl FnOnce(&mut Medium) -> R) -> R {
        let mut medium = self.medium();
        let result = change(&mut medium);
        self.has_defects.store(!medium.is_sound(), Ordering::Release);
        self.changed.notify_all();
        result
    }
}

/// A disk of a host. Clones are the same disk.
#[derive(Debug, Clone)]
pub struct Disk {
    name: Arc<str>,
    reach: Reach,
    group: Arc<Group>,
}

/// The disks of one group.
#[derive(Debug, Clone)]
pub struct DiskGroup {
    /// What components lie on.
    pub capacity: Vec<Disk>,
    /// The cache disk before them, which takes all of them with it.
    pub cache: Option<Disk>,
}

impl DiskGroup {
    /// A group of sound disks by their names.
    #[must_use]
    pub fn new(capacity: &[String], cache: Option<&str>) -> DiskGroup {
        let group = Arc::new(Group::default());
        let disk = |name: &str, reach| Disk { name: Arc::from(name), reach, group: group.clone() };
        let numbered = capacity.iter().enumerate();
        DiskGroup {
            capacity: numbered.map(|(number, name)| disk(name, Reach::One(number))).collect(),
            cache: cache.map(|name| disk(name, Reach::Group)),
        }
    }
}

/// A defect that stands until this is dropped.
#[derive(Debug)]
#[must_use = "the defect is cleared when this is dropped"]
pub struct DefectGuard {
    group: Arc<Group>,
    number: u64,
}

impl Drop for DefectGuard {
    fn drop(&mut self) {
        self.group.change(|medium| medium.clear(self.number));
    }
}

impl Disk {
    /// A sound disk in a group of its own.
    #[must_use]
    pub fn alone(name: &str) -> Disk {
        Disk { name: Arc::from(name), reach: Reach::One(0), group: Arc::default() }
    }

    /// Its name: `dc1/a/r1/h2/d1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the disk a defect; a cache disk's is one of every disk behind it.
    pub fn impose(&self, defect: Defect) -> DefectGuard {
        let number = self.group.change(|medium| medium.impose(self.reach, defect));
        DefectGuard { group: self.group.clone(), number }
    }

    /// Whether no disk of its group has any defect.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.group.has_defects.load(Ordering::Acquire)
    }

    /// An operation comes: waits as long as the disk takes, and tells what becomes of it. `held_up` is called before it
    /// waits, if it does.
    ///
    /// # Errors
    /// What a defect refuses it with; `EIO` once `interrupted` is set, which [`Disk::wake`] makes known.
    pub(crate) fn admit(
        &self,
        access: Access,
        counts: bool,
        interrupted: &AtomicBool,
        held_up: impl FnOnce(),
    ) -> Result<Admitted, Refusal> {
        let came = Instant::now();
        let mut held_up = Some(held_up);
        let mut medium = self.group.medium();
        loop {
            if interrupted.load(Ordering::Acquire) {
                return Err(Refusal::EIO);
            }
            let left = match medium.delay(self.reach) {
                Delay::UntilCleared => None,
                Delay::For(time) => match time.saturating_sub(came.elapsed()) {
                    Duration::ZERO => break,
                    left => Some(left),
                },
            };
            if let Some(tell) = held_up.take() {
                tell();
            }
            let changed = &self.group.changed;
            medium = match left {
                None => changed.wait(medium).unwrap_or_else(PoisonError::into_inner),
                Some(left) => changed.wait_timeout(medium, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        medium.judge(self.reach, access, counts)
    }

    /// Lets everybody who waits look again.
    pub(crate) fn wake(&self) {
        self.group.change(|_| ());
    }

    /// Makes some of what was read wrong. Returns how many blocks.
    ///
    /// # Errors
    /// `EIO` where the disk itself notices.
    pub(crate) fn corrupt(&self, content: &mut [u8]) -> Result<u64, Refusal> {
        self.group.medium().corrupt(self.reach, content)
    }

    /// Whether it says that it has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.group.medium().is_full(self.reach)
    }
}
