//! The life of one client: find the node that takes writes, ask one transaction after another, and when the session
//! breaks, begin anew; until told to stop.

use std::rc::Rc;
use std::time::{Duration, Instant};

use client::{ConnectError, Connected, SessionError, SqlConnector, SqlSession, StatementId};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use workload::{Attempt, ClientState};

use crate::backoff::Backoff;
use crate::shared::{InFlight, Shared, StatementTimes};

/// Streams of a client's chance (see `LoadPlan::chance`).
const TRANSACTIONS: u64 = 0;
const RECONNECTIONS: u64 = 1;

/// One client.
struct Client {
    shared: Rc<Shared>,
    /// Its place within the load.
    place: usize,
    state: ClientState,
    rng: ChaCha8Rng,
    backoff: Backoff,
    stop: watch::Receiver<bool>,
}

/// Runs the client at `place` until the load is stopped.
pub(crate) async fn run_client(shared: Rc<Shared>, place: usize, stop: watch::Receiver<bool>) {
    let number = shared.plan.first_client + place as u64;
    let state = ClientState {
        client: number,
        scale: shared.plan.scale,
        sequence: 0,
        rng: shared.plan.chance(number, TRANSACTIONS),
    };
    let rng = shared.plan.chance(number, RECONNECTIONS);
    let mut client = Client { shared, place, state, rng, backoff: Backoff::default(), stop };
    while !client.shared.stopping.get() {
        if let Some((connected, prepared)) = client.connect().await {
            client.serve(connected, &prepared).await;
        }
        client.pause().await;
    }
}

impl Client {
    /// One round over the endpoints; `None` when none takes writes, which has then been counted, or on stop.
    async fn connect(&mut self) -> Option<(Connected, Vec<StatementId>)> {
        let shared = Rc::clone(&self.shared);
        let statements: Vec<&str> =
            shared.workload.statements().iter().map(|statement| statement.sql).collect();
        let round = async {
            let mut connected = match shared.connector.connect(&mut self.rng).await {
                Ok(connected) => connected,
                Err(error) => {
                    count_failed_round(&shared, &error);
                    return None;
                }
            };
            for _ in &connected.failed_attempts {
                shared.connect_failed(ErrorClass::Connection);
            }
            match connected.session.prepare(&statements).await {
                Ok(prepared) => Some((connected, prepared)),
                Err(error) => {
                    shared.connect_failed(error.class);
                    None
                }
            }
        };
        tokio::select! {
            connected = round => connected,
            () = stopped(&mut self.stop) => None,
        }
    }

    /// Asks transactions of one session until it breaks, its node takes no more writes, or the load stops.
    async fn serve(&mut self, mut connected: Connected, prepared: &[StatementId]) {
        let shared = Rc::clone(&self.shared);
        let node: Rc<str> = Rc::from(connected.node.as_str());
        self.wait_until(shared.zero).await;
        while !shared.stopping.get() {
            let mut request = shared.workload.draw(&mut self.state);
            let begun =
                InFlight { action: request.action.clone(), invoked: Instant::now(), node: Rc::clone(&node) };
            shared.begin(self.place, begun);
            let mut observer = StatementTimes(&shared);
            let mut attempt =
                Attempt { session: connected.session.as_mut(), prepared, observer: &mut observer };
            let result = shared.workload.perform(&mut request, &mut attempt).await;
            shared.finish(self.place, request.action, &result);
            match result {
                Ok(()) => self.backoff.reset(),
                Err(error) => {
                    if !recovered(connected.session.as_mut(), &error).await {
                        return;
                    }
                    // A conflict is no sign of trouble; any other refusal may repeat at once and for ever.
                    if error.class != ErrorClass::Serialization {
                        self.pause().await;
                    }
                }
            }
        }
    }

    /// Waits before the next try; not at all once the load stops.
    async fn pause(&mut self) {
        if !self.shared.stopping.get() {
            let wait = self.backoff.next(&mut self.rng);
            self.wait_until(Instant::now() + wait).await;
        }
    }

    async fn wait_until(&mut self, moment: Instant) {
        if moment.saturating_duration_since(Instant::now()) > Duration::ZERO {
            tokio::select! {
                () = tokio::time::sleep_until(moment.into()) => {}
                () = stopped(&mut self.stop) => {}
            }
        }
    }
}

/// Whether the session can be asked again after this error, its transaction rolled back where one is open.
async fn recovered(session: &mut dyn SqlSession, error: &SessionError) -> bool {
    if session.is_broken() || error.class == ErrorClass::ReadOnly {
        return false;
    }
    !session.in_transaction() || session.batch("ROLLBACK").await.is_ok()
}

fn count_failed_round(shared: &Shared, error: &ConnectError) {
    for _ in &error.failed_attempts {
        shared.connect_failed(ErrorClass::Connection);
    }
    if !error.read_only_nodes.is_empty() {
        shared.connect_failed(ErrorClass::ReadOnly);
    }
}

/// Resolves when the load is told to stop, or when nobody is left who could tell it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means the handle is gone: as good as a word to stop.
    let _ = stop.wait_for(|stop| *stop).await;
}
