//! What all clients of one load share on their one thread: the recorder, the history being gathered, who is in flight.
//!
//! Owns the bookkeeping of an operation from its sending to its end, whoever brings the end about.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Connected, Connector, SessionError};
use history::{Action, ErrorClass, FirstError, Operation, Outcome};
use measure::interval::{CONNECT, new_histogram, record_latency};
use measure::{Histogram, OperationId, Recorder, TakenWaits, Waits};
use tokio::sync::watch;
use workload::{StatementObserver, Workload};

use crate::clock::Clock;
use crate::defects::Pending;
use crate::due_queue::{Due, Queue};
use crate::first_errors::FirstErrors;
use crate::first_success::FirstSuccesses;
use crate::muster::Muster;
use crate::pace::Step;
use crate::plan::LoadPlan;

/// An operation that has been sent and has no end yet.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    /// What the history records of it; nothing where none is kept.
    pub(crate) action: Option<Action>,
    /// Its kind, by the workload's own numbering.
    pub(crate) kind: usize,
    /// When it was due: what its response time counts from. In a closed loop, when it was sent.
    pub(crate) due: Instant,
    /// When it was sent: what its service time counts from.
    pub(crate) invoked: Instant,
    pub(crate) node: Rc<str>,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) plan: LoadPlan,
    pub(crate) workload: Arc<dyn Workload>,
    pub(crate) connector: Box<dyn Connector>,
    pub(crate) clock: Clock,
    /// What those outside know of how far clients have come.
    pub(crate) muster: Arc<Muster>,
    pub(crate) is_open: bool,
    pub(crate) stopping: Cell<bool>,
    /// The second of the run's clock that is being recorded.
    pub(crate) second: Cell<u64>,
    pub(crate) defects: Pending,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) successes: RefCell<FirstSuccesses>,
    waits: RefCell<Waits>,
    /// Operations that have been sent and have no end yet.
    sent: Cell<usize>,
    /// Closed loop: clients that want to send and have no session.
    without_session: Cell<usize>,
    /// Open loop: operations on their way to a client.
    pub(crate) queue: Queue,
    /// Clients at work now; those with a higher place rest.
    pub(crate) at_work: watch::Sender<usize>,
    /// The same for who only looks, which each client does before each operation.
    pub(crate) at_work_now: Cell<usize>,
    /// Clients that have not ended yet.
    clients_left: watch::Sender<usize>,
    /// Open loop: how late operations were sent that no connection had to be waited for.
    lateness: RefCell<Histogram<u64>>,
    transaction: OperationId,
    /// Open loop only: the transaction from when it was sent.
    service: Option<OperationId>,
    connect: OperationId,
    /// Tries of a transaction that met a serialization failure and were followed by another; only where the workload
    /// has its transactions tried again.
    retry: Option<OperationId>,
    /// By [`workload::Request::kind`]; empty where all transactions are alike.
    kinds: Vec<OperationId>,
    /// Nothing in place of those that the dialect does not run. Empty where a transaction is one statement: its latency is
    /// the transaction's.
    statements: Vec<Option<OperationId>>,
    history: RefCell<Vec<Operation>>,
    /// Sessions of clients that are done.
    left_open: RefCell<Vec<Connected>>,
    /// By the client's place within this load.
    in_flight: RefCell<Vec<Option<InFlight>>>,
    first_errors: RefCell<FirstErrors>,
}

impl Shared {
    pub(crate) fn new(plan: LoadPlan, clock: Clock, muster: Arc<Muster>) -> Self {
        let workload = Arc::clone(&plan.workload);
        let mut recorder = Recorder::new(&plan.name);
        let transaction = recorder.operation(workload.transaction_name());
        let service = plan.is_open().then(|| recorder.operation(&service_name(workload.transaction_name())));
        let dialect = plan.dialect();
        let is_run =
            |statement: &workload::Statement| dialect.is_none_or(|dialect| statement.text(dialect).is_some());
        let named = workload.statement_names().into_iter().zip(workload.statements());
        let statements =
            named.map(|(name, statement)| is_run(statement).then(|| recorder.operation(name))).collect();
        let connect = recorder.operation(CONNECT);
        let kinds = plan.workload.kinds().into_iter().map(|kind| recorder.operation(kind)).collect();
        let retry = (plan.workload.retries() > 0).then(|| recorder.operation("retry"));
        let connector = plan.connector_of_clients();
        let clients = usize::try_from(plan.most_clients()).unwrap_or(usize::MAX);
        Self {
            connector,
            workload,
            clock,
            muster,
            is_open: plan.is_open(),
            stopping: Cell::new(false),
            second: Cell::new(0),
            defects: Pending::new(plan.defects),
            recorder: RefCell::new(recorder),
            successes: RefCell::new(FirstSuccesses::default()),
            waits: RefCell::new(Waits::default()),
            sent: Cell::new(0),
            without_session: Cell::new(0),
            queue: Queue::default(),
            at_work: watch::Sender::new(clients_of(plan.steps.first())),
            at_work_now: Cell::new(clients_of(plan.steps.first())),
            clients_left: watch::Sender::new(clients),
            lateness: RefCell::new(new_histogram()),
            transaction,
            service,
            connect,
            retry,
            kinds,
            statements,
            history: RefCell::new(Vec::new()),
            left_open: RefCell::new(Vec::new()),
            in_flight: RefCell::new(vec![None; clients]),
            first_errors: RefCell::new(FirstErrors::default()),
            plan,
        }
    }

    /// From now on so many clients are at work.
    pub(crate) fn put_to_work(&self, clients: usize) {
        self.at_work_now.set(clients);
        self.at_work.send_replace(clients);
    }

    /// A client has ended.
    pub(crate) fn client_done(&self) {
        self.clients_left.send_modify(|left| *left = left.saturating_sub(1));
    }

    /// Resolves when all clients have ended.
    pub(crate) async fn all_done(&self) {
        // The sender is this very thing, so that there is no error.
        let _ = self.clients_left.subscribe().wait_for(|left| *left == 0).await;
    }

    /// A client is done. Its session is closed when all are: to close hundreds while others still wait for their last
    /// answers would make those look slow.
    pub(crate) fn leave_open(&self, session: Connected) {
        self.left_open.borrow_mut().push(session);
    }

    /// Closes the sessions of clients that are done.
    pub(crate) fn close_all(&self) {
        self.left_open.take();
    }

    /// How late the generator was, of the operations sent since the last call that found a free client; microseconds.
    pub(crate) fn take_lateness(&self) -> Histogram<u64> {
        let mut lateness = self.lateness.borrow_mut();
        let taken = lateness.clone();
        lateness.reset();
        taken
    }

    /// An operation that found a free client is sent so long after it was due.
    pub(crate) fn sent_late(&self, by: Duration) {
        record_latency(&mut self.lateness.borrow_mut(), by);
    }

    /// Open loop: an operation is due from this moment on.
    pub(crate) fn falls_due(&self, moment: Instant) {
        self.waits.borrow_mut().due(self.seconds(moment));
    }

    /// A client sends now what was due, in an open loop, at a certain moment: when it is sent, and when it was due.
    pub(crate) fn sends(&self, due: Option<Due>) -> (Instant, Instant) {
        let invoked = Instant::now();
        let due = due.map_or(invoked, |due| {
            if !due.waited {
                self.sent_late(invoked.saturating_duration_since(due.moment));
            }
            due.moment
        });
        (invoked, due)
    }

    /// A client looks for a session. In a closed loop it has something to send; in an open one it need not.
    pub(crate) fn seeks_session(&self) {
        if !self.is_open {
            self.without_session.set(self.without_session.get() + 1);
            self.falls_due(Instant::now());
        }
    }

    /// A client has a session, or seeks it no longer.
    pub(crate) fn seeks_no_session(&self) {
        if !self.is_open {
            self.without_session.set(self.without_session.get().saturating_sub(1));
            if !self.is_something_due() {
                self.waits.borrow_mut().nothing_due(self.seconds(Instant::now()));
            }
        }
    }

    fn is_something_due(&self) -> bool {
        self.sent.get() > 0 || self.without_session.get() > 0 || self.queue.backlog() > 0
    }

    /// The load is told to stop.
    pub(crate) fn end_waits(&self) {
        self.waits.borrow_mut().end(self.seconds(Instant::now()));
    }

    /// How long nothing succeeded, and how long nothing was due, since the last call.
    pub(crate) fn take_waits(&self) -> TakenWaits {
        self.waits.borrow_mut().take()
    }

    /// A client sends an operation.
    pub(crate) fn begin(&self, client: usize, operation: InFlight) {
        self.sent.set(self.sent.get() + 1);
        if !self.is_open {
            self.falls_due(operation.invoked);
        }
        if let Some(place) = self.in_flight.borrow_mut().get_mut(client) {
            *place = Some(operation);
        }
    }

    /// A client's operation was answered by another node than its session was opened with.
    pub(crate) fn read_at(&self, client: usize, node: &Rc<str>) {
        if let Some(Some(operation)) = self.in_flight.borrow_mut().get_mut(client) {
            operation.node = Rc::clone(node);
        }
    }

    /// A client knows all it will ever know of its operation. `action` replaces what was noted when it was sent.
    pub(crate) fn finish(&self, client: usize, action: Action, result: &Result<(), SessionError>) {
        let Some(begun) = self.take_in_flight(client) else { return };
        let completed = Instant::now();
        let (outcome, class) = match result {
            Ok(()) => (Outcome::Ok, None),
            Err(error) if error.definite => (Outcome::Fail, Some(error.class)),
            Err(error) => (Outcome::Unknown, Some(error.class)),
        };
        if let Err(error) = result {
            self.note_error(error, Some(&begun.node), completed);
        }
        let InFlight { kind, due, invoked, .. } = begun;
        // Before it is counted: whatever goes wrong from here on, the history has it.
        self.record(client, InFlight { action: Some(action), ..begun }, completed, outcome, class);
        match class {
            None => self.count_success(kind, due, invoked, completed),
            Some(class) => {
                self.waits.borrow_mut().failed();
                self.count_error(kind, class, outcome == Outcome::Fail);
            }
        }
    }

    /// Counts a transaction that succeeded, in all and of its kind.
    fn count_success(&self, kind: usize, due: Instant, invoked: Instant, completed: Instant) {
        let latency = completed.saturating_duration_since(due);
        let mut recorder = self.recorder.borrow_mut();
        if let Some(service) = self.service {
            recorder.record_ok(service, completed.saturating_duration_since(invoked));
        }
        recorder.record_ok(self.transaction, latency);
        if let Some(kind) = self.told_apart(kind) {
            recorder.record_ok(kind, latency);
        }
        drop(recorder);
        self.waits.borrow_mut().succeeded(self.seconds(completed), self.is_something_due());
        let mut successes = self.successes.borrow_mut();
        if successes.wants(invoked) {
            successes.note(self.seconds(invoked), self.seconds(completed));
        }
    }

    /// Keeps the error if it is the first of its class.
    fn note_error(&self, error: &SessionError, node: Option<&str>, at: Instant) {
        self.first_errors.borrow_mut().note(error, node, || self.seconds(at));
    }

    /// The errors that were the first of their class since the last call.
    pub(crate) fn take_first_errors(&self) -> Vec<FirstError> {
        self.first_errors.borrow_mut().take()
    }

    /// Counts an error of a transaction, in all and of its kind.
    fn count_error(&self, kind: usize, class: ErrorClass, definite: bool) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.record_error(self.transaction, class, definite);
        if let Some(kind) = self.told_apart(kind) {
            recorder.record_error(kind, class, definite);
        }
    }

    /// The operation of a kind of transaction, where it is another than that of all of them.
    fn told_apart(&self, kind: usize) -> Option<OperationId> {
        self.kinds.get(kind).copied().filter(|operation| *operation != self.transaction)
    }

    /// A try of a transaction of this kind ended in a serialization failure and is followed by another.
    pub(crate) fn tried_in_vain(&self, kind: usize, took: Duration) {
        let mut recorder = self.recorder.borrow_mut();
        if let Some(retry) = self.retry {
            recorder.record_ok(retry, took);
        }
        recorder.record_retry(self.transaction);
        if let Some(kind) = self.told_apart(kind) {
            recorder.record_retry(kind);
        }
    }

    /// Ends what is still in flight when the load does: nobody will ever know.
    pub(crate) fn abandon_all(&self) {
        let now = Instant::now();
        let clients = self.in_flight.borrow().len();
        for client in 0..clients {
            let Some(begun) = self.take_in_flight(client) else { continue };
            self.count_error(begun.kind, ErrorClass::Timeout, false);
            self.record(client, begun, now, Outcome::Unknown, Some(ErrorClass::Timeout));
        }
    }

    /// A connection attempt failed. It is counted under `class`, whatever the error's own.
    pub(crate) fn connect_failed(&self, class: ErrorClass, error: &SessionError, node: Option<&str>) {
        self.first_errors
            .borrow_mut()
            .note(&SessionError { class, ..error.clone() }, node, || self.seconds(Instant::now()));
        self.count_failed_connect(class);
    }

    /// Counts a connection attempt that came to nothing.
    pub(crate) fn count_failed_connect(&self, class: ErrorClass) {
        // Nothing was asked of the database yet.
        self.recorder.borrow_mut().record_error(self.connect, class, true);
    }

    /// What has been recorded since the last call.
    pub(crate) fn take_history(&self) -> Vec<Operation> {
        let gathered = self.history.borrow().len();
        // The next second will be about as busy.
        self.history.replace(Vec::with_capacity(gathered))
    }

    fn take_in_flight(&self, client: usize) -> Option<InFlight> {
        let begun = self.in_flight.borrow_mut().get_mut(client).and_then(Option::take)?;
        self.sent.set(self.sent.get().saturating_sub(1));
        Some(begun)
    }

    fn record(
        &self,
        client: usize,
        begun: InFlight,
        completed: Instant,
        outcome: Outcome,
        error: Option<ErrorClass>,
    ) {
        let Some(action) = begun.action.filter(|_| self.plan.keeps_history) else { return };
        self.history.borrow_mut().push(Operation {
            load: self.plan.name.clone(),
            client: self.plan.first_client + client as u64,
            action,
            invoked_s: self.seconds(begun.invoked),
            completed_s: self.seconds(completed),
            outcome,
            error,
            node: Some(begun.node.as_ref().to_owned()),
        });
    }

    /// On the run's clock.
    pub(crate) fn seconds(&self, moment: Instant) -> f64 {
        // What happened before the zero was known happened before it.
        self.clock.seconds_at(moment).unwrap_or(0.0)
    }
}

/// The name under which the transaction's service time stands, beside its response time under its own.
fn service_name(transaction: &str) -> String {
    format!("{transaction} (service)")
}

/// The number of clients a step has at work.
pub(crate) fn clients_of(step: Option<&Step>) -> usize {
    step.map_or(0, |step| usize::try_from(step.clients).unwrap_or(usize::MAX))
}

/// Records the statements of one client's transactions.
pub(crate) struct StatementTimes<'a>(pub(crate) &'a Shared);

impl StatementObserver for StatementTimes<'_> {
    fn answered(&mut self, statement: usize, latency: Duration) {
        if let Some(Some(operation)) = self.0.statements.get(statement) {
            self.0.recorder.borrow_mut().record_ok(*operation, latency);
        }
    }

    fn failed(&mut self, statement: usize, error: &SessionError) {
        if let Some(Some(operation)) = self.0.statements.get(statement) {
            self.0.recorder.borrow_mut().record_error(*operation, error.class, error.definite);
        }
    }
}
