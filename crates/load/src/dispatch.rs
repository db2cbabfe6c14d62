//! Open loop: puts each operation into the queue at the moment it is due.
//!
//! How late the generator itself was is told apart from how long an
//! operation had to wait for a free connection: the first is our fault, the second is what an open loop is for.

use std::rc::Rc;
use std::time::{Duration, Instant};

use client::reactor::sleep_until;
use rand_chacha::ChaCha8Rng;

use crate::pace::Arrivals;
use crate::shared::Shared;

/// Puts operations into the queue as they become due, until dropped.
pub(crate) async fn dispatch(shared: Rc<Shared>, zero: Instant, mut arrivals: Arrivals, mut rng: ChaCha8Rng) {
    while let Some(due_s) = arrivals.next_s(&mut rng) {
        let Some(moment) = Duration::try_from_secs_f64(due_s).ok().and_then(|after| zero.checked_add(after))
        else {
            return;
        };
        sleep_until(moment).await;
        shared.falls_due(moment);
        shared.queue.push(moment);
    }
}
