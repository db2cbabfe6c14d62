//! Who holds a VM to less than it has, each to how much: of several the tightest counts, and one that lets go leaves the others'.
//!
//! Pure. What is held, and how the kernel is told, is the business of `processes`.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use history::FaultId;

/// Who holds a VM to a part of what it has, or has stopped its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Migration,
    Fault(FaultId),
}

impl Holder {
    /// As a node's init knows it.
    pub(crate) fn number(self) -> u64 {
        match self {
            Holder::Migration => 0,
            Holder::Fault(fault) => 1 + fault.index() as u64,
        }
    }
}

/// What a VM is held to, by whom.
#[derive(Debug, Default)]
pub(crate) struct VmLimits {
    pub(crate) processors: Mutex<Holds<f64>>,
    /// Of its memory, bytes.
    pub(crate) memory: Mutex<Holds<u64>>,
    /// When somebody last held it to less memory, or let go of it: the kernel kills for want of it.
    pub(crate) memory_changed_at: Mutex<Option<Instant>>,
}

/// What a VM is held to of one thing.
#[derive(Debug)]
pub(crate) struct Holds<T> {
    left: BTreeMap<Holder, T>,
    /// How often anybody has begun to hold it.
    begun: u64,
}

impl<T> Default for Holds<T> {
    fn default() -> Holds<T> {
        Holds { left: BTreeMap::new(), begun: 0 }
    }
}

impl<T: Copy + PartialOrd> Holds<T> {
    /// From now on it holds the VM to so much; to nothing where absent.
    pub(crate) fn change(&mut self, holder: Holder, left: Option<T>) {
        match left {
            Some(left) => self.begun += u64::from(self.left.insert(holder, left).is_none()),
            None => _ = self.left.remove(&holder),
        }
    }

    /// What all of them together leave; none where nobody holds it.
    pub(crate) fn tightest(&self) -> Option<T> {
        self.left.values().copied().reduce(|one, other| if other < one { other } else { one })
    }

    /// Whether it holds the VM.
    pub(crate) fn contains(&self, holder: Holder) -> bool {
        self.left.contains_key(&holder)
    }

    /// Whether anybody else holds the VM.
    pub(crate) fn has_others(&self, holder: Holder) -> bool {
        self.left.keys().any(|other| *other != holder)
    }

    /// How often anybody has begun to hold the VM: one who did so for a moment is noticed afterwards.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(index: usize) -> Holder {
        Holder::Fault(FaultId::new(index))
    }

    #[test]
    fn whoever_lets_go_of_a_vm_leaves_it_to_those_who_still_hold_it() {
        let (first, second) = (fault(0), fault(1));
        let mut holds = Holds::default();
        assert_eq!(holds.tightest(), None);
        holds.change(first, Some(0.4));
        holds.change(Holder::Migration, Some(0.8));
        assert_eq!(holds.tightest(), Some(0.4), "a migration does not loosen what a fault holds");
        holds.change(Holder::Migration, None);
        assert_eq!(holds.tightest(), Some(0.4), "nor does its end");
        holds.change(second, Some(0.2));
        assert!(holds.has_others(first) && holds.contains(second));
        holds.change(first, None);
        holds.change(first, None);
        assert_eq!(holds.tightest(), Some(0.2));
        assert!(!holds.contains(first) && !holds.has_others(second));
        holds.change(second, None);
        assert_eq!(holds.tightest(), None);
    }

    #[test]
    fn whoever_has_held_a_vm_for_a_moment_is_noticed_afterwards() {
        let mut holds = Holds::default();
        holds.change(fault(0), Some(0.4));
        let begun = holds.begun();
        holds.change(fault(0), Some(0.3));
        holds.change(fault(0), None);
        assert_eq!(holds.begun(), begun, "nobody else");
        holds.change(Holder::Migration, Some(0.8));
        holds.change(Holder::Migration, None);
        assert!(!holds.has_others(fault(0)) && holds.begun() > begun);
    }

    #[test]
    fn each_holder_has_a_number_of_its_own() {
        let numbers = [Holder::Migration, fault(0), fault(1)].map(Holder::number);
        assert_eq!(numbers, [0, 1, 2]);
    }
}
