//! VMs on their way to a host: who waits for a place, and the places given to those that are still booting or being moved.
//!
//! Owns that record. The choice is `placement`'s, carrying it out `starting`'s and `migrating`'s.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use history::{HostId, NodeId};
use placement::{Cluster, Left};

/// VMs on their way.
#[derive(Debug, Default)]
pub(crate) struct Placing {
    /// Those that are off and wait for a host, by what they have left behind.
    pub(crate) waiting: BTreeMap<NodeId, Left>,
    /// Those that boot on a host.
    pub(crate) booting: BTreeMap<NodeId, HostId>,
    /// Those that are being moved to a host while they run.
    moving: BTreeMap<NodeId, HostId>,
}

impl Placing {
    /// Adds them to the cluster of those that run.
    pub(crate) fn add_to(&self, cluster: &mut Cluster) {
        for (vm, of) in cluster.vms.numbered_mut() {
            of.at = of.at.or_else(|| self.booting.get(&vm).copied());
            of.moves_to = self.moving.get(&vm).copied();
        }
    }
}

/// The place of a VM that is being moved: nobody else is put there until this is dropped. Where it runs then, its place is its own.
#[derive(Debug)]
pub(crate) struct Reservation<'p> {
    placing: &'p Mutex<Placing>,
    vm: NodeId,
    /// Where.
    pub(crate) host: HostId,
}

impl<'p> Reservation<'p> {
    /// On the host that is chosen; nobody else is given a place between the choice and the reservation.
    pub(crate) fn make<E>(
        placing: &'p Mutex<Placing>,
        vm: NodeId,
        choose: impl FnOnce(&Placing) -> Result<HostId, E>,
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

    const A: HostId = HostId::FIRST;
    const B: HostId = HostId::new(1);

    /// Two hosts that may run one VM each, a VM on the first, and one that is off.
    fn cluster() -> Cluster {
        let host = |name: &str| Host {
            path: vec!["dc1".to_owned(), "a".to_owned(), name.to_owned()],
            capacity: Capacity { memory_bytes: None, vms: Some(1) },
            is_on: true,
            is_isolated: false,
            is_for_storage: false,
        };
        let vm = |at| Vm { memory_bytes: 0, rank: 0, at, moves_to: None, last: A, home: A };
        Cluster {
            hosts: ["h1", "h2"].map(host).into_iter().collect(),
            vms: [Some(A), None].map(vm).into_iter().collect(),
            rules: Vec::new(),
        }
    }

    fn starts_on(placing: &Mutex<Placing>) -> Option<HostId> {
        let mut cluster = cluster();
        lock(placing).add_to(&mut cluster);
        let tried = Default::default();
        let wanted = Wanted { vm: NodeId::new(1), left: Left::Room, data: Data::Anywhere, only: None, tried };
        match placement::start(&cluster, &[wanted])[..] {
            [Decision::Start { host, .. }] => Some(host),
            _ => None,
        }
    }

    #[test]
    fn a_host_that_a_vm_moves_to_is_not_given_to_another_until_the_move_is_over() {
        let placing = Mutex::default();
        assert_eq!(starts_on(&placing), Some(B));
        let refused: Result<Reservation<'_>, &str> =
            Reservation::make(&placing, NodeId::FIRST, |_| Err("full"));
        assert_eq!(refused.err(), Some("full"));
        assert_eq!(starts_on(&placing), Some(B));
        let place = Reservation::make(&placing, NodeId::FIRST, |_| Ok::<_, ()>(B)).expect("a place");
        assert_eq!((place.host, starts_on(&placing)), (B, None));
        drop(place);
        assert_eq!(starts_on(&placing), Some(B));
    }
}
