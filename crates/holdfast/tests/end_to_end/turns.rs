//! Which tests may run at the same time: a run whose loads keep a rate takes less than half a core, so two cores carry four.
//!
//! A test of the first tier takes one place and is written to hold beside others; a test that fills the machine by itself
//! takes all of them. `turns.txt` tells how busy the machine was meanwhile.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::notes::{Stretch, keep_failures};

/// So many tests that want the machine to themselves wait for each other: until all places are free nobody else begins, and some
/// stay empty as long as the longest test lasts.
const TOGETHER: usize = 2;

/// Places of this machine, and who waits for several of them at once.
#[derive(Default)]
struct Places {
    taken: usize,
    waiting_for_half: usize,
    waiting_for_all: usize,
    /// Whether nobody takes a single place until those who wait for all have had them.
    are_emptied: bool,
}

static PLACES: Mutex<Places> =
    Mutex::new(Places { taken: 0, waiting_for_half: 0, waiting_for_all: 0, are_emptied: false });
static CHANGED: Condvar = Condvar::new();

/// A test's places, until dropped.
pub struct Turn {
    places: usize,
    stretch: Stretch,
}

/// One place.
pub fn beside_others() -> Turn {
    let wait = Instant::now();
    let kept_for_half = |places: &Places| if places.waiting_for_half > 0 { half() } else { 0 };
    let are_taken = |places: &Places| places.taken + kept_for_half(places) >= in_all();
    let places = wait_while(places(), |places| places.are_emptied || are_taken(places));
    take(places, 1, wait)
}

/// Half of the places, for what judges times, or has more nodes than most.
pub fn half_the_machine() -> Turn {
    let wait = Instant::now();
    let mut places = places();
    places.waiting_for_half += 1;
    let mut places = wait_while(places, |places| places.are_emptied || places.taken + half() > in_all());
    places.waiting_for_half -= 1;
    take(places, half(), wait)
}

/// The machine to oneself.
pub fn machine() -> Turn {
    let wait = Instant::now();
    let mut places = places();
    places.waiting_for_all += 1;
    places.are_emptied |= places.waiting_for_all >= TOGETHER;
    let mut places = wait_while(places, |places| places.taken > 0);
    places.waiting_for_all -= 1;
    places.are_emptied &= places.waiting_for_all > 0;
    take(places, in_all(), wait)
}

fn half() -> usize {
    in_all().div_ceil(2)
}

fn in_all() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| usize::from(cores) * 2)
}

fn take(mut places: MutexGuard<'static, Places>, count: usize, wait: Instant) -> Turn {
    keep_failures();
    places.taken += count;
    // Places that were kept for whoever takes these are free for others.
    CHANGED.notify_all();
    Turn { places: count, stretch: Stretch::after(wait) }
}

impl Drop for Turn {
    fn drop(&mut self) {
        places().taken -= self.places;
        CHANGED.notify_all();
        self.stretch.ends(self.places);
    }
}

// A test that fails with its turn in hand gives it back on unwinding; what it counted is right nevertheless.
fn places() -> MutexGuard<'static, Places> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_while(
    places: MutexGuard<'static, Places>,
    condition: impl Fn(&Places) -> bool,
) -> MutexGuard<'static, Places> {
    CHANGED.wait_while(places, |places| condition(places)).unwrap_or_else(PoisonError::into_inner)
}
