//! Which stations still have the power they had when datagrams began to be sent, and since when they have not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use platform::Datacentre;

use crate::stations::Station;

/// How often it is looked.
const OFTEN: Duration = Duration::from_millis(30);
/// A station that is found gone was there this long ago.
const GUARD: Duration = Duration::from_millis(150);

struct Seen {
    is_over: AtomicBool,
    /// By station.
    gone: Mutex<Vec<Option<Instant>>>,
}

/// A watch on stations. Dropping it ends it.
pub(super) struct Presence {
    seen: Arc<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Presence {
    /// Begins to watch.
    pub(super) fn watch(stations: Arc<Vec<Station>>, datacentre: Arc<Datacentre>) -> Presence {
        let gone = Mutex::new(vec![None; stations.len()]);
        let seen = Arc::new(Seen { is_over: AtomicBool::new(false), gone });
        let kept = seen.clone();
        let look = move || {
            while !kept.is_over.load(Ordering::Acquire) {
                let mut gone = kept.gone.lock().unwrap_or_else(PoisonError::into_inner);
                for (station, gone) in stations.iter().zip(gone.iter_mut()).filter(|(_, gone)| gone.is_none())
                {
                    if !station.is_there(&datacentre) {
                        *gone = Instant::now().checked_sub(GUARD).or_else(|| Some(Instant::now()));
                    }
                }
                drop(gone);
                std::thread::sleep(OFTEN);
            }
        };
        // Without it, a node that loses its power is taken for a way that loses everything: a doubt, never a pass.
        let thread = std::thread::Builder::new().name("presence".to_owned()).spawn(look).ok();
        Presence { seen, thread }
    }

    /// Since when one of these has been gone.
    pub(super) fn gone(&self, stations: [usize; 2]) -> Option<Instant> {
        let gone = self.seen.gone.lock().unwrap_or_else(PoisonError::into_inner);
        stations.into_iter().filter_map(|station| gone[station]).min()
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
