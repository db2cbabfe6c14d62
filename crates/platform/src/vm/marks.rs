//! When a VM's init writes and looks for the marks on its volume.
//!
//! What the marks have to show is the canary's business.

use std::sync::Arc;

use storage::{Canary, Excuse, Excused, Tell};

use super::Vm;

impl Vm {
    /// Why its volume, as it is open now, may lack what was synced.
    pub(super) fn forced_open(&self) -> Option<&'static str> {
        let last = self.volume.mirrored().and_then(|disk| disk.openings().pop());
        last.and_then(|opening| opening.forced)
            .map(|_| "a component that may lack them was promoted by force")
    }

    /// The marks on its volume.
    #[must_use]
    pub fn canary(&self) -> &Canary {
        &self.canary
    }

    /// Its power is about to be cut: marks are written that show afterwards what its volume lost.
    pub fn plant_canary(&self, excuse: Excuse, tell: Tell) {
        match self.boot_now() {
            Ok((_, node)) => self.canary.plant(&node, excuse, tell),
            Err(error) => tell(self.canary.not_planted(&error.to_string())),
        }
    }

    /// A fault is about to strike that may hold its volume up: marks are written while they can be.
    pub fn plant_canary_early(&self, excuse: Excuse, tell: Tell) {
        if let Ok((_, node)) = self.boot_now() {
            self.canary.plant_early(&node, self.volume.whereabouts(), excuse, tell);
        }
    }

    /// What might have held its volume up is over: marks that were written for it are made anew.
    pub fn renew_canary(&self) {
        if let Ok((_, node)) = self.boot_now() {
            self.canary.renew(&node);
        }
    }

    /// Hosts of copies of its volume are about to lose their power: a mark is written for them.
    ///
    /// # Errors
    /// Why there is none.
    pub fn plant_for_copies(&self, standing: Option<Excused>) -> Result<(u64, u64), String> {
        let (_, node) = self.boot_now().map_err(|error| error.to_string())?;
        self.canary.plant_for_copies(&node, &self.volume.whereabouts(), standing)
    }

    /// Looks for the marks on the volume of a VM that is off, through a mount of its own in a node that joins no network
    /// and runs no database. Whoever starts VMs must not start this one meanwhile.
    pub fn look_for_marks(&self) {
        if self.is_on() {
            return self.canary.give_up("the node has not lost its power");
        }
        match self.boot_on_volume((self.host(), false)) {
            Ok((node, _, mount)) => {
                let node = Arc::new(node);
                self.canary.look(&node, self.forced_open());
                self.give_up(&node, mount.as_ref());
            }
            Err(error) => self.canary.give_up(&error.to_string()),
        }
    }
}
