//! Which stations still have the power they had when datagrams began to be sent, and until when each was seen to have it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use platform::Datacentre;

use crate::stations::Station;

/// How often it is looked.
const OFTEN: Duration = Duration::from_millis(30);
/// A station is off the network this long at most before it can be seen to have lost its power.
pub(super) const GUARD: Duration = Duration::from_millis(150);

struct Seen {
    is_over: AtomicBool,
    /// By station.
    attendance: Mutex<Vec<Attendance>>,
}

/// What has been seen of one station.
#[derive(Debug, Clone, Copy)]
struct Attendance {
    /// When it was there last, however busy the machine has been since.
    last: Instant,
    is_gone: bool,
}

impl Attendance {
    /// A look that began then.
    fn saw(&mut self, is_there: bool, began: Instant) {
        match is_there {
            true if !self.is_gone => self.last = began,
            true => {}
            false => self.is_gone = true,
        }
    }

    /// Until when it was there for certain.
    fn until(self) -> Instant {
        self.last.checked_sub(GUARD).unwrap_or(self.last)
    }
}

/// A watch on stations. Dropping it ends it.
pub(super) struct Presence {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Presence {
    /// Begins to watch.
    pub(super) fn watch(stations: Arc<Vec<Station>>, datacentre: Arc<Datacentre>) -> Presence {
        let at_first = Attendance { last: Instant::now(), is_gone: false };
        let attendance = Mutex::new(vec![at_first; stations.len()]);
        let seen = Arc::new(Seen { is_over: AtomicBool::new(false), attendance });
        let kept = seen.clone();
        let look = move || {
            while !kept.is_over.load(Ordering::Acquire) {
                for (number, station) in stations.iter().enumerate() {
                    let began = Instant::now();
                    let is_there = station.is_there(&datacentre);
                    kept.attendance()[number].saw(is_there, began);
                }
                std::thread::sleep(OFTEN);
            }
        };
        // Without it nobody is seen to be there for longer than at first, and nothing that is sent later counts.
        let thread = std::thread::Builder::new().name("presence".to_owned()).spawn(look).ok();
        Presence { seen, thread }
    }

    /// Until when both of these were there for certain; and whether one of them has been gone since.
    pub(super) fn there_until(&self, stations: [usize; 2]) -> (Instant, bool) {
        let attendance = self.seen.attendance();
        let [one, other] = stations.map(|station| attendance[station]);
        (one.until().min(other.until()), one.is_gone || other.is_gone)
    }
}

impl Seen {
    fn attendance(&self) -> MutexGuard<'_, Vec<Attendance>> {
        self.attendance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.seen.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there ended the watch, which is all that is wanted now.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_that_is_found_gone_was_there_until_it_was_seen_last_however_late_it_is_found() {
        let begun = Instant::now();
        let at = |ms: u64| begun + Duration::from_millis(ms);
        let mut one = Attendance { last: begun, is_gone: false };
        one.saw(true, at(1_000));
        assert_eq!((one.until(), one.is_gone), (at(1_000) - GUARD, false));
        // The machine was too busy to look for two seconds.
        one.saw(false, at(3_000));
        assert_eq!((one.until(), one.is_gone), (at(1_000) - GUARD, true));
        one.saw(true, at(4_000));
        assert_eq!((one.until(), one.is_gone), (at(1_000) - GUARD, true), "it is another boot");
    }
}
