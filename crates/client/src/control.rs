//! The control database's protocol: one transaction after another over one connection.
//!
//! Owns the session and the search for the leader. The frames and the words are the control database's own crate's.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use control::transaction::{Answer, Found, Operation};
use control::wire::{Ask, Tell};
use history::ErrorClass;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::Rows;
use crate::frames::{FramedConnection, failure};
use crate::key_value::{KeyValueSession, REFUSED};
use crate::postgres::{Address, Endpoint};
use crate::session::{
    ConnectError, Connected, Execution, FailedAttempt, SessionError, SessionFuture, SqlConnector, SqlSession,
    SqlValue, StatementId,
};

/// How long one node may take to say whether it leads; the nodes are asked one after another.
const ROLE_PATIENCE: Duration = Duration::from_millis(500);

/// A session with one node.
pub struct ControlClient {
    connection: FramedConnection,
}

impl ControlClient {
    /// A session with the node at `address`. `timeout` is how long it waits for each answer, the first one included.
    ///
    /// # Errors
    /// When the node cannot be reached in that time.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        Ok(Self { connection: FramedConnection::connect(address, timeout).await? })
    }

    /// Whether this node leads, by its own word.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn leads(&mut self) -> Result<bool, SessionError> {
        match self.connection.converse(&Ask::Status).await? {
            Tell::Status { status } => Ok(status.leads),
            Tell::Answer { .. } => Err(self.connection.senseless()),
        }
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        let asked = operations.len();
        let Tell::Answer { answer } = self.connection.converse(&Ask::Transaction { operations }).await?
        else {
            return Err(self.connection.senseless());
        };
        let address = self.connection.address;
        match answer {
            Answer::Committed { found } if found.len() == asked => Ok(found),
            Answer::Committed { .. } => Err(self.connection.senseless()),
            Answer::Refused { step, reason } => {
                let message = format!("{address}: step {step}: {reason}");
                let code = Some(REFUSED.to_owned());
                Err(SessionError { code, ..failure(ErrorClass::Other, true, message) })
            }
            Answer::Conflict { key } => {
                let message = format!("{address}: another transaction changed {key}");
                Err(failure(ErrorClass::Serialization, true, message))
            }
            Answer::NotLeader { leader } => {
                let leader = leader.unwrap_or_else(|| "nobody it knows of".to_owned());
                let message = format!("{address}: it does not lead, {leader} does");
                Err(failure(ErrorClass::ReadOnly, true, message))
            }
            Answer::Unknown => {
                Err(failure(ErrorClass::ReadOnly, false, format!("{address}: it leads no more")))
            }
        }
    }

    fn no_sql(&self) -> SessionError {
        let message = format!("{}: the control database speaks no SQL", self.connection.address);
        failure(ErrorClass::Other, true, message)
    }
}

impl KeyValueSession for ControlClient {
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>> {
        Box::pin(self.carry_out(operations))
    }
}

/// A session as the load generator holds it. Statements can be prepared, since a workload that speaks both languages
/// has some, but none can be run.
impl SqlSession for ControlClient {
    fn key_value(&mut self) -> Option<&mut dyn KeyValueSession> {
        Some(self)
    }

    fn prepare<'a>(&'a mut self, statements: &'a [&'a str]) -> SessionFuture<'a, Vec<StatementId>> {
        Box::pin(async move { Ok((0..statements.len()).map(StatementId).collect()) })
    }

    fn ask(&mut self, _: StatementId, _: &[SqlValue<'_>], _: Instant) -> Result<(), SessionError> {
        Err(self.no_sql())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>) -> Poll<Result<Rows, SessionError>> {
        Poll::Ready(Err(self.no_sql()))
    }

    fn batch<'a>(&'a mut self, _: &'a str) -> SessionFuture<'a, Rows> {
        Box::pin(async move { Err(self.no_sql()) })
    }

    fn pipeline<'a>(
        &'a mut self,
        _: &'a [Execution<'a>],
        _: &'a mut dyn FnMut(usize, &Rows),
    ) -> SessionFuture<'a, ()> {
        Box::pin(async move { Err(self.no_sql()) })
    }

    fn copy_in<'a>(
        &'a mut self,
        _: &'a str,
        _: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> SessionFuture<'a, u64> {
        Box::pin(async move { Err(self.no_sql()) })
    }

    fn set_timeout(&mut self, timeout: Duration) {
        self.connection.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.connection.broken
    }

    fn in_transaction(&self) -> bool {
        false
    }
}

/// Connects to whichever of its endpoints leads. Shared by all clients of a load.
pub struct ControlConnector {
    endpoints: Vec<Endpoint>,
    timeout: Duration,
    connect_timeout: Duration,
    last_leader: Cell<Option<usize>>,
}

impl ControlConnector {
    /// A connector that knows no leader yet.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, timeout: Duration, connect_timeout: Duration) -> Self {
        Self { endpoints, timeout, connect_timeout, last_leader: Cell::new(None) }
    }

    async fn round(&self, rng: &mut dyn Rng) -> Result<Connected, ConnectError> {
        let first = self.last_leader.take();
        let mut order: Vec<usize> = (0..self.endpoints.len()).filter(|index| Some(*index) != first).collect();
        order.shuffle(rng);
        let (mut failed_attempts, mut read_only_nodes) = (Vec::new(), Vec::new());
        for index in first.into_iter().chain(order) {
            let Some(Endpoint { node, address }) = self.endpoints.get(index) else { continue };
            let asked = async {
                let Address::Tcp { address, .. } = address else {
                    let message = format!("{address}: the control database listens on TCP only");
                    return Err(failure(ErrorClass::Connection, true, message));
                };
                let mut client =
                    ControlClient::connect(*address, self.connect_timeout.min(ROLE_PATIENCE)).await?;
                let leads = client.leads().await?;
                client.connection.timeout = self.timeout;
                Ok((client, leads))
            };
            match asked.await {
                Ok((client, true)) => {
                    self.last_leader.set(Some(index));
                    return Ok(Connected { session: Box::new(client), node: node.clone(), failed_attempts });
                }
                Ok((_, false)) => read_only_nodes.push(node.clone()),
                Err(error) => failed_attempts.push(FailedAttempt { node: node.clone(), error }),
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes })
    }
}

impl SqlConnector for ControlConnector {
    fn connect<'a>(
        &'a self,
        rng: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.round(rng))
    }
}
