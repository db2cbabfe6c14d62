//! The control database's protocol: one transaction after another over one connection.
//!
//! Owns the session and the search for the leader. The frames and the words are the control database's own crate's.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use control::transaction::{Answer, Found, Operation};
use control::wire::{self, Ask, Tell, WireError};
use history::ErrorClass;
use rand::Rng;
use rand::seq::SliceRandom;

use crate::Rows;
use crate::key_value::{KeyValueSession, REFUSED};
use crate::postgres::{Address, Endpoint};
use crate::reactor::{self, Socket};
use crate::session::{
    ConnectError, Connected, Execution, FailedAttempt, SessionError, SessionFuture, SqlConnector, SqlSession,
    SqlValue, StatementId,
};

/// How long one node may take to say whether it leads; the nodes are asked one after another.
const ROLE_PATIENCE: Duration = Duration::from_millis(500);

/// A session with one node.
pub struct ControlClient {
    socket: Socket,
    address: SocketAddr,
    timeout: Duration,
    broken: bool,
}

impl ControlClient {
    /// A session with the node at `address`. `timeout` is how long it waits for each answer, the first one included.
    ///
    /// # Errors
    /// When the node cannot be reached in that time.
    pub async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        let socket = match reactor::timeout(timeout, Socket::connect_tcp(address)).await {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => {
                return Err(failure(ErrorClass::Connection, true, format!("{address}: {error}")));
            }
            Err(_) => {
                let message = format!("{address}: no connection within {timeout:?}");
                return Err(failure(ErrorClass::Timeout, true, message));
            }
        };
        // Without it answers still come, later.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        Ok(Self { socket, address, timeout, broken: false })
    }

    /// Whether this node leads, by its own word.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub async fn leads(&mut self) -> Result<bool, SessionError> {
        match self.converse(&Ask::Status).await? {
            Tell::Status { status } => Ok(status.leads),
            Tell::Answer { .. } => Err(self.senseless()),
        }
    }

    /// Asks one thing and reads its whole answer. From the first byte sent on, an error leaves open what happened.
    async fn converse(&mut self, ask: &Ask) -> Result<Tell, SessionError> {
        if self.broken {
            let message = format!("{}: the session is broken", self.address);
            return Err(failure(ErrorClass::Connection, true, message));
        }
        let frame = wire::encode(ask)
            .map_err(|error| failure(ErrorClass::Other, true, format!("{}: {error}", self.address)))?;
        // Until the answer is whole; should this future be dropped before, the next answer would be this one's.
        self.broken = true;
        let (address, timeout) = (self.address, self.timeout);
        let exchange = async {
            self.socket.write_all(&frame).await?;
            let mut head = [0; 4];
            self.socket.read_exact(&mut head).await?;
            let mut body = vec![0; wire::length(head)?];
            self.socket.read_exact(&mut body).await?;
            wire::decode::<Tell>(&body)
        };
        match reactor::timeout(timeout, exchange).await {
            Ok(Ok(tell)) => {
                self.broken = false;
                Ok(tell)
            }
            Ok(Err(error @ WireError::Io(_))) => {
                Err(failure(ErrorClass::Connection, false, format!("{address}: {error}")))
            }
            Ok(Err(error)) => Err(failure(ErrorClass::Other, false, format!("{address}: {error}"))),
            Err(_) => {
                let message = format!("{address}: no answer within {timeout:?}");
                Err(failure(ErrorClass::Timeout, false, message))
            }
        }
    }

    fn senseless(&mut self) -> SessionError {
        self.broken = true;
        failure(ErrorClass::Other, false, format!("{}: an answer to something else", self.address))
    }

    async fn carry_out(&mut self, operations: Vec<Operation>) -> Result<Vec<Found>, SessionError> {
        let asked = operations.len();
        let Tell::Answer { answer } = self.converse(&Ask::Transaction { operations }).await? else {
            return Err(self.senseless());
        };
        let address = self.address;
        match answer {
            Answer::Committed { found } if found.len() == asked => Ok(found),
            Answer::Committed { .. } => Err(self.senseless()),
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
        let message = format!("{}: the control database speaks no SQL", self.address);
        failure(ErrorClass::Other, true, message)
    }
}

fn failure(class: ErrorClass, definite: bool, message: String) -> SessionError {
    SessionError { class, definite, message, code: None }
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
        self.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.broken
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
                client.timeout = self.timeout;
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
