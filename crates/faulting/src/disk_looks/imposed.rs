//! Which disk faults are meant to stand on which disks, in the order in which they were imposed: what a look at one of them
//! has to reckon with.
//!
//! Owns the order and the moments of change. That a fault stands, or is gone, is for a probe to show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use scenario::DiskDefect;

use crate::disk_looks::judge::StackedDefect;

/// The place of a fault in the order in which all were imposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// After all that have been imposed.
    pub const NEXT: Place = Place(u64::MAX);
}

/// How often the faults on a disk had changed.
pub type Changes = u64;

/// The disk faults that are meant to stand.
#[derive(Debug, Default)]
pub struct ImposedDefects(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    next: u64,
    /// Each with the capacity disks it is on.
    standing: BTreeMap<Place, (DiskDefect, BTreeSet<String>)>,
    changes: BTreeMap<String, Changes>,
    is_over: bool,
}

impl Known {
    fn changed(&mut self, disks: &BTreeSet<String>) {
        for disk in disks {
            *self.changes.entry(disk.clone()).or_default() += 1;
        }
    }
}

impl ImposedDefects {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Imposes a fault on disks by `impose`, and remembers it.
    pub fn impose<T>(
        &self,
        defect: &DiskDefect,
        disks: &BTreeSet<String>,
        impose: impl FnOnce() -> T,
    ) -> (Place, T) {
        let mut known = self.known();
        let place = Place(known.next);
        known.next += 1;
        known.standing.insert(place, (defect.clone(), disks.clone()));
        known.changed(disks);
        (place, impose())
    }

    /// Clears a fault by `clear`, and forgets it.
    pub fn clear(&self, place: Place, clear: impl FnOnce()) {
        let mut known = self.known();
        if let Some((_, disks)) = known.standing.remove(&place) {
            known.changed(&disks);
        }
        clear();
    }

    /// Nothing is imposed or cleared any more: whoever waits for that gives up.
    pub fn end(&self) {
        self.known().is_over = true;
    }

    /// Whether nothing is imposed or cleared any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.known().is_over
    }

    /// What stands on a disk before and after a fault that has, or had, this place; and how often that has changed.
    #[must_use]
    pub fn among(&self, disk: &str, place: Place, defect: &DiskDefect) -> (StackedDefect, Changes) {
        let known = self.known();
        let on_it = |range: (std::ops::Bound<Place>, std::ops::Bound<Place>)| -> Vec<DiskDefect> {
            let here = known.standing.range(range).filter(|(_, (_, disks))| disks.contains(disk));
            here.map(|(_, (defect, _))| defect.clone()).collect()
        };
        use std::ops::Bound::{Excluded, Unbounded};
        let (earlier, later) = (on_it((Unbounded, Excluded(place))), on_it((Excluded(place), Unbounded)));
        (StackedDefect::new(&earlier, defect, &later), self.changes_of(&known, disk))
    }

    /// A fault that stands on one of these disks: one by which synced data may be lost, where there is such a one.
    #[must_use]
    pub fn standing_on(&self, disks: &BTreeSet<String>) -> Option<DiskDefect> {
        let known = self.known();
        let found = known.standing.values().filter(|(_, on)| !on.is_disjoint(disks));
        found.map(|(defect, _)| defect).min_by_key(|defect| !defect.may_lose_synced()).cloned()
    }

    /// How often the faults on a disk have changed.
    #[must_use]
    pub fn changes(&self, disk: &str) -> Changes {
        self.changes_of(&self.known(), disk)
    }

    fn changes_of(&self, known: &Known, disk: &str) -> Changes {
        known.changes.get(disk).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_reckons_with_what_stands_on_the_disk_itself_in_its_order_and_notices_changes_there_alone() {
        let imposed = ImposedDefects::default();
        let on = |disks: &[&str]| disks.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
        let impose = |defect: &DiskDefect, disks: &[&str]| imposed.impose(defect, &on(disks), || ()).0;
        let (fail, full) = (DiskDefect::Fail, DiskDefect::Full);
        let first = impose(&fail, &["h/d1", "h/d2"]);
        let second = impose(&full, &["h/d1"]);
        let _neighbour = impose(&DiskDefect::ReadOnly, &["h/d2"]);
        let third = impose(&DiskDefect::LoseFlush, &["h/d1"]);
        let (among, changes) = imposed.among("h/d1", second, &full);
        assert_eq!((among, changes), (StackedDefect::new(&[fail], &full, &[DiskDefect::LoseFlush]), 3));
        assert_eq!(imposed.standing_on(&on(&["h/d2", "h/d3"])), Some(DiskDefect::Fail));
        assert_eq!(imposed.standing_on(&on(&["h/d1"])), Some(DiskDefect::LoseFlush));
        assert_eq!(imposed.standing_on(&on(&["h/d3"])), None);
        imposed.clear(first, || ());
        assert_eq!((imposed.changes("h/d1"), imposed.changes("h/d2")), (4, 3));
        imposed.clear(second, || ());
        imposed.clear(third, || ());
        assert_eq!(imposed.among("h/d1", second, &full).0, StackedDefect::new(&[], &full, &[]));
    }
}
