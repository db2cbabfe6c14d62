//! What the threads of a mirrored volume have in common: their CPU time, and what they work on, for the vigil.
//!
//! Owns which of their time is work of the lab's own. What one waits for on another host, on the network or at a disk with a
//! defect is none: how long that may take is for the volume to decide, and no sign that the lab stands still.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use disk::{CpuTime, Waits, Work};

/// See the module.
#[derive(Debug, Default)]
pub struct Threads {
    cpu: CpuTime,
    work: Arc<Waits>,
}

impl Threads {
    /// Starts one. That it panics is seen by whoever looks at the work.
    ///
    /// # Errors
    /// When none is to be had.
    pub fn start(
        self: &Arc<Threads>,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let work = self.work.clone();
        let living = move || {
            let _living = work.living();
            body();
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(living)
    }

    /// CPU time of all of them.
    #[must_use]
    pub fn cpu(&self) -> &CpuTime {
        &self.cpu
    }

    /// What this thread does until the answer is dropped is work of the lab's own, but for what it does `disk::elsewhere`.
    #[must_use]
    pub fn work(&self) -> Work {
        self.work.work()
    }

    /// All work under way.
    #[must_use]
    pub fn under_way(&self) -> &Arc<Waits> {
        &self.work
    }
}
