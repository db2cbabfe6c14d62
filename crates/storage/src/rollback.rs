//! What a power-off does to the content of a volume, or of a component of one.
//!
//! Owns the chance that decides what of a torn last write survives. What was durable the volume itself knows.

use std::sync::{Mutex, PoisonError};

use disk::mirror::Dirt;
use disk::{FolderStore, Lost, OnDisk};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// How power-offs treat a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PowerOffs {
    /// Where chance begins that decides what of a torn last write survives; none where writes are not torn.
    pub torn_by: Option<u64>,
    /// A lie that tests plant: what was not synced stays.
    pub keep_unsynced: bool,
}

/// Takes back what was not durable.
#[derive(Debug)]
pub struct Rollback {
    chance: Option<Mutex<ChaCha8Rng>>,
    keep_unsynced: bool,
}

impl Rollback {
    /// Of one volume, or of one component.
    #[must_use]
    pub fn new(power_offs: PowerOffs) -> Rollback {
        let PowerOffs { torn_by, keep_unsynced } = power_offs;
        Rollback { chance: torn_by.map(|seed| Mutex::new(ChaCha8Rng::seed_from_u64(seed))), keep_unsynced }
    }

    /// Its power is off: what was not durable is gone; where writes are torn, sectors of the last one survive. What is other
    /// than before is marked in `dirt`.
    ///
    /// # Errors
    /// When the store refuses; then the volume's content is in doubt.
    pub fn of(
        &self,
        volume: &disk::Volume<OnDisk<FolderStore>>,
        dirt: &mut Dirt,
    ) -> Result<Lost, disk::Refusal> {
        let Some(chance) = &self.chance else { return self.of_whole_writes(volume, dirt) };
        self.plant(volume);
        let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner);
        volume.power_off_of_component(Some(&mut || chance.random_bool(0.5)), dirt)
    }

    /// The same of a component that has power itself and has what reached it whole.
    ///
    /// # Errors
    /// As [`Rollback::of`].
    pub fn of_whole_writes(
        &self,
        volume: &disk::Volume<OnDisk<FolderStore>>,
        dirt: &mut Dirt,
    ) -> Result<Lost, disk::Refusal> {
        self.plant(volume);
        volume.power_off_of_component(None, dirt)
    }

    fn plant(&self, volume: &disk::Volume<OnDisk<FolderStore>>) {
        if self.keep_unsynced {
            volume.take_all_as_durable();
        }
    }
}
