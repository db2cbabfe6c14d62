//! Sessions with the process that reads and writes a node's volume raw. No database: one pass after another over one
//! connection.
//!
//! Owns the session and the search for a node. The frames are the control database's, the words the crate `rawio`'s.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use history::ErrorClass;
use rand::Rng;
use rawio::{Ask, Done, Pass, Tell};

use crate::connection::{Connection, SessionError, SessionFuture};
use crate::endpoint::{Address, Endpoint};
use crate::frames::{FramedConnection, failure};
use crate::session::{ConnectError, Connected, Connector, FailedAttempt, Session};
use crate::volume::VolumeSession;

/// A session with one node.
pub struct VolumeClient {
    connection: FramedConnection,
}

impl VolumeClient {
    async fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, SessionError> {
        let mut client = Self { connection: FramedConnection::connect(address, timeout).await? };
        match client.connection.converse(&Ask::Hello).await? {
            Tell::Here => Ok(client),
            _ => Err(client.connection.senseless()),
        }
    }

    async fn carry_out(&mut self, pass: Pass) -> Result<Done, SessionError> {
        match self.connection.converse(&Ask::Pass { pass }).await? {
            Tell::Done { done } => Ok(done),
            Tell::Failed { why } => {
                Err(failure(ErrorClass::Other, false, format!("{}: {why}", self.connection.address)))
            }
            Tell::Here => Err(self.connection.senseless()),
        }
    }
}

impl VolumeSession for VolumeClient {
    fn pass(&mut self, pass: Pass) -> SessionFuture<'_, Done> {
        Box::pin(self.carry_out(pass))
    }
}

impl Connection for VolumeClient {
    fn set_timeout(&mut self, timeout: Duration) {
        self.connection.timeout = timeout;
    }

    fn is_broken(&self) -> bool {
        self.connection.broken
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
                    client.connection.timeout = self.timeout;
                    return Ok(Connected {
                        session: Session::of_volume(client),
                        node: node.clone(),
                        failed_attempts,
                    });
                }
                Err(error) => failed_attempts.push(FailedAttempt { node: node.clone(), error }),
            }
        }
        Err(ConnectError { failed_attempts, read_only_nodes: Vec::new() })
    }
}

impl Connector for VolumeConnector {
    fn connect<'a>(
        &'a self,
        _: &'a mut dyn Rng,
    ) -> Pin<Box<dyn Future<Output = Result<Connected, ConnectError>> + 'a>> {
        Box::pin(self.connect_to_it())
    }
}
