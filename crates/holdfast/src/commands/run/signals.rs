//! SIGINT and SIGTERM: the run under way is asked to end in order; a second one, at once; no further run is begun.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use history::Verdict;
use run::Message;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::complained;
use crate::exit::Exit;

/// Who listens.
#[derive(Clone, Default)]
pub struct Interrupts {
    is_begun: Arc<AtomicBool>,
    is_asked: Arc<AtomicBool>,
    run: Arc<Mutex<Option<Sender<Message>>>>,
}

impl Interrupts {
    /// Listens from now on. Before a run has begun there is nothing to put in order: the program ends.
    pub fn listen() -> Result<Interrupts, Exit> {
        let interrupts = Interrupts::default();
        let seen = interrupts.clone();
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Exit::failed)?;
        let listen = move || {
            for _ in signals.forever() {
                if !seen.is_begun.load(Ordering::Relaxed) {
                    complained!("holdfast: interrupted before the run began");
                    std::process::exit(Verdict::Unknown.exit_code().into());
                }
                seen.is_asked.store(true, Ordering::Relaxed);
                let run = seen.run.lock().unwrap_or_else(PoisonError::into_inner);
                // Between two runs there is nobody to tell but who begins the next.
                let _ = run.as_ref().map(|run| run.send(Message::Interrupt));
            }
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(listen).map_err(Exit::failed)?;
        Ok(interrupts)
    }

    /// The two ends through which the next run is told.
    pub fn for_the_next_run(&self) -> (Sender<Message>, Receiver<Message>) {
        let (sender, receiver) = channel();
        *self.run.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender.clone());
        // One that came just before would be heard by nobody.
        if self.is_asked() {
            let _ = sender.send(Message::Interrupt);
        }
        (sender, receiver)
    }

    /// There is a run directory now.
    pub fn begun(&self) {
        self.is_begun.store(true, Ordering::Relaxed);
    }

    /// Whether a signal came.
    pub fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed)
    }
}
