//! The failback of a client: to the node that it began with, where the drivers of its protocol go back. Their pools keep a
//! connection to each node that is up, so that a node that returns has its share of the clients again.
//!
//! Owns when it is tried: alongside the client's operations, so that none of them waits for it. An attempt that fails is no error of
//! the load, and the session in use is kept until the other is ready.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant};

use client::reactor::sleep;
use rand::RngExt;

use crate::ready::{Ready, prepare};
use crate::shared::Shared;

/// The pause before an attempt, while the node has not been tried in vain.
const PAUSE: Duration = Duration::from_secs(2);
/// The longest pause before an attempt.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);
/// A node that a client leaves again so soon after its failback takes connections and cannot serve: the next pause is longer.
const SOON: Duration = Duration::from_secs(30);
/// The stream of a client's chance (see `LoadPlan::chance`) used here.
const FAILBACKS: u64 = 5;

/// See the module.
pub(crate) struct Failback {
    shared: Rc<Shared>,
    client: u64,
    /// The node of the client's first session.
    home: Option<String>,
    pause: Duration,
    returned: Option<Instant>,
    attempts: Option<Pin<Box<dyn Future<Output = Ready>>>>,
    ready: Option<Ready>,
}

impl Failback {
    pub(crate) fn of(shared: Rc<Shared>, client: u64) -> Failback {
        Failback { shared, client, home: None, pause: PAUSE, returned: None, attempts: None, ready: None }
    }

    /// The client is at this node now. Whatever was under way is given up.
    pub(crate) fn is_at(&mut self, node: &str) {
        (self.attempts, self.ready) = (None, None);
        let home = self.home.get_or_insert_with(|| node.to_owned());
        if home == node || !self.shared.connector.fails_back() {
            return;
        }
        let is_soon = self.returned.take().is_some_and(|returned| returned.elapsed() < SOON);
        self.pause = if is_soon { (self.pause * 2).min(LONGEST_PAUSE) } else { PAUSE };
        let attempts = attempts(Rc::clone(&self.shared), self.client, home.clone(), self.pause);
        self.attempts = Some(Box::pin(attempts));
    }

    /// Waits for what the client does, and tries meanwhile.
    pub(crate) async fn alongside<T>(&mut self, done: impl Future<Output = T>) -> T {
        let Some(attempts) = &mut self.attempts else { return done.await };
        let mut done = pin!(done);
        tokio::select! {
            biased;
            result = &mut done => return result,
            ready = attempts.as_mut() => self.ready = Some(ready),
        }
        self.attempts = None;
        done.await
    }

    /// The session with the first node, once there is one.
    pub(crate) fn take(&mut self) -> Option<Ready> {
        let ready = self.ready.take()?;
        self.returned = Some(Instant::now());
        Some(ready)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }
}

async fn attempts(shared: Rc<Shared>, client: u64, home: String, pause: Duration) -> Ready {
    let mut rng = shared.plan.chance(client, FAILBACKS);
    loop {
        // Spread, so that not all come at once.
        sleep(pause.mul_f64(rng.random_range(0.5..1.5))).await;
        if let Some(mut connected) = shared.connector.connect_to(&home).await
            && let Ok(prepared) = prepare(&shared, &mut connected.session).await
        {
            return (connected, prepared);
        }
    }
}
