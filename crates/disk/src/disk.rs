//! A host's disks: capacity disks in groups, each group behind a cache disk or behind none, and the defects they get.
//!
//! Owns waiting for a disk that is slow, does not answer, or takes the time that its medium is said to take; what a defect does to an
//! operation and how long a sync takes is `medium`'s business,
//! and what lies on a disk its stores'. Dropping what [`Disk::impose`] returns clears the defect.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Refusal;
use crate::medium::{Access, Admitted, Defect, Delay, Medium, Reach, Service, SyncTimes};
use crate::store::Flush;

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
    modelled: Option<Arc<Modelled>>,
    traffic: Arc<Traffic>,
}

#[derive(Debug, Default)]
struct Traffic {
    read_bytes: AtomicU64,
    durable_bytes: AtomicU64,
    syncs: AtomicU64,
}

/// What a disk has done so far for the volumes on it. What the kernel answers from its memory does not come to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskTraffic {
    /// Bytes handed out.
    pub read_bytes: u64,
    /// Bytes that syncs have made durable.
    pub durable_bytes: u64,
    /// Syncs answered.
    pub syncs: u64,
}

impl DiskTraffic {
    /// That of two disks together.
    #[must_use]
    pub fn and(self, other: DiskTraffic) -> DiskTraffic {
        DiskTraffic {
            read_bytes: self.read_bytes + other.read_bytes,
            durable_bytes: self.durable_bytes + other.durable_bytes,
            syncs: self.syncs + other.syncs,
        }
    }
}

/// A disk whose syncs do not reach the machine's.
#[derive(Debug)]
struct Modelled {
    since: Instant,
    service: Mutex<Service>,
    syncs: AtomicU64,
    late_ns: AtomicU64,
    late_ns_max: AtomicU64,
}

/// The syncs that a modelled disk has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelledSyncs {
    /// How many.
    pub count: u64,
    /// How much later than due they were answered, all together: what the machine itself added.
    pub late: Duration,
    /// The latest.
    pub late_most: Duration,
}

impl ModelledSyncs {
    /// Those of two disks together.
    #[must_use]
    pub fn and(self, other: ModelledSyncs) -> ModelledSyncs {
        ModelledSyncs {
            count: self.count + other.count,
            late: self.late + other.late,
            late_most: self.late_most.max(other.late_most),
        }
    }
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
        let disk = |name: &str, reach| Disk {
            name: Arc::from(name),
            reach,
            group: group.clone(),
            modelled: None,
            traffic: Arc::default(),
        };
        let numbered = capacity.iter().enumerate();
        DiskGroup {
            capacity: numbered.map(|(number, name)| disk(name, Reach::One(number))).collect(),
            cache: cache.map(|name| disk(name, Reach::Group)),
        }
    }

    /// The same whose capacity disks take this time for a sync, whatever the machine's own disk takes.
    #[must_use]
    pub fn modelled(mut self, times: SyncTimes) -> DiskGroup {
        for disk in &mut self.capacity {
            disk.modelled = Some(Arc::new(Modelled {
                since: Instant::now(),
                service: Mutex::new(Service::new(times)),
                syncs: AtomicU64::new(0),
                late_ns: AtomicU64::new(0),
                late_ns_max: AtomicU64::new(0),
            }));
        }
        self
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
        Disk {
            name: Arc::from(name),
            reach: Reach::One(0),
            group: Arc::default(),
            modelled: None,
            traffic: Arc::default(),
        }
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

    /// What a sync of files on it costs the machine, where components flush.
    pub(crate) fn flush(&self, flushes: bool) -> Flush {
        if flushes && self.modelled.is_none() { Flush::Real } else { Flush::Pretended }
    }

    /// The syncs answered so far, where its medium is described.
    #[must_use]
    pub fn modelled_syncs(&self) -> Option<ModelledSyncs> {
        let modelled = self.modelled.as_ref()?;
        let nanos = |of: &AtomicU64| Duration::from_nanos(of.load(Ordering::Relaxed));
        Some(ModelledSyncs {
            count: modelled.syncs.load(Ordering::Relaxed),
            late: nanos(&modelled.late_ns),
            late_most: nanos(&modelled.late_ns_max),
        })
    }

    /// What it has done so far.
    #[must_use]
    pub fn traffic(&self) -> DiskTraffic {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DiskTraffic {
            read_bytes: read(&self.traffic.read_bytes),
            durable_bytes: read(&self.traffic.durable_bytes),
            syncs: read(&self.traffic.syncs),
        }
    }

    /// Counts bytes that were handed out.
    pub(crate) fn count_read(&self, bytes: u64) {
        self.traffic.read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a sync that was answered.
    pub(crate) fn count_sync(&self, bytes: u64) {
        self.traffic.durable_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.traffic.syncs.fetch_add(1, Ordering::Relaxed);
    }

    /// A sync of so many bytes: waits for as long as the medium is said to take. Nothing where it is the machine's.
    ///
    /// # Errors
    /// `EIO` once `interrupted` is set, which [`Disk::wake`] makes known.
    pub(crate) fn take_sync_time(&self, bytes: u64, interrupted: &AtomicBool) -> Result<(), Refusal> {
        let Some(modelled) = &self.modelled else { return Ok(()) };
        let due = {
            let mut service = modelled.service.lock().unwrap_or_else(PoisonError::into_inner);
            modelled.since + service.answered_at(modelled.since.elapsed(), bytes)
        };
        while let Some(left) = due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            let medium = self.group.medium();
            if interrupted.load(Ordering::Acquire) {
                return Err(Refusal::EIO);
            }
            drop(self.group.changed.wait_timeout(medium, left).unwrap_or_else(PoisonError::into_inner));
        }
        let late_ns = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
        modelled.syncs.fetch_add(1, Ordering::Relaxed);
        modelled.late_ns.fetch_add(late_ns, Ordering::Relaxed);
        modelled.late_ns_max.fetch_max(late_ns, Ordering::Relaxed);
        Ok(())
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
