//! The end of a component's service while programs have files open: another takes it over and goes on.
//!
//! Owns when a refusal makes service move, and that nothing is missing where it moves to. Who takes it over, and the way
//! there, is found by the [`Mover`].

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::Refusal;
use crate::dirt::Dirt;
use crate::files::Files;
use crate::mirror::serving::{Mirror, Order, begin};
use crate::store::Store;
use crate::succession::MOVED;
use crate::volume::Volume;
use crate::waits::elsewhere;

/// Finds another component, hands service over to it with [`Mirror::hand_over`], and returns what the mount is to be served
/// by; `None` when there is none. It may wait, but not for an operation on the volume.
pub type Mover = Box<dyn Fn() -> Option<Arc<dyn Files>> + Send + Sync>;

impl<S: Store> Mirror<S> {
    /// From here on this is asked when the disk of the serving component refuses an operation.
    pub fn set_mover(&self, mover: Mover) {
        *self.mover() = Some(mover);
    }

    fn mover(&self) -> MutexGuard<'_, Option<Mover>> {
        self.mover.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation was refused: whether it is to be asked of another. Only what the disk refuses moves service, not what any
    /// sound disk would have.
    pub(crate) fn hands_over_because_of(&self, refusal: Refusal) -> bool {
        if refusal != MOVED && !is_a_disks(refusal) {
            return false;
        }
        // One asks; all others wait for what comes of it.
        let mover = elsewhere(|| self.mover());
        if self.succession.next().is_some() {
            return true;
        }
        let asked = self.is_of_the_disk(refusal) && !self.is_over();
        let moved = || mover.as_ref().filter(|_| asked).and_then(|mover| mover());
        // Tries to reach other hosts.
        if let Some(next) = elsewhere(moved) {
            self.move_to(next);
            return true;
        }
        self.stay();
        false
    }

    /// Service goes on elsewhere though nothing was refused: the node itself has moved. `find` does what a [`Mover`] does. True
    /// when service has moved; false when it stays, or is over.
    #[must_use]
    pub fn move_with_node(&self, find: impl FnOnce() -> Option<Arc<dyn Files>>) -> bool {
        // A refusal that comes meanwhile waits for what comes of this.
        let _mover = elsewhere(|| self.mover());
        if self.succession.next().is_some() || self.is_over() {
            return false;
        }
        match find() {
            Some(next) => {
                self.move_to(next);
                true
            }
            None => {
                self.stay();
                false
            }
        }
    }

    /// Lets no change begin any more, and waits for none: what the others have not carried out by now, they lack. Changes go on
    /// waiting as after [`Mirror::hand_over`].
    pub fn hold_changes(&self) {
        self.order().is_handing_over = true;
    }

    /// Whether it is the serving component's disk that has refused an operation.
    pub(crate) fn is_of_the_disk(&self, refusal: Refusal) -> bool {
        is_a_disks(refusal) && !self.volume.store().is_sound()
    }

    /// From here on `next` is asked, also by whoever waits here.
    pub fn move_to(&self, next: Arc<dyn Files>) {
        self.succession.set(next.clone());
        let is_over = self.order().is_over;
        self.answered.notify_all();
        self.to_send.notify_all();
        if is_over {
            // The power went meanwhile, and whoever cut it did not know of the next.
            next.interrupt(true);
        }
    }

    /// Service stays: what refused changes may have left half done goes to the others.
    fn stay(&self) {
        let now = self.now();
        let mut order = self.order();
        order.is_handing_over = false;
        let (_, half_done) = std::mem::take(&mut order.refused);
        if !half_done.is_empty() {
            order.peers.doubt(&half_done, now, begin);
        }
        drop(order);
        self.to_send.notify_all();
        self.answered.notify_all();
    }

    /// Lets no change begin any more, and waits until a live component has carried out all there were. True when it has:
    /// from then on it may serve, and changes go on waiting until [`Mirror::end_handing_over`] and what the mover returns.
    #[must_use]
    pub fn hand_over(&self, peer: usize) -> bool {
        self.order().is_handing_over = true;
        let is_live = |order: &Order| order.peers.is_live(peer);
        let waited = self.wait_until(|order| !is_live(order) || order.peers.has_all(peer));
        let has_all = waited.is_ok_and(|order| order.peers.has_all(peer));
        if !has_all {
            self.order().is_handing_over = false;
            self.answered.notify_all();
        }
        has_all
    }

    /// Nothing is said to the others from here on. Returns what each of them lacks, and what refused changes may have left
    /// half done here.
    #[must_use]
    pub fn end_handing_over(&self) -> (Vec<Dirt>, Dirt) {
        let now = self.now();
        let mut order = self.order();
        order.is_silent = true;
        let ended = (order.peers.lacking(now), std::mem::take(&mut order.refused).0);
        drop(order);
        self.to_send.notify_all();
        ended
    }

    /// Whether service is over, because the node has no power; service that has moved is not.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.order().is_over
    }
}

fn is_a_disks(refusal: Refusal) -> bool {
    matches!(refusal, Refusal::EIO | Refusal::EROFS | Refusal::ENOSPC)
}

impl<S: Store> Volume<S> {
    /// Knows from here on of every object as often as the kernel does by way of `other`, and has open what is open there:
    /// this is the same volume, from another component.
    pub fn take_over_from(&self, other: &Volume<S>) {
        let known = {
            let state = other.lock();
            let known = state.tree.numbers().into_iter().filter_map(|number| {
                let inode = state.tree.get(number).ok()?;
                let is_known = inode.lookups > 0 || inode.handles > 0;
                is_known.then_some((number, inode.lookups, inode.handles))
            });
            known.collect::<Vec<_>>()
        };
        for (number, lookups, handles) in known {
            // What has lost its last name is not here, and is refused as what is stale.
            let opened = (0..handles).all(|_| self.open(number).is_ok());
            if let Ok(inode) = self.lock().tree.get_mut(number)
                && opened
            {
                inode.lookups += lookups;
            }
        }
    }

    /// Nobody knows of any object by way of this component any more, or has one open.
    pub fn let_go_of_all(&self) {
        let mut state = self.lock();
        for number in state.tree.numbers() {
            if let Ok(inode) = state.tree.get_mut(number) {
                (inode.lookups, inode.handles) = (0, 0);
            }
            state.open.let_go(number);
            self.release_if_unneeded(&mut state, number);
        }
    }
}
