//! What all clients of one load share on their one thread: the recorder, the history being gathered, who is in flight.
//!
//! Owns the bookkeeping of an operation from its sending to its end, whoever brings the end about.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use client::SessionError;
use client::postgres::PostgresConnector;
use history::{Action, ErrorClass, Operation, Outcome};
use measure::{OperationId, Recorder};
use workload::{StatementObserver, Workload};

use crate::clock::seconds_between;
use crate::first_success::FirstSuccesses;
use crate::plan::LoadPlan;

/// An operation that has been sent and has no end yet.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    pub(crate) action: Action,
    pub(crate) invoked: Instant,
    pub(crate) node: Rc<str>,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) plan: LoadPlan,
    pub(crate) workload: &'static dyn Workload,
    pub(crate) connector: PostgresConnector,
    pub(crate) zero: Instant,
    pub(crate) stopping: Cell<bool>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) successes: RefCell<FirstSuccesses>,
    transaction: OperationId,
    connect: OperationId,
    /// Empty where a transaction is one statement: its latency is the transaction's.
    statements: Vec<OperationId>,
    history: RefCell<Vec<Operation>>,
    /// By the client's place within this load.
    in_flight: RefCell<Vec<Option<InFlight>>>,
}

impl Shared {
    pub(crate) fn new(plan: LoadPlan, workload: &'static dyn Workload, zero: Instant) -> Self {
        let mut recorder = Recorder::new(&plan.name);
        let transaction = recorder.operation(workload.transaction_name());
        let statements =
            workload.statement_names().into_iter().map(|name| recorder.operation(name)).collect();
        let connect = recorder.operation("connect");
        let connector = plan.connector(plan.timeout);
        let clients = usize::try_from(plan.clients).unwrap_or(usize::MAX);
        Self {
            connector,
            workload,
            zero,
            stopping: Cell::new(false),
            recorder: RefCell::new(recorder),
            successes: RefCell::new(FirstSuccesses::default()),
            transaction,
            connect,
            statements,
            history: RefCell::new(Vec::new()),
            in_flight: RefCell::new(vec![None; clients]),
            plan,
        }
    }

    /// A client sends an operation.
    pub(crate) fn begin(&self, client: usize, operation: InFlight) {
        if let Some(place) = self.in_flight.borrow_mut().get_mut(client) {
            *place = Some(operation);
        }
    }

    /// A client knows all it will ever know of its operation. `action` replaces what was noted when it was sent.
    pub(crate) fn finish(&self, client: usize, action: Action, result: &Result<(), SessionError>) {
        let Some(begun) = self.take_in_flight(client) else { return };
        let completed = Instant::now();
        let (outcome, error) = match result {
            Ok(()) => (Outcome::Ok, None),
            Err(error) if error.definite => (Outcome::Fail, Some(error.class)),
            Err(error) => (Outcome::Unknown, Some(error.class)),
        };
        match error {
            None => {
                let latency = completed.saturating_duration_since(begun.invoked);
                self.recorder.borrow_mut().record_ok(self.transaction, latency);
                let (invoked_s, completed_s) = (self.seconds(begun.invoked), self.seconds(completed));
                self.successes.borrow_mut().note(invoked_s, completed_s);
            }
            Some(class) => self.recorder.borrow_mut().record_error(self.transaction, class),
        }
        self.record(client, InFlight { action, ..begun }, completed, outcome, error);
    }

    /// Ends what is still in flight when the load does: nobody will ever know.
    pub(crate) fn abandon_all(&self) {
        let now = Instant::now();
        let clients = self.in_flight.borrow().len();
        for client in 0..clients {
            let Some(begun) = self.take_in_flight(client) else { continue };
            self.recorder.borrow_mut().record_error(self.transaction, ErrorClass::Timeout);
            self.record(client, begun, now, Outcome::Unknown, Some(ErrorClass::Timeout));
        }
    }

    /// A connection attempt failed.
    pub(crate) fn connect_failed(&self, class: ErrorClass) {
        self.recorder.borrow_mut().record_error(self.connect, class);
    }

    /// What has been recorded since the last call.
    pub(crate) fn take_history(&self) -> Vec<Operation> {
        let gathered = self.history.borrow().len();
        // The next second will be about as busy.
        self.history.replace(Vec::with_capacity(gathered))
    }

    fn take_in_flight(&self, client: usize) -> Option<InFlight> {
        self.in_flight.borrow_mut().get_mut(client).and_then(Option::take)
    }

    fn record(
        &self,
        client: usize,
        begun: InFlight,
        completed: Instant,
        outcome: Outcome,
        error: Option<ErrorClass>,
    ) {
        self.history.borrow_mut().push(Operation {
            load: self.plan.name.clone(),
            client: self.plan.first_client + client as u64,
            action: begun.action,
            invoked_s: self.seconds(begun.invoked),
            completed_s: self.seconds(completed),
            outcome,
            error,
            node: Some(begun.node.as_ref().to_owned()),
        });
    }

    fn seconds(&self, moment: Instant) -> f64 {
        seconds_between(self.zero, moment)
    }
}

/// Records the statements of one client's transactions.
pub(crate) struct StatementTimes<'a>(pub(crate) &'a Shared);

impl StatementObserver for StatementTimes<'_> {
    fn answered(&mut self, statement: usize, latency: Duration) {
        if let Some(operation) = self.0.statements.get(statement) {
            self.0.recorder.borrow_mut().record_ok(*operation, latency);
        }
    }
}
