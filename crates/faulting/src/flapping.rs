//! Network faults that come and go: imposed and lifted in turn until they are healed.
//!
//! Owns the turns; what is imposed is `network`'s business, and what shows it that of `ways`.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fabric::{Fabric, FabricError, Rule};
use scenario::Flap;

/// A turn: the fault stood, or it did not, from one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Whether the fault stood.
    pub stood: bool,
    /// Since when for certain.
    pub from: Instant,
    /// Until when for certain.
    pub to: Instant,
}

/// A fault that comes and goes. Dropping it lifts it for good.
pub struct Flapping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), FabricError>>>,
    turns: Arc<Mutex<Vec<Turn>>>,
}

impl Flapping {
    /// Begins with the fault standing; returns once it stands.
    ///
    /// # Errors
    /// When the fabric or the thread is not to be had.
    pub fn start(fabric: Arc<Fabric>, rules: Vec<Rule>, flap: Flap) -> Result<Flapping, FabricError> {
        let (stop, stopped) = channel();
        let turns: Arc<Mutex<Vec<Turn>>> = Arc::default();
        let kept = turns.clone();
        let first = fabric.impose_all(rules.clone())?;
        let begun = Instant::now();
        let thread = std::thread::Builder::new()
            .name("flapping".to_owned())
            .spawn(move || {
                let (mut guard, mut from) = (Some(first), begun);
                loop {
                    let is_over = !pause(&stopped, if guard.is_some() { flap.down } else { flap.up });
                    let turn = Turn { stood: guard.is_some(), from, to: Instant::now() };
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(turn);
                    guard = match guard.take() {
                        Some(standing) => {
                            standing.lift()?;
                            None
                        }
                        None if is_over => None,
                        None => Some(fabric.impose_all(rules.clone())?),
                    };
                    from = Instant::now();
                    if is_over {
                        return Ok(());
                    }
                }
            })
            .map_err(FabricError::SetUp)?;
        Ok(Flapping { stop: Some(stop), thread: Some(thread), turns })
    }

    /// The turns that are over.
    #[must_use]
    pub fn turns(&self) -> Arc<Mutex<Vec<Turn>>> {
        self.turns.clone()
    }

    /// Lifts the fault for good.
    ///
    /// # Errors
    /// When the fabric is gone.
    pub fn end(mut self) -> Result<(), FabricError> {
        self.end_now()
    }

    fn end_now(&mut self) -> Result<(), FabricError> {
        drop(self.stop.take());
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or(Err(FabricError::Gone)),
            None => Ok(()),
        }
    }
}

impl Drop for Flapping {
    fn drop(&mut self) {
        // Without its thread there is no network that could still be broken.
        let _ = self.end_now();
    }
}

/// Waits; false when it is told to stop.
fn pause(stopped: &Receiver<()>, time: Duration) -> bool {
    matches!(stopped.recv_timeout(time), Err(RecvTimeoutError::Timeout))
}
