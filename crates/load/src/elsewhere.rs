//! A load whose clients run in other processes: the thread that stands in its place here.
//!
//! Owns what whoever looks after a load sees of it, so that nobody has to ask where its clients are. How the other processes
//! are spoken to is the caller's business.

use std::sync::Arc;
use std::time::Instant;

use client::SessionError;
use history::FaultId;
use tokio::sync::watch;

use crate::generator::{Controls, LoadHandle, on_a_thread};
use crate::plan::LoadError;

/// What the thread that stands for a load is told, and what it tells.
#[derive(Debug)]
pub struct Elsewhere {
    stop: watch::Receiver<bool>,
    controls: Arc<Controls>,
}

/// Starts a thread that stands for a load. It is to end when it is told to stop, and not before, but by an error.
pub fn start_elsewhere(
    name: String,
    job: impl FnOnce(&Elsewhere) -> Result<(), LoadError> + Send + 'static,
) -> LoadHandle {
    let (stop, stop_seen) = watch::channel(false);
    let controls = Arc::new(Controls::default());
    let elsewhere = Elsewhere { stop: stop_seen, controls: Arc::clone(&controls) };
    on_a_thread(name, (stop, controls), move || job(&elsewhere))
}

impl Elsewhere {
    /// Whether the load is to stop, or nobody is left who could say so.
    #[must_use]
    pub fn is_told_to_stop(&self) -> bool {
        *self.stop.borrow() || self.stop.has_changed().is_err()
    }

    /// So many clients have connected.
    pub fn connected(&self, clients: usize) {
        self.controls.muster.counted(clients);
    }

    /// An error kept a client from connecting.
    pub fn refused(&self, error: &SessionError) {
        self.controls.muster.refused(error);
    }

    /// This thread lives.
    pub fn give_sign(&self) {
        self.controls.give_sign();
    }

    /// A process that does a part of the load stood still.
    pub fn stalled(&self, from: Instant, to: Instant) {
        self.controls.stalled(from, to);
    }

    /// Faults marked since the last call: number and moment, seconds on the run's clock.
    #[must_use]
    pub fn take_marks(&self) -> Vec<(FaultId, f64)> {
        self.controls.take_marks()
    }
}
