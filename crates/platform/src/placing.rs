//! VMs on their way to a host: who waits for a place, and the places given to those that are still booting or being moved.
//!
//! Owns that record. The choice is `placement`'s, carrying it out `starting`'s and `migrating`'s.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use placement::{Cluster, Left};

/// VMs on their way.
#[derive(Debug, Default)]
pub(crate) struct Placing {
    /// Those that are off and wait for a host, by what they have left behind.
    pub(crate) waiting: BTreeMap<usize, Left>,
    /// Those that boot on a host.
    pub(crate) booting: BTreeMap<usize, usize>,
    /// Those that are being moved to a host while they run.
    moving: BTreeMap<usize, usize>,
}

impl Placing {
    /// Adds them to the cluster of those that run.
    pub(crate) fn add_to(&self, cluster: &mut Cluster) {
        for (vm, of) in cluster.vms.iter_mut().enumerate() {
            of.at = of.at.or_else(|| self.booting.get(&vm).copied());
            of.moves_to = self.moving.get(&vm).copied();
        }
    }
}

/// The place of a VM that is being moved: nobody else is put there until this is dropped. Where it runs then, its place is its own.
#[derive(Debug)]
pub(crate) struct Reservation<'p> {
    placing: &'p Mutex<Placing>,
    vm: usize,
    /// Where.
    pub(crate) host: usize,
}

impl<'p> Reservation<'p> {
    /// On the host that is chosen; nobody else is given a place between the choice and the reservation.
    pub(crate) fn make<E>(
        placing: &'p Mutex<Placing>,
        vm: usize,
        choose: impl FnOnce(&Placing) -> Result<usize, E>,
    ) -> Result<Reservation<'p>, E> {
        let mut held = lock(placing);
        let host = choose(&held)?;
        held.moving.insert(vm, host);
        Ok(Reservation { placing, vm, host })
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        lock(self.placing).moving.remove(&self.vm);
    }
}

pub(crate) fn lock(placing: &Mutex<Placing>) -> MutexGuard<'_, Placing> {
    placing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a VM may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// On the best host, given what it has left behind.
    Anywhere(Left),
    /// On the host it ran on last.
    Home,
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::{Capacity, Data, Decision, Host, Vm, Wanted};

    /// Two hosts that may run one VM each, a VM on the first, and one that is off.
    fn cluster() -> Cluster {
        let host = |name: &str| Host {
            path: vec!["dc1".to_owned(), "a".to_owned(), name.to_owned()],
            capacity: Capacity { memory_bytes: None, vms: Some(1) },
            is_on: true,
        };
        let vm = |at| Vm { memory_bytes: 0, rank: 0, at, moves_to: None, last: 0, home: 0 };
        Cluster {
            hosts: ["h1", "h2"].map(host).to_vec(),
            vms: [Some(0), None].map(vm).to_vec(),
            rules: Vec::new(),
        }
    }

    fn starts_on(placing: &Mutex<Placing>) -> Option<usize> {
        let mut cluster = cluster();
        lock(placing).add_to(&mut cluster);
        let tried = Default::default();
        let wanted = Wanted { vm: 1, left: Left::Room, data: Data::Anywhere, only: None, tried };
        match placement::start(&cluster, &[wanted])[..] {
            [Decision::Start { host, .. }] => Some(host),
            _ => None,
        }
    }

    #[test]
    fn a_host_that_a_vm_moves_to_is_not_given_to_another_until_the_move_is_over() {
        let placing = Mutex::default();
        assert_eq!(starts_on(&placing), Some(1));
        let refused: Result<Reservation<'_>, &str> = Reservation::make(&placing, 0, |_| Err("full"));
        assert_eq!(refused.err(), Some("full"));
        assert_eq!(starts_on(&placing), Some(1));
        let place = Reservation::make(&placing, 0, |_| Ok::<_, ()>(1)).expect("a place");
        assert_eq!((place.host, starts_on(&placing)), (1, None));
        drop(place);
        assert_eq!(starts_on(&placing), Some(1));
    }
}
