//! A node as the search knows it: who asks it, and when it last answered.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::endpoint::Endpoint;
use crate::reactor::sleep_until;

/// How long the known leader is asked before it is searched elsewhere as well. One that is alive answers within it in any
/// place the lab can make, unless it has too much to do; the attempt goes on meanwhile.
pub(super) const HEAD_START: Duration = Duration::from_millis(250);

pub(super) struct Node {
    pub(super) endpoint: Endpoint,
    pub(super) in_flight: Semaphore,
    /// Attempts in a row that met their time limit.
    pub(super) timeouts: Cell<u32>,
    /// When it last answered anybody.
    pub(super) answered: Cell<Option<Instant>>,
}

impl Node {
    pub(super) fn has_just_answered(&self) -> bool {
        self.answered.get().is_some_and(|moment| moment.elapsed() < HEAD_START)
    }

    /// Waits until it has answered nobody for as long as the known leader's head start, `begun` at the earliest.
    pub(super) async fn silence_since(&self, begun: Instant) {
        loop {
            let over = self.answered.get().map_or(begun, |answered| answered.max(begun)) + HEAD_START;
            if Instant::now() >= over {
                return;
            }
            sleep_until(over).await;
        }
    }
}
