//! The faults of a run that are struck now or stand.
//!
//! Owns their threads: every fault has one of its own, because a machine may take long to answer. What a thread does is
//! `ground`'s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use faults::FaultRecord;
use history::{EventSink, FaultId, Verdict};
use remote::Journal;
use scenario::{Fault, FaultAction, Scenario};

use crate::context::{Broken, OnEffect, StrikeContext, Targets};

/// A fault that is struck now or stands.
struct Striking {
    thread: JoinHandle<Option<Broken>>,
    /// Set when its time is over: what has not been struck by then is not struck any more.
    is_over: Arc<AtomicBool>,
}

/// Strikes and undoes. Dropping it undoes what stands.
pub struct Strikes {
    context: Arc<StrikeContext>,
    /// How long each fault stands by the schedule.
    stands: Vec<Duration>,
    /// Faults that are struck now or stand, by number.
    standing: BTreeMap<FaultId, Striking>,
    undoing: Vec<JoinHandle<()>>,
}

impl Strikes {
    /// Nothing struck yet. With `prevented`, faults are announced and not carried out. `on_effect` is called once it is shown that a
    /// fault took effect, with its number and the second on the run's clock.
    #[must_use]
    pub fn new(
        targets: Targets,
        journal: Arc<Journal>,
        events: Arc<dyn EventSink>,
        (scenario, seed, prevented): (&Scenario, u64, bool),
        on_effect: OnEffect,
    ) -> Strikes {
        let context = StrikeContext::new(targets, journal, events, (seed, prevented), on_effect);
        let stands = scenario.schedule.iter().flat_map(|phase| {
            let until_its_end = |fault: &Fault| phase.length.saturating_sub(fault.at);
            phase.faults.iter().map(move |fault| fault.length.unwrap_or_else(|| until_its_end(fault)))
        });
        Strikes {
            stands: stands.collect(),
            context: Arc::new(context),
            standing: BTreeMap::new(),
            undoing: Vec::new(),
        }
    }

    /// Strikes a fault.
    pub fn strike(&mut self, number: FaultId, fault: &Fault) {
        let FaultAction::External(action) = fault.action.clone() else { return };
        let context = self.context.clone();
        let record = FaultRecord {
            kind: fault.action.kind_name().to_owned(),
            target: format!("{} of {}", action.command.name, action.node),
            aims_at_leader: fault.action.aims_at_leader(),
            asked_s: context.now_s(),
            ..FaultRecord::default()
        };
        let stands = self.stands.get(number.index()).copied().unwrap_or_default();
        // Known from here on, whatever happens to its thread: a fault without receipts lets no run pass, one that is not known does.
        context.change(number, |kept| *kept = record.clone());
        let is_over = Arc::<AtomicBool>::default();
        let over = is_over.clone();
        let job = move || context.strike(number, &action, record, (stands, &over));
        match std::thread::Builder::new().name("fault".to_owned()).spawn(job) {
            Ok(thread) => {
                self.standing.insert(number, Striking { thread, is_over });
            }
            Err(error) => {
                self.context.no_thread(&error);
                let why = format!("nothing was struck: there was no thread for it: {error}");
                self.context.not_struck(number, Verdict::Unknown, why);
            }
        }
    }

    /// Undoes a fault, once its strike is over. One whose member is still looked for is not struck.
    pub fn heal(&mut self, number: FaultId) {
        let Some(Striking { thread, is_over }) = self.standing.remove(&number) else { return };
        is_over.store(true, Ordering::Release);
        let context = self.context.clone();
        let job = move || {
            // One that panicked leaves the fault without a receipt; the timer on its machine undoes what may stand.
            if let Ok(Some(broken)) = thread.join() {
                context.undo(number, broken);
            }
        };
        match std::thread::Builder::new().name("fault".to_owned()).spawn(job) {
            Ok(thread) => self.undoing.push(thread),
            Err(error) => self.context.no_thread(&error),
        }
    }

    /// Undoes everything that stands.
    pub fn heal_all(&mut self) {
        let numbers: Vec<FaultId> = self.standing.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.heal(number));
    }

    /// What is known of every fault, once all is undone that is under way.
    pub fn records(&mut self) -> Vec<FaultRecord> {
        for thread in self.undoing.drain(..) {
            // A panic there leaves the fault without a receipt, which is what it deserves.
            let _ = thread.join();
        }
        self.context.records()
    }
}

impl Drop for Strikes {
    fn drop(&mut self) {
        self.heal_all();
        let _ = self.records();
    }
}
