//! The life of one client: find the node that takes writes, ask one transaction after another, and when the session
//! breaks, begin anew; until told to stop.

use std::rc::Rc;
use std::time::{Duration, Instant};

use client::reactor::sleep_until;
use client::{Backoff, ConnectError, Session, SessionError, StatementId};
use history::ErrorClass;
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;
use workload::{Attempt, ClientState, Request};

use crate::defects::BAD_END_S;
use crate::due_queue::Due;
use crate::failback::Failback;
use crate::ready::{Ready, prepare};
use crate::shared::{InFlight, Shared, StatementTimes};

/// The number of the client that asked for an insert that nobody asked for.
const NOBODY: u64 = workload::ledger::LARGEST_CLIENT;

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
    at_work: watch::Receiver<usize>,
    /// Whether it has had the pause before its first operation, since it was last needed.
    has_begun: bool,
}

/// Runs the client at `place` until the load is stopped.
pub(crate) async fn run_client(shared: Rc<Shared>, place: usize, stop: watch::Receiver<bool>) {
    let number = shared.plan.first_client + place as u64;
    let state = ClientState::new(number, shared.plan.scale, shared.plan.chance(number, TRANSACTIONS));
    let rng = shared.plan.chance(number, RECONNECTIONS);
    let at_work = shared.at_work.subscribe();
    let mut client = Client {
        shared: Rc::clone(&shared),
        place,
        state,
        rng,
        backoff: Backoff::default(),
        stop,
        at_work,
        has_begun: false,
    };
    let mut failback = Failback::of(Rc::clone(&shared), number);
    while !client.is_told_to_stop() {
        // One that is needed later only does not take up a connection before.
        client.rest().await;
        shared.seeks_session();
        let connected = client.connect_at_last().await;
        if connected.is_none() && client.is_told_to_stop() {
            // It has waited in vain, and that is what the record is to say.
            break;
        }
        shared.seeks_no_session();
        if let Some(ready) = connected {
            client.serve(ready, &mut failback).await;
        }
        client.pause().await;
    }
    shared.client_done();
}

impl Client {
    /// Rounds over the endpoints, with growing pauses, until one takes writes; `None` on stop, or when the client is no
    /// longer needed.
    async fn connect_at_last(&mut self) -> Option<Ready> {
        while !self.is_told_to_stop() && self.is_at_work() {
            if let Some(connected) = self.connect().await {
                return Some(connected);
            }
            self.pause().await;
        }
        None
    }

    /// One round over the endpoints; `None` when none takes writes, which has then been counted, or on stop.
    async fn connect(&mut self) -> Option<Ready> {
        let shared = Rc::clone(&self.shared);
        let round = async {
            let mut connected = match shared.connector.connect(&mut self.rng).await {
                Ok(connected) => connected,
                Err(error) => {
                    shared.muster.failed(&error);
                    count_failed_round(&shared, &error);
                    return None;
                }
            };
            for attempt in &connected.failed_attempts {
                shared.connect_failed(ErrorClass::Connection, &attempt.error, Some(&attempt.node));
            }
            match prepare(&shared, &mut connected.session).await {
                Ok(prepared) => Some((connected, prepared)),
                Err(error) => {
                    shared.connect_failed(error.class, &error, Some(&connected.node));
                    None
                }
            }
        };
        tokio::select! {
            connected = round => connected,
            () = stopped(&mut self.stop) => None,
        }
    }

    /// Asks transactions of one session, or of one with its first node once that is ready, until it breaks, its node takes no more
    /// writes, or the load stops.
    async fn serve(&mut self, (mut connected, mut prepared): Ready, failback: &mut Failback) {
        let shared = Rc::clone(&self.shared);
        if !self.await_zero().await {
            return shared.leave_open(connected);
        }
        failback.is_at(&connected.node);
        let mut node: Rc<str> = Rc::from(connected.node.as_str());
        let mut reader: Option<Rc<str>> = None;
        while !shared.stopping.get() {
            if let Some(ready) = failback.take() {
                (connected, prepared) = ready;
                (node, reader) = (Rc::from(connected.node.as_str()), None);
            }
            if !self.is_at_work() {
                failback.is_at(&node);
                self.rest().await;
                self.has_begun = false;
                continue;
            }
            if !std::mem::replace(&mut self.has_begun, true) {
                let pause = shared.plan.think_time.draw_first(&mut self.rng);
                self.wait_for(pause).await;
                continue;
            }
            let mut request = shared.workload.draw(&mut self.state);
            let Some((due, thinking)) = failback.alongside(self.turn(&request)).await else { break };
            let (invoked, due) = shared.sends(due);
            let action = shared.plan.keeps_history.then(|| request.action.clone());
            let (kind, node) = (request.kind, Rc::clone(&node));
            shared.begin(self.place, InFlight { action, kind, due, invoked, node });
            let at_s = shared.seconds(invoked);
            let asked = ask(&shared, &mut request, &mut connected.session, &prepared, at_s);
            let result = failback.alongside(asked).await;
            assert!(!(shared.plan.defects.panics && at_s >= BAD_END_S), "a planted defect");
            if let Some(name) = connected.session.read_at() {
                // A session has one reader as long as it lives.
                shared.read_at(self.place, reader.get_or_insert_with(|| Rc::from(name)));
            }
            shared.finish(self.place, request.action, &result);
            failback.alongside(self.wait_for(thinking)).await;
            let Err(error) = result else {
                self.backoff.reset();
                continue;
            };
            if !recovered(&mut connected.session, &error).await && !failback.is_ready() {
                return;
            }
            // A conflict is no sign of trouble; any other refusal may repeat at once and for ever.
            if error.class != ErrorClass::Serialization {
                failback.alongside(self.pause()).await;
            }
            // A transaction that fails before it is sent, and pauses that the word to stop cuts short, never let the thread take
            // that word to the load.
            if self.is_told_to_stop() {
                break;
            }
        }
        shared.leave_open(connected);
    }

    /// Waits for the zero of the run's clock; false when the load is told to stop before, so that nothing is to be asked.
    async fn await_zero(&mut self) -> bool {
        let shared = Rc::clone(&self.shared);
        let zero = match shared.clock.zero() {
            Some(zero) => zero,
            None => {
                shared.muster.one_more();
                tokio::select! {
                    zero = shared.clock.known_zero() => zero,
                    () = stopped(&mut self.stop) => return false,
                }
            }
        };
        self.wait_until(zero).await;
        true
    }

    /// Waits until this transaction is to be sent; `None` when it no longer is. Answers when it was due, in an open loop,
    /// and how long the client thinks afterwards, in a closed one: there the pauses of the workload's standard and of the
    /// plan hold.
    async fn turn(&mut self, request: &Request) -> Option<(Option<Due>, Duration)> {
        let shared = Rc::clone(&self.shared);
        if shared.is_open {
            return tokio::select! {
                due = shared.queue.next() => Some((Some(due), Duration::ZERO)),
                () = stopped(&mut self.stop) => None,
            };
        }
        let pauses = shared.workload.pauses(request, &mut self.state);
        if !pauses.keying.is_zero() {
            self.wait_for(pauses.keying).await;
            if self.is_told_to_stop() {
                return None;
            }
        }
        Some((None, pauses.thinking + shared.plan.think_time.draw(&mut self.rng)))
    }

    /// Whether the load is to stop. The word may reach a client before it reaches the load.
    fn is_told_to_stop(&self) -> bool {
        self.shared.stopping.get() || *self.stop.borrow() || self.stop.has_changed().is_err()
    }

    fn is_at_work(&self) -> bool {
        self.place < self.shared.at_work_now.get()
    }

    /// Waits until a step of the load needs this client, or the load stops.
    async fn rest(&mut self) {
        let place = self.place;
        tokio::select! {
            _ = self.at_work.wait_for(|clients| place < *clients) => {}
            () = stopped(&mut self.stop) => {}
        }
    }

    /// Waits before the next try; not at all once the load stops.
    async fn pause(&mut self) {
        if !self.shared.stopping.get() {
            let wait = self.backoff.next(&mut self.rng);
            self.wait_until(Instant::now() + wait).await;
        }
    }

    async fn wait_for(&mut self, pause: Duration) {
        if !pause.is_zero() {
            self.wait_until(Instant::now() + pause).await;
        }
    }

    async fn wait_until(&mut self, moment: Instant) {
        if moment.saturating_duration_since(Instant::now()) > Duration::ZERO {
            tokio::select! {
                () = sleep_until(moment) => {}
                () = stopped(&mut self.stop) => {}
            }
        }
    }
}

/// Carries a transaction out; where a test plants that, another one as well, or none.
async fn ask(
    shared: &Shared,
    request: &mut Request,
    session: &mut Session,
    prepared: &[Option<StatementId>],
    at_s: f64,
) -> Result<(), SessionError> {
    if shared.defects.invents(&request.action, at_s) {
        let mut nobody =
            ClientState::new(NOBODY, shared.plan.scale, shared.plan.chance(NOBODY, TRANSACTIONS));
        let mut invented = shared.workload.draw(&mut nobody);
        // Whether it came through does not matter: nobody asked for it.
        let _ = perform(shared, &mut invented, session, prepared).await;
    }
    if shared.defects.drops(&request.action, at_s) {
        return Ok(());
    }
    perform(shared, request, session, prepared).await
}

/// Carries a transaction out, again after each serialization failure for as long as the workload wants it.
async fn perform(
    shared: &Shared,
    request: &mut Request,
    session: &mut Session,
    prepared: &[Option<StatementId>],
) -> Result<(), SessionError> {
    let mut left = shared.workload.retries();
    loop {
        let begun = (left > 0).then(Instant::now);
        let mut observer = StatementTimes(shared);
        let mut attempt = Attempt { session: &mut *session, prepared, observer: &mut observer };
        let result = shared.workload.perform(request, &mut attempt).await;
        match result {
            Err(error) if error.class == ErrorClass::Serialization && error.definite && left > 0 => {
                if shared.stopping.get() || !recovered(session, &error).await {
                    return Err(error);
                }
                left -= 1;
                if let Some(begun) = begun {
                    shared.tried_in_vain(request.kind, begun.elapsed());
                }
            }
            ended => return ended,
        }
    }
}

/// Whether the session can be asked again after this error, its transaction rolled back where one is open.
async fn recovered(session: &mut Session, error: &SessionError) -> bool {
    if session.is_broken() || error.class == ErrorClass::ReadOnly {
        return false;
    }
    let Session::Sql(session) = session else { return true };
    !session.in_transaction() || session.batch("ROLLBACK").await.is_ok()
}

fn count_failed_round(shared: &Shared, error: &ConnectError) {
    for attempt in &error.failed_attempts {
        shared.connect_failed(ErrorClass::Connection, &attempt.error, Some(&attempt.node));
    }
    if !error.read_only_nodes.is_empty() {
        shared.count_failed_connect(ErrorClass::ReadOnly);
    }
}

/// Resolves when the load is told to stop, or when nobody is left who could tell it.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means the handle is gone: as good as a word to stop.
    let _ = stop.wait_for(|stop| *stop).await;
}
