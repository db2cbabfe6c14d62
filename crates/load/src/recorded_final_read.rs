//! The final read of a load's data, and the record of how it went.
//!
//! Owns how long it is tried and that it is recorded when it did not happen. What follows from that is
//! `check::final_read`'s to say.

use std::time::Duration;

use history::{Action, EventKind, Operation, Outcome};

use crate::clock::Clock;
use crate::plan::{LoadError, LoadPlan, OnThread};
use crate::preparation::final_read;

/// How long the final read of a load is tried.
pub const FINAL_READ_PATIENCE: Duration = Duration::from_secs(60);

/// How long that of every further load is tried once one came to nothing: the run is in doubt already.
pub const PATIENCE_AFTER_A_MISS: Duration = Duration::from_secs(10);

/// What a final read brought.
pub struct FinalRead {
    /// What was found, then how it went.
    pub operations: Vec<Operation>,
    /// The event to tell of, when it did not happen.
    pub missed: Option<EventKind>,
}

/// Reads what a load left. `place` is where its clients stand, or why they cannot stand there.
#[must_use]
pub fn recorded_final_read(
    plan: &LoadPlan,
    clock: &Clock,
    place: Result<OnThread, String>,
    patience: Duration,
) -> FinalRead {
    let now_s = || clock.seconds().unwrap_or(0.0);
    let invoked_s = now_s();
    let nodes: Vec<String> = plan.endpoints.iter().map(|endpoint| endpoint.node.clone()).collect();
    let read = place.and_then(|place| {
        final_read(plan, clock, place, patience).map_err(|error| match error {
            LoadError::GaveUp { last_error, .. } => last_error,
            error => error.to_string(),
        })
    });
    let (mut operations, why) = match read {
        Ok(operations) => (operations, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    // As the reads themselves: above every client of any load.
    let reader = workload::ledger::LARGEST_CLIENT + 1 + operations.len() as u64;
    operations.push(Operation {
        load: plan.name.clone(),
        client: reader,
        action: Action::FinalRead {
            workload: plan.workload.name().to_owned(),
            nodes: nodes.clone(),
            why: why.clone().unwrap_or_default(),
        },
        invoked_s,
        completed_s: now_s().max(invoked_s),
        outcome: if why.is_some() { Outcome::Fail } else { Outcome::Ok },
        error: None,
        node: None,
    });
    let missed = why.map(|why| EventKind::FinalReadMissed { load: plan.name.clone(), nodes, why });
    FinalRead { operations, missed }
}
