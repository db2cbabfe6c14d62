//! Sessions with the process that reads and writes a node's volume raw. No database: one pass after another over one
//! connection.
//!
//! Owns the session and the search for a node. The frames are the control database's, the words the crate `rawio`'s.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use control::wire::{self, WireError};
use history::ErrorClass;
use rand::Rng;
use rawio::{Ask, Tell};

use crate::Rows;
use crate::postgres::{Address, Endpoint};
use crate::reactor::{self, Socket};
use crate::session::{
    ConnectError, Connected, Execution, FailedAttempt, SessionError, SessionFuture, SqlConnector, SqlSession,
    SqlValue, StatementId,
};

pub use rawio::{Done, Durability, Pass, Shape};

/// One connection to the process on a volume.
pub trait VolumeSession {
    /// Carries out one pass.
    ///
    /// # Errors
    /// With [`SessionError::definite`] false: part of a pass may have been done.
    fn pass(&mut self, pass: Pass) -> SessionFuture<'_, Done>;
}

/// A session with one node.
pub struct VolumeClient {
    socket: Socket,
    address: SocketAddr,
    timeout: Duration,
    broken: bool,
}

impl VolumeClient {
    async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
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
        let mut client = Self { socket, address, timeout, broken: false };
        match client.converse(&Ask::Hello).await? {
            Tell::Here => Ok(client),
            _ => Err(client.senseless()),
        }
    }

    async fn converse(&mut self, ask: &Ask) -> Result<Tell, SessionError> {
        let (address, timeout) = (self.address, self.timeout);
        if self.broken {
            let message = format!("{address}: the session is broken");
            return Err(failure(ErrorClass::Connection, true, message));
        }
        let frame = wire::encode(ask)
            .map_err(|error| failure(ErrorClass::Other, true, format!("{address}: {error}")))?;
        // Until the answer is whole; should this future be dropped before, the next answer would be this one's.
        self.broken = true;
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

    async fn carry_out(&mut self, pass: Pass) -> Result<Done, SessionError> {
        match self.converse(&Ask::Pass { pass }).await? {
            Tell::Done { done } => Ok(done),
            Tell::Failed { why } => {
                Err(failure(ErrorClass::Other, false, format!("{}: {why}", self.address)))
            }
            Tell::Here => Err(self.senseless()),
        }
    }

    fn senseless(&mut self) -> SessionError {
        self.broken = true;
        failure(ErrorClass::Other, false, format!("{}: an answer to something else", self.address))
    }

    fn no_sql(&self) -> SessionError {
        let message = format!("{}: there is no database, only a volume", self.address);
        failure(ErrorClass::Other, true, message)
    }
}

fn failure(class: ErrorClass, definite: bool, message: String) -> SessionError {
    SessionError { class, definite, message, code: None }
}

impl VolumeSession for VolumeClient {
    fn pass(&mut self, pass: Pass) -> SessionFuture<'_, Done> {
        Box::pin(self.carry_out(pass))
    }
}

/// A session as the load generator holds it. Statements can be prepared, since what is timed has their names, but none
/// can be run.
impl SqlSession for VolumeClient {
    fn volume(&mut self) -> Option<&mut dyn VolumeSession> {
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

/// Connects to the first of its endpoints, always: a file is on one node's volume.
pub struct VolumeConnector {
    first: Option<Endpoint>,
    timeout: Duration,
    connect_timeout: Duration,
}

impl VolumeConnector {
    /// A connector to the first of these.
    #[must_use]
    pub fn new(endpoints: Vec<Endpoint>, timeout: Duration, connect_timeout: Duration) -> Self {
        Self { first: endpoints.into_iter().next(), timeout, connect_timeout }
    }

    async fn connect_to_it(&self) -> Result<Connected, ConnectError> {
        let mut failed_attempts = Vec::new();
        if let Some(Endpoint { node, address }) = &self.first {
            let connected = match address {
                Address::Tcp { address, .. } => VolumeClient::connect(*address, self.connect_timeout).await,
                Address::Unix(_) => {
                    let message = format!("{address}: a volume's process listens on TCP only");
                    Err(failure(ErrorClass::Other, true, message))
                }
            };
            match connected {
                Ok(mut client) => {
                    client.timeout = self.timeout;
                    return Ok(Connected { session: Box::new(client), node: node.clone(), failed_attempts });
                }
                Err(error) => failed_attempts.push(FailedAttempt { node: node.clone(), error }),
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes: Vec::new() })
    }
}

impl SqlConnector for VolumeConnector {
    fn connect<'a>(
        &'a self,
        _: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.connect_to_it())
    }
}
